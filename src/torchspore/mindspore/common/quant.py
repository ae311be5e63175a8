"""`QuantDtype`: names of the dtypes of quantized weights."""
from __future__ import annotations

import enum

_WIDTHS = range(1, 17)


class _Named(enum.Enum):
    def __str__(self) -> str:
        return self.name

    def value(self) -> int:  # type: ignore[override]
        """The number of this dtype: INT1 to INT16 are 0 to 15, UINT1 to UINT16 100 to 115."""
        return int(self._value_)


QuantDtype = _Named(  # type: ignore[call-overload]
    "QuantDtype", {**{f"INT{n}": n - 1 for n in _WIDTHS}, **{f"UINT{n}": n + 99 for n in _WIDTHS}}, module=__name__,
)
QuantDtype.__doc__ = "Dtypes of quantized weights, INT1 to INT16 and UINT1 to UINT16."
