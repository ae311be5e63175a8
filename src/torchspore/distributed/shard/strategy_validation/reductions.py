"""Operators that remove axes."""
from __future__ import annotations

from torchspore.distributed.shard.strategy_validation.axis_labels import UNCUT, Call, Family, Form, labels


def reduction(call: Call) -> Form:
    """Sum, mean, maximum, ...: reduced axes may be split; a collective combines the devices' results."""
    rank = len(call.shapes[0])
    reduced_axes = call.get("axis", "dim", default=())
    reduced = {axis % rank for axis in ((reduced_axes,) if isinstance(reduced_axes, int) else tuple(reduced_axes))} or set(range(rank))
    axes = labels(rank)
    if call.get("keep_dims", "keepdim", default=False):
        remaining_axes = tuple(UNCUT if axis in reduced else axes[axis] for axis in range(rank))
    else:
        remaining_axes = tuple(axes[axis] for axis in range(rank) if axis not in reduced)
    return Form(inputs=(axes,), outputs=(remaining_axes,), order=axes)


def square_sums(call: Call) -> Form:
    """Two inputs of one shape: the sum of the squares of each."""
    axes = labels(len(call.shapes[0]))
    return Form(inputs=(axes, axes), outputs=((), ()), order=axes)


def arg_reduction(call: Call) -> Form:
    """The maximum or minimum along one axis, and its position: two outputs."""
    axis = call.axis("axis", default=0)
    axes = labels(len(call.shapes[0]))
    remaining_axes = tuple(UNCUT if place == axis else axes[place] for place in range(len(axes)))
    if not call.get("keep_dims", default=False):
        remaining_axes = remaining_axes[:axis] + remaining_axes[axis + 1:]
    return Form(inputs=(axes,), outputs=(remaining_axes, remaining_axes), order=axes)


def arg_reduction_along(call: Call) -> Form:
    """The maximum or minimum along `dim`, which stays unsplit, and its position."""
    axes = labels(len(call.shapes[0]))
    axis = call.axis("dim", default=0)
    form = arg_reduction(Call(call.name, {"axis": axis, "keep_dims": call.get("keepdim", default=False)}, call.shapes))
    return Form(inputs=form.inputs, outputs=form.outputs, order=form.order, uncut={axes[axis]: f"axis {axis} is reduced"})


def arg_reduction_value(call: Call) -> Form:
    """The position of the maximum or minimum along one axis."""
    form = arg_reduction(call)
    return Form(inputs=form.inputs, outputs=form.outputs[:1], order=form.order)


FAMILIES: dict[str, Family] = {
    **dict.fromkeys((
        "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceAny", "ReduceAll", "SumExt", "MeanExt", "ProdExt",
        "L2Loss", "ReduceStd", "LogSumExp",
    ), reduction), "SquareSumAll": square_sums,
    **dict.fromkeys(("MaxDim", "MinDim"), arg_reduction_along),
    **dict.fromkeys(("ArgMaxWithValue", "ArgMinWithValue"), arg_reduction), **dict.fromkeys(
        ("Argmax", "Argmin", "ArgMaxExt", "ArgMinExt"), arg_reduction_value,
    ),
}
