"""Padding as Cells: constants, reflections and copies of the edge."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import is_int
from torchspore.mindspore.mint.nn import functional as F
from torchspore.mindspore.nn.cell import Cell


class _Pad(Cell):
    """Base class of padding of (N, C, ...): one number, or a pair per axis, last axis first."""

    _axes_ = 1
    _mode_ = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        name = type(self).__name__
        if not isinstance(padding, (int, tuple, list)) or isinstance(padding, bool):
            raise TypeError(f"{name}(padding={padding!r}): expected an int or a tuple of ints, got {type(padding).__name__}.")
        if not isinstance(padding, int) and not all(is_int(part) for part in padding):
            raise TypeError(f"{name}(padding={padding!r:.40}): expected ints.")
        listed = (padding,) * (2 * self._axes_) if isinstance(padding, int) else tuple(padding)
        if len(listed) != 2 * self._axes_:
            raise ValueError(f"{name}(padding={padding!r}): expected an int or {2 * self._axes_} of them.")
        if self._mode_ != "constant" and min(listed) < 0:
            raise ValueError(f"{name}(padding={padding!r}): expected ints from 0 on.")
        self.padding: tuple[int, ...] = listed
        self.value: float | None = None

    def construct(self, input: Any) -> Any:
        """The padded input."""
        return F.pad(input, self.padding, self._mode_, self.value)


class _ConstantPad(_Pad):
    """Padding by `value`."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value


class _ZeroPad(_Pad):
    """Padding by zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding)
        self.value = 0.0


def _family(base: type[_Pad], stem: str, mode: str) -> tuple[type[_Pad], ...]:
    alike = {"_mode_": mode, "__doc__": base.__doc__, "__module__": __name__}
    return tuple(type(f"{stem}{axes}d", (base,), {"_axes_": axes, **alike}) for axes in (1, 2, 3))


ConstantPad1d, ConstantPad2d, ConstantPad3d = _family(_ConstantPad, "ConstantPad", "constant")
ZeroPad1d, ZeroPad2d, ZeroPad3d = _family(_ZeroPad, "ZeroPad", "constant")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _family(_Pad, "ReflectionPad", "reflect")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _family(_Pad, "ReplicationPad", "replicate")
