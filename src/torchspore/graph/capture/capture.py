"""Capture: runs a call once with fake tensors and stores the operators as a graph; real values never change.

A real Tensor that an operator reads becomes an input of the graph at its first use. Stand-ins belong to the capturing thread, so that a
live Parameter never changes and another thread may run the same Cell at the same time.
"""
from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchspore.base import once, tracebacks, user_threads
from torchspore.base.frames import with_slashes
from torchspore.base.text import with_hint
from torchspore.engine.front_end import FRONT
from torchspore.engine.split_layouts.sharded_value import RowShard, ShardedValue
from torchspore.engine.tensors import torch_aliases, tree
from torchspore.engine.tensors.delayed_values import DelayedValue
from torchspore.engine.tensors.in_place_versions import base_of
from torchspore.engine.tensors.number import Number, is_large
from torchspore.engine.tensors.tensor import Frame, TensorBase, tensors, transform
from torchspore.engine.torch_internals.symbolic_shapes import sizes_as_symbols
from torchspore.engine.torch_internals.torch_private import (
    FakeTensor,
    current_trace,
    disable_proxy_modes_tracing,
    graph_of,
    lazy_graphs,
    load_for_symbols,
    no_transforms,
    outside_of_transforms,
    track,
    without_log_of_refusals,
    without_modes,
)
from torchspore.graph.capture import constant_arrays, constant_values, dynamic_shapes, scalar_inputs, torch_draws
from torchspore.graph.capture.ambiguous_tensors import is_undecided, may_be_number
from torchspore.graph.capture.dynamic_shapes import Axes
from torchspore.graph.capture.iterators import holds_iterator, settled, without_dicts
from torchspore.graph.capture.return_values import Results
from torchspore.graph.capture.state import Randomness
from torchspore.graph.capture.trace_guard import TraceGuard
from torchspore.graph.capture.trace_guard_hooks import watching
from torchspore.graph.fx import control_flow
from torchspore.graph.refusal import Kind, Refusal
from torchspore.graph.report import provenance, stages
from torchspore.translations import translate

_tracing_lock = threading.RLock()        # hooks of a trace are those of the process


@dataclass
class Captured:
    """The outcome of a capture: the graph, where its inputs come from, what becomes of its outputs, and the state it depends on."""

    module: torch.fx.GraphModule
    lifted: list[Any]                      # a Tensor, or a function that gives a torch tensor, for each input
    result: Any                            # the result with Out and In in the positions of Tensors
    write_backs: list[tuple[Any, str, Any]]    # (owner, attribute, value with Out and In in it) to be written after each run
    watch: TraceGuard
    fits: dynamic_shapes.Fits | None = None
    sharded_capture: Any = None                     # how it is split over devices (`distributed.shard.sharded_capture.ShardedCapture`)
    streams: tuple[Any, ...] = ()          # the streams of random numbers that its operators name by number
    assumptions: tuple[Any, ...] = ()      # values of constants that the trace read (`constant_values.Assumption`)


@dataclass(frozen=True)
class Out:
    """Represents the output number `index` of the graph."""

    index: int
    is_number: bool = False                # it is given as a Python number


@dataclass(frozen=True)
class In:
    """Represents the Tensor that is the graph's input number `index`."""

    index: int


