"""Operators that take axes away."""
from __future__ import annotations

from torchspore.distributed.shard.strategies.axis_labels import WHOLE, Call, Family, Form, labels


def reduction(call: Call) -> Form:
    """Sum, mean, largest, ...: axes that are reduced may be cut; a collective joins what the devices found."""
    rank = len(call.shapes[0])
    given = call.get("axis", "dim", default=())
    reduced = {axis % rank for axis in ((given,) if isinstance(given, int) else tuple(given))} or set(range(rank))
    axes = labels(rank)
    if call.get("keep_dims", "keepdim", default=False):
        kept = tuple(WHOLE if axis in reduced else axes[axis] for axis in range(rank))
    else:
        kept = tuple(axes[axis] for axis in range(rank) if axis not in reduced)
    return Form(inputs=(axes,), outputs=(kept,), order=axes)


def with_places(call: Call) -> Form:
    """The largest or smallest along one axis, and where it is: two outputs."""
    axis = call.axis("axis", default=0)
    axes = labels(len(call.shapes[0]))
    kept = tuple(WHOLE if place == axis else axes[place] for place in range(len(axes)))
    if not call.get("keep_dims", default=False):
        kept = kept[:axis] + kept[axis + 1:]
    return Form(inputs=(axes,), outputs=(kept, kept), order=axes)


def place(call: Call) -> Form:
    """The place of the largest or smallest along one axis."""
    found = with_places(call)
    return Form(inputs=found.inputs, outputs=found.outputs[:1], order=found.order)


FAMILIES: dict[str, Family] = {
    **dict.fromkeys((
        "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceAny", "ReduceAll", "SumExt", "MeanExt", "ProdExt",
        "SquareSumAll", "L2Loss", "ReduceStd", "LogSumExp",
    ), reduction),
    **dict.fromkeys(("ArgMaxWithValue", "ArgMinWithValue"), with_places), **dict.fromkeys(
        ("Argmax", "Argmin", "ArgMaxExt", "ArgMinExt"), place,
    ),
}
