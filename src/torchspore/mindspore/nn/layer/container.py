"""Ordered and named containers of Cells."""
from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message, with_type
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors import torch_interop
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.errors import NameRefused
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.cell_members import MemberDict


def _is_integer_scalar(index: TensorBase) -> bool:
    return index._t.numel() == 1 and str(FROM_TORCH[index._t.dtype]).startswith(("Int", "UInt"))


def _picked(cells: list[Cell], index: TensorBase) -> Any:
    """Return the function that calls the Cell that a Tensor selects in a graph; None outside a graph."""
    if engine.frame() is None:
        return None
    from torchspore.graph.control_flow import function_choice

    return function_choice.picked(cells, index)


class _Ordered(Cell):
    """Base class of SequentialCell and CellList: Cells with the names '0', '1', … that can be indexed, replaced and inserted."""

    def _check_(self, cell: Any) -> Cell:
        cell = torch_interop.converted_module(cell)
        if not isinstance(cell, Cell):
            raise TypeError(f"{type(self).__name__}: expected Cells, got {type(cell).__name__}.")
        return cell

    def _check_all_(self, cells: Iterable[Any]) -> None:
        """Refuse a CellDict among several Cells, as MindSpore does."""
        for cell in cells:
            if isinstance(self, CellList) and isinstance(cell, CellDict):
                raise TypeError("CellList: expected Cells, got a CellDict.\n\nhint: write list(cells.values()).")

    def _renumber_(self, cells: Iterable[Cell]) -> None:
        self.__dict__["_cells"] = MemberDict((str(i), cell) for i, cell in enumerate(cells))
        self._changed_()

    def _prefix_(self) -> str:
        """Return the part of the Parameters' names before the position of their Cell, as far as the first Cells show it.

        MindSpore looks for the position '0' in the name of the first Parameter, and takes the last one that a second Cell does not
        contradict. So Cells that are appended to a list of one Cell may get that Cell's name in theirs (`0.blocks.1.weight`): checkpoints
        have these names.
        """
        named = ((key, next((p.name.split(".") for p in cell.get_parameters()), None)) for key, cell in self._cells.items())
        shown = list(itertools.islice(((key, parts) for key, parts in named if parts is not None), 2))
        prefix_parts: list[str] = []
        for position, part in enumerate(shown[0][1] if shown else []):
            if part == shown[0][0]:
                prefix_parts = shown[0][1][:position]
                if len(shown) > 1 and shown[1][1][position : position + 1] == [shown[1][0]]:
                    break
        return "".join(f"{part}." for part in prefix_parts)

    def _add_(self, cell: Any, prefix: str) -> None:
        name, cell = str(len(self._cells)), self._check_(cell)
        if self._auto_prefix:
            cell.update_parameters_name(f"{prefix}{name}.")
        self._cells[name] = cell
        self._changed_()

    def _name_(self, index: Any) -> str:
        if not is_int(index):
            raise TypeError(f"{type(self).__name__}[{index!r}]: expected an int or a slice, got {type(index).__name__}.")
        if not -len(self) <= index < len(self):
            raise IndexError(f"{type(self).__name__}[{index}]: there are {len(self)} Cells.")
        return list(self._cells)[index]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice_(list(self._cells.items())[index])
        if isinstance(index, TensorBase) and self._cells and _is_integer_scalar(index):
            cell = _picked(list(self._cells.values()), index)
            if cell is not None:
                return cell
        return self._cells[self._name_(index)]

    def _slice_(self, items: list[tuple[str, Cell]]) -> Any:
        new_container = type(self).__new__(type(self))
        Cell.__init__(new_container, auto_prefix=False)
        new_container._renumber_(cell for _, cell in items)
        return new_container

    def __setitem__(self, index: int, cell: Cell) -> None:
        name, cell = self._name_(index), self._check_(cell)
        if self._auto_prefix:
            cell.update_parameters_name(f"{self._prefix_()}{name}.")
        self._cells[name] = cell
        self._changed_()

    def __delitem__(self, index: Any) -> None:
        gone = set([self._name_(index)] if not isinstance(index, slice) else list(self._cells)[index])
        prefix, first = self._prefix_(), next((position for position, name in enumerate(self._cells) if name in gone), len(self._cells))
        self._renumber_([cell for name, cell in self._cells.items() if name not in gone])
        self._rename_(prefix, first)

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(list(self._cells.values()))

    def append(self, cell: Cell) -> Any:
        """Append `cell`; return the container."""
        self._add_(cell, self._prefix_())
        return self

    def extend(self, cells: Iterable[Cell]) -> Any:
        """Append all `cells`; return the container."""
        if not isinstance(cells, (list, tuple, _Ordered)):
            raise TypeError(f"{type(self).__name__}.extend: expected a list of Cells, got {type(cells).__name__}.")
        self._check_all_(cells)
        prefix = self._prefix_()
        for cell in cells:
            self._add_(cell, prefix)
        return self

    def insert(self, index: int, cell: Cell) -> None:
        """Insert `cell` before the one at `index`."""
        if not is_int(index):
            raise TypeError(message(f"{type(self).__name__}.insert({index!r:.40}, ...)", with_type("an int", index)))
        if not -len(self) <= index <= len(self):
            raise IndexError(f"{type(self).__name__}.insert({index}, ...): there are {len(self)} Cells.")
        cells, prefix = list(self._cells.values()), self._prefix_()
        cells.insert(index, self._check_(cell))
        self._renumber_(cells)
        self._rename_(prefix, index if index >= 0 else 0)

    def _rename_(self, prefix: str, first: int) -> None:
        """Rename the Parameters of the Cells from index `first` on by their current positions."""
        if self._auto_prefix:
            for name, cell in list(self._cells.items())[first:]:
                for attribute, parameter in cell.parameters_and_names():
                    parameter.name = f"{prefix}{name}.{attribute}"


