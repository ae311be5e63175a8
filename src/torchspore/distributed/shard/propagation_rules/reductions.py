"""Sums, means and extremes; softmax and normalizations, which read an entire dimension."""
from __future__ import annotations

from typing import Any

from torchspore.distributed.shard.propagation_rules.registry import OperatorCall, splits
from torchspore.distributed.shard.propagation_rules.rule import Dims, Naming, Rule

_KINDS = {"sum": "sum", "mean": "avg", "amax": "max", "amin": "min", "nansum": "sum"}


def _axes(value: Any, rank: int) -> set[int]:
    if value is None or (isinstance(value, (list, tuple)) and not value):
        return set(range(rank))
    return {int(axis) % max(rank, 1) for axis in (value if isinstance(value, (list, tuple)) else (value,))}


def _reduced_dims(naming: Naming, dims: Dims, reduced: set[int], keeps: bool) -> Dims:
    return tuple(naming.new(1) if at in reduced else dim for at, dim in enumerate(dims) if keeps or at not in reduced)


@splits("sum", "mean", "amax", "amin", "nansum")
def reduction(call: OperatorCall) -> Rule | None:
    """Along the reduced axes each device has a partial result."""
    name = call.target._opname
    naming, shape = Naming(), call.shape("self")
    dims = naming.all(shape)
    reduced = _axes(call.args.get("dim"), len(shape))
    kinds = {factor: _KINDS[name] for at in reduced for factor in dims[at]}
    is_linear = name in ("sum", "mean") and call.inputs[0].dtype.is_floating_point
    return naming.rule([dims], [_reduced_dims(naming, dims, reduced, bool(call.args.get("keepdim")))], reduced=kinds, linear=is_linear)


@splits("max", "min", "any", "all", "argmax", "argmin", "median", "logsumexp", "prod", "var", "std", "var_mean", "norm",
        "linalg_vector_norm", "cumsum", "cumprod", "sort", "topk", "_softmax", "_log_softmax", "cummax", "cummin", "logcumsumexp",
        "kthvalue", "mode")
def along_an_axis(call: OperatorCall) -> Rule | None:
    """Operators that read one or several dimensions entirely: these are not split, all others may be."""
    name = call.target._opname
    naming, shape = Naming(), call.shape("self")
    if name in ("max", "min") and len(call.inputs) > 1:
        return None
    dims = naming.all(shape)
    axis = next((call.args[key] for key in ("dim", "dims", "axis") if key in call.args), None)
    seen = _axes(axis, len(shape))
    for at in seen:
        naming.lock(dims[at])
    outputs = []
    for out in call.outputs:
        if out is None:
            return None
        if len(out.shape) == len(shape):
            outputs.append(tuple(dim if size == shape[at] and at not in seen else naming.new(size, locked=True)
                                 for at, (dim, size) in enumerate(zip(dims, out.shape))))
        else:
            outputs.append(_reduced_dims(naming, dims, seen, False))
    return naming.rule([dims], outputs)


@splits("topk_indices")
def order_along_the_last_axis(call: OperatorCall) -> Rule | None:
    """The last dimension is not split, all others may be."""
    naming, shape = Naming(), call.shape("x")
    dims = naming.all(shape)
    naming.lock(dims[-1])
    return naming.rule([dims], [(*dims[:-1], naming.new(int(call["k"]), locked=True))])


@splits("_softmax_backward_data", "_log_softmax_backward_data")
def softmax_gradient(call: OperatorCall) -> Rule | None:
    """The gradient of a softmax also reads its entire axis."""
    naming, shape = Naming(), tuple(call.inputs[0].shape)
    dims = naming.all(shape)
    naming.lock(dims[call.axis("dim", len(shape))])
    return naming.rule([dims, dims], [dims])


def _statistics(naming: Naming, ahead: Dims, out: Any) -> Dims:
    """The mean and deviation of a normalization: the leading dimensions, the others of length 1."""
    return tuple(ahead[at] if at < len(ahead) else naming.new(size) for at, size in enumerate(out.shape))


@splits("native_layer_norm", "_fused_rms_norm")
def layer_norm(call: OperatorCall) -> Rule | None:
    """The dimensions before the normalized ones may be split."""
    shape = tuple(call.inputs[0].shape)
    count = len(call["normalized_shape"])
    naming = Naming()
    ahead, behind = naming.all(shape[: len(shape) - count]), naming.all(shape[len(shape) - count :], locked=True)
    outputs = [(*ahead, *behind), *(_statistics(naming, ahead, out) for out in call.outputs[1:])]
    return naming.rule([(*ahead, *behind), *([behind] * (len(call.inputs) - 1))], outputs)


@splits("native_layer_norm_backward", "_fused_rms_norm_backward")
def layer_norm_gradient(call: OperatorCall) -> Rule | None:
    """The gradient of the input is split like the input; those of weight and bias are sums over the leading dimensions."""
    shape = tuple(call.inputs[0].shape)
    count = len(call["normalized_shape"])
    naming = Naming()
    ahead, behind = naming.all(shape[: len(shape) - count]), naming.all(shape[len(shape) - count :], locked=True)
    full_dims = (*ahead, *behind)
    inputs = []
    for at, t in enumerate(call.inputs):
        if at < 2:
            inputs.append(full_dims)
        else:
            inputs.append(behind if tuple(t.shape) == shape[len(shape) - count :] else _statistics(naming, ahead, t))
    outputs = [dims for dims, out in zip([full_dims, behind, behind], call.outputs) if out is not None]
    return naming.rule(inputs, outputs, reduced={factor: "sum" for dim in ahead for factor in dim})
