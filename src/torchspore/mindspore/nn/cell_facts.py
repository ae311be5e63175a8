"""Attributes of a Cell for MindSpore's compiler and parallel modes: stored, and answered as for one process."""
from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from torchspore.base.arguments import is_int
from torchspore.base.lazy_modules import import_lazily
from torchspore.base.text import message, with_type
from torchspore.context import effects
from torchspore.engine.split_layouts.sharded_layout import sharded_layout_of
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.mindspore.common.cell_phases import PHASES

if TYPE_CHECKING:
    from torchspore.distributed.shard import split_records
    from torchspore.graph import dispatch
else:
    import_lazily(globals(), "torchspore.distributed.shard.split_records", "torchspore.graph.dispatch")


def _stage(key: str) -> property:
    """Build a property for the number of the pipeline stage or segment of a Cell. One process runs all stages here."""

    def get(self: Any) -> int:
        if key not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {key!r}.")
        return self.__dict__[key]  # type: ignore[no-any-return]

    def put(self: Any, value: int) -> None:
        if not is_int(value):
            raise TypeError(message(f"{type(self).__name__}.{key} = {value!r:.40}", with_type("an int", value)))
        if value < 0:
            raise ValueError(f"{type(self).__name__}.{key} = {value}: expected an int from 0 on. "
                             f"For 'Cell', the property '{key}' can not be less than 0, but got {value}.")
        self.__dict__[key] = value
        for parameter in self.trainable_params():
            parameter.__dict__[key] = value

    return property(get, put, doc=f"The number of the {key.replace('_', ' ')} of this Cell. It has no effect here.")

_RECOMPUTED = "recompute_"
"""The beginning of the name of a recomputed Cell in a drawn graph."""


