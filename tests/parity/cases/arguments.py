"""Arguments that are easily taken and forgotten."""
from __future__ import annotations

import itertools
import os
import tempfile

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case, raised

RANDOM = np.random.RandomState(3)
LOGITS = ops.log_softmax(ms.Tensor(RANDOM.rand(6, 4).astype(np.float32)))
PLANES = ops.log_softmax(ms.Tensor(RANDOM.rand(2, 4, 3, 2).astype(np.float32)), 1)
CLASSES, PLANE_CLASSES = ms.Tensor([0, 1, 2, 3, 1, 0], ms.int32), ms.Tensor(RANDOM.randint(0, 4, (2, 3, 2)), ms.int32)
WEIGHT = ms.Tensor([0.5, 1.0, 2.0, 3.0], ms.float32)


@case(rtol=1e-4, graph=True, over=[f"{r} {w} {i}" for r, w, i in itertools.product(("mean", "sum", "none"), "nw", (-100, 1))])
def nll_loss_smooths_labels(text):
    reduction, weighted, ignored = text.split()
    weight = WEIGHT if weighted == "w" else None
    return {
        str(share): ops.nll_loss(values, labels, weight, int(ignored), reduction, share).asnumpy()
        for share, values, labels in ((0.1, LOGITS, CLASSES), (0.5, LOGITS, CLASSES), (0.25, PLANES, PLANE_CLASSES))
    }


X = ms.Tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
MASK = ms.Tensor([[True, False, True], [False, True, False]])
BOUNDS = {
    "initial 4.5": {"initial": 4.5}, "initial 7": {"initial": 7}, "initial 0": {"initial": 0}, "where": {"initial": 2.5, "where": MASK},
    "where of a row": {"initial": 2.5, "where": ms.Tensor([True, False, True])},
}


@case(graph=True, over=[f"{name}, {axis}" for name in BOUNDS for axis in (0, 1, -1)])
def extremes_with_bounds(text):
    name, axis = text.split(", ")
    results = {}
    for way in ("max", "min"):
        values, indexes = getattr(ops, way)(X, int(axis), **BOUNDS[name])
        extreme = getattr(ops, way)(X, int(axis), True, **BOUNDS[name])[0]
        method = getattr(X, way)(int(axis), **BOUNDS[name])
        both = getattr(X, way)(int(axis), return_indices=True, **BOUNDS[name])
        results |= {f"{way} {i}": v.asnumpy() for i, v in enumerate((values, indexes, extreme, method, *both))}
    return results


@case()
def wrong_bounds_are_refused():
    return {
        "no initial": raised(lambda: ops.max(X, 1, where=MASK)), "text": raised(lambda: ops.min(X, 1, initial="a")),
        "seed": raised(lambda: ops.dropout(X, 0.5, True, -5)), "seed of text": raised(lambda: ops.dropout(X, 0.5, True, "a")),
        "locking": raised(lambda: nn.FTRL(nn.Dense(2, 2).trainable_params(), use_locking=3)),
        "device": raised(lambda: ms.Tensor([1.0], device="zzz")), "device of a Parameter": raised(lambda: ms.Parameter(X, device="zzz")),
        "new_zeros": raised(lambda: X.new_zeros((2,), foo=1)), "mode": raised(lambda: ops.Conv2D(2, 3, mode=0)(
            ops.ones((1, 1, 4, 4)), ops.ones((2, 1, 3, 3)))),
    }


class Fails(nn.Cell):
    def construct(self, x):
        raise ValueError("mine")


@case()
def hooks_that_are_always_called():
    seen = []

    def fails(cell, *rest):
        seen.append("fails")
        raise KeyError("hook")

    def outcome(cell, *hooks, pre=None):
        for hook, options in hooks:
            cell.register_forward_hook(hook, **options)
        if pre:
            cell.register_forward_pre_hook(pre)
        seen.append(raised(lambda: cell(X)))

    plain = (lambda cell, inputs, out: seen.append(f"plain {type(out).__name__}"), {})
    always = (lambda cell, inputs, out: seen.append(f"always {type(out).__name__}"), {"always_call": True})
    named = (lambda cell, inputs, named, out: seen.append(f"named {sorted(named)}"), {"always_call": True, "with_kwargs": True})
    outcome(Fails(), plain, always, named)
    outcome(Fails(), (fails, {"always_call": True}), always)
    outcome(nn.ReLU(), plain, (fails, {}), plain, always)
    outcome(nn.ReLU(), always, plain, pre=fails)
    outcome(nn.ReLU(), always, plain)
    return {"seen": seen}


