"""Convolutions by the algorithms that `gpu_config` names: three torch operators, each the gradient of the others.

Experimental: no GPU has run this code yet. It runs only if an option names an algorithm; otherwise torch chooses. A direction that is
'normal' is torch's even if another direction has a name. Plans are stored by shape, so that the fastest algorithm is searched once.
"""
from __future__ import annotations

import threading
from typing import Any

import torch
import torch.nn.functional as F

from torchspore.base import once
from torchspore.base.frames import warn
from torchspore.base.text import list_choices
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.devices import gpu_kinds
from torchspore.engine.devices.gpu import cudnn
from torchspore.engine.devices.gpu.cudnn import Job, Plan, Refused
from torchspore.engine.devices.gpu.cudnn_calls import DATA, DIRECTIONS, FILTER, FORWARD, Direction
from torchspore.engine.devices.gpu.named_algorithms import ALGORITHMS
from torchspore.engine.torch_internals import torch_private
from torchspore.engine.torch_internals.custom_operators import LIBRARY, define
from torchspore.errors import AlgorithmRefused

T = torch.Tensor
Sizes = list[int]
_plans: dict[tuple[Job, str], Plan] = {}
_lock = threading.Lock()


# ---- the options

_requested = dict.fromkeys((side.option for side in DIRECTIONS), "normal")


def forward(name: str) -> Outcome:
    """Apply `conv_fprop_algo`."""
    return _choose(FORWARD, name)


def data(name: str) -> Outcome:
    """Apply `conv_dgrad_algo`."""
    return _choose(DATA, name)


def filter(name: str) -> Outcome:
    """Apply `conv_wgrad_algo`."""
    return _choose(FILTER, name)


def _choose(side: Direction, name: str) -> Outcome:
    """Return whether an algorithm is set for any direction, because one operator serves all three."""
    _requested[side.option] = name
    algorithms = set(_requested.values())
    where = _nowhere()
    ALGORITHMS.are_named = algorithms != {"normal"} and not where and torch.version.hip is None
    if where:
        return Outcome.no_effect(where)
    if torch.version.hip is not None:
        return _choose_on_rocm(name, algorithms)
    if name == "normal":
        return Outcome.applied("torch chooses")
    action = "all are tried once a shape" if name == "performance" else f"cuDNN's {name}"
    return Outcome.applied(f"{action} (experimental: not yet run on a GPU)")


def _nowhere() -> str:
    """Return why no convolution runs by cuDNN; empty if one may."""
    if not gpu_kinds.is_available():
        return "no GPU"
    if STORE.get("device_target") != "GPU":
        return f"operators run on {STORE.get('device_target')}"
    return gpu_kinds.lacks("the algorithms are cuDNN's", gpu_kinds.CUDA, gpu_kinds.ROCM)


def _choose_on_rocm(name: str, algorithms: set[str]) -> Outcome:
    """AMD's MIOpen searches, and takes no names."""
    torch.backends.cudnn.benchmark = "performance" in algorithms and not torch.backends.cudnn.deterministic
    if name in ("normal", "performance"):
        return Outcome.applied("MIOpen tries its algorithms" if name == "performance" else "MIOpen chooses")
    return Outcome.no_effect("MIOpen of ROCm has no algorithms of these names")


def _requested_algorithms() -> tuple[str, ...]:
    return tuple(STORE.get(side.option) for side in DIRECTIONS)


# ---- called by the front end

def applies(x: T, weight: T) -> bool:
    """Return whether a convolution of these may run by a named algorithm."""
    if not (cudnn.computes(x) and weight.device == x.device):
        return False
    return not _in_transform()


def _in_transform() -> bool:
    """Return whether `torch.func` computes here, for `jvp`, `vmap` or a Jacobian: it has derivatives for torch's own operators alone."""
    if not torch_private.in_transform():
        return False
    effects.note("convolutions", "inside of vmap, jvp and Jacobians torch chooses the algorithm")
    return True


def convolve(x: T, weight: T, bias: T | None, stride: Any, padding: Any, dilation: Any, groups: int) -> T:
    """Compute `torch.convolution` by the algorithms that the context names."""
    single, images = x.dim() == weight.dim() - 1, x
    if single:
        images = x.unsqueeze(0)
    out = OPERATORS[FORWARD](images, weight, list(padding), list(stride), list(dilation), groups, ",".join(_requested_algorithms()))
    out = out if bias is None else out + bias.reshape(-1, *[1] * (weight.dim() - 2))
    return out.squeeze(0) if single else out


