"""The members of a Cell by name."""
from __future__ import annotations

from collections import OrderedDict
from typing import Any
from weakref import ref

from torchspore.engine.tensors import change_counters


class MemberDict(OrderedDict[Any, Any]):
    """The Parameters or Cells of a Cell. It counts each change, because programs also write into `_params` and `_cells` directly."""

    _cell: ref[Any] | None = None

    def notify(self, cell: Any) -> None:
        """Count each further change as a change of the settings of `cell`, which graphs of torch.compile depend on."""
        self._cell = ref(cell)

    def _count_change(self) -> None:
        change_counters.cell_changed()
        cell = None if self._cell is None else self._cell()
        if cell is not None:
            cell.__dict__[change_counters.SETTINGS_CHANGED_AT] = change_counters.cells

    def __reduce__(self) -> Any:
        return type(self), (), None, None, iter(self.items())

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._count_change()

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._count_change()

    def clear(self) -> None:
        super().clear()
        self._count_change()

    def pop(self, name: str, *default: Any) -> Any:
        value = super().pop(name, *default)
        self._count_change()
        return value

    def popitem(self, last: bool = True) -> tuple[str, Any]:
        item = super().popitem(last)
        self._count_change()
        return item

    def move_to_end(self, name: str, last: bool = True) -> None:
        super().move_to_end(name, last)
        self._count_change()