class Capture(Frame):
    """The frame of a capture."""

    traces = True

    def acts_beside(self, what: str) -> None:
        raise self.watch.refuse(what, Kind.OTHER)

    def __init__(self) -> None:
        self.lifted: list[Any] = []
        self.watch = TraceGuard()
        self.axes: dict[int, Axes] = {}             # by id of a Tensor, the axes whose lengths are symbols
        self.numbers: dict[Any, Any] = {}           # attributes whose Python numbers are inputs of the graph
        self.is_strict = False                      # jit_syntax_level STRICT
        self.is_piece = False                       # some statements of a call that runs in parts
        self.sharded_capture: Any = None                     # what knows of other devices, where the graph is to be split over them
        self._input_index: dict[int, int] = {}           # id(Tensor) -> its index in `lifted`, which keeps it alive
        self._fakes: list[torch.Tensor] = []
        self._recorded_values: dict[int, tuple[torch.Tensor, int, Any]] = {}
        """By the id of its fake tensor, which stays alive, the version and the number of each Tensor that the program created from one."""
        self._unknown: dict[int, tuple[torch.Tensor, BaseException]] = {}
        """Memory whose values are not known any more, and why."""
        self._last: Any = None
        self._streams: dict[int, Any] = {}
        self.assumptions: list[Any] = []            # values of constants that the trace read, for a graph that is split

    # ---- what operators meet

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        t = tensor._t
        if self._is_mine(t):
            if self._unknown:
                self._check_is_defined(t)
            return t
        if isinstance(t, RowShard):
            return t.record_gather(self.resolve)
        index = self._input_index.get(id(tensor))
        if index is None:
            if self.sharded_capture is None and isinstance(t, DelayedValue):
                t = t.draw()
            index = self._input_index[id(tensor)] = self._lift(tensor, t)
        return self._fakes[index]

    def _check_is_defined(self, t: torch.Tensor) -> None:
        base = base_of(t)
        if id(base) in self._unknown:
            raise self._unknown[id(base)][1]

    def measured(self, tensor: TensorBase) -> torch.Tensor:
        return self.resolve(tensor) if self.sharded_capture is not None or id(tensor) in self.axes else tensor._t

    def _is_mine(self, t: torch.Tensor) -> bool:
        if isinstance(t, FakeTensor):
            return t.fake_mode is self.mode
        inside = outside_of_transforms(t)                  # what `vmap` and others of torch.func's hand out
        return inside is not t and self._is_mine(inside)

    def _lift(self, source: Any, t: torch.Tensor) -> int:
        """Create an input of the graph; return its index."""
        if isinstance(t, FakeTensor):          # an example of its values is nowhere
            raise Refusal("uses a Tensor of another trace")
        with no_transforms():
            fake = self._fake_tensor(source, t)
            torch_aliases.follow(t, fake)
            self._track(fake)
        self.lifted.append(source)
        self._fakes.append(fake)
        return len(self.lifted) - 1

    def _fake_tensor(self, source: Any, t: torch.Tensor) -> torch.Tensor:
        """The fake for a new input."""
        axes = self.axes.get(id(source))
        if self.sharded_capture is None and isinstance(t, ShardedValue):
            raise t.error_for_operator("a graph of one device")
        with disable_proxy_modes_tracing(), torch.no_grad():
            if self.sharded_capture is not None and (
                (shape := self.sharded_capture.full_shape(source, t)) != t.shape
                or self.sharded_capture.is_elsewhere(source)
                or isinstance(t, DelayedValue)
            ):
                with self.mode:
                    return torch.empty(shape, dtype=t.dtype, device=t.device)
            if axes is not None:
                return self.mode.from_tensor(t, symbolic_context=sizes_as_symbols(t, axes))
            return self.mode.from_tensor(t, static_shapes=True)

    def _track(self, fake: torch.Tensor) -> None:
        """Make `fake` the next input of the graph."""
        graph = self.tracer.graph
        with graph.inserting_after(self._last) if self._last is not None else graph.inserting_before(next(iter(graph.nodes), None)):
            node = self._last = graph.placeholder(f"in{len(self.lifted)}")
        track(fake, torch.fx.Proxy(node, self.tracer), self.tracer)

    def _end(self) -> None:
        """Finishes the trace while the program's state is as the call leaves it."""

    def _more_outputs(self) -> list[torch.Tensor]:
        """Return the outputs of the graph after the program's outputs."""
        return []

    def literal(self, data: Any, make: Callable[[Any], torch.Tensor]) -> torch.Tensor:
        if isinstance(data, np.ndarray):
            constant = self.watch.arrays.get(id(data))
            if constant is None:
                if not constant_arrays.is_constant():
                    raise Refusal("makes a Tensor of a NumPy array that is computed in the call", kind=Kind.MAKES_TENSOR)
                with without_modes():
                    values = make(data)
                return self._lifted_values(lambda: values)
            return self._lifted_values(lambda: make(constant()))
        if isinstance(data, (list, tuple)) and _has_array(data):
            raise Refusal("makes a Tensor of NumPy arrays that are computed in the call", kind=Kind.MAKES_TENSOR)
        with without_modes():
            t = make(data)
            number = _number_in(data, t) if type(data) in (bool, int, float) and t.numel() == 1 else None
        lifted = self._lifted_values(lambda: t)
        if number is not None:
            self._recorded_values[id(lifted)] = (lifted, lifted._version, number)
        return lifted

    def _lifted_values(self, source: Callable[[], torch.Tensor]) -> torch.Tensor:
        """New values as an input; cloned in the graph, because the program may write into them."""
        with without_modes():
            t = source()
        index = self._lift(source, t)
        return self._fakes[index].clone()

    # ---- called by the program

    def write(self, tensor: TensorBase, value: torch.Tensor) -> None:
        with torch.no_grad():
            if isinstance(tensor._t, RowShard):
                tensor._t.record_write(self.resolve, value)
                return
            self.resolve(tensor).copy_(value)

    def modify(self, tensor: TensorBase, change: Callable[[torch.Tensor], Any]) -> None:
        if isinstance(tensor._t, RowShard):
            raise Refusal("writes in place into a weight that processes share", kind=Kind.OTHER)
        change(self.resolve(tensor))

    def aliases(self, base: torch.Tensor) -> list[tuple[torch.Tensor, BaseException]]:
        return self.watch.aliases.of(base)

    def forget(self, base: torch.Tensor, reason: BaseException) -> None:
        if any(base is fake for fake in self._fakes):
            raise reason                           # it outlives the call
        self._unknown[id(base)] = base, reason

    def rebind(self, tensor: TensorBase, t: torch.Tensor) -> None:
        if not self._is_mine(tensor._t):
            raise Refusal("changes the shape or dtype of a Parameter", kind=Kind.TWO_KINDS)
        tensor._t = t

    def host(self, tensor: TensorBase) -> torch.Tensor:
        refusal = _needs_values("reads the values of a Tensor on the host", Kind.READS_VALUES)
        refusal.needs_number = type(tensor) is Number
        raise refusal

    def known_out(self, tensor: TensorBase) -> Any:
        copy, version, number = self._recorded_values.get(id(tensor._t), (None, 0, None))
        if copy is not None and copy._version == version:
            return number
        return None if self.sharded_capture is None else constant_values.constant_numbers(self, self.resolve(tensor))

    def keep_alive(self, stream: Any) -> None:
        self._streams[stream.number] = stream
        super().keep_alive(stream)             # a part of a graph lives as long as the graph

    def born(self, cell: Any) -> None:
        self.watch.born[id(cell)] = cell

    def attribute_set(self, owner: Any, name: str, value: Any) -> None:
        if any(map(is_undecided, tensors(value))):
            raise Refusal(f"stores a Parameter in the attribute {name!r} of {type(owner).__name__}, as a Tensor decides",
                          kind=Kind.WRITES_ATTRIBUTE)
        self.watch.wrote(owner, name)

    # ---- the capture itself

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Captured:
        """Trace `function(*args, **kwargs)`. Raises Refusal for code that a graph cannot contain; all state is restored in either case."""
        if self.axes:
            load_for_symbols()                     # sets a variable of the environment: once all is watched it would be the program's doing
        self.watch.learn(function)
        self.watch.has_numbers = bool(self.numbers) or any(isinstance(item, Number) for item in tensors((args, kwargs)))
        self.watch.add_arguments((args, kwargs))
        argument_ids = set() if self.is_piece else self.watch.contents.ids()
        self._has_containers = any(isinstance(item, (list, tuple, dict)) for item in (*args, *kwargs.values()))
        function = self.callee(function)

        def body() -> list[torch.Tensor]:
            self.tracer, self.mode = current_trace()
            torch_draws.refuse_in(self.tracer, self.watch)
            provenance.attach(self.tracer, self.sharded_capture is not None)
            stages.began(self)
            with self.open(), watching(self.watch):
                self._lift_numbers()
                self.result = self._settled(function(*args, **kwargs))
                self._end()
            self._settle(argument_ids)
            return [*self._outputs, *self._more_outputs()]

        with _tracing_lock, user_threads.exclusive():
            self.watch.randomness = Randomness()          # the present state, if nothing else draws
            try:
                with without_modes(), without_log_of_refusals(), lazy_graphs(True):
                    module = graph_of(body, has_open_sizes=bool(self.axes))
                stages.traced(module, self.lifted, function, args, kwargs)
                if self.watch.converter is not None:
                    module = self.watch.converter.lowered(module)
                stages.keep("control_flow", module)
            except BaseException as error:
                self.watch.restore()
                self.watch.changed_state()
                ended = self.watch.refusal or self._lost(error) or _as_refusal(error)
                raise (ended if self.watch.converter is None else self.watch.converter.explained(ended, self.watch)) from None
            finally:
                control_flow.RECORDS.clear()
        self.watch.narrow()
        open_ = [index for index, item in enumerate(self.lifted) if id(item) in self.axes]
        fits = dynamic_shapes.Fits(self.mode.shape_env, self._fakes, open_) if open_ else None
        return Captured(
            module, self.lifted, self.result, self.write_backs, self.watch, fits, self.sharded_capture, tuple(self._streams.values()),
            tuple(self.assumptions),
        )

    def _settled(self, result: Any) -> Any:
        """Return the result with tuples and lists in place of iterators; between the parts of a call iterators stay, in Python."""
        settled_result = result if self.is_piece else settled(result)
        if self.is_strict:
            settled_result = without_dicts(settled_result)
        if holds_iterator(settled_result):
            raise Refusal("gives an iterator")
        return settled_result

    def _lift_numbers(self) -> None:
        """Create placeholders for the attributes that become inputs."""
        for key, (holder, name) in self.numbers.items():
            value = holder.get(name)
            if type(value) in (int, float) and not is_large(value):
                lifted = Number(self._lifted_values(scalar_inputs.source(holder, name)))
                self.watch.lift_number(key, holder, name, value, lifted)

    def callee(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function if self.watch.converter is None else self.watch.converter.converted(function, self.watch)

    def _lost(self, error: BaseException) -> Refusal | None:
        """Return why a local name has no value, if that ended the capture because of a branch or loop on a Tensor."""
        return self.watch.lost.get(unbound_name(error)) if isinstance(error, NameError) else None

    def _settle(self, argument_ids: set[int]) -> None:
        """Restore all state and replace the Tensors of the result by indexes of inputs and outputs."""
        changed = self.watch.restore()
        reason, kind = self.watch.changed_state()
        if self.watch.refusal is not None:
            raise self.watch.refusal
        if reason is not None:
            refusal = Refusal(reason, self._first_line(), kind)
            refusal.is_allowed = kind is Kind.CHANGES_CONTAINER and self.watch.is_own_change
            refusal.changes_arguments = kind is Kind.CHANGES_CONTAINER and self.watch.changed_ids <= argument_ids
            raise refusal
        if self._has_containers and self.watch.roads.compares:
            refusal = Refusal("compares by identity, and receives a list, tuple or dict, which a graph compares by contents",
                              self._first_line())
            refusal.is_allowed = True
            raise refusal
        self.watch.note_unmoved()
        self._outputs: list[torch.Tensor] = []
        self._outs: dict[int, Out] = {}
        self.write_backs = []
        for owner, name, value in changed:
            if not any(True for _ in tensors(value)):
                line = self.watch.lines.get((id(owner.__dict__), name)) or self._first_line()
                text = translate("writes the attribute {name!r} of {owner}").format(name=name, owner=type(owner).__name__)
                refusal = Refusal(text, line, Kind.WRITES_ATTRIBUTE)
                refusal.numbers = tuple(
                    (owner.__dict__, name) for owner, name, value in changed
                    if type(value) in (int, float) and type(owner.__dict__.get(name)) is type(value)
                )
                raise refusal
            self.write_backs.append((owner, name, transform(value, self._placed)))
        Results(self.watch, argument_ids, self._first_line).check(self.result)
        self.result = transform(self.result, self._placed)
        if dynamic_shapes.holds_symbols([value for _, _, value in self.write_backs]):
            raise Refusal("returns a length that is open", kind=Kind.TWO_KINDS)

    def _placed(self, tensor: TensorBase) -> Out | In:
        if not self._is_mine(tensor._t):
            self.resolve(tensor)
            return In(self._input_index[id(tensor)])
        if self._unknown:
            self._check_is_defined(tensor._t)
        out = self._outs.get(id(tensor))
        if out is None and may_be_number(tensor) and not isinstance(tensor, Number):
            raise Refusal("returns a Tensor or a Python number, depending on a Tensor", self._first_line(), Kind.TWO_KINDS)
        if out is None:
            out = self._outs[id(tensor)] = Out(len(self._outputs), isinstance(tensor, Number))
            self._outputs.append(tensor._t)
        return out

    def _first_line(self) -> str:
        code = next((code for code in self.watch.codes if code.co_filename != "<string>"), None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "<unknown>"


def unbound_name(error: NameError) -> str:
    """The name that has no value."""
    match = re.search(r"'(\w+)'", str(error))
    return error.name or (match.group(1) if match else "")


def _needs_values(reason: str, kind: Kind, line: str | None = None) -> Refusal:
    refusal = Refusal(reason, line, kind)
    refusal.needs_values = True
    return refusal


def _has_array(data: Any) -> bool:
    return any(isinstance(leaf, np.ndarray) for leaf in tree.leaves(data))


def _number_in(data: bool | int | float, t: torch.Tensor) -> Any:
    """The number in `t`, which was made of `data`; where a device holds `t`, the host computes it, and does not wait for the device."""
    if t.device.type == "cpu" or (type(data) is int and not -(2**63) <= data < 2**63):
        return t.item()
    return torch.tensor(data, dtype=torch.float64 if type(data) is float else None).to(t.dtype).item()


_PACKAGES_OF_THE_CAPTURE = ("graph/", "engine/torch_internals/")
_WITH_ERRORS_OF_THE_PROGRAM = "graph/control_flow/runtime_helpers.py"
"""A file that runs operators for the program: their errors are the program's."""


def _as_refusal(error: BaseException) -> BaseException:
    """Return the exception that ends the capture: a Refusal for everything but a stop from outside."""
    if isinstance(error, (Refusal, KeyboardInterrupt, SystemExit, GeneratorExit)) or getattr(error, "final", False):
        return error
    from torchspore.base.frames import is_user_file

    lines, step = [], error.__traceback__
    while step is not None:
        if is_user_file(step.tb_frame.f_code.co_filename):
            lines.append(f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}")
        step = step.tb_next
    line = lines[-1] if lines else None
    if _is_data_dependent(error):
        refusal = _needs_values("needs the values of a Tensor to go on", Kind.NEEDS_VALUES, line or "<unknown>")
        refusal.is_allowed = not tracebacks.ends_in_user_code(error)       # an operator needs them, not the program
        return refusal
    if type(error).__name__ == "RealOperands" or (isinstance(error, AssertionError) and "convert all Tensors to FakeTensors" in str(error)):
        return Refusal("computes with a torch tensor that is not an argument, a Parameter or a buffer", line or "<unknown>", Kind.OTHER)
    defect = _position_of_defect(error)
    if defect and once.first_time(("defect of the capture", defect)) and FRONT.warn is not None:
        FRONT.warn(with_hint(
            f"a defect of torchspore ended the capture of a graph in {defect}; the call runs in parts",
            "report it with the output of `torchspore env`",
        ))
    text = translate("raises {error}").format(error=type(error).__name__ + (f" in torchspore's own {defect}" if defect else ""))
    refusal = Refusal(text, line or "<unknown>", Kind.RAISES)
    refusal.needs_room = isinstance(error, RecursionError)
    # For `in`, and for tuples that are longer than the names to which they are assigned.
    refusal.needs_values = isinstance(error, ValueError) and str(error).startswith(("truth of a Tensor", "too many values to unpack"))
    refusal.stack += lines if refusal.stack else []
    if isinstance(error, Exception) and (tracebacks.is_refusal(error) or tracebacks.ends_in_user_code(error)):
        refusal.error, refusal.trace = error, error.__traceback__
    return refusal


def _is_data_dependent(error: BaseException | None) -> bool:
    """Return whether `error`, or an error that it was raised for, is torch's refusal to use values that are unknown in a capture."""
    while error is not None:
        if type(error).__name__ in ("DataDependentOutputException", "DynamicOutputShapeException", "GuardOnDataDependentSymNode"):
            return True
        error = error.__context__
    return False


def _position_of_defect(error: BaseException) -> str:
    """Return where the capture raised an error that is a defect of torchspore and not of the program; empty for other errors."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None or not isinstance(error, (AttributeError, KeyError, AssertionError)):
        return ""
    module_path = with_slashes(step.tb_frame.f_code.co_filename).rpartition("/torchspore/")[2]
    if not module_path.startswith(_PACKAGES_OF_THE_CAPTURE) or module_path == _WITH_ERRORS_OF_THE_PROGRAM:
        return ""
    return f"{module_path}:{step.tb_lineno} ({error})"
