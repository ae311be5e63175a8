"""`nn.Cell`: the base of networks: its attributes and its call. `cell_tree.py` has traversals and names, `cell_hooks.py` hooks."""
from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchspore.base.lazy_modules import import_lazily
from torchspore.base.text import message, with_hint, with_type
from torchspore.context.store import STORE
from torchspore.engine.execution import thread_state
from torchspore.engine.execution.precision import changed
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import change_counters, torch_interop
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import TensorBase, frame, is_recording
from torchspore.errors import NameRefused
from torchspore.graph import forward_cache
from torchspore.mindspore.common.parameter import Parameter, ParameterTuple
from torchspore.mindspore.common.recompute import check_options
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell_facts import CellFacts
from torchspore.mindspore.nn.cell_flags import CellFlags
from torchspore.mindspore.nn.cell_hooks import CellHooks
from torchspore.mindspore.nn.cell_members import MemberDict
from torchspore.mindspore.nn.cell_state import CellState
from torchspore.mindspore.nn.cell_tree import CellTree
from torchspore.mindspore.ops.declaration.explain import replaced, wrong_arguments
from torchspore.mindspore.ops.declaration.older_keywords import renamed_keywords_of_layer
from torchspore.mindspore.ops.declaration.primitive import Primitive
from torchspore.mindspore.ops.declaration.promote import check_stored_dtype
from torchspore.observe.debug import recorded_steps
from torchspore.public_names.lookup import attribute_text
from torchspore.translations import translate

if TYPE_CHECKING:
    from torchspore.distributed.shard import split_records, strategy_calls
    from torchspore.graph import dispatch, graph_breaks
else:
    import_lazily(
        globals(), "torchspore.distributed.shard.split_records", "torchspore.distributed.shard.strategy_calls", "torchspore.graph.dispatch",
        "torchspore.graph.graph_breaks",
    )

_set = object.__setattr__

GRADIENT = "_gradient_function_"
"""The attribute of a Cell with the gradient function of its last step; copies of the Cell leave it out."""


def _is_data_descriptor(cls: type, name: str) -> bool:
    """Return whether a class handles assignment to an attribute itself: a property, another descriptor, a slot."""
    for base in cls.__mro__:
        namespace = base.__dict__
        if name in namespace:
            return hasattr(type(namespace[name]), "__set__")
    return False


