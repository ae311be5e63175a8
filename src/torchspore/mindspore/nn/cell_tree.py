"""The tree of Cells: walks over it, the names of its Parameters, and what is done to all of them."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchspore.mindspore.common.parameter import Parameter
    from torchspore.mindspore.nn.cell import Cell


class CellTree:
    """What a Cell knows of the Cells and Parameters inside it."""

    _params: OrderedDict[str, Any]
    _cells: OrderedDict[str, Any]

    # ---- Cells

    def cells(self) -> Any:
        """The Cells directly inside this one."""
        return [cell for cell in self._cells.values() if cell is not None]

    def name_cells(self) -> OrderedDict[str, Cell]:
        """The Cells directly inside this one, by name."""
        found: OrderedDict[str, Cell] = OrderedDict()
        seen: set[int] = set()
        for name, cell in self._cells.items():
            if cell is not None and id(cell) not in seen:
                seen.add(id(cell))
                found[name] = cell
        return found

    def cells_and_names(self, cells: Any = None, name_prefix: str = "") -> Iterator[tuple[str, Any]]:
        """This Cell and all inside it, each once, with their dotted names."""
        seen = cells if cells is not None else set()
        left: list[tuple[str, Any]] = [(name_prefix, self)]
        while left:  # no recursion: nets may be thousands of Cells deep
            prefix, cell = left.pop()
            if id(cell) in seen:
                continue
            seen.add(id(cell))
            yield prefix, cell
            left += [
                (f"{prefix}.{name}" if prefix else name, inner) for name, inner in reversed(cell._cells.items()) if inner is not None
            ]

    def get_sub_cell(self, target: str) -> Cell:
        """The Cell of the dotted name `target`. Raises AttributeError where there is none."""
        found: Any = self
        for part in target.split(".") if target else []:
            if part not in found._cells:
                raise AttributeError(f"{type(self).__name__}: there is no Cell named {target!r}.")
            found = found._cells[part]
        return found  # type: ignore[no-any-return]

    def apply(self, fn: Callable[[Any], Any]) -> Any:
        """Calls `fn` with each Cell inside this one, innermost first, then with this one; gives itself back."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    # ---- Parameters

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The Parameters of this Cell, and with `expand` of all inside it, each once, with their dotted names."""
        seen: set[int] = set()
        for cell_name, cell in self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]:
            for name, parameter in cell._params.items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield f"{cell_name}.{name}" if cell_name else name, parameter

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """The Parameters of this Cell, and with `expand` of all inside it."""
        for _, parameter in self.parameters_and_names(expand=expand):
            yield parameter

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The Parameters whose `requires_grad` is True."""
        return [parameter for parameter in self.get_parameters(expand=recurse) if parameter.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The Parameters whose `requires_grad` is False."""
        return [parameter for parameter in self.get_parameters(expand=recurse) if not parameter.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """The Parameters by their own names."""
        return OrderedDict((parameter.name, parameter) for parameter in self.get_parameters(expand=recurse))

    def parameters_broadcast_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter] | None:
        """The Parameters that are the same on every device, by their own names; None where there are none."""
        found = OrderedDict((p.name, p) for p in self.get_parameters(expand=recurse) if not p.layerwise_parallel)
        return found or None

    # ---- names

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Puts `prefix` before the dotted names of all Parameters inside; these are the keys of checkpoints."""
        if not isinstance(prefix, str):
            raise TypeError(f"update_parameters_name({prefix!r}): expected a str, got {type(prefix).__name__}.")
        for name, parameter in self.parameters_and_names(expand=recurse):
            parameter.name = prefix + name

    def update_cell_prefix(self) -> None:
        """Gives each Cell inside its dotted name as `param_prefix`."""
        for name, cell in self.cells_and_names():
            cell.__dict__["_param_prefix"] = name

    @property
    def param_prefix(self) -> str:
        """The dotted name that `update_cell_prefix` gave this Cell."""
        return self.__dict__.get("_param_prefix", "")  # type: ignore[no-any-return]

    def check_names(self) -> None:
        """Raises ValueError where two Parameters have one name."""
        seen: set[str] = set()
        for parameter in self.get_parameters():
            if parameter.name in seen:
                raise ValueError(
                    f"{type(self).__name__}: two Parameters are named {parameter.name!r}."
                    "\n\nhint: give one of them another name, Parameter(..., name='...')."
                )
            seen.add(parameter.name)

    def check_names_and_refresh_name(self) -> None:
        """Checks the names; raises ValueError where one comes twice."""
        self.check_names()

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Any, Any]:
        """Parameters have their initial values from birth here; gives {parameter: itself}."""
        return {parameter: parameter for parameter in self.get_parameters()}

    def set_comm_fusion(self, fusion_type: int, recurse: bool = True) -> Any:
        """Gives each Parameter the number of its communication group; gives itself back."""
        for parameter in self.trainable_params(recurse):
            parameter.comm_fusion = fusion_type
        return self