class _Listed:
    """The Cells inside as a list; a subclass may use this name for something else."""

    gives_way = True

    def __get__(self, cell: Any, owner: type) -> Any:
        return self if cell is None else list(cell._cells.values())


class SequentialCell(_Ordered):
    """Cells that run one after the other: separate arguments, a list, or an OrderedDict of names."""

    cell_list = _Listed()

    def __init__(self, *args: Any) -> None:
        super().__init__()
        cells = args[0] if len(args) == 1 else args
        if isinstance(cells, OrderedDict):
            for name, cell in cells.items():
                cell = self._check_(cell)
                self.insert_child_to_cell(name, cell)
                cell.update_parameters_name(name + ".")
            return
        if isinstance(cells, Cell) or torch_interop.is_torch_module(cells):
            cells = [cells]
        if not isinstance(cells, (list, tuple)):
            raise TypeError(f"SequentialCell: expected Cells, a list of them or an OrderedDict, got {type(cells).__name__}.")
        for cell in cells:
            self._add_(cell, "")

    def construct(self, input_data: Any) -> Any:
        """Run the Cells one after the other."""
        for cell in self._cells.values():
            input_data = cell(input_data)
        return input_data


class CellList(_Ordered):
    """Cells in a list, whose Parameters belong to the Cell that contains it; it cannot be called itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(kwargs.get("auto_prefix", True))
        if len(args) == 1 and not isinstance(args[0], (list, tuple, _Ordered)):
            raise TypeError(f"CellList: expected a list of Cells, got {type(args[0]).__name__}.\n\nhint: write CellList([cell]).")
        cells = args[0] if len(args) == 1 else args
        self._check_all_(cells)
        for cell in cells:
            self._add_(cell, "")

    def construct(self, *inputs: Any) -> Any:
        """Raises NotImplementedError: a CellList cannot be called."""
        raise NotImplementedError("CellList: it cannot be called.\n\nhint: call the Cells in it one by one.")


class CellDict(Cell):
    """Cells by name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(kwargs.get("auto_prefix", True))
        if args:
            self.update(args[0])

    def update(self, cells: Any) -> None:
        """Add the Cells of a dict, a CellDict or an iterable of (name, Cell)."""
        for name, cell in cells.items() if hasattr(cells, "items") else cells:
            self[name] = cell

    def __setitem__(self, name: str, cell: Cell) -> None:
        if not isinstance(name, str):
            raise TypeError(f"CellDict[{name!r:.40}]: expected a str as the name, got {type(name).__name__}.")
        cell = torch_interop.converted_module(cell)
        if not isinstance(cell, Cell):
            raise TypeError(message(f"CellDict[{name!r}]", with_type("a Cell", cell)))
        if isinstance(cell, (CellDict, CellList, SequentialCell)):
            raise TypeError(f"CellDict[{name!r}]: expected a Cell that is not a container, got {type(cell).__name__}.")
        if not name or "." in name or (name not in self._cells and hasattr(self, name)):
            raise NameRefused(f"CellDict[{name!r}]: expected a name without a dot that is not an attribute of Cell.")
        if self._auto_prefix:
            cell.update_parameters_name(name + ".")
        self._cells[name] = cell
        self._changed_()

    def __getitem__(self, name: str) -> Cell:
        return self._cells[name]  # type: ignore[no-any-return]

    def __delitem__(self, name: str) -> None:
        del self._cells[name]
        self._changed_()

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._cells))

    def __contains__(self, name: object) -> bool:
        return name in self._cells

    def keys(self) -> Any:
        """The names."""
        return self._cells.keys()

    def values(self) -> Any:
        """The Cells."""
        return self._cells.values()

    def items(self) -> Any:
        """The names and Cells."""
        return self._cells.items()

    def clear(self) -> None:
        """Remove all Cells."""
        self._cells.clear()
        self._changed_()

    def pop(self, key: str) -> Cell:
        """Remove the Cell `key` and return it. Raises KeyError if there is none."""
        if key not in self._cells:
            raise NameRefused(f"CellDict.pop({key!r:.40}): this Cell does not exist.")
        cell: Cell = self._cells.pop(key)
        self._changed_()
        return cell


__all__ = ["CellDict", "CellList", "SequentialCell"]
