"""Padding at the ends of the last axes, as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message, with_type
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.arrays import pads


class _Pad(Cell):
    """Base class of the layers: `padding` is an int, or (before, after) of the last axis first; missing pairs are 0."""

    _axes_ = 1
    _mode_ = "constant"
    _cuts_ = False

    def __init__(self, padding: Any, value: Any = 0) -> None:
        super().__init__()
        name = type(self).__name__
        if isinstance(padding, bool) or not isinstance(padding, (int, tuple)):
            raise TypeError(f"{name}(padding={padding!r:.40}): expected an int or a tuple of ints, got {type(padding).__name__}.")
        counts = (padding,) * (2 * self._axes_) if isinstance(padding, int) else padding
        if any(not is_int(p) for p in counts):
            raise TypeError(f"{name}(padding={padding!r:.40}): expected ints.")
        if len(counts) % 2 or not 0 < len(counts) <= 2 * self._axes_:
            raise ValueError(f"{name}(padding={padding!r:.40}): expected (before, after) for each of {self._axes_} axes.")
        if not self._cuts_ and min(counts) < 0:
            raise ValueError(f"{name}(padding={padding!r:.40}): expected ints from 0 on.")
        if not isinstance(value, (int, float)):
            raise TypeError(message(f"{name}(value={value!r:.40})", with_type("a number", value)))
        self.padding, self.value = counts, value

    def construct(self, x: Any) -> Any:
        """The padded x."""
        return pads._pad_by_layer(x, self.padding, self._mode_, self.value)


class _ConstantPad(_Pad):
    _cuts_ = True

    def __init__(self, padding: Any, value: Any) -> None:
        super().__init__(padding, value)


class ConstantPad1d(_ConstantPad):
    """Pads the ends of the last axis with `value`; a negative count crops."""


class ConstantPad2d(_ConstantPad):
    """Pads the ends of the last two axes with `value`; a negative count crops."""

    _axes_ = 2


class ConstantPad3d(_ConstantPad):
    """Pads the ends of the last three axes with `value`; a negative count crops."""

    _axes_ = 3


class ZeroPad2d(_Pad):
    """Pads the ends of the last two axes with zeros; a negative count crops."""

    _axes_, _cuts_ = 2, True

    def __init__(self, padding: Any) -> None:
        super().__init__(padding)


class _Mirrored(_Pad):
    _mode_ = "reflect"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding)


class ReflectionPad1d(_Mirrored):
    """Mirrors the ends of the last axis, without the border."""


class ReflectionPad2d(_Mirrored):
    """Mirrors the ends of the last two axes, without the border."""

    _axes_ = 2


class ReflectionPad3d(_Mirrored):
    """Mirrors the ends of the last three axes, without the border."""

    _axes_ = 3


class ReplicationPad1d(_Mirrored):
    """Repeats the border at the ends of the last axis."""

    _mode_ = "replicate"


class ReplicationPad2d(_Mirrored):
    """Repeats the border at the ends of the last two axes."""

    _axes_, _mode_ = 2, "replicate"


class ReplicationPad3d(_Mirrored):
    """Repeats the border at the ends of the last three axes."""

    _axes_, _mode_ = 3, "replicate"


__all__ = [
    "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad2d",
]