def _is_taken(cls: type, name: str) -> bool:
    """Return whether a class already defines this name, which would hide the attribute. Parts of layers do not count."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return not getattr(base.__dict__[name], "gives_way", False)
    return False


def _is_number_for(parameter: Any, value: Any) -> bool:
    """Return whether `value` is a Python number that a Parameter of one element can store."""
    return parameter.size == 1 and (type(value) is int or (type(value) is float and parameter.is_floating_point()))


def _name_exists(cell: Cell, name: str) -> NameRefused:
    text = translate("{cell}.{name} exists already.").format(cell=type(cell).__name__, name=name)
    return NameRefused(with_hint(text, translate("give the Cell another name")))


class Cell(CellTree, CellHooks, CellState, CellFlags, CellFacts):
    """The base of networks and layers: define `construct`, and assign Parameters and Cells to attributes.

    `auto_prefix` prepends the attribute's name to the names of the Parameters inside it. Calling a Cell runs `construct`: operator by
    operator in PYNATIVE_MODE, as one captured graph per signature in GRAPH_MODE. `training` is False initially.
    """

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None) -> None:
        around = frame()
        if around is not None:
            around.born(self)
        _set(self, "_params", MemberDict())
        _set(self, "_cells", MemberDict())
        self.__dict__.update(
            _auto_prefix=auto_prefix, training=False, requires_grad=False, _hooks_=None, _bprop_=getattr(type(self), "bprop", None),
            _flags_={}, _lower_=None, _recompute_=None, _param_prefix="", _scope=None,
            _jit_config_={}, cell_type=None, instance_name="",
        )
        if flags:
            self.add_flags(**flags)

    # ---- attributes

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        members = state.get("_params")
        if members is not None and name in members:
            return members[name]
        members = state.get("_cells")
        if members is not None and name in members:
            return members[name]
        if "_params" not in state and name in ("_params", "_cells", "training", "_hooks_"):
            text = translate("{cell}: attributes are read before super().__init__() was called.").format(cell=type(self).__name__)
            raise AttributeError(with_hint(text, translate("call super().__init__() first")))
        if name == "cast":                               # Cells had the operator until MindSpore 2.2
            from torchspore.mindspore.ops import Cast

            return Cast()
        lacking = None if name.startswith("__") else attribute_text(type(self).__mro__, name)
        if lacking is None:
            lacking = f"{type(self).__name__!r} object has no attribute {name!r}."
            if torch_interop.is_name_of_modules(name):
                lacking = with_hint(lacking, "torch Modules have it: write torchspore.as_module(cell)")
        raise AttributeError(lacking)

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            self._set_attribute_(name, value)
        finally:
            self._changed_(name)

    def _set_attribute_(self, name: str, value: Any) -> None:
        around = frame()
        if around is not None:
            around.attribute_set(self, name, value)
        state = self.__dict__
        if isinstance(value, Parameter):
            self.insert_param_to_cell(name, value)
        elif isinstance(value, Cell):
            self._insert_cell_(name, value)
        elif torch_interop.is_torch_module(value):
            self._insert_cell_(name, torch_interop.as_cell(value))
        elif isinstance(value, ParameterTuple):
            self._insert_tuple_(name, value)
        elif "_params" in state and name in state["_params"]:
            self._assign_parameter_(name, value)
        elif "_cells" in state and name in state["_cells"]:
            if value is not None:
                raise TypeError(
                    f"{type(self).__name__}.{name}: expected a Cell or None in place of the Cell there, got {type(value).__name__}."
                )
            state["_cells"][name] = None
        elif _is_data_descriptor(type(self), name):
            if around is not None and not isinstance(getattr(type(self), name, None), property):
                around.acts_beside(f"sets {type(self).__name__}.{name}, a slot or descriptor")
            _set(self, name, value)
        else:
            state[name] = value
            if isinstance(value, Tensor) and "_is_buffer" in value.__dict__:
                state.setdefault("_buffers", OrderedDict())[name] = value.__dict__["persistent"]
            if isinstance(value, Primitive) and hasattr(type(self), name):
                self._part_assigned_(name)

    def __delattr__(self, name: str) -> None:
        around = frame()
        if around is not None:
            around.attribute_set(self, name, None)
        for members in (self._params, self._cells, self.__dict__):
            if name in members:
                del members[name]
                self._changed_()
                return
        if _is_data_descriptor(type(self), name):
            object.__delattr__(self, name)
            self._changed_()
            return
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}.")

    def _changed_(self, name: str = "") -> None:
        """Count a change of this Cell, after it was made, so that a thread that sees the new count also sees the new value."""
        change_counters.cell_changed()
        self.__dict__[forward_cache.CHANGED_AT] = change_counters.cells
        if name != "training":
            self.__dict__[change_counters.SETTINGS_CHANGED_AT] = change_counters.cells

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._params, *self._cells})

    def _owner_(self, name: str) -> dict[str, Any]:
        if "_params" not in self.__dict__:
            text = translate("{cell}.{name} is set before super().__init__() was called.").format(cell=type(self).__name__, name=name)
            raise AttributeError(with_hint(text, translate("call super().__init__() first in __init__")))
        return self.__dict__

    def _insert_cell_(self, name: str, cell: Cell) -> None:
        state = self._owner_(name)
        if name in state["_params"]:
            text = translate("{cell}.{name} is a Parameter already.").format(cell=type(self).__name__, name=name)
            raise ValueError(with_hint(text, translate("give the Cell another name")))
        if name not in state["_cells"] and _is_taken(type(self), name):
            raise _name_exists(self, name)
        state.pop(name, None)
        if state["_auto_prefix"]:
            cell.update_parameters_name(name + ".")
        state["_cells"][name] = cell

    def _insert_tuple_(self, name: str, parameters: ParameterTuple) -> None:
        state = self._owner_(name)
        for parameter in parameters:
            key = parameter.name
            if parameter.is_unnamed:     # MindSpore's numbering, which checkpoints contain
                state["_unnamed_"] = state.get("_unnamed_", 0) + 1
                key = f"Parameter${state['_unnamed_']}"
            self.insert_param_to_cell(key, parameter, check_name_contain_dot=False)
        state[name] = parameters

    def _assign_parameter_(self, name: str, value: Any) -> None:
        parameters = self.__dict__["_params"]
        if isinstance(value, TensorBase):
            if thread_state.is_in_graph():                                    # PyNative narrows values, as MindSpore's does
                check_stored_dtype(parameters[name]._t.dtype, value._t)
            parameters[name].set_data(value)
        elif _is_number_for(parameters[name], value):            # a counter reset, as in Graph mode: `self.step = 0`
            parameters[name].set_data(Tensor(value, parameters[name].dtype).reshape(parameters[name].shape))
        elif value is None:
            parameters[name] = None
        else:
            text = translate("{cell}.{name}: expected a Parameter, a Tensor or None in place of the Parameter there, got {kind}.")
            raise TypeError(text.format(cell=type(self).__name__, name=name, kind=type(value).__name__))

    def insert_param_to_cell(self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True) -> None:
        """Make `param` a Parameter of this Cell with the name `param_name`.

        Raises TypeError if it is not a Parameter, KeyError for a name that is taken or has a dot, ValueError for an empty name.
        """
        state = self._owner_(param_name)
        if not param_name:
            raise ValueError(message("insert_param_to_cell('')", "a name"))
        if check_name_contain_dot and "." in param_name:
            raise NameRefused(f"insert_param_to_cell({param_name!r}): expected a name without a dot.")
        if param_name in state.get("_cells", ()) or (param_name not in state["_params"] and _is_taken(type(self), param_name)):
            raise NameRefused(f"{type(self).__name__}.{param_name} exists already.\n\nhint: give the Parameter another name.")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"insert_param_to_cell({param_name!r}): expected a Parameter, got {type(param).__name__}.")
        if param is not None and param.is_unnamed:
            param.name = param_name
        state.pop(param_name, None)
        state["_params"][param_name] = param

    def insert_child_to_cell(self, child_name: str, child_cell: Cell | None) -> None:
        """Make `child_cell` a Cell of this one with the name `child_name`, replacing the Cell of that name; None removes it.

        Raises TypeError if it is not a Cell, KeyError for a name that another attribute has, an empty one and one with a dot.
        """
        if not isinstance(child_name, str):
            raise TypeError(message(f"insert_child_to_cell({child_name!r})", with_type("a str", child_name)))
        if not child_name or "." in child_name:
            raise NameRefused(f"insert_child_to_cell({child_name!r}): expected a name without a dot.")
        child_cell = torch_interop.converted_module(child_cell)
        if not isinstance(child_cell, (Cell, type(None))):
            raise TypeError(message(f"insert_child_to_cell({child_name!r})", with_type("a Cell", child_cell)))
        if child_name not in self._cells and hasattr(self, child_name):
            raise _name_exists(self, child_name)
        self._cells[child_name] = child_cell
        self._changed_()

    # ---- the call

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of this Cell; each network defines its own `construct`."""
        name = type(self).__name__
        hint = translate("define construct(self, x) on {cell}").format(cell=name)
        raise AttributeError(message(name, translate("a method named construct"), hint=hint))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if engine.active or self.requires_grad:
            around = engine.thread_state.frame if engine.active else None
            if around is not None and around.modules is not None:
                return around.modules.run_cell(self, args, kwargs) if around.modules.has_additions else self._run_(*args, **kwargs)
            enters_graph = STORE.graph_mode and (around is None or not around.traces)   # a call inside of a capture is part of its graph
            if around is None or around.forwards is not None:
                run = forward_cache.recorder(self, args, kwargs)
                if run is not None:
                    return run(self._entered_ if enters_graph else self._run_)
        else:
            enters_graph = STORE.graph_mode
        if enters_graph:
            return dispatch.enter(self, self._run_, args, kwargs)
        return self._run_(*args, **kwargs)

    def _entered_(self, *args: Any, **kwargs: Any) -> Any:
        return dispatch.enter(self, self._run_, args, kwargs)

    def _run_(self, *args: Any, **kwargs: Any) -> Any:
        state = self.__dict__
        if state["_hooks_"] is not None or state["_lower_"] is not None or state["_bprop_"] is not None or state["_recompute_"] is not None:
            return self._run_full_(*args, **kwargs)
        try:
            if thread_state.breaking:
                return graph_breaks.construct_of(self)(*args, **kwargs)
            return self.construct(*args, **kwargs)
        except Exception as error:
            misfit = wrong_arguments(self, args, kwargs) if isinstance(error, TypeError) else None
            older_spelling = renamed_keywords_of_layer(self, error, args, kwargs) if misfit is not None else None
            if older_spelling is not None:
                return self._run_(*args, **older_spelling)
            shown_as = misfit or replaced(error, self.construct, type(self).__name__, args, kwargs)
            if shown_as is error:
                del shown_as
                raise
            try:
                raise shown_as from None
            finally:
                del shown_as               # else it would keep its frame, with all values of the call, alive until garbage collection

    def _run_full_(self, *args: Any, **kwargs: Any) -> Any:
        """Run the call with the features that a plain Cell lacks: hooks, another compute dtype, a custom gradient, recomputation."""
        args, kwargs = torch_interop.entered(args), torch_interop.entered(kwargs)
        runs_unbroken = not thread_state.breaking or (self._recompute_ is not None and is_recording())
        call: Callable[..., Any] = self.construct if runs_unbroken else graph_breaks.construct_of(self)
        if self._bprop_ is not None:
            from torchspore.engine.autograd.bprop import with_gradient

            call = with_gradient(self.construct, self.bprop, type(self).__name__)
        if self._lower_ is not None:
            call = changed(call, self._lower_, Parameter, self)
        if self._recompute_ is not None:
            from torchspore.mindspore.common.recompute import with_saved_value_rules

            call = with_saved_value_rules(call, type(self).__name__, **self._recompute_)
        return call(*args, **kwargs) if self._hooks_ is None else self._call_with_hooks_(call, args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Capture the graph for these arguments without running it."""
        dispatch.compile(self, self._run_, args, kwargs)
        if strategy_calls.has_single_device():
            inputs = [item for graph in dispatch.graphs(self) for item in graph.inputs]
            self.parameter_layout_dict = split_records.unsplit_layouts([*args, *kwargs.values(), *inputs])

    def compile_and_run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the Cell as a captured graph, whatever the mode."""
        return dispatch.call(self, self._run_, args, kwargs)

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Declare the inputs of this Cell: `Tensor(shape=[None, 3], dtype=...)` leaves the first axis open.

        One graph then serves every length of an open axis. None for an input declares nothing. Raises TypeError for an
        input name that construct does not have, ValueError for more inputs than it takes.
        """
        parameters = list(inspect.signature(self.construct).parameters.values())
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if len(inputs) > len(names) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
            raise ValueError(
                f"{type(self).__name__}.set_inputs: expected at most {len(names)} inputs, the number of construct, got {len(inputs)}."
            )
        for name in kwargs:
            if name not in names:
                raise TypeError(f"{type(self).__name__}.set_inputs({name}=...): expected one of {', '.join(names)}.")
        declared = [*inputs, *[kwargs.get(name) for name in names[len(inputs):]]]
        self.__dict__["_inputs_"] = self.__dict__["_open_inputs_"] = tuple(declared)
        change_counters.calls_changed()

    def get_inputs(self) -> tuple[Any, ...] | None:
        """Return the arguments of `set_inputs`, or None."""
        return self.__dict__.get("_inputs_")

    # ---- flags

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Set whether gradients of this Cell are required after its calls; return the Cell.

        A call is then recorded, and the next gradient of this Cell with the same inputs does not compute it again.
        """
        self.requires_grad = requires_grad
        self.__dict__.pop(forward_cache.FORWARDS, None)
        return self

    def recompute(
        self, *, use_reentrant: bool = True, output_recompute: bool = False, early_stop: bool = True, context_fn: Any = None, **kwargs: Any,
    ) -> None:
        """Recompute the inside of this Cell in the backward pass instead of storing it: less memory for more time.

        The numbers are equal, random ones too. `context_fn` returns two contexts, for the first and the second run. The other options
        concern MindSpore's implementation or several devices, and have no effect here. Raises TypeError and ValueError for wrong ones.
        """
        check_options(use_reentrant, output_recompute, early_stop, context_fn, kwargs)
        self.__dict__["_recompute_"] = {**(self._recompute_ or {}), "contexts": context_fn}
        self._mark_recomputed_()
        change_counters.calls_changed()

    def offload(self, backward_prefetch: str | int = "Auto") -> None:
        """Move the values computed inside this Cell out of memory until the backward pass needs them: to the host, on the CPU to disk.

        `set_offload_context` sets the destination; the numbers are equal. `backward_prefetch` is the number of values that are fetched in
        advance; with 'Auto' the engine decides, and so does a graph, whose order is fixed. Raises ValueError and TypeError for
        other values.
        """
        from torchspore.engine.autograd import cell_offload
        from torchspore.engine.memory import offload

        wrote = f"{type(self).__name__}.offload(backward_prefetch={backward_prefetch!r:.40})"
        if isinstance(backward_prefetch, bool) or not isinstance(backward_prefetch, (int, str)):
            raise TypeError(f"{wrote}: expected 'Auto' or an int, got {type(backward_prefetch).__name__}.")
        if (backward_prefetch != "Auto") if isinstance(backward_prefetch, str) else backward_prefetch < 0:
            raise ValueError(f"{wrote}: expected 'Auto' or an int, 0 or more.")
        ahead = None if isinstance(backward_prefetch, str) else backward_prefetch
        self.__dict__["_recompute_"] = {**(self._recompute_ or {}), cell_offload.RULE: ahead}
        offload.note_cell_request()              # graphs then record which Cells their values come from
        change_counters.calls_changed()

    def register_saved_tensors_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """Pass the values that `construct` saves for the backward pass through `pack_hook`, and back through `unpack_hook`.

        Raises TypeError for hooks that are not callable.
        """
        from torchspore.mindspore.common.saved_tensors import check_hooks

        check_hooks("Cell.register_saved_tensors_hooks", pack_hook, unpack_hook)
        self.__dict__["_recompute_"] = {**(self._recompute_ or {}), "hooks": (pack_hook, unpack_hook)}
        change_counters.calls_changed()

    def set_jit_config(self, jit_config: Any) -> None:
        """Set compile options of this Cell, which override the context's."""
        self._jit_config_ = dict(getattr(jit_config, "jit_config_dict", jit_config))

    @property
    def jit_config_dict(self) -> dict[str, Any]:
        """The compile options of this Cell; empty if the context decides."""
        return self._jit_config_

    @property
    def bprop_debug(self) -> bool:
        """Set whether a user-defined gradient can be debugged while it runs; in PyNative it always can."""
        return bool(self.__dict__.get("_bprop_debug", False))

    @bprop_debug.setter
    def bprop_debug(self, value: bool) -> None:
        self.__dict__["_bprop_debug"] = value

    # ---- printing and copying

    def extend_repr(self) -> str:
        """Return the text between the parentheses of the Cell's repr; layers define it."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): {_indented(repr(cell))}" for name, cell in self._cells.items()]
        head = type(self).__name__ + "("
        extra = self.extend_repr()
        if not lines:
            return f"{head}{extra})"
        return head + "\n  " + "\n  ".join([extra, *lines] if extra else lines) + "\n)"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_graphs_", GRADIENT, forward_cache.FORWARDS)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __bool__(self) -> bool:
        return True


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


FRONT.cell, FRONT.cell_call = Cell, Cell._run_.__code__
recorded_steps.watch_cells()
FRONT.settled += (Cell, Primitive)
