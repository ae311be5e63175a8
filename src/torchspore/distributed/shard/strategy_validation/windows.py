"""Convolution and pooling: a window that moves over images."""
from __future__ import annotations

from typing import Any

from torchspore.distributed.shard.strategy_validation.axis_labels import UNCUT, Call, Cuts, Family, Form, Labels


def _pair(value: Any, count: int = 2) -> tuple[int, ...]:
    """Return the last two (or `count`) numbers of an argument that is one number, or one for each axis."""
    if isinstance(value, int):
        return (value,) * count
    numbers = tuple(value)
    return numbers * count if len(numbers) == 1 else numbers[-count:]


def convolution(call: Call) -> Form:
    """x (n, i, h, w) and weight (o, i, window): channels in and out may be split, and heights and widths, whose edges are exchanged."""
    window = call.shapes[1][2:]
    x = ("n", "i", "h", "w") if call.get("data_format", default="NCHW") == "NCHW" else ("n", "h", "w", "i")
    result = tuple("o" if label == "i" else label for label in x)
    grouped = call.get("group", "groups", default=1) > 1
    uncut = dict.fromkeys(("i", "o"), "channels are in groups") if grouped else {}
    spatial = _Spatial(call, call.shapes[0][x.index("h"):x.index("w") + 1], window)
    return Form(
        inputs=(x, ("o", "i", UNCUT, UNCUT)), outputs=(result,), order=("n", "i", "h", "w", "o"), uncut=uncut, check=spatial.of_convolution,
    )


def generated_convolution(call: Call) -> Form:
    """x (n, i, ...), weight (o, i, window) and bias (o,): channels in and out may be split, and no other axis than the first."""
    images = (UNCUT,) * (len(call.shapes[0]) - 2)
    grouped = {"i": "channels are in groups", "o": "channels are in groups"} if call.get("groups", default=1) not in (None, 1) else {}
    inputs: tuple[Labels, ...] = (("n", "i", *images), ("o", "i", *images), ("o",))
    return Form(inputs=inputs[:len(call.shapes)], outputs=(("n", "o", *images),), order=("n", "i", "o"), uncut=grouped)


def convolution_of_volumes(call: Call) -> Form:
    """x (n, i, d, h, w) and weight (o, i, window): as for images."""
    x = ("n", "i", "d", "h", "w")
    spatial = _Spatial(call, call.shapes[0][2:], call.shapes[1][2:], ("d", "h", "w"))
    return Form(
        inputs=(x, ("o", "i", UNCUT, UNCUT, UNCUT)), outputs=(("n", "o", "d", "h", "w"),), order=("n", "i", "d", "h", "w", "o"),
        check=spatial.of_convolution,
    )


def transposed(call: Call) -> Form:
    """dout (n, o, h, w) and weight (o, i, window): the gradient of a convolution."""
    return Form(inputs=(("n", "o", "h", "w"), ("o", "i", UNCUT, UNCUT)), outputs=(("n", "i", "h", "w"),), order=("n", "o", "h", "w", "i"))


def pooling(call: Call) -> Form:
    """x (n, c, h, w): heights and widths may be split if windows do not overlap."""
    axes = ("n", "c", "h", "w") if call.get("data_format", default="NCHW") == "NCHW" else ("n", "h", "w", "c")
    sizes = call.shapes[0][axes.index("h"):axes.index("w") + 1]
    spatial = _Spatial(call, sizes, _pair(call.get("kernel_size", default=1)))
    return Form(inputs=(axes,), outputs=(axes,), order=axes, check=spatial.of_pooling)


def pooling_of_volumes(call: Call) -> Form:
    """x (n, c, d, h, w): depths and heights may be split, also if windows overlap the parts."""
    axes = ("n", "c", "d", "h", UNCUT)
    spatial = _Spatial(call, call.shapes[0][2:4], _pair(call.get("kernel_size", default=1), 3)[:2], ("d", "h"), 3)
    return Form(inputs=(axes,), outputs=(axes,), order=axes[:4], check=spatial.of_convolution)


class _Spatial:
    """Return which splits of heights and widths a window allows."""

    def __init__(self, call: Call, sizes: tuple[int, ...], window: tuple[int, ...], axes: Labels = ("h", "w"), rank: int = 0) -> None:
        self._mode = str(call.get("pad_mode", default="valid")).lower()
        self._sides = tuple(zip(axes, sizes, window, _pair(call.get("stride", "strides", default=1), rank or len(axes))))

    def of_convolution(self, cuts: Cuts, devices: int) -> str | None:
        """Return why a convolution does not allow these splits."""
        for label, size, window, step in self._sides:
            if cuts[label] == 1:
                continue
            if self._mode == "valid" and window > step:
                return f"{label} uncut, as windows of {window} overlap and pad_mode is 'valid'"
            if size // cuts[label] % step:
                return f"parts of {label} that the stride {step} divides, got parts of {size // cuts[label]}"
        return None

    def of_pooling(self, cuts: Cuts, devices: int) -> str | None:
        """Return why pooling does not allow these splits."""
        for label, size, window, step in self._sides:
            if cuts[label] == 1:
                continue
            if window > step:
                return f"{label} uncut, as windows of {window} overlap"
            output_size = (size - window) // step + 1 if self._mode == "valid" else -(-size // step)
            if output_size % cuts[label] or size // cuts[label] % step:
                return f"a cut of {label} that divides the result's {output_size}, in parts that the stride {step} divides"
        return None


def bias(call: Call) -> Form:
    """x (n, c, ...) and a number for each channel (c,)."""
    rank = len(call.shapes[0])
    spread = tuple(f"s{axis}" for axis in range(rank - 2))
    axes = ("n", *spread, "c") if call.get("data_format", default="NCHW") == "NHWC" else ("n", "c", *spread)
    slopes = ("c",) if call.shapes[1] != (1,) else (UNCUT,)
    return Form(inputs=(axes, slopes), outputs=(axes,), order=axes)


FAMILIES: dict[str, Family] = {
    "Conv3D": convolution_of_volumes, **dict.fromkeys(("MaxPool3D", "AvgPool3D"), pooling_of_volumes),
    "Conv2D": convolution, "Convolution": generated_convolution,
    **dict.fromkeys(("Conv2DTranspose", "Conv2DBackpropInput"), transposed),
    **dict.fromkeys(("MaxPool", "AvgPool", "MaxPoolV2"), pooling), **dict.fromkeys(("BiasAdd", "PReLU"), bias),
}
