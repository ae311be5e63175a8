"""Operators that move, join, slice or repeat their inputs."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchspore.distributed.shard.strategy_validation.axis_labels import UNCUT, Call, Family, Form, Labels, labels


def _numbers(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value or ())


def _uncut(axes: Labels, which: Iterable[int], why: str) -> dict[str, str]:
    return {axes[axis]: why.format(axis) for axis in which}


def transpose(call: Call) -> Form:
    """The axes in another order."""
    axes = labels(len(call.shapes[0]))
    order = _numbers(call.get("dims", "input_perm", "perm", default=tuple(range(len(axes)))[::-1]))
    return Form(inputs=(axes,), outputs=(tuple(axes[axis] for axis in order),), order=axes)


def concat(call: Call) -> Form:
    """Inputs concatenated along one axis, which stays unsplit."""
    axes = labels(len(call.shapes[0]))
    axis = call.axis("axis", "dim", default=0)
    return Form(
        inputs=(axes,) * len(call.shapes), outputs=(axes,), order=axes, uncut=_uncut(axes, (axis,), "inputs are joined along axis {}"),
    )


def stack(call: Call) -> Form:
    """Inputs of one shape along a new axis."""
    axes = labels(len(call.shapes[0]))
    axis = call.axis("axis", "dim", rank=len(axes) + 1, default=0)
    return Form(inputs=(axes,) * len(call.shapes), outputs=((*axes[:axis], UNCUT, *axes[axis:]),), order=axes)


def split(call: Call) -> Form:
    """Parts along one axis, which stays unsplit."""
    axes = labels(len(call.shapes[0]))
    axis = call.axis("axis", "dim", default=0)
    sizes = call.get("size_splits", "split_size_or_sections")
    count = len(sizes) if isinstance(sizes, (tuple, list)) else int(call.get("output_num", default=1))
    return Form(inputs=(axes,), outputs=(axes,) * count, order=axes, uncut=_uncut(axes, (axis,), "axis {} is split by the operator"))


def unstack(call: Call) -> Form:
    """Operators that treat each element along one axis separately."""
    axes = labels(len(call.shapes[0]))
    axis = call.axis("axis", default=0)
    rest = axes[:axis] + axes[axis + 1:]
    return Form(
        inputs=(axes,), outputs=(rest,) * call.shapes[0][axis], order=axes, uncut=_uncut(
            axes, (axis,), "axis {} is taken apart by the operator",
        ),
        lenient=True,
    )


def part(call: Call) -> Form:
    """A block of the input: axes that it covers only partly stay unsplit."""
    shape = call.shapes[0]
    axes = labels(len(shape))
    sizes = _numbers(call.get("size"))
    partly = [axis for axis, (size, taken) in enumerate(zip(shape, sizes)) if taken not in (size, -1)]
    return Form(inputs=(axes,), outputs=(axes,), order=axes, uncut=_uncut(axes, partly, "a part of axis {} is taken"))


def strided(call: Call) -> Form:
    """A block with steps: axes that are covered partly, or in steps, stay unsplit; masks remove axes and add axes of length 1.

    With `ellipsis_mask`, or a longer `begin` than the input has axes, all axes stay unsplit, as in MindSpore.
    """
    shape = call.shapes[0]
    axes = labels(len(shape))
    begin, end, steps = (_numbers(call.get(*names)) for names in (("begin",), ("end",), ("strides", "stride")))
    new_axes = call.get("new_axis_mask", default=0)
    if call.get("ellipsis_mask", default=0) or (new_axes and len(begin) > len(shape)):
        return Form(inputs=(axes,), outputs=((),), order=axes, uncut=_uncut(axes, range(len(axes)), "masks move axis {}"))
    partly, result, axis = [], [], 0
    for at, (first, last, step) in enumerate(zip(begin, end, steps)):
        if new_axes >> at & 1:
            result.append(UNCUT)
            continue
        if axis == len(shape):
            break
        is_gone = call.get("shrink_axis_mask", default=0) >> at & 1
        is_first = call.get("begin_mask", default=0) >> at & 1 or first in (0, -shape[axis])
        is_last = call.get("end_mask", default=0) >> at & 1 or last >= shape[axis]
        if is_gone or not (is_first and is_last and step == 1):
            partly.append(axis)
        if not is_gone:
            result.append(axes[axis])
        axis += 1
    return Form(inputs=(axes,), outputs=((*result, *axes[axis:]),), order=axes, uncut=_uncut(axes, partly, "a part of axis {} is taken"))


def expand(call: Call) -> Form:
    """A new axis of length 1."""
    axes = labels(len(call.shapes[0]))
    axis = call.axis("axis", "dim", rank=len(axes) + 1, default=0)
    return Form(inputs=(axes,), outputs=((*axes[:axis], UNCUT, *axes[axis:]),), order=axes)


def squeeze(call: Call) -> Form:
    """Axes of length 1 are removed."""
    shape = call.shapes[0]
    axes = labels(len(shape))
    gone = {
        axis % len(shape) for axis in _numbers(call.get("axis", "dim", default=()))
    } or {at for at, size in enumerate(shape) if size == 1}
    return Form(inputs=(axes,), outputs=(tuple(label for axis, label in enumerate(axes) if axis not in gone),), order=axes)


def broadcast(call: Call) -> Form:
    """New axes in front, and axes of length 1 stretched: none of them is split."""
    shape = call.shapes[0]
    axes = labels(len(shape))
    target_shape = _numbers(call.get("shape", default=shape))
    ahead = len(target_shape) - len(shape)
    input_axes = tuple(UNCUT if size == 1 != target_shape[ahead + axis] else axes[axis] for axis, size in enumerate(shape))
    return Form(inputs=(input_axes,), outputs=((UNCUT,) * ahead + input_axes,), order=axes)


def pad(call: Call) -> Form:
    """Padding: axes that grow stay unsplit. A flat list begins with the last axis; with an unknown list no axis may be split."""
    axes = labels(len(call.shapes[0]))
    paddings = call.get("paddings", "padding", default=())
    if paddings and isinstance(paddings[0], (tuple, list)):
        grown = [axis for axis, sides in enumerate(paddings) if any(sides)]
    else:
        numbers = _numbers(paddings)
        grown = (
            [len(axes) - 1 - position // 2 for position in range(len(numbers)) if numbers[position]] if numbers else list(range(len(axes)))
        )
    others = ((UNCUT,) * len(shape) for shape in call.shapes[1:])
    uncut = _uncut(axes, sorted(set(grown)), "axis {} is padded")
    return Form(inputs=(axes, *others), outputs=(axes,), order=axes, uncut=uncut, lenient=call.name == "Pad")


def tile(call: Call) -> Form:
    """The strategy describes the result: the number of repeats if an axis is repeated, else the axis."""
    shape = call.shapes[0]
    repeats = _numbers(call.get("dims", "multiples", default=()))
    repeats = (1,) * (len(shape) - len(repeats)) + repeats
    ahead = len(repeats) - len(shape)
    axes = labels(len(repeats))
    written_sizes = tuple(times if times != 1 else (1, *shape)[max(0, axis - ahead + 1)] for axis, times in enumerate(repeats))
    input_axes = tuple(UNCUT if repeats[ahead + axis] != 1 else axes[ahead + axis] for axis in range(len(shape)))
    return Form(inputs=(input_axes,), outputs=(axes,), order=axes, written=((axes, written_sizes),))


def one_hot(call: Call) -> Form:
    """The strategy describes the result of indices: with one axis of indices the classes may be split, too."""
    shape = call.shapes[0]
    axes = labels(len(shape))
    axis = call.axis("axis", rank=len(shape) + 1, default=-1)
    result = (*axes[:axis], "c", *axes[axis:])
    sizes = (*shape[:axis], int(call.get("depth", default=1)), *shape[axis:])
    scalars = ((UNCUT,) * len(scalar_shape) for scalar_shape in call.shapes[1:])
    uncut = {} if len(shape) == 1 else _uncut(("c", *axes[1:]), range(len(shape)), "only the first axis is cut where indices have several")
    return Form(
        inputs=(axes, *scalars), outputs=(result,), order=(*axes, "c"), uncut=uncut,
        written=((result, sizes), *(((UNCUT,) * len(scalar_shape), scalar_shape) for scalar_shape in call.shapes[1:])),
    )


def sort(call: Call) -> Form:
    """Values and their positions, along an axis that stays unsplit."""
    axes = labels(len(call.shapes[0]))
    axis = call.axis("axis", "dim", default=-1)
    return Form(inputs=(axes,), outputs=(axes, axes), order=axes, uncut=_uncut(axes, (axis,), "axis {} is sorted"))


def reverse(call: Call) -> Form:
    """Reversed axes, which stay unsplit."""
    axes = labels(len(call.shapes[0]))
    turned = sorted({axis % len(axes) for axis in _numbers(call.get("axis", "dims", default=()))})
    return Form(inputs=(axes,), outputs=(axes,), order=axes, uncut=_uncut(axes, turned, "axis {} is turned round"))


def flatten(call: Call) -> Form:
    """All axes but the first are joined."""
    axes = labels(len(call.shapes[0]))
    uncut = _uncut(axes, range(1, len(axes)), "axis {} is joined with others")
    return Form(inputs=(axes,), outputs=((axes[0], UNCUT),), order=axes, uncut=uncut, lenient=True)


def reshape(call: Call) -> Form:
    """The input as its strategy says; the layout of the result follows from its neighbours, and is unsplit if none requests one."""
    axes = labels(len(call.shapes[0]))
    rank = len(_numbers(call.get("shape", default=())))
    return Form(inputs=(axes,), outputs=((UNCUT,) * rank,), order=axes, repeats_first=True)


def swiglu(call: Call) -> Form:
    """One half of an axis gates the other: the axis stays unsplit."""
    axes = labels(len(call.shapes[0]))
    return Form(
        inputs=(axes,), outputs=(axes,), order=axes, uncut=_uncut(axes, (call.axis("dim", "axis", default=-1),), "axis {} is halved"),
    )


def resize(call: Call) -> Form:
    """Images: batch and channels may be split; heights and widths if each part depends on its numbers alone."""
    axes = ("n", "c", "h", "w")
    if "Nearest" in call.name and not call.get("align_corners", default=False):
        return Form(inputs=(axes,), outputs=(axes,), order=axes)
    return Form(inputs=(axes,), outputs=(axes,), order=axes, uncut={"h": "rows are mixed", "w": "columns are mixed"})


FAMILIES: dict[str, Family] = {
    "Transpose": transpose, "Concat": concat, "Slice": part, "StridedSlice": strided, "ExpandDims": expand, "Squeeze": squeeze,
    "BroadcastTo": broadcast, "Pad": pad, "PadV3": pad, "Tile": tile, "OneHot": one_hot, "ReverseV2": reverse, "Flatten": flatten,
    "Reshape": reshape, "Swiglu": swiglu, **dict.fromkeys(("Stack", "StackExt", "Pack"), stack),
    **dict.fromkeys(("Split", "SplitV", "SplitTensor", "SplitWithSize"), split), **dict.fromkeys(("Unstack", "Unpack"), unstack),
    **dict.fromkeys(("TopK", "TopkExt", "Sort", "SortExt"), sort),
    **dict.fromkeys(("ResizeNearestNeighbor", "ResizeBilinear", "ResizeBilinearV2"), resize),
}