class CellFacts:
    """The interface of a Cell for code that inspects MindSpore's compiler or its parallel modes."""

    pipeline_stage = _stage("pipeline_stage")
    pipeline_segment = _stage("pipeline_segment")

    @property
    def cls_name(self) -> str:
        """The name of the Cell's class, with which messages begin, or the name set instead."""
        return str(self.__dict__.get("cls_name", type(self).__name__))

    @cls_name.setter
    def cls_name(self, value: str) -> None:
        self.__dict__["cls_name"] = value

    @property
    def has_bprop(self) -> bool:
        """True if the Cell defines its gradient."""
        return callable(getattr(self, "bprop", None))

    @property
    def phase(self) -> str:
        """The name of the compilation that MindSpore would look up; 'train' unless set."""
        return str(self.__dict__.get("_phase", "train"))

    @phase.setter
    def phase(self, value: str) -> None:
        self.__dict__["_phase"] = value

    @property
    def current_phase(self) -> str:
        """The name of the last compilation, once there is one; `flops_collection` takes it as its argument."""
        if not self.compiled:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'current_phase'.")
        name = f"{self.phase}.{type(self).__name__}.{id(self)}"
        PHASES[name] = self
        return name

    @property
    def compile_cache(self) -> set[Any]:
        """The names of MindSpore's compilations: empty, because graphs here have other keys."""
        return set()

    @property
    def compiled(self) -> bool:
        """Return whether a graph of this Cell was captured."""
        return bool(self.__dict__.get("_graphs_"))

    @property
    def is_top_cell(self) -> bool:
        """Return whether the Cell is the outermost one; MindSpore returns False until it compiles."""
        return False

    @property
    def parameter_layout_dict(self) -> dict[str, Any]:
        """How each Parameter is split among devices, by name, after a graph was split.

        A tuple of the device matrix, the tensor map, the shape of a part and nine more, as in `distributed.shard.split_records`.
        """
        layouts: dict[str, Any] = self.__dict__.setdefault("_parameter_layout_dict", {})
        return layouts or split_records.layouts(dispatch.graphs(self))

    @parameter_layout_dict.setter
    def parameter_layout_dict(self, value: dict[str, Any]) -> None:
        if not isinstance(value, dict):
            raise TypeError(message(f"{type(self).__name__}.parameter_layout_dict = {value!r:.40}", with_type("a dict", value)))
        self.__dict__["_parameter_layout_dict"] = value

    @property
    def parallel_parameter_name_list(self) -> tuple[str, ...]:
        """The names of Parameters that are split among devices: none, in one process."""
        return ()

    @property
    def parallel_parameter_merge_net_dict(self) -> OrderedDict[str, Any]:
        """How split Parameters are merged: there are none, in one process."""
        return OrderedDict()

    def set_data_parallel(self) -> None:
        """Request that operators without a strategy split the batch among devices; one device computes all of it."""
        self.__dict__["_is_data_parallel"] = True

    def set_broadcast_flag(self, mode: bool = True) -> Any:
        """Set whether Parameters are broadcast from one process to all; return the Cell. In one process they are already in place."""
        self.add_flags_recursive(broadcast_flag=mode)  # type: ignore[attr-defined]
        return self

    def shard(self, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> Any:
        """Set how inputs and results are split among the devices of a split graph; return the Cell. One device runs it unsplit.

        A strategy is a tuple with a tuple of numbers, a Layout, or None for each Tensor. `parameter_plan` sets the layouts of Parameters by
        name; the first plan of a Parameter wins, and the operators that read the others decide. Raises TypeError if a strategy is not a
        tuple or the plan not a dict, KeyError for a name that is not a Parameter of this Cell, ValueError for numbers that do not
        divide the Parameter's shape.
        """
        wrote = f"{type(self).__name__}.shard"
        for name, value in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
            if not isinstance(value, tuple) and (value is not None or name == "in_strategy"):
                raise TypeError(f"{wrote}({name}={value!r:.40}): expected a tuple, got {type(value).__name__}.")
        check_strategies(wrote, in_strategy, out_strategy)
        if parameter_plan is not None:
            self._plan_parameters_(f"{wrote}(parameter_plan={parameter_plan!r:.40})", parameter_plan)
        for handle in self.__dict__.get("_shard_hooks", ()):
            handle.remove()

        def lay_inputs(_cell: Any, args: tuple[Any, ...]) -> Any:
            from torchspore.distributed.shard import function_strategies

            return function_strategies.placed(f"an input of {type(self).__name__}", args, in_strategy)

        def lay_results(_cell: Any, _args: tuple[Any, ...], result: Any) -> Any:
            from torchspore.distributed.shard import function_strategies

            return function_strategies.placed(f"a result of {type(self).__name__}", result, out_strategy)

        hooks = [self.register_forward_pre_hook(lay_inputs)]  # type: ignore[attr-defined]
        if out_strategy is not None:
            hooks.append(self.register_forward_hook(lay_results))  # type: ignore[attr-defined]
        self.__dict__["_shard_hooks"] = hooks
        self.__dict__["_strategies"] = (in_strategy, out_strategy, parameter_plan)
        return self

    def _plan_parameters_(self, wrote: str, plan: Any) -> None:
        """Store the layouts of Parameters. Raises TypeError and KeyError for a value that is not a plan of Parameters."""
        if not isinstance(plan, dict):
            raise TypeError(message(f"{wrote}", with_type("a dict", plan)))
        named = {parameter.name: parameter for parameter in self.get_parameters()}  # type: ignore[attr-defined]
        planned = []
        for key, strategy in plan.items():
            suffix = f".{key.removeprefix('self.')}" if isinstance(key, str) else ""
            # the name as seen from this Cell, or from an outer one, which may not exist yet
            alike = [name for name in named if suffix and (suffix.endswith(f".{name}") or f".{name}".endswith(suffix))]
            name = min(alike, key=len, default=None)
            if name is None:
                raise KeyError(f"{wrote}: expected names of Parameters of the Cell, got {key!r}.")
            if not isinstance(strategy, tuple) and not hasattr(strategy, "to_dict"):
                text = f"{wrote}: expected a tuple of numbers or a Layout for {key!r}, got {type(strategy).__name__}."
                raise TypeError(f"{text} For 'Shard', the type of each key and value in 'parameter_plan' must be str and tuple.")
            if sharded_layout_of(named[name]) is None:
                _check_plan(wrote, name, strategy, tuple(named[name].shape))
            planned.append((named[name], strategy))
        for parameter, strategy in planned:
            parameter.__dict__.setdefault("_planned", strategy)

    def _compute_by_parts_(self, primitive: str) -> None:
        """Compute this layer from its parts where a graph is split: one of them, a primitive of this name, has a strategy."""
        from torchspore.mindspore.nn.layer import by_parts

        has_form = by_parts.composed(self) is not None
        if has_form:
            by_parts.make_parts(self)
            self.construct = self._by_parts_
        if not by_parts.composes_loss(self) and not has_form:
            effects.note("distribution", f"{type(self).__name__}: its {primitive} has a strategy without effect, because it is not called")

    def _part_assigned_(self, name: str) -> None:
        """Compute this layer from its parts from now on, if the primitive just assigned is one of them."""
        from torchspore.mindspore.nn.layer import by_parts

        if by_parts.is_part(self, name) and by_parts.composed(self) is not None:
            self.__dict__["_replaced"] = True
            by_parts.make_parts(self)
            self.construct = self._by_parts_

    def _by_parts_(self, *args: Any, **kwargs: Any) -> Any:
        """Return the layer's result, computed from its parts where they may have an effect."""
        from torchspore.mindspore.nn.layer import by_parts

        return by_parts.computed(self, args, kwargs)

    def update_cell_type(self, cell_type: str) -> None:
        """Set the kind of network that this Cell belongs to, which `cell_type` returns."""
        self.cell_type = cell_type

    def get_scope(self) -> str | None:
        """The name of this Cell in a drawn graph; None until `generate_scope`. It begins with `recompute_` after `recompute()`."""
        return self.__dict__.get("_scope")

    def generate_scope(self) -> None:
        """Set the names that the Cells inside this one have in a drawn graph: `Default/1-SequentialCell/0-ReLU`."""
        paths = {"": "Default"}
        for name, cell in self.cells_and_names():  # type: ignore[attr-defined]
            if cell is not self:
                parent, _, attribute = name.rpartition(".")
                paths[name] = f"{paths.get(parent, 'Default')}/{attribute}-{type(cell).__name__}"
                prefix = _RECOMPUTED if (cell.get_scope() or "").startswith(_RECOMPUTED) else ""
                cell.__dict__["_scope"] = prefix + paths[name]

    def _mark_recomputed_(self) -> None:
        """Mark this Cell and those inside it, in their names in a drawn graph, as recomputed."""
        for _, cell in self.cells_and_names():  # type: ignore[attr-defined]
            scope = cell.get_scope() or ""
            cell.__dict__["_scope"] = scope if scope.startswith(_RECOMPUTED) else _RECOMPUTED + scope

    def remove_redundant_parameters(self) -> None:
        """Remove Parameters of other pipeline stages: here all stages run, so all Parameters stay."""

    def cast_inputs(self, inputs: tuple[Any, ...], dst_type: Any) -> tuple[Any, ...]:
        """Cast the Tensors of a tuple, also inside tuples, to `dst_type`; leave other values unchanged."""
        return tuple(
            self.cast_inputs(value, dst_type) if isinstance(value, tuple)
            else value.astype(dst_type) if isinstance(value, TensorBase) else value
            for value in inputs
        )

    def run_construct(self, cast_inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of `construct` for these inputs, with hooks."""
        return self._run_(*cast_inputs, **kwargs)  # type: ignore[attr-defined]


def _check_plan(wrote: str, name: str, strategy: Any, shape: tuple[int, ...]) -> None:
    """Raises ValueError for numbers that are not one for each axis, or that do not divide the axis. The texts end with MindSpore's."""
    if not isinstance(strategy, tuple) or not all(is_int(cut) for cut in strategy):
        return
    if len(strategy) != len(shape):
        text = message(f"{wrote}: {name!r} of shape {list(shape)}", f"{len(shape)} numbers, got {len(strategy)}")
        raise ValueError(f"{text} the length of param_strategy: {len(strategy)}, is not equal to param_shape len: {len(shape)}.")
    for axis, (size, cut) in enumerate(zip(shape, strategy)):
        if cut < 1 or size % cut:
            text = message(f"{wrote}: {name!r} of shape {list(shape)}", f"a number that divides {size} at axis {axis}")
            raise ValueError(
                f"{text} For '{name}', the param_shape is {shape} and the setting param_strategy is {strategy}. The param_shape[{axis}]: "
                f"{size} cannot be divisible by param_strategy[{axis}]: {cut}."
            )


def check_strategies(wrote: str, *strategies: Any) -> None:
    """Raises TypeError if a strategy contains anything other than tuples of ints, Layouts and None."""
    for part in (part for strategy in strategies if strategy is not None for part in strategy):
        is_numbers = isinstance(part, tuple) and all(is_int(number) for number in part)
        if part is not None and not is_numbers and not hasattr(part, "to_dict"):
            raise TypeError(
                f"{wrote}: expected tuples of ints, Layouts or None in a strategy, got {part!r:.40}. The 'in_strategy' should be a "
                f"tuple(tuple(int)) or tuple(mindspore.parallel.Layout), but got {type(part).__name__}."
            )
