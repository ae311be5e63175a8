"""Observes a trace while it runs: the state that it reads, and its effects that a graph cannot contain (print, files, clocks)."""
from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Protocol

import numpy as np
import torch

from torchspore.base.frames import is_user_file, user_line, with_slashes
from torchspore.base.text import with_hint
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.errors import CallsTooDeep
from torchspore.graph.capture import condition_comments, depth
from torchspore.graph.capture.aliases import Aliases
from torchspore.graph.capture.ambient_state import introspection, queries
from torchspore.graph.capture.ambient_state.process_state import ENVIRONMENT, LEVELS, LOGGING, Levels
from torchspore.graph.capture.callers import argument_of_call, is_ours, is_programs
from torchspore.graph.capture.code_names import computes_globals
from torchspore.graph.capture.ownership import PAST, is_identified_by_identity, is_identified_by_names
from torchspore.graph.capture.reachable_state import ReachableState
from torchspore.graph.capture.scalar_inputs import OfType
from torchspore.graph.capture.side_effects import ASKS, CLOCKS, TALK, WARNS, is_stream
from torchspore.graph.capture.snapshot import constant
from torchspore.graph.capture.snapshot_nodes import CELL_PRIVATE_NAMES
from torchspore.graph.capture.state import MISSING, Contents, Randomness, Read, Unwatchable
from torchspore.graph.refusal import Kind, Refusal
from torchspore.translations import translate


