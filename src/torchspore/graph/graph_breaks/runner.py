"""Runs functions in parts, and learns at each call which of their statements can be captured."""
from __future__ import annotations

import ast
import copy
import threading
import time
import weakref
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from torchspore.base import event_log
from torchspore.base.frames import is_user_file
from torchspore.context import effects
from torchspore.engine.execution import thread_state
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture import condition_comments
from torchspore.graph.capture.capture import unbound_name
from torchspore.graph.capture.running_trace import current
from torchspore.graph.control_flow import source, syntax
from torchspore.graph.control_flow.fixed_conditions import FixedConditions
from torchspore.graph.control_flow.mutable_state import UNBOUND
from torchspore.graph.graph_breaks.plan import Plan
from torchspore.graph.graph_breaks.splitter import HELPER, Piece, Splitter
from torchspore.graph.refusal import Refusal
from torchspore.graph.specialization import lookup
from torchspore.graph.specialization.compiled_graph import Graph

SETTLED = 3
"""After so many calls a piece no longer grows by its neighbours."""

TURNS = 5
"""How often each form of a piece is timed."""

REWRITES = 64
"""How often a function is split again while its statements become known."""

_plans: dict[CodeType, Plan | None] = {}
_runners: weakref.WeakKeyDictionary[FunctionType, Runner] = weakref.WeakKeyDictionary()
_lock = threading.RLock()


