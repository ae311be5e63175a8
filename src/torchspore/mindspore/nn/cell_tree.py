"""The tree of Cells: traversals, names of Parameters, and operations on all of them."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from torchspore.base.text import message, with_type

if TYPE_CHECKING:
    from torchspore.mindspore.common.parameter import Parameter
    from torchspore.mindspore.nn.cell import Cell


class CellTree:
    """The methods of a Cell for the Cells and Parameters inside it."""

    _params: OrderedDict[str, Any]
    _cells: OrderedDict[str, Any]

    # ---- Cells

    def cells(self) -> Any:
        """Return the Cells directly inside this one."""
        return [cell for cell in self._cells.values() if cell is not None]

    def name_cells(self) -> OrderedDict[str, Cell]:
        """Return the Cells directly inside this one, by name."""
        cells: OrderedDict[str, Cell] = OrderedDict()
        seen: set[int] = set()
        for name, cell in self._cells.items():
            if cell is not None and id(cell) not in seen:
                seen.add(id(cell))
                cells[name] = cell
        return cells

    def cells_and_names(self, cells: Any = None, name_prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield this Cell and all Cells inside it, each once, with their dotted names."""
        seen = cells if cells is not None else set()
        pending: list[tuple[str, Any]] = [(name_prefix, self)]
        while pending:  # no recursion: nets may be thousands of Cells deep
            prefix, cell = pending.pop()
            if id(cell) in seen:
                continue
            seen.add(id(cell))
            yield prefix, cell
            pending += [
                (f"{prefix}.{name}" if prefix else name, inner) for name, inner in reversed(cell._cells.items()) if inner is not None
            ]

    def get_sub_cell(self, target: str) -> Cell:
        """Return the Cell with the dotted name `target`. Raises AttributeError if there is none."""
        cell: Any = self
        for part in target.split(".") if target else []:
            if part not in cell._cells:
                raise AttributeError(f"{type(self).__name__}: no Cell is named {target!r}.")
            cell = cell._cells[part]
        return cell  # type: ignore[no-any-return]

    def apply(self, fn: Callable[[Any], Any]) -> Any:
        """Call `fn` with each Cell inside this one, innermost first, then with this one; return the Cell."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    # ---- Parameters

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Yield the Parameters of this Cell, and with `expand` of all Cells inside it, each once, with their dotted names."""
        seen: set[int] = set()
        for cell_name, cell in self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]:
            for name, parameter in cell._params.items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield f"{cell_name}.{name}" if cell_name else name, parameter

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Yield the Parameters of this Cell, and with `expand` of all Cells inside it."""
        for _, parameter in self.parameters_and_names(expand=expand):
            yield parameter

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Return the Parameters with `requires_grad` True."""
        return [parameter for parameter in self.get_parameters(expand=recurse) if parameter.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Return the Parameters with `requires_grad` False."""
        return [parameter for parameter in self.get_parameters(expand=recurse) if not parameter.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """Return the Parameters by their names."""
        return OrderedDict((parameter.name, parameter) for parameter in self.get_parameters(expand=recurse))

    def parameters_broadcast_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter] | None:
        """Return the Parameters that are equal on every device, by their names; None if there are none."""
        parameters = OrderedDict((p.name, p) for p in self.get_parameters(expand=recurse) if not p.layerwise_parallel)
        return parameters or None

    # ---- names

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Prepend `prefix` to the dotted names of all Parameters inside; these names are the keys of checkpoints."""
        if not isinstance(prefix, str):
            raise TypeError(message(f"update_parameters_name({prefix!r})", with_type("a str", prefix)))
        for name, parameter in self.parameters_and_names(expand=recurse):
            parameter.name = prefix + name

    def update_cell_prefix(self) -> None:
        """Set the `param_prefix` of each Cell inside to its dotted name."""
        for name, cell in self.cells_and_names():
            cell.__dict__["_param_prefix"] = name

    @property
    def param_prefix(self) -> str:
        """The dotted name from `update_cell_prefix`."""
        return self.__dict__.get("_param_prefix", "")  # type: ignore[no-any-return]

    def check_names(self) -> None:
        """Raises ValueError if two Parameters have one name."""
        seen: set[str] = set()
        for parameter in self.get_parameters():
            if parameter.name in seen:
                raise ValueError(
                    f"{type(self).__name__}: two Parameters have the name {parameter.name!r}."
                    "\n\nhint: give one of them another name, Parameter(..., name='...')."
                )
            seen.add(parameter.name)

    def check_names_and_refresh_name(self) -> None:
        """Check the names. Raises ValueError if a name occurs twice."""
        self.check_names()

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Any, Any]:
        """Return {parameter: itself}, because Parameters are initialized at creation here."""
        return {parameter: parameter for parameter in self.get_parameters()}

    def set_param_ps(self, recurse: bool = True, init_in_server: bool = False) -> None:
        """Let the servers of `set_ps_context` store the trainable Parameters; with `init_in_server` they draw the initial values too.

        Raises RuntimeError in a process without a parameter server.
        """
        from torchspore.mindspore.common import server_session

        for parameter in self.trainable_params(recurse):
            server_session.mark(parameter, init_in_server)

    def set_comm_fusion(self, fusion_type: int, recurse: bool = True) -> Any:
        """Set the communication group of each Parameter; return the Cell."""
        for parameter in self.trainable_params(recurse):
            parameter.comm_fusion = fusion_type
        return self
