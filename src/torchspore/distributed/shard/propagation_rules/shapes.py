"""Operators that move values without computing: reshapes, transposes, slices, concatenations."""
from __future__ import annotations

import itertools
import math
from typing import Any

from torchspore.distributed.shard.propagation_rules.elementwise import aligned
from torchspore.distributed.shard.propagation_rules.registry import OperatorCall, splits
from torchspore.distributed.shard.propagation_rules.rule import Dim, Dims, Local, Naming, Rule, of_the_parts
from torchspore.engine.split_layouts.device_layout import Shape


@splits("view", "_unsafe_view", "reshape", "_reshape_alias")
def reshape(call: OperatorCall) -> Rule | None:
    """Find the common parts of two shapes: dimensions that are joined or split consist of the same factors."""
    out = call.outputs[0]
    if out is None or out.dtype != call.inputs[0].dtype:
        return None
    naming = Naming()
    before, after = common(naming, tuple(call.inputs[0].shape), tuple(out.shape))

    return naming.rule([before], [after], arguments=of_the_parts, linear=True)


def common(naming: Naming, before: Shape, after: Shape) -> tuple[Dims, Dims]:
    """Return the dimensions of two shapes of one value as products of common factors; dimensions without common factors are locked."""
    if 0 in before or 0 in after:
        return naming.all(before, True), naming.all(after, True)
    bounds = (_bounds(before), _bounds(after))
    shared = sorted(set(bounds[0]) & set(bounds[1]), reverse=True)
    every = sorted(set(bounds[0]) | set(bounds[1]), reverse=True)
    shared_factors: dict[tuple[int, int], int] = {}
    for above, below in itertools.pairwise(every):
        if above % below == 0:
            shared_factors[above, below] = naming.new(above // below)[0]
    broken = {step for step in itertools.pairwise(every) if step not in shared_factors}
    ruined = [(high, low) for high, low in itertools.pairwise(shared) if any(low <= below and above <= high for above, below in broken)]

    def dims(shape: Shape, factors: list[int]) -> Dims:
        dims: list[Dim] = []
        for size, above, below in zip(shape, factors, factors[1:]):
            if size == 1:
                dims.append(naming.new(1))
            elif any(low <= below and above <= high for high, low in ruined):
                dims.append(naming.new(size, locked=True))
            else:
                inside = [bound for bound in every if below <= bound <= above]
                dims.append(tuple(shared_factors[step] for step in itertools.pairwise(inside)))
        return tuple(dims)

    return dims(before, bounds[0]), dims(after, bounds[1])


def _bounds(shape: Shape) -> list[int]:
    """Return the number of elements, and the number of elements after each dimension."""
    factors = [math.prod(shape)]
    for size in shape:
        factors.append(factors[-1] // size)
    return factors


@splits("t", "transpose", "permute", "numpy_T")
def permutation(call: OperatorCall) -> Rule | None:
    """The dimensions in another order."""
    naming, shape = Naming(), tuple(call.inputs[0].shape)
    dims = naming.all(shape)
    order = list(range(len(shape)))
    if call.target._opname == "permute":
        order = [axis % len(shape) for axis in call["dims"]]
    elif call.target._opname == "transpose":
        first, other = call.axis("dim0", len(shape)), call.axis("dim1", len(shape))
        order[first], order[other] = order[other], order[first]
    else:
        order.reverse()
    return naming.rule([dims], [tuple(dims[axis] for axis in order)], linear=True)


@splits("unsqueeze", "squeeze")
def ones(call: OperatorCall) -> Rule | None:
    """A dimension of length 1 is added, or dimensions of length 1 are removed."""
    shape, out = tuple(call.inputs[0].shape), call.outputs[0]
    if out is None:
        return None
    naming = Naming()
    dims = naming.all(shape)
    if call.target._opname == "unsqueeze":
        at = int(call["dim"]) % (len(shape) + 1)
        return naming.rule([dims], [(*dims[:at], naming.new(1), *dims[at:])], linear=True)
    named = call.args.get("dim")
    gone = {at for at, size in enumerate(shape) if size == 1}
    if named is not None:
        gone &= {int(dim) % max(len(shape), 1) for dim in (named if isinstance(named, (list, tuple)) else (named,))}
    return naming.rule([dims], [tuple(dim for at, dim in enumerate(dims) if at not in gone)], linear=True)


@splits("expand")
def expand(call: OperatorCall) -> Rule | None:
    """Dimensions of length 1 are stretched, and others are added in front."""
    shape, out = tuple(call.inputs[0].shape), call.outputs[0]
    if out is None:
        return None
    naming = Naming()
    dims = naming.all(out.shape)
    return naming.rule([aligned(naming, dims, tuple(out.shape), shape)], [dims], arguments=of_the_parts)


@splits("cat", "stack")
def joined(call: OperatorCall) -> Rule | None:
    """The dimension that is joined is not split."""
    shapes = [tuple(t.shape) for t in call.inputs]
    out = call.outputs[0]
    if out is None or any(len(shape) != len(shapes[0]) for shape in shapes):
        return None
    naming = Naming()
    at = int(call.args.get("dim", 0)) % len(out.shape)
    full = naming.all(out.shape)
    naming.lock(full[at])
    if call.target._opname == "stack":
        return naming.rule([(*full[:at], *full[at + 1 :])] * len(shapes), [full])
    inputs = [(*full[:at], naming.new(shape[at], locked=True), *full[at + 1 :]) for shape in shapes]
    return naming.rule(inputs, [full])


@splits("split", "split_with_sizes", "unbind", "chunk")
def parted(call: OperatorCall) -> Rule | None:
    """The dimension that is divided is not split."""
    shape = tuple(call.inputs[0].shape)
    at = int(call.args.get("dim", 0)) % len(shape)
    naming = Naming()
    dims = naming.all(shape)
    naming.lock(dims[at])
    outputs: list[Dims] = []
    for out in call.outputs:
        if out is None:
            return None
        rest = (*dims[:at], *dims[at + 1 :])
        outputs.append(rest if len(out.shape) < len(shape) else (*dims[:at], naming.new(out.shape[at], locked=True), *dims[at + 1 :]))
    return naming.rule([dims], outputs)


@splits("slice", "select", "narrow", "slice_backward", "select_backward", "constant_pad_nd", "flip", "roll")
def slice_or_pad(call: OperatorCall) -> Rule | None:
    """Operators that extract a part along some dimensions, or write a part into zeros: these dimensions are not split."""
    shape, out = tuple(call.inputs[0].shape), call.outputs[0]
    name = call.target._opname
    if out is None or (name in ("flip", "roll") and not call.args.get("dims")):
        return None
    naming = Naming()
    dims = naming.all(shape)
    if name == "select":
        at = call.axis("dim", len(shape))
        naming.lock(dims[at])
        return naming.rule([dims], [(*dims[:at], *dims[at + 1 :])])
    if name == "select_backward":
        at = call.axis("dim", len(out.shape))
        after = (*dims[:at], naming.new(out.shape[at], locked=True), *dims[at:])
        return naming.rule([dims], [after], arguments=_sizes_of_parts)
    named = _padded(call["pad"], len(shape)) if name == "constant_pad_nd" else call.args.get("dim", call.args.get("dims"))
    touched = {int(dim) % max(len(shape), 1) for dim in (named if isinstance(named, (list, tuple)) else (named or 0,))}
    after_dims: list[Dim] = []
    for at, (dim, size) in enumerate(zip(dims, out.shape)):
        is_touched = size != shape[at] or (name not in ("slice", "narrow", "slice_backward") and at in touched)
        if is_touched:
            naming.lock(dim)
        after_dims.append(naming.new(size, locked=True) if is_touched else dim)
    return naming.rule([dims], [tuple(after_dims)], arguments=_sizes_of_parts if name == "slice_backward" else _ends(name))


def _padded(pad: Any, rank: int) -> list[int]:
    """Return the dimensions that a padding changes, the last one first in `pad`; also one that grows at one end and shrinks at the other.
    """
    return [rank - 1 - at for at in range(len(pad) // 2) if pad[2 * at] or pad[2 * at + 1]]


def _ends(name: str) -> Any:
    """A slice of an entire dimension may name its end; for a part, the end differs."""
    if name != "slice":
        return None

    def arguments(args: list[Any], kwargs: dict[str, Any], local: Local) -> None:
        at = (args[1] if len(args) > 1 else 0) % len(local.parts[0])
        if local.inputs[0].dim_axes[at]:
            args[2:4] = [0, local.parts[0][at]]

    return arguments


def _sizes_of_parts(args: list[Any], kwargs: dict[str, Any], local: Local) -> None:
    args[1] = list(local.parts[0])
    if len(args) > 4 and local.outputs[0].dim_axes[args[2] % len(args[1])]:
        args[3:5] = [0, args[1][args[2]]]


@splits("repeat")
def repeat(call: OperatorCall) -> Rule | None:
    """Repeated dimensions are not split."""
    shape, out = tuple(call.inputs[0].shape), call.outputs[0]
    if out is None:
        return None
    naming = Naming()
    dims = naming.all(out.shape)
    ahead = len(out.shape) - len(shape)
    before: list[Dim] = []
    for at, size in enumerate(shape):
        if call["repeats"][ahead + at] == 1:
            before.append(dims[ahead + at])
        else:
            before.append(naming.new(size, locked=True))
            naming.lock(dims[ahead + at])
    for dim in dims[:ahead]:
        naming.lock(dim)
    return naming.rule([tuple(before)], [dims])