def of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` in a form that runs in parts; unchanged if it is not the program's or its source is unavailable."""
    if isinstance(function, MethodType):
        method = of(function.__func__)
        return function if method is function.__func__ else MethodType(method, function.__self__)
    if not isinstance(function, FunctionType) or not is_user_file(function.__code__.co_filename):
        return function
    with _lock:
        runner = _runners.get(function)
        if runner is None or runner.code is not function.__code__:
            plan = _plan(function)
            if plan is None:
                return function
            runner = _runners[function] = Runner(function, plan)
        return runner.current()


def _plan(function: FunctionType) -> Plan | None:
    code = function.__code__
    if code not in _plans:
        try:
            definition = source.definition(function)
            can_be_split = isinstance(definition, ast.FunctionDef) and syntax.can_convert(definition)
            if can_be_split and condition_comments.has_comment(code):
                definition = FixedConditions().visit(copy.deepcopy(definition))
            _plans[code] = Plan(code, definition) if can_be_split else None
        except source.NoSource as error:
            event_log.event("refused", f"{code.co_filename}:{code.co_firstlineno}: {code.co_name} runs as PyNative, because {error}")
            _plans[code] = None
    return _plans[code]


class Region:
    """The statements of one piece: run as a graph where they can be."""

    is_piece = True

    def __init__(self, plan: Plan, piece: Piece, function: FunctionType, label: str) -> None:
        self.plan, self.piece, self.function = plan, piece, function
        self.__qualname__ = label
        self._calls = 0
        self._seconds: dict[bool, list[float]] = {True: [], False: []}
        """How long calls took as a graph, and in Python; until it is known which is faster."""
        self.is_slower: bool | None = None

    def __call__(self, args: tuple[Any, ...]) -> Any:
        if self.is_slower:
            return thread_state.in_pynative(self.function, args, {})
        if not lookup.can_record():
            return self.function(*args)
        self._calls += 1
        if self.is_slower is None and self._calls > SETTLED:
            return self._measured(args)
        return self._as_graph(args)

    def _as_graph(self, args: tuple[Any, ...]) -> Any:
        flat: list[TensorBase] = []
        graph = lookup.find(self, self.function, args, {}, flat)
        if isinstance(graph, Graph):
            self.plan.set_captured(self.piece.statements)
            return lookup.run(graph, flat, self.function, args, {})
        self._refused(graph)
        return self.function(*args)

    def _measured(self, args: tuple[Any, ...]) -> Any:
        """Runs in one form or the other by turns, and takes the faster one in the end: a short piece gains less than its look-up."""
        as_graph = len(self._seconds[True]) <= len(self._seconds[False])
        started = time.perf_counter()
        result = self._as_graph(args) if as_graph else thread_state.in_pynative(self.function, args, {})
        self._seconds[as_graph].append(time.perf_counter() - started)
        if len(self._seconds[False]) == TURNS:
            self.is_slower = min(self._seconds[True]) > min(self._seconds[False])
            if self.is_slower:
                event_log.event("break", f"{self.plan.code.co_filename}:{self.piece.first}: {self.__qualname__} is faster in Python")
        return result

    def _refused(self, refusal: Refusal) -> None:
        self.plan.refused(self.piece.statements, refusal.reason)
        if len(self.piece.statements) == 1:
            line = f"{self.plan.code.co_filename}:{self.piece.first}"
            event_log.event("break", f"{line}: {refusal.reason}")
            effects.note("graph breaks", f"{line}: {self.__qualname__.split(' ')[0]} {refusal.reason}")


class Runner:
    """The split form of one function object."""

    def __init__(self, function: FunctionType, plan: Plan) -> None:
        self._plan = plan
        self.code = function.__code__
        self._function: weakref.ref[FunctionType] = weakref.ref(function)
        self._version = -1
        self._rewrites = 0
        self._regions: dict[Any, Region] = {}
        self._split: FunctionType | None = None

    def current(self) -> FunctionType:
        """Return the split form for the present knowledge; the function itself if Python is faster in every piece."""
        function = self._function()
        assert function is not None
        if self._regions and all(region.is_slower for region in self._regions.values()):
            return function
        if self._split is None or (self._version != self._plan.version and self._rewrites < REWRITES):
            self._split = self._store_names(function)
        split = self._split
        if split.__defaults__ is not function.__defaults__ or split.__kwdefaults__ is not function.__kwdefaults__:
            split.__defaults__, split.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        return split

    def _store_names(self, function: FunctionType) -> FunctionType:
        self._version = self._plan.version
        self._rewrites += 1
        splitter = Splitter(self._plan)
        definition = splitter.function()
        stored_regions, self._regions = self._regions, {}
        helper = Helper()
        for piece in splitter.pieces:
            key = (piece.statements, piece.takes, piece.gives)
            region = stored_regions.get(key)
            if region is None:
                lines = f"line {piece.first}" if piece.first == piece.last else f"lines {piece.first}-{piece.last}"
                part = _build_function(function, piece.definition, helper)
                part.__dict__["_cf_definition"] = piece.definition
                region = Region(self._plan, piece, part, f"{function.__qualname__} {lines}")
            self._regions[key] = region
            helper.regions.append(region)
        return _build_function(function, definition, helper)


class Outcome:
    """The result of a piece whose names were stored first."""

    __slots__ = ("_error", "_value")

    def __init__(self, value: Any, error: BaseException | None) -> None:
        self._value, self._error = value, error

    def end(self) -> Any:
        """Return the piece's result, or raise its error."""
        error, self._error = self._error, None                       # no circle through the frame that holds this
        if error is not None:
            raise error
        return self._value


def _locals_at(error: BaseException, code: CodeType) -> dict[str, Any] | None:
    """The local names of the function with this code where `error` went through it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    return None if trace is None else dict(trace.tb_frame.f_locals)


class Helper:
    """The functions of one split form, which its source calls `_cf_parts`."""

    unbound = UNBOUND

    @staticmethod
    def value(read: Callable[[], Any]) -> Any:
        """Return the value of a local name, or `unbound`. Raise Refusal if a branch or loop on a Tensor decides whether it has a value."""
        try:
            return read()
        except NameError as error:
            around = current()
            reason = around.watch.lost.get(unbound_name(error)) if around is not None else None
            if reason is not None:
                raise reason from None
            return UNBOUND

    def __init__(self) -> None:
        self.regions: list[Region] = []

    def run(self, number: int, args: tuple[Any, ...]) -> Any:
        """Runs the piece `number`."""
        return self.regions[number](args)

    def attempt(self, number: int, args: tuple[Any, ...], names: tuple[str, ...]) -> tuple[Any, ...]:
        """Run the piece `number`: return the final values of the names that it assigns or where it failed, and its Outcome."""
        region = self.regions[number]
        try:
            result = region(args)
        except BaseException as error:  # Outcome.end raises it
            local_values = _locals_at(error, region.function.__code__)
            if local_values is None:                                         # it failed before it began
                local_values = dict(zip(region.piece.takes, args))
            return (*(local_values.get(text, UNBOUND) for text in names), Outcome(None, error))
        values = result[-len(names):]
        return (*values, Outcome(result[0] if len(result) > len(names) else None, None))

    def call(self, function: Any) -> Any:
        """Call `function`, in parts if it is the program's."""
        return of(function) if isinstance(function, (FunctionType, MethodType)) else function


def _build_function(function: FunctionType, definition: Any, helper: Helper) -> FunctionType:
    """A function from a definition, in the scope of `function`: its globals, its free variables themselves."""
    code = function.__code__
    compiled = source.compiled(definition, code, source.class_of(function), (*code.co_freevars, HELPER))
    assert compiled is not None
    cells = {**dict(zip(code.co_freevars, function.__closure__ or ())), HELPER: CellType(helper)}
    part = FunctionType(compiled, function.__globals__, definition.name, None, tuple(cells[n] for n in compiled.co_freevars))
    part.__qualname__, part.__module__ = function.__qualname__, function.__module__
    return part
