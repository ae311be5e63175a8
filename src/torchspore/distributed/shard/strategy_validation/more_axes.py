"""Numbers at equal distances, writes in place, quantized training, and other operators with a rule of a few axes."""
from __future__ import annotations

from torchspore.distributed.shard.strategy_validation.axis_labels import UNCUT, Call, Family, Form, labels


def number_range(call: Call) -> Form:
    """Numbers at equal distances from a start to an end: the strategy describes the result, of which each device computes a part."""
    size = call.get("num", "steps")
    inputs = tuple((UNCUT,) * len(shape) for shape in call.shapes)
    has_size = isinstance(size, int)
    return Form(
        inputs=inputs, outputs=(("d",),), order=("d",), written=((("d",), (size if has_size else 1,)),), lenient=not has_size,
    )


def updated_rows(call: Call) -> Form:
    """A Tensor and values for some of its first axis, which stays unsplit."""
    axes = labels(len(call.shapes[0]))
    rows = (UNCUT, *axes[1:])
    return Form(inputs=(rows, rows), outputs=(rows,), order=axes[1:])


def repeated_along(call: Call) -> Form:
    """Elements repeated along one axis, which stays unsplit; without an axis all axes stay unsplit."""
    shape = call.shapes[0]
    axis = call.get("axis", "dim")
    count = tuple((UNCUT,) * len(other) for other in call.shapes[1:])
    if not isinstance(axis, int):
        return Form(inputs=((UNCUT,) * len(shape), *count), outputs=((UNCUT,),), order=())
    axes = tuple(UNCUT if at == axis % len(shape) else f"d{at}" for at in range(len(shape)))
    return Form(inputs=(axes, *count), outputs=(axes,), order=tuple(label for label in axes if label != UNCUT))


def sliced_along(call: Call) -> Form:
    """A part along one axis, which stays unsplit."""
    axis = call.axis("dim", default=0)
    axes = tuple(UNCUT if at == axis else f"d{at}" for at in range(len(call.shapes[0])))
    return Form(inputs=(axes,), outputs=(axes,), order=tuple(label for label in axes if label != UNCUT))


def reduced_to_number(call: Call) -> Form:
    """One number from all elements."""
    axes = labels(len(call.shapes[0]))
    return Form(inputs=(axes,), outputs=((),), order=axes)


def quantized(call: Call) -> Form:
    """x, and the smallest and largest number of all its elements (1,), or of each channel."""
    axes = labels(len(call.shapes[0]))
    channel = axes[call.axis("channel_axis", default=1)] if call.name.endswith("PerChannel") else UNCUT
    limits = (channel,) * len(call.shapes[1])
    is_update = call.name.startswith("MinMax")
    return Form(inputs=(axes, limits, limits), outputs=(limits, limits) if is_update else (axes,), order=axes)


def unique_numbers(call: Call) -> Form:
    """Unique numbers: nothing may be split."""
    return Form(inputs=((UNCUT,),), outputs=((UNCUT,), (UNCUT,)), order=())


FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("LinSpace", "LinSpaceExt"), number_range),
    **dict.fromkeys(("InplaceUpdate", "InplaceAdd", "InplaceSub"), updated_rows),
    **dict.fromkeys(("RepeatInterleaveInt", "RepeatInterleaveTensor", "RepeatElements"), repeated_along),
    **dict.fromkeys(("FakeQuantPerLayer", "FakeQuantPerChannel", "MinMaxUpdatePerLayer", "MinMaxUpdatePerChannel"), quantized),
    "SliceExt": sliced_along, "Max": reduced_to_number, "Unique": unique_numbers,
}
