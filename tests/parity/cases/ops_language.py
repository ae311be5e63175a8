"""Python values in programs, transforms of functions, casts of mixed precision, operators of the user's own, prints."""
from __future__ import annotations

import contextlib
import io

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case, raised

X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
Y = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)
V = np.array([1.0, 2.0], np.float32)


def tensor(value):
    return ms.Tensor(np.asarray(value))


def listed(value):
    """Nested Tensors as nested lists of arrays' lists."""
    if isinstance(value, ms.Tensor):
        return [str(value.dtype), np.round(value.asnumpy().astype(np.float64), 4).tolist()]
    return [listed(item) for item in value] if isinstance(value, (tuple, list)) else value


VALUES = {
    "scalar_to_tensor": lambda: [ops.scalar_to_tensor(2), ops.scalar_to_tensor(2.5, ms.float16), ops.scalar_to_tensor(True, ms.int32)],
    "ScalarToTensor": lambda: [ops.ScalarToTensor()(2.5), ops.ScalarToTensor()(2, ms.int32)],
    "ScalarCast": lambda: [ops.ScalarCast()(5.5, ms.int64), ops.ScalarCast()(5, ms.float64)],
    "make_range": lambda: [ops.make_range(3), ops.make_range(1, 4), ops.make_range(1, 8, 3)],
    "tuple_len": lambda: [ops.tuple_len((1, 2)), ops.tuple_len(())],
    "shape_mul": lambda: [ops.shape_mul((2, 3)), ops.shape_mul((4,))],
    "typeof": lambda: [str(ops.typeof(2)), str(ops.typeof(2.5)), str(ops.typeof(True))],
    "isconstant": lambda: [ops.isconstant(2)],
    "hastype": lambda: [ops.hastype(1, ms.int64)],
    "broadcast_gradient_args": lambda: [
        ops.broadcast_gradient_args((2, 3), (3,)), ops.broadcast_gradient_args((2, 1, 4), (5, 1)), ops.broadcast_gradient_args((2,), (2,)),
    ],
    "make_tuple": lambda: [ops.make_tuple(1, 2.5)],
    "is_tensor": lambda: [ops.is_tensor(3), ops.is_tensor(tensor(X)), ms.is_tensor([1])],
    **{name: (lambda name=name: [getattr(ops, name)(7, 2), getattr(ops, name)(-2.5, 2)]) for name in (
        "scalar_add scalar_sub scalar_mul scalar_div scalar_floordiv scalar_mod scalar_pow scalar_max scalar_min scalar_eq scalar_gt "
        "scalar_ge scalar_lt scalar_le"
    ).split()},
    **{name: (lambda name=name: [getattr(ops, name)(2.0)]) for name in "scalar_log scalar_uadd scalar_usub".split()},
    "mixed_precision_cast": lambda: [ops.mixed_precision_cast(ms.float16, tensor(X)), ops.mixed_precision_cast(ms.float16, (
        tensor(X), tensor(np.array([1, 2])),
    ))],
    "hyper_add": lambda: [ops.hyper_add((tensor(X), (1, 2)), (tensor(Y), (3, 4)))],
    "augassign_add": lambda: [ops.augassign_add(tensor(X), tensor(Y)), ops.augassign_sub(tensor(X), tensor(Y))],
    "ReduceOp": lambda: [ops.ReduceOp.SUM, ops.ReduceOp.MAX, ops.ReduceOp.MIN, ops.ReduceOp.PROD],
    "DataType": lambda: [list(ops.DataType.F32_Default), list(ops.DataType.None_None), list(ops.DataType.I8_FracNZ), list(
        ops.DataType.F16_Default_Tuple,
    )],
    "StopGradient": lambda: [ops.StopGradient()(tensor(X)), ms.grad(lambda x: ops.StopGradient()(x) * x)(tensor(X))],
    "deepcopy": lambda: [ops.deepcopy(tensor(X))],
    "add_flags": lambda: [sorted(ops.add_flags(lambda x: x, predict=True)._func_graph_flags)],
    "summaries": lambda: [ops.ScalarSummary()("a", tensor(V[0:1])), ops.TensorSummary()("a", tensor(X)), ops.HistogramSummary()(
        "a", tensor(X),
    ), ops.ImageSummary()("a", tensor(X[None, None]))],
}