SAVED = {
    "append": {"append_dict": {"epoch": 3}},
    "append and choose": {"append_dict": {"epoch": 3}, "choice_func": lambda name: name == "weight"},
    "append what is not chosen": {"append_dict": {"weight": 3}, "choice_func": lambda name: name == "bias"},
    "append what is there": {"append_dict": {"weight": 3}}, "choose": {"choice_func": lambda name: name == "weight"},
}


@case(over=SAVED)
def what_a_checkpoint_holds(arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.ckpt")
        ms.save_checkpoint(nn.Dense(2, 2), path, **arguments)
        checkpoint = ms.load_checkpoint(path)
        listed = os.path.join(folder, "b.ckpt")
        ms.save_checkpoint([{"name": name, "data": ms.Tensor([1.0])} for name in ("weight", "bias")], listed, **arguments)
        return {"cell": {n: list(p.shape) for n, p in sorted(checkpoint.items())}, "list": sorted(ms.load_checkpoint(listed))}


@case(rtol=1e-5, graph=True)
def layer_norm_with_parameters_of_fewer_axes():
    x = ms.Tensor(np.arange(24).reshape(2, 3, 4).astype(np.float32))
    gamma, beta = ms.Tensor([1.0, 2.0, 3.0, 4.0]), ms.Tensor([0.0, 1.0, 0.0, 1.0])
    out, mean, variance = ops.LayerNorm(1, 2)(x, gamma, beta)
    return {"out": out.asnumpy(), "mean": mean.asnumpy(), "variance": variance.asnumpy()}


SQUARE = ms.Tensor(np.arange(12).reshape(3, 4).astype(np.float32))
CUBE = ms.Tensor(np.arange(24).reshape(2, 3, 4).astype(np.float32))
PAIR, OTHER = ms.Tensor(np.array([1.0, 2.0], np.float32)), ms.Tensor(np.array([3.0, 4.0], np.float32))
METHODS = {
    "trace offset": lambda: SQUARE.trace(1), "trace axes": lambda: CUBE.trace(1, 0, 2), "trace dtype": lambda: CUBE.trace(dtype=ms.int32),
    "trace below": lambda: SQUARE.trace(offset=-1, dtype=ms.float16), "softmax dtype": lambda: SQUARE.softmax(1, ms.float64),
    "addr": lambda: ms.Tensor(np.ones((2, 2), np.float32)).addr(PAIR, OTHER, beta=2, alpha=3),
    "multiply": lambda: PAIR.multiply(value=OTHER),
    "approximate_equal": lambda: PAIR.approximate_equal(other=OTHER), "float_power": lambda: PAIR.float_power(other=2).astype(ms.float32),
    "diagonal": lambda: SQUARE.diagonal(axis1=1, axis2=0), "qr": lambda: ms.ops.abs(SQUARE.T.qr(False)[0]).sum().astype(ms.int32),
    "qr some": lambda: ms.Tensor(SQUARE.T.qr(some=True)[0].shape), "cumsum": lambda: SQUARE.cumsum(),
    "soft_shrink": lambda: SQUARE.soft_shrink(lambd=1.5),
}


@case(over=METHODS, rtol=1e-5, graph=True)
def method_arguments(call):
    return {"out": call().asnumpy()}


@case()
def order_of_hooks():
    seen, net = [], ms.nn.Dense(2, 2)
    net.register_forward_hook(lambda cell, arguments, out: seen.append("a"))
    net.register_forward_hook(lambda cell, arguments, out: seen.append("b"), prepend=True)
    net.register_forward_pre_hook(lambda cell, arguments: seen.append("c"))
    net.register_forward_pre_hook(lambda cell, arguments: seen.append("d"), prepend=True)
    net(ms.Tensor(np.ones((1, 2), np.float32)))
    return {"seen": seen, "popped": type(ms.nn.CellDict({"a": net}).pop(key="a")).__name__}
