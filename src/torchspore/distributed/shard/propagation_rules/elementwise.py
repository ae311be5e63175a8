"""Operators whose result at an index depends on the operands at that index."""
from __future__ import annotations

from collections.abc import Sequence

from torchspore.distributed.shard.propagation_rules.registry import OperatorCall, splits
from torchspore.distributed.shard.propagation_rules.rule import Dims, Naming, Rule, of_the_parts
from torchspore.engine.split_layouts.device_layout import Shape

_LINEAR = {"neg": 1, "_to_copy": 1, "clone": 1, "detach": 1, "alias": 1, "add": 2, "sub": 2, "lift_fresh_copy": 1}
"""How many Tensors they take: a number that is added would be added once by each device that holds a term."""


def aligned(naming: Naming, dims: Dims, full: Shape, shape: Sequence[int]) -> Dims:
    """Return the dimensions of an operand that broadcasts to `full`; a stretched dimension has a separate factor of length 1."""
    ahead = len(full) - len(shape)
    return tuple(dims[ahead + at] if size == full[ahead + at] else naming.new(size) for at, size in enumerate(shape))


@splits("pointwise", "threshold_backward", "_to_copy", "clone", "alias", "detach", "native_dropout_backward", "gelu_backward", "where",
        "copy", "lift_fresh_copy", "masked_fill", "silu_backward", "hardtanh_backward", "log_sigmoid_forward", "log_sigmoid_backward",
        "contiguous")
def pointwise(call: OperatorCall) -> Rule | None:
    """Operands that broadcast against each other."""
    out = call.outputs[0]
    if out is None or any(other is not None and other.shape != out.shape for other in call.outputs):
        return None
    naming, full = Naming(), tuple(out.shape)
    dims = naming.all(full)
    inputs = [aligned(naming, dims, full, tuple(t.shape)) for t in call.inputs]
    alike = _LINEAR.get(call.target._opname) == len(call.inputs) and all(tuple(t.shape) == full for t in call.inputs)
    return naming.rule(inputs, [dims] * len(call.outputs), linear=alike and out.dtype.is_floating_point)


@splits("zeros_like", "ones_like", "full_like", "empty_like")
def filled_like(call: OperatorCall) -> Rule | None:
    """A value in the shape of another."""
    naming = Naming()
    dims = naming.all(call.inputs[0].shape)
    return naming.rule([dims], [dims])


@splits("new_zeros", "new_ones", "new_full", "new_empty")
def filled_new(call: OperatorCall) -> Rule | None:
    """A value in a given shape, split like the Tensor that it is created from if the shapes are equal."""
    naming = Naming()
    out = call.outputs[0]
    if out is None or tuple(out.shape) != tuple(call.inputs[0].shape):
        return None
    dims = naming.all(out.shape)

    return naming.rule([dims], [dims], arguments=of_the_parts)
