"""The members of a Cell by name."""
from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torchspore.engine.tensors import change_counters


class MemberDict(OrderedDict[str, Any]):
    """The Parameters or Cells of a Cell. It counts each change, because programs also write into `_params` and `_cells` directly."""

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        change_counters.cell_changed()

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        change_counters.cell_changed()

    def clear(self) -> None:
        super().clear()
        change_counters.cell_changed()

    def pop(self, name: str, *default: Any) -> Any:
        value = super().pop(name, *default)
        change_counters.cell_changed()
        return value

    def popitem(self, last: bool = True) -> tuple[str, Any]:
        item = super().popitem(last)
        change_counters.cell_changed()
        return item

    def move_to_end(self, name: str, last: bool = True) -> None:
        super().move_to_end(name, last)
        change_counters.cell_changed()