def convolve_transposed(
    x: T, weight: T, bias: T | None, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any,
) -> T:
    """Compute `torch.conv_transpose2d` and its like: the gradient of a convolution for its input."""
    single, images = x.dim() == weight.dim() - 1, x
    if single:
        images = x.unsqueeze(0)
    count = weight.dim() - 2
    stride, padding, dilation, more = (_each(v, count) for v in (stride, padding, dilation, output_padding))
    if any(o >= s for o, s in zip(more, stride)):           # no convolution leads there from the result
        return (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[count - 1](
            x, weight, bias, stride, padding, more, groups, dilation)
    size = [images.shape[0], weight.shape[1] * groups] + [
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, s, p, d, k, o in zip(images.shape[2:], stride, padding, dilation, weight.shape[2:], more)
    ]
    out = OPERATORS[DATA](weight, images, size, padding, stride, dilation, groups, ",".join(_requested_algorithms()))
    out = out if bias is None else out + bias.reshape(-1, *[1] * count)
    return out.squeeze(0) if single else out


def _each(value: Any, count: int) -> list[int]:
    return [value] * count if isinstance(value, int) else list(value)


# ---- the three operators

def _forward(x: T, w: T, padding: Sizes, stride: Sizes, dilation: Sizes, groups: int, algorithms: str) -> T:
    name = _of(FORWARD, algorithms)
    if name == "normal" or not (x.numel() and w.numel()):
        return torch.convolution(x, w, None, stride, padding, dilation, False, [0] * len(stride), groups)
    return _run(FORWARD, name, x, w, (x.shape, w.shape, _size_of_y(x, w, padding, stride, dilation)), padding, stride, dilation, groups)


def _data(w: T, dy: T, size: Sizes, padding: Sizes, stride: Sizes, dilation: Sizes, groups: int, algorithms: str) -> T:
    name = _of(DATA, algorithms)
    if name == "normal" or not (w.numel() and dy.numel()):
        x = dy.new_empty(1).expand(size)
        return _backward(dy, x, w, padding, stride, dilation, groups, [True, False, False])[0]
    return _run(DATA, name, w, dy, (size, w.shape, dy.shape), padding, stride, dilation, groups)


def _filter(x: T, dy: T, size: Sizes, padding: Sizes, stride: Sizes, dilation: Sizes, groups: int, algorithms: str) -> T:
    name = _of(FILTER, algorithms)
    if name == "normal" or not (x.numel() and dy.numel()):
        w = dy.new_empty(1).expand(size)
        return _backward(dy, x, w, padding, stride, dilation, groups, [False, True, False])[1]
    return _run(FILTER, name, x, dy, (x.shape, size, dy.shape), padding, stride, dilation, groups)


def _backward(dy: T, x: T, w: T, padding: Sizes, stride: Sizes, dilation: Sizes, groups: int, gradients_required: list[bool]) -> Any:
    return torch.ops.aten.convolution_backward(
        dy, x, w, None, stride, padding, dilation, False, [0] * len(stride), groups, gradients_required
    )


def _of(side: Direction, algorithms: str) -> str:
    return algorithms.split(",")[DIRECTIONS.index(side)]


def _size_of_y(x: T, w: T, padding: Sizes, stride: Sizes, dilation: Sizes) -> list[int]:
    """Return the shape of a convolution's result."""
    return [x.shape[0], w.shape[0]] + [
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, p, s, d in zip(x.shape[2:], w.shape[2:], padding, stride, dilation)
    ]


_ARGUMENTS = "int[] padding, int[] stride, int[] dilation, SymInt groups, str algorithms"
OPERATORS: dict[Direction, Any] = {
    FORWARD: define(
        f"conv_forward(Tensor x, Tensor w, {_ARGUMENTS}) -> Tensor", _forward,
        lambda x, w, padding, stride, dilation, *_: x.new_empty(_size_of_y(x, w, padding, stride, dilation)),
    ),
    DATA: define(
        f"conv_data(Tensor w, Tensor dy, SymInt[] size, {_ARGUMENTS}) -> Tensor", _data, lambda w, dy, size, *_: dy.new_empty(size),
    ),
    FILTER: define(
        f"conv_filter(Tensor x, Tensor dy, SymInt[] size, {_ARGUMENTS}) -> Tensor", _filter, lambda x, dy, size, *_: dy.new_empty(size),
    ),
}


def _keep(ctx: Any, inputs: tuple[Any, ...], output: T) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.how = inputs[-5:]


def _gradient_of_forward(ctx: Any, dy: T) -> Any:
    (x, w), how = ctx.saved_tensors, ctx.how
    dx = OPERATORS[DATA](w, dy, x.shape, *how) if ctx.needs_input_grad[0] else None
    dw = OPERATORS[FILTER](x, dy, w.shape, *how) if ctx.needs_input_grad[1] else None
    return dx, dw, *[None] * 5


def _gradient_of_data(ctx: Any, dx: T) -> Any:
    (w, dy), how = ctx.saved_tensors, ctx.how
    dw = OPERATORS[FILTER](dx, dy, w.shape, *how) if ctx.needs_input_grad[0] else None
    ddy = OPERATORS[FORWARD](dx, w, *how) if ctx.needs_input_grad[1] else None
    return dw, ddy, *[None] * 6


def _gradient_of_filter(ctx: Any, dw: T) -> Any:
    (x, dy), how = ctx.saved_tensors, ctx.how
    dx = OPERATORS[DATA](dw, dy, x.shape, *how) if ctx.needs_input_grad[0] else None
    ddy = OPERATORS[FORWARD](x, dw, *how) if ctx.needs_input_grad[1] else None
    return dx, ddy, *[None] * 6


for _side, _gradient in ((FORWARD, _gradient_of_forward), (DATA, _gradient_of_data), (FILTER, _gradient_of_filter)):
    torch.library.register_autograd(OPERATORS[_side], _gradient, setup_context=_keep, lib=LIBRARY)


def _loop_over_batch(operator: Any) -> Any:
    """`vmap` of an operator: each row by itself, so that the named algorithm is the one that runs."""

    def rows(info: Any, in_dims: tuple[Any, ...], first: T, second: T, *how: Any) -> tuple[T, int]:
        parts = [operand.unbind(axis) if axis is not None else [operand] * info.batch_size
                 for operand, axis in zip((first, second), in_dims)]
        return torch.stack([operator(a, b, *how) for a, b in zip(*parts)]), 0

    return rows


for _operator in OPERATORS.values():
    torch.library.register_vmap(_operator, _loop_over_batch(_operator), lib=LIBRARY)


# ---- plans

def _run(side: Direction, name: str, first: T, second: T, shapes: Any, padding: Sizes, stride: Sizes, dilation: Sizes, groups: int) -> T:
    """The result of a direction by a named algorithm. Raises AlgorithmRefused with those that can do it."""
    if first.dtype is torch.float16:
        name = side.half
    sizes = [tuple(shape) for shape in shapes]
    plain = len(stride) == 1                   # cuDNN needs at least two axes
    if plain:
        sizes, padding, stride, dilation = [(*s[:2], 1, s[2]) for s in sizes], [0, *padding], [1, *stride], [1, *dilation]
    job = Job(
        side, sizes[0], sizes[1], sizes[2], first.dtype, first.device, tuple(padding), tuple(stride), tuple(dilation), groups,
        bool(STORE.get("conv_allow_tf32")), torch.backends.cudnn.deterministic,
    )
    out = first.new_empty(sizes["xwy".index(side.out)])
    try:
        _plan(job, name).run(first.contiguous(), second.contiguous(), out)
    except Refused as refused:
        raise AlgorithmRefused(_refusal(job, name, str(refused))) from None
    return out.squeeze(2) if plain else out


def _plan(job: Job, name: str) -> Plan:
    plan = _plans.get((job, name))
    if plan is None:
        if job.ordered and name in job.direction.unordered:
            _warn_unordered(job.direction, name)
        with _lock:
            if len(_plans) >= cudnn.most_plans():
                _plans.clear()
            plan = _plans.setdefault((job, name), Plan(job, name))
        effects.note("convolutions", _table)
    return plan


def _refusal(job: Job, name: str, reason: str) -> str:
    """Return the error text for an algorithm that does not support a shape: it lists those that do."""
    try:
        able = [other for other in cudnn.able(job) if other != name]
    except Refused:                        # not even the shapes are such that cuDNN takes them
        able = []
    option = job.direction.option
    text = f"gpu_config={{{option!r}: {name!r}}}: cuDNN can't do this convolution so: {job} ({reason})"
    return f"{text}.\n\nhint: {option} may be {list_choices([*able, 'normal'])} here"


def _warn_unordered(side: Direction, name: str) -> None:
    """Warns once of an algorithm by name that works against `deterministic`."""
    if once.first_time(("unordered", side.option, name)):
        text = f"{side.option}={name!r} adds in any order: another run may give other bits, in spite of deterministic='ON'"
        effects.note("deterministic", text)
        warn(f"{text}.\n\nhint: write {side.option}={side.half!r}.")


def _table() -> str:
    """Return the table for `torchspore explain`: each shape with its algorithm, and the measurements of a search."""
    lines = []
    for (job, name), plan in list(_plans.items()):
        lines.append(f"{job.direction.option} {job}: {plan.chosen or 'none'}" + (" (the fastest)" if name == "performance" else ""))
        lines += [f"    {row[0]:18} {row[1]:14} {row[2]:9.3f} ms {row[3] / 2**20:9.1f} MB{'' if row[4] else '  in any order'}"
                  for row in sorted(plan.trials, key=lambda row: row[2])]
    return "\n  ".join(lines)