@case(over=VALUES, graph=True)
def value(ask):
    return {"found": listed(ask())}


def f(x, y):
    return x * x * y


def g(x, y):
    return x * y, x + y


def h(x):
    return ops.sin(x)


def vector(fn, *inputs, **keywords):
    result, product, *rest = ops.vjp(fn, *inputs, **keywords)
    first = result if isinstance(result, tuple) else (result,)
    return result, product(*[number + 1 for number in first]), *rest


def straight(fn, inputs, v):
    result, product = ops.linearize(fn, inputs)
    return result, product(v)


class Net(ms.nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(tensor(V + 1), name="w")

    def construct(self, x):
        return ops.sin(x * self.w)


NET = Net()
TRANSFORMED = {
    "jvp": lambda: ops.jvp(f, (tensor(X), tensor(Y)), (tensor(Y), tensor(X))),
    "jvp_one": lambda: ops.jvp(h, tensor(X), tensor(Y)),
    "jvp_tuple": lambda: ops.jvp(g, (tensor(X), tensor(Y)), (tensor(Y), tensor(X))),
    "jvp_aux": lambda: ops.jvp(g, (tensor(X), tensor(Y)), (tensor(Y), tensor(X)), has_aux=True),
    "jvp_net": lambda: ms.jvp(NET, tensor(X), tensor(Y)),
    "vjp": lambda: vector(f, tensor(X), tensor(Y)),
    "vjp_one": lambda: vector(h, tensor(X)),
    "vjp_tuple": lambda: vector(g, tensor(X), tensor(Y)),
    "vjp_aux": lambda: vector(g, tensor(X), tensor(Y), has_aux=True),
    "vjp_weights": lambda: vector(NET, tensor(X), weights=NET.trainable_params()),
    "vjp_weight": lambda: vector(NET, tensor(X), weights=NET.w),
    "jacfwd": lambda: ops.jacfwd(h)(tensor(V)),
    "jacrev": lambda: ops.jacrev(h)(tensor(V)),
    "jacfwd_all": lambda: ms.jacfwd(f, (0, 1))(tensor(V), tensor(V * 2)),
    "jacrev_all": lambda: ms.jacrev(g, (0, 1))(tensor(V), tensor(V * 2)),
    "jacfwd_second": lambda: ops.jacfwd(f, 1)(tensor(V), tensor(V * 2)),
    "jacrev_aux": lambda: ops.jacrev(g, 0, True)(tensor(V), tensor(V)),
    "jacrev_net": lambda: ops.jacrev(NET)(tensor(V)),
    "derivative": lambda: ops.derivative(h, tensor(V), 2),
    "jet": lambda: ops.jet(h, tensor(V), tensor(np.stack([V, V * 2]))),
    "linearize": lambda: straight(f, (tensor(X), tensor(Y)), (tensor(Y), tensor(X))),
    "vmap": lambda: ops.vmap(h)(tensor(X)),
    "vmap_none": lambda: ops.vmap(f, (0, None))(tensor(X), tensor(Y[0])),
    "vmap_axes": lambda: ms.vmap(g, (0, 1), (1, 0))(tensor(X), tensor(Y)),
    "vmap_last": lambda: ops.vmap(f, -1, -1)(tensor(X), tensor(Y)),
    "vmap_net": lambda: ops.vmap(NET)(tensor(X)),
    "vmap_twice": lambda: ops.vmap(ops.vmap(f))(tensor(X), tensor(Y)),
}


@case(over=TRANSFORMED, graph=True)
def transformed(ask):
    return {"found": listed(ask())}


TOKENS = np.array([[[1, 2, 3, 1, 2]], [[3, 3, 3, 3, 3]]], np.int32)
CHANCES = np.arange(10, dtype=np.float32).reshape(2, 1, 5) - 20
AT = np.array([[0, 0], [0, 1], [1, 0]])
POSITIONS = np.array([[0, 0], [0, 1], [0, 2], [1, 0]])
SEQUENCES = {
    "EditDistance": lambda: ops.EditDistance()(tensor(AT), tensor(np.array([1, 2, 3])), tensor(np.array([2, 2])), tensor(
        POSITIONS,
    ), tensor(np.array([1, 5, 2, 3])), tensor(np.array([2, 3]))),
    "EditDistance_plain": lambda: ops.EditDistance(False)(tensor(AT), tensor(np.array([1, 2, 3])), tensor(np.array([2, 2])), tensor(
        POSITIONS,
    ), tensor(np.array([4, 5, 6, 9])), tensor(np.array([2, 3]))),
    "NoRepeatNGram": lambda: ops.NoRepeatNGram(2)(tensor(TOKENS), tensor(CHANCES)),
    "NoRepeatNGram_3": lambda: ops.NoRepeatNGram(3)(tensor(TOKENS), tensor(CHANCES)),
    "SubAndFilter": lambda: ops.SubAndFilter()(tensor(np.array([1, 5, 7, 9], np.int32)), 6, 2),
    "MapUniform": lambda: ops.MapUniform()(tensor(np.array([1, 5, 7, 0], np.int32)), 4, 2),
    "WhileLoop": lambda: ops.WhileLoop()(lambda x: x < 20, lambda x: x * 2, tensor(np.float32(1))),
    "ForiLoop": lambda: ops.ForiLoop()(0, 4, lambda i, x: x + i, tensor(np.float32(1))),
    "Scan": lambda: ops.Scan()(lambda carry, x: (carry + x, carry * x), tensor(np.float32(1)), [tensor(V[0]), tensor(V[1])], 2),
    "Reusing": lambda: ops.Reusing()(h)(tensor(X)),
    "CombinedNonMaxSuppression": lambda: ops.CombinedNonMaxSuppression()(
        tensor(np.array([[[[0, 0, 0.5, 0.5]], [[0, 0, 0.4, 0.5]], [[0.6, 0.6, 1.2, 1]]]], np.float32)),
        tensor(np.array([[[0.9, 0.1], [0.8, 0.5], [0.7, 0.65]]], np.float32)), tensor(np.int32(2)), tensor(np.int32(4)),
        tensor(np.float32(0.5)), tensor(np.float32(0.2)),
    ),
}


@case(over=SEQUENCES)
def sequence(ask):
    return {"found": listed(ask())}


@case()
def hooked():
    seen = []
    hook = ops.HookBackward(lambda gradient: seen.append(len(gradient)))
    other = ops.HookBackward(lambda gradient: gradient[0] * 2)
    return {
        "plain": listed(ms.grad(lambda x: hook(x) * 3)(tensor(V))), "seen": seen, "changed": listed(
            ms.grad(lambda x: other(x) * 3)(tensor(V))
        ),
    }


@case()
def of_ones_own():
    def added(a, b):
        return a + b * 2

    def backward(a, b, out, dout):
        return dout, dout * 2

    custom = ops.Custom(added, out_shape=lambda a, b: a, out_dtype=lambda a, b: a, func_type="pyfunc", bprop=backward)

    @ops.kernel
    def doubled(a):
        output = output_tensor(a.shape, a.dtype)  # noqa: F821
        for i in range(a.shape[0]):
            output[i] = a[i] * 2
        return output

    info = ops.CustomRegOp("added").input(0, "x").input(1, "y", "dynamic")
    info = info.output(0, "z").dtype_format(
        ops.DataType.F32_Default, ops.DataType.F32_Default, ops.DataType.F32_Default,
    ).target("CPU").get_op_info()
    records = [
        kind("a").input(0, "x").output(0, "z").dtype_format(ops.DataType.F16_Default, ops.DataType.I8_None).get_op_info()
        for kind in (ops.CpuRegOp, ops.AiCPURegOp, ops.AkgGpuRegOp, ops.AkgAscendRegOp)
    ]
    return {
        "output": custom(tensor(X), tensor(Y)).asnumpy(),
        "gradient": listed(ms.grad(lambda a, b: custom(a, b), (0, 1))(tensor(X), tensor(Y))),
        "doubled": doubled(X), "info": [info["op_name"], info["target"], len(info["inputs"])],
        "records": [[record["imply_type"], record["dtype_format"][0][0][0]] for record in records],
        "wrong": raised(lambda: ops.Custom(3)),
    }


@case()
def printed():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        results = [ops.Print()("x is", tensor(V)), ops.print_(1, 2.5, (1, 2), None)]
    return {"found": results, "text": out.getvalue()}


@case()
def refused():
    return {
        "a text": raised(lambda: ops.scalar_to_tensor("2")), "no hook": raised(lambda: ops.HookBackward(1)),
    }