class Converter(Protocol):
    """Makes branches and loops on Tensors part of a graph; captures that need it receive it."""

    def converted(self, function: Callable[..., Any], watch: TraceGuard) -> Callable[..., Any]:
        """Return the function to call for `function`; `watch` learns of its free variables."""

    def lowered(self, module: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """Return the captured graph with direct calls in place of branches and loops."""

    def explained(self, error: BaseException, watch: TraceGuard) -> BaseException:
        """`error`; where source could not be converted, with the reason for that."""


class TraceGuard:
    """The record of one trace."""

    def __init__(self) -> None:
        self.reads: dict[tuple[int, str], Read] = {}
        self.writes: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self.born: dict[int, Any] = {}
        """Cells that the trace itself created, by id: their contents are not a state of the program."""
        self.codes: dict[CodeType, None] = {}
        self.arrays: dict[int, Callable[[], Any]] = {}
        self.homes: dict[int, Read] = {}
        self.roads = ReachableState(self.read, self.read_settled)
        self.numbers: dict[tuple[int, str], Any] = {}
        self.lines: dict[tuple[int, str], str | None] = {}
        """Where each attribute was first written."""
        self._unmoved: list[tuple[Any, str, Any]] = []
        self.contents, self.randomness = Contents(is_identified_by_names), Randomness()
        self.listen: Callable[[], None] | None = None
        """Make `getattr` and `hasattr` report the names that they read, from then on."""
        self.refusal: BaseException | None = None
        self.says = False
        """True if prints of values that are known at compile time become part of the graph."""
        self.converter: Converter | None = None
        """Converts the source of code that runs, so that Tensors may decide branches and loops; None if it runs unconverted."""
        self.has_numbers = False
        """True if Python numbers are inputs of the graph."""
        self._names: dict[int, queries.Answers] = {}
        self._levels: dict[int, Levels] = {}
        self._classes: dict[int, introspection.ClassOf] = {}
        self.uncounted: set[int] = set()
        """The attributes of Cells, by id of their dict, whose class may write them without a count."""
        self.lost: dict[str, Refusal] = {}
        """The local names that a branch or loop on a Tensor leaves without a value, and why."""
        self.aliases = Aliases()
        """Which memory may be the same, as branches and loops on Tensors decide."""
        self._owners: dict[int, tuple[torch.Tensor, TensorBase]] = {}
        self.is_own_change = False
        """True if the trace changed only objects in place whose class declares that they change themselves."""
        self.changed_ids: set[int] = set()
        """The ids of the lists, dicts and objects that the trace changed in place."""
        self._depth, self._deepest = 0, depth.limit()
        queries.learn()
        self._counted: dict[CodeType, bool] = {}

    # ---- reads and writes

    def owner(self, base: torch.Tensor, tensor: TensorBase) -> TensorBase:
        """Return the Tensor that represents the memory `base` in all parts of the graph: the first that was named, as `tensor` is now."""
        return self._owners.setdefault(id(base), (base, tensor))[1]

    def lift_number(self, key: tuple[int, str], holder: Any, name: str, value: Any, lifted: Any) -> None:
        """Return `lifted` for each later read of an attribute that contains a Python number; the graph depends only on its type."""
        self.numbers[key] = lifted
        self.reads[key] = Read(holder, name, value, OfType(type(value)), True)

    def lifted_number(self, owner: Any, name: str) -> Any:
        """Return the graph input that replaces the number in an attribute; None if the graph uses the number itself, or wrote it."""
        key = (id(owner.__dict__), name)
        return None if key in self.writes else self.numbers.get(key)

    def read(self, holder: Any, name: str, value: Any, is_attribute: bool) -> None:
        """Record the first read of `holder[name]`, unless the trace itself wrote it before."""
        key = (id(holder), name)
        if key in self.reads or (key in self.writes and value is not self.writes[key][2]):
            return
        snapshot = constant(MISSING) if value is MISSING else self.taken(value, name)
        read = self.reads[key] = Read(holder, name, value, snapshot, is_attribute)
        self.locate(value, read)

    def read_settled(self, holder: Any, name: str, value: Any) -> None:
        """Record the read of `holder[name]`, for values that only another object can change."""
        if (id(holder), name) not in self.reads:
            read = self.reads[id(holder), name] = Read(holder, name, value, constant(value), False)
            read.is_constant = True

    def taken(self, value: Any, name: str, is_argument: bool = False) -> Any:
        """Take a snapshot of a value that the program reads; its namespaces are searched when a name requires it.

        The key of a call describes Tensors that are arguments, because the next call has other Tensors.
        """
        try:
            snapshot, met = self.contents.take(value, is_argument)
        except Unwatchable as reason:
            raise self.refuse(translate("reads {name!r}, which {reason}").format(name=name, reason=reason)) from None
        for item in met:
            if isinstance(item, FRONT.cell):
                self.note_class(item)
            elif not (is_argument and isinstance(item, TensorBase)) or type(item).__dict__.get("__parameter__"):
                self.roads.meet(item)
        self._check_unwatched()
        return snapshot

    def add_arguments(self, arguments: Any) -> None:
        """Record the objects among the arguments that a key knows by identity."""
        self.taken(arguments, "arguments", True)
        for value in arguments.values() if isinstance(arguments, dict) else arguments:
            if type(value) in (tuple, list, dict):
                self.add_arguments(value)
            elif is_identified_by_identity(value):
                self.read({"argument": value}, "argument", value, False)

    def _check_unwatched(self) -> None:
        """End a trace that may read unobservable state, before it does."""
        for name, reason in self.contents.unwatched:
            if self.roads.names(name):
                raise self.refuse(translate("reads {name!r}, which {reason}").format(name=name, reason=reason))

    def note_query(self, name: str) -> None:
        """Record that the program asks something for an attribute of this name."""
        self.roads.note_query(name)
        self._check_unwatched()

    def narrow(self) -> None:
        """Finish the trace: of plain objects only those attributes count whose names the code that ran contains."""
        names = self.roads.named()
        if names is not None:
            self.contents.narrow(names)

    def note_class(self, owner: Any) -> None:
        """Record the class of a Cell: an assignment to its `__class__` counts as a change of the Cell."""
        if id(owner) not in self._classes:
            class_record = self._classes[id(owner)] = introspection.ClassOf(owner)
            self.roads.meet(type(owner))
            if id(owner) not in self.born:
                self.read(class_record, "__class__", type(owner), True)

    def note_construct(self, owner: Any) -> None:
        """Record which `construct` a Cell has: an attribute of the object, or that of its class."""
        attributes = object.__getattribute__(owner, "__dict__")
        self.note_class(owner)
        if id(owner) not in self.born:
            self.read(attributes, "construct", attributes.get("construct", MISSING), True)

    def read_all(self, owner: Any) -> None:
        """Record that the program read all attributes of a Cell at once."""
        attributes = object.__getattribute__(owner, "__dict__")
        if id(owner) in self.born:
            return
        if any(holder == id(attributes) for holder, _ in self.numbers):
            self.refusal = refusal = Refusal("looks at all attributes of a Cell, of which a number is an input of the graph")
            refusal.needs_values = True
            raise refusal
        self.contents.keep(attributes)
        self.uncounted.add(id(attributes))
        names = self._names.setdefault(
            id(attributes), queries.Answers(lambda: tuple(name for name in attributes if name not in CELL_PRIVATE_NAMES))
        )
        self.read(names, "", names.get(""), False)
        for name in names.get(""):
            self.read(attributes, name, attributes[name], True)

    def locate(self, value: Any, read: Read) -> None:
        """Remembers where a Tensor or an array was found, so that it can be found there again."""
        if isinstance(value, TensorBase):
            self.homes.setdefault(id(value), read)
        elif isinstance(value, np.ndarray):
            self.arrays.setdefault(id(value), read.now)
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, np.ndarray):
                    self.arrays.setdefault(id(item), lambda item=item: item)  # type: ignore[misc]

    def wrote(self, owner: Any, name: str) -> None:
        """Record the value of a Cell's attribute before the trace wrote it the first time."""
        holder = owner.__dict__
        key = (id(holder), name)
        if key not in self.writes and id(owner) not in self.born:
            self.writes[key] = (owner, name, holder.get(name, MISSING))
            self.lines[key] = user_line()
            for container in ("_cells", "_params"):
                if container in holder:
                    self.contents.take(holder[container])
                    # The value of a name decides what an assignment to it does: a Parameter with that name is written into.
                    self.read(holder[container], name, holder[container].get(name, MISSING), True)

    def current_values(self) -> list[Any]:
        """Return the present values of the attributes that the trace wrote."""
        return [owner.__dict__.get(name, MISSING) for owner, name, _ in self.writes.values() if id(owner) not in self.born]

    def restore(self) -> list[tuple[Any, str, Any]]:
        """Undo all writes of the trace; return (owner, name, written value) for each attribute that changed."""
        changed = []
        for key, (owner, name, before) in self.writes.items():
            if id(owner) in self.born:  # given an attribute before Cell.__init__ ran
                continue
            now = owner.__dict__.get(name, MISSING)
            if isinstance(now, TensorBase) and now is before:
                if key not in self.reads or self.homes.get(id(now)) is not self.reads[key]:
                    changed.append((owner, name, now))     # it comes from a variable, which may contain another object later
                continue
            if now is before or (now is not MISSING and before is not MISSING and not isinstance(now, TensorBase) and _equal(before, now)):
                self._unmoved.append((owner.__dict__, name, before))
                continue
            changed.append((owner, name, now))
            if before is MISSING:
                owner.__dict__.pop(name, None)
            else:
                owner.__dict__[name] = before
        return changed

    def note_unmoved(self) -> None:
        """Note attributes whose new value equals the old: the same must hold before a call."""
        for holder, name, before in self._unmoved:
            key = (id(holder), name)
            if key not in self.reads and not any(name in holder.get(container, ()) for container in ("_cells", "_params")):
                snapshot = constant(MISSING) if before is MISSING else self.taken(before, name)
                self.reads[key] = Read(holder, name, before, snapshot, True)

    def changed_state(self) -> tuple[str | None, Kind]:
        """Undo changes of lists, dicts, globals and random states; return a description and the kind, or None."""
        reason, kind = self.roads.undo_new(), Kind.OTHER
        # In reverse order: a value that was met on a second path after the trace had changed it is recorded there with the changed value.
        for read in reversed(self.reads.values()):
            key = (id(read.holder), read.name)
            if key not in self.writes and read.now() is not read.value and not read.is_attribute:
                if isinstance(read.holder, introspection.Registrations):  # torch's imports register during a trace; nothing undoes that
                    read.value, read.snapshot = read.now(), constant(read.now())
                    continue
                if isinstance(read.holder, queries.Answers):
                    reason = "changes a value that it has read"       # the values on which the answer depends are restored below
                    continue
                reason, kind = f"assigns the variable {read.name!r}", Kind.ASSIGNS_VARIABLE
                if read.value is MISSING:
                    read.holder.pop(read.name, None)
                else:
                    read.holder[read.name] = read.value
        changed = self.contents.restore()
        if changed:
            self.is_own_change, self.changed_ids = _change_themselves(changed), {id(value) for value in changed}
            reason, kind = "changes a list, a dict or an object in place", Kind.CHANGES_CONTAINER
        if self.randomness.was_used():
            self.randomness.restore()
            reason, kind = "draws random numbers from Python or NumPy", Kind.DRAWS
        return reason, kind

    # ---- the hook

    def hook(self, frame: FrameType, event: str, argument: Any) -> None:
        """`sys.setprofile`'s function."""
        if event == "call":
            code = frame.f_code
            if self._counts(code, frame):
                self._depth += 1
                if self._depth > self._deepest:
                    self.refusal = _too_deep(self._deepest)
                    raise self.refusal
            if code not in self.codes and is_programs(code, frame) and not self._is_torchs(frame.f_back):
                if "object" in code.co_names and not PAST.isdisjoint(code.co_names):
                    raise self.refuse(f"reads or writes attributes past their object in {code.co_name}")
                if self.roads.fills(code):
                    raise self.refuse(f"calls {code.co_name}, whose result a cache stores")
                self.codes[code] = None
                self._check_source(frame, code)
                self.roads.enter(frame, code)
                if self.roads.listens and self.listen is not None:
                    self.listen()
                self._check_unwatched()
            elif code in ENVIRONMENT and not is_ours(frame.f_back):
                self._environment(code, frame)
            elif code in queries.GETTERS and not is_ours(frame.f_back):
                self._ask(code, frame)
            elif code in ASKS and not is_ours(frame.f_back):
                raise self.refuse(ASKS[code])
            elif code in LEVELS and not is_ours(frame.f_back):
                self._log(frame, LEVELS[code])
        elif event == "return":
            self._depth -= self._counted.get(frame.f_code, False)
        elif event == "c_call" and (argument in CLOCKS or argument in TALK or argument in WARNS or is_stream(argument)):
            if is_ours(frame):
                return
            if argument in WARNS:
                self._warn()
                return
            other = CLOCKS.get(argument, "writes to a file or the screen")
            raise self.refuse(*TALK.get(argument, (other, Kind.OTHER)))
        elif event == "c_call":
            self._look_around(argument, frame)

    def _look_around(self, argument: Any, frame: FrameType) -> None:
        """Called for a C function that may read the subclasses of a class or all variables of a module."""
        if argument is globals:
            if computes_globals(frame.f_code) and not is_ours(frame):
                raise self.refuse("calls globals() without stating which of them it reads")
            return
        answers = introspection.subclasses(argument)
        if answers is not None and not is_ours(frame):
            self.read(answers, "", answers.get(""), False)

    def _environment(self, code: CodeType, frame: FrameType) -> None:
        """Called for a read of `os.environ`, or a change."""
        what = ENVIRONMENT[code]
        if what == "changes":
            raise self.refuse("changes the environment of the process")
        variables = vars(os.environ)["_data"]
        if what == "reads all":
            self.read(vars(os.environ), "_data", variables, False)
            return
        name = argument_of_call(frame, 1)
        key: Any = os.environ.encodekey(name) if isinstance(name, str) else None
        self.read(variables, key, variables.get(key, MISSING), False)

    def _ask(self, code: CodeType, frame: FrameType) -> None:
        """Called for a read of an option or the seed, or a change."""
        answers, name = queries.GETTERS[code], argument_of_call(frame, 0)
        if answers is None:
            raise self.refuse(translate("calls {name}").format(name=code.co_name))
        if isinstance(name, str):
            self.read(answers, name, answers.get(name, MISSING), False)

    def _warn(self) -> None:
        """Handle a warning of the program: a warning that is shown once belongs to the trace, one that is shown each time ends it."""
        if any(action in ("always", "all", "error") for action, *_ in warnings.filters):
            refusal = self.refuse("warns: a warning is shown in each call or is an error")
            refusal.is_allowed = True
            raise refusal
        self.read(vars(warnings), "filters", warnings.filters, False)

    def _log(self, frame: FrameType, has_level: bool) -> None:
        """Handle a question for the messages that a logger accepts: by the program, or because of a message."""
        logger: Any = argument_of_call(frame, 0)
        level: Any = argument_of_call(frame, 1) if has_level else ""
        caller = frame.f_back
        is_message = caller is not None and caller.f_code.co_filename == LOGGING
        if is_message and (not has_level or logger.isEnabledFor(level)):
            if has_level:
                raise self.refuse("logs a message")
            return                                                      # `isEnabledFor` reads it, which was recorded
        levels = self._levels.setdefault(id(logger), Levels(logger))
        self.read_settled(levels, str(level), levels.get(str(level), MISSING))

    def refuse(self, what: str, kind: Kind = Kind.OTHER) -> Refusal:
        """Record why the trace ends, in case the program catches the error."""
        self.refusal = refusal = Refusal(what, kind=kind)
        return refusal

    def _counts(self, code: CodeType, frame: FrameType) -> bool:
        """Return whether a call of this code is one level of `max_call_depth`: a Cell's construct or a function of the user's."""
        count = self._counted.get(code)
        if count is None:
            name = code.co_name
            users = is_user_file(code.co_filename) and (name[0] != "<" or name == "<lambda>")
            if users and code.co_filename == "<string>":  # `python -c`; or a dataclass's methods, which Python makes of text
                users = frame.f_globals.get("__name__") == "__main__"
            count = self._counted[code] = name == "construct" or (users and not self._is_torchs(frame.f_back))
        return count

    def _check_source(self, frame: FrameType, code: CodeType) -> None:
        """End a trace that converted source must repeat: it sees the type of a value that represents a number, and fixed conditions."""
        if self.converter is not None:
            return
        if self.has_numbers and "type" in code.co_names and "type" not in frame.f_globals:
            self.refusal = refusal = Refusal("reads the type of a number that is an input of the graph")
            refusal.needs_values = True
            raise refusal
        if condition_comments.has_comment(code):
            self.refusal = refusal = Refusal("has a condition that a comment fixes")
            refusal.needs_values = True
            raise refusal

    def _is_torchs(self, frame: FrameType | None) -> bool:
        """Return whether torch calls, for itself: what it uses there is not a state of the program. Its Modules call the program's code."""
        while frame is not None:
            name = with_slashes(frame.f_code.co_filename)
            if frame.f_code in self.codes or "/torchspore/" in name:
                return False
            if ("/torch/" in name and "/torch/nn/modules/" not in name) or "importlib" in name:
                return True
            frame = frame.f_back
        return False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Runs its block, which is the program's, watched again inside a quiet one."""
        sys.setprofile(self.hook)
        try:
            yield
        finally:
            sys.setprofile(None)

    def learn(self, function: Any) -> None:
        """Remember a function by its code, so that its free variables are known when it runs; also the functions that it contains."""
        self.roads.meet(function)


def _change_themselves(changed: list[Any]) -> bool:
    """Return whether all of `changed` are objects of a class with `_changes_itself_`, or their attributes."""
    owners = [value for value in changed if getattr(type(value), "_changes_itself_", False)]
    owner_ids = {id(value) for value in owners} | {id(value.__dict__) for value in owners}
    return all(id(value) in owner_ids for value in changed)


def _equal(before: Any, now: Any) -> bool:
    """Return whether what was written is what had been there."""
    try:
        return Contents().take(before)[0].holds(now)
    except Unwatchable:
        return False


def _too_deep(limit: int) -> CallsTooDeep:
    line = user_line()
    text = translate("max_call_depth={limit}: calls of Cells and functions nest deeper than that.").format(limit=limit)
    hint = translate("write set_context(max_call_depth={limit}) if they should, or end the recursion").format(limit=2 * limit)
    return CallsTooDeep(with_hint(f"{line}: {text}" if line else text, hint))
