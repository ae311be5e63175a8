"""Dumps: what operators take and give, written to files, in both modes, forward and backward.

One TorchDispatchMode sees every kernel while a dump is on; kernels of one call of an operator (`where`) are one record: its inputs are what
the call did not make itself, its outputs what no later kernel of it used up. While nothing is dumped there is nothing of this.
"""
from __future__ import annotations

import atexit
import dataclasses
import os
import sys
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from torchspore.base import once
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import DEFAULT, STORE
from torchspore.engine import process
from torchspore.engine.execution import current_operator
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import creation, tree
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.torch_internals.torch_private import (
    TorchDispatchMode,
    is_operator,
    modes_of_now,
    no_transforms,
    outside_of_transforms,
    without_modes,
)
from torchspore.observe.debug import dump_settings
from torchspore.observe.debug.dump_files import DumpedValue, Record, Writer
from torchspore.observe.debug.dump_settings import Settings
from torchspore.observe.debug.unmatched_names import Missing
from torchspore.translations import translatable, translate

SECTION = translatable("dump")
_NONE = Outcome.applied("nothing is dumped")
_settings: dict[str, Settings] = {}
"""The settings by their origin: 'environment', 'enable_dump' or 'exception_dump'."""


class _Active:
    """The running dump."""

    def __init__(self) -> None:
        self.mode: _Dump | None = None


_ACTIVE = _Active()
# ---- switches

def switch(is_on: bool) -> Outcome:
    """Apply `enable_dump`: every operator of every iteration goes to `save_dump_path`, unless a settings file says otherwise."""
    _settings.pop("enable_dump", None)
    if is_on and "environment" not in _settings:
        _settings["enable_dump"] = Settings(os.path.abspath(STORE.get("save_dump_path") or "."), statistics=True)
    _apply()
    if not is_on:
        return _NONE
    if "environment" in _settings:
        return Outcome.applied(translate("the data that {variable} selects is written to {folder}").format(
            variable=dump_settings.VARIABLES[0], folder=_settings["environment"].path))
    return Outcome.applied(_describe(_settings["enable_dump"]))


def select_folder(path: str) -> Outcome:
    """Apply `save_dump_path`."""
    if "enable_dump" in _settings or "exception_dump" in _settings:
        for who in ("enable_dump", "exception_dump"):
            if who in _settings:
                _settings[who] = dataclasses.replace(_settings[who], path=os.path.abspath(path))
        _apply()
        return Outcome.applied(translate("dumps go to {folder}").format(folder=os.path.abspath(path)))
    return Outcome.applied("enable_dump and exception_dump write there")


def on_exception(level: str) -> Outcome:
    """Apply `exception_dump`: inputs ('2'), or inputs and outputs ('1'), of an operator that fails."""
    _settings.pop("exception_dump", None)
    if STORE.source("exception_dump")[0] == DEFAULT:
        level = "0"                        # operators are followed only if the program requests it
    if level in ("1", "2"):
        path = os.path.abspath(STORE.get("save_dump_path") or ".")
        _settings["exception_dump"] = Settings(path, "exception_dump", everything=False, failures="inputs" if level == "2" else "all")
    _apply()
    if level not in ("1", "2"):
        return Outcome.applied("nothing is written where an operator fails")
    text = (translate("the inputs of an operator that fails go to {folder}; graphs run at O0") if level == "2" else
            translate("the inputs, and what outputs there are, of an operator that fails go to {folder}; graphs run at O0"))
    return Outcome.applied(text.format(folder=_settings["exception_dump"].path))


def from_environment() -> None:
    """Begin the dump that MINDSPORE_DUMP_CONFIG requests, or end it if the variable is gone. Raises ValueError for errors in its file."""
    request = dump_settings.from_environment()
    if request is None:
        if _settings.pop("environment", None) is not None:
            _apply()
        return
    variable, path = request
    try:
        settings = dump_settings.read(path, _warn)
    except ValueError as error:
        raise ValueError(f"{variable}={error}") from None
    _settings["environment"] = settings
    for line in settings.idle:
        effects.note(SECTION, translate("has no effect here: {line}").format(line=line))
    effects.note(SECTION, f"{variable}={path}: {_describe(settings)}")
    _apply()


def _describe(settings: Settings) -> str:
    if settings.overflows:
        content = translate("operators that make NaN or infinity")
    elif settings.failures and not settings.everything:
        content = translate("{values} of operators that fail").format(values=settings.failures)
    else:
        sides = ((translate("inputs"), settings.inputs), (translate("outputs"), settings.outputs))
        forms = ((translate("tensors"), settings.tensors), (translate("statistics"), settings.statistics))
        names = [translate(" and ").join(name for name, is_enabled in group if is_enabled) for group in (sides, forms)]
        content = translate("{values} of operators, as {forms}").format(values=names[0], forms=names[1])
    return translate("{content} are written to {folder}; graphs run at O0").format(content=content, folder=settings.path)


def _apply() -> None:
    """Follow operators if a setting requests it; otherwise stop."""
    if _ACTIVE.mode is not None:
        _ACTIVE.mode.end()
        _ACTIVE.mode = None
    if _settings:
        _ACTIVE.mode = _Dump(list(_settings.values()))
        _ACTIVE.mode.begin()


def flush() -> None:
    """Wait until all dumps are on the disk."""
    if _ACTIVE.mode is not None:
        _ACTIVE.mode.finish()
        for writer in _ACTIVE.mode.writers:
            writer.flush()


def _warn(text: str) -> None:
    if not once.first_time((SECTION, text)):
        return
    if FRONT.warn is not None:
        FRONT.warn(text)
    else:                                  # the settings are read before there is a log
        print(f"torchspore: {text}", file=sys.stderr)


# ---- what looks on

class _Group:
    """The kernels of one call of an operator, so far."""

    def __init__(self, at: current_operator.Position, order: int) -> None:
        self.position, self.order = at, order
        self.inputs: list[tuple[torch.Tensor, torch.Tensor | None]] = []
        """The inputs with their values from before a kernel wrote to one; None if no kernel has."""
        self.created: dict[int, torch.Tensor] = {}
        self.memories: dict[int, int] = {}
        """By the address of memory that the call has written, its position in the order."""
        self.used: set[int] = set()
        self.aliases: dict[int, tuple[int, torch.Tensor]] = {}
        """By the identity of a tensor that only shows another one the other's; the tensor itself is held, so that the identity stays."""
        self.last: list[torch.Tensor] = []

    def takes(self, arguments: Sequence[torch.Tensor], writes: bool) -> None:
        """A kernel is going to run on `arguments`."""
        input_ids = {id(t) for t, _ in self.inputs}
        for t in arguments:
            key = self.aliases.get(id(t), (id(t), t))[0]
            if key in self.created:
                self.used.add(key)
            elif key not in input_ids:
                self.inputs.append((t, None))
        if writes:
            self.inputs = [(t, _copy(t) if before is None else before) for t, before in self.inputs]

    def note_alias(self, shown: torch.Tensor, of: Any) -> None:
        """Record that a tensor shares the memory of another."""
        self.aliases[id(shown)] = self.aliases.get(id(of), (id(of), of))[0], shown

    def gives(self, results: Sequence[torch.Tensor]) -> None:
        """A kernel has made `results`, or written into it."""
        for t in results:
            self.created[id(t)] = t
            self.used.discard(id(t))
            self.memories.setdefault(_memory(t), len(self.memories))
        if results:
            self.last = list(results)

    @property
    def outputs(self) -> list[torch.Tensor]:
        """Return the results that no kernel of the call has consumed, in the order in which their memory was filled."""
        tensors = [t for key, t in self.created.items() if key not in self.used] or self.last
        return sorted(tensors, key=lambda t: self.memories[_memory(t)])


class _Dump(TorchDispatchMode):
    """Sees all kernels of the thread that switched it on."""

    looks_on = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """torch would load torch._dynamo to keep it out of this class; nothing here is compiled by it."""
        return False

    def __init__(self, settings_list: list[Settings]) -> None:
        super().__init__()
        self._sinks = [(settings, Writer(settings, process.folder, _warn)) for settings in settings_list]
        self._follower = current_operator.Follower(self._began)
        self._group: _Group | None = None
        self._order = 0
        self._overflows = 0
        self._finished: current_operator.Position | None = None
        self._reported: list[Writer] = []
        self._missing = [Missing(settings) for settings in settings_list]

    @property
    def writers(self) -> list[Writer]:
        """The writers of the files."""
        return [writer for _, writer in self._sinks]

    def begin(self) -> None:
        """Begins to look on."""
        while (top := _innermost()) is not None and isinstance(top, _Dump) and not top.looks_on:
            top.__exit__(None, None, None)
        current_operator.follow(True)
        current_operator.ends_of_calls.append(flush)
        atexit.register(self._at_exit)
        self.__enter__()

    def end(self) -> None:
        """Stop, and wait for the files.

        Modes are a stack of each thread: if this one is not the innermost of the caller's, it stays there, and ignores all operators.
        """
        if _innermost() is self:
            self.__exit__(None, None, None)
        else:
            self.looks_on = False
        current_operator.follow(False)
        current_operator.ends_of_calls.remove(flush)
        atexit.unregister(self._at_exit)
        self._at_exit()

    def _at_exit(self) -> None:
        self.finish()
        for writer in self.writers:
            writer.close()
        for (settings, writer), missing in zip(self._sinks, self._missing):
            for text in missing.messages(writer.folder is not None or not _is_for_this_device(settings)):
                _warn(text)

    def _began(self, _: int) -> None:
        self.finish()
        self._order = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.looks_on or not is_operator(function):
            return function(*args, **kwargs)
        kernel = function._opname
        at = self._follower.now(kernel)
        written = _written_tensors(function, args, kwargs)
        group = self._group
        if at is None:
            if written:
                self.finish()                      # before its state changes
            out = function(*args, **kwargs)
            if self._group is not None and kernel in current_operator.ASIDE and isinstance(out, torch.Tensor) and args:
                self._group.note_alias(out, args[0])
            return out
        if group is not None and at is not group.position:
            self.finish()
            group = None
        if group is None:
            if at is self._finished:
                at = self._follower.anew(at)
            group = self._group = _Group(at, self._order)
            self._order += 1
        group.takes(_tensors((args, kwargs)), bool(written))
        try:
            out = function(*args, **kwargs)
        except Exception as error:
            self._fails(error)
            raise
        group.gives([*written, *(t for t in _tensors(out) if not any(t is w for w in written))])
        return out

    def finish(self) -> None:
        """Called after the last operator's call: submit its record."""
        group, self._group = self._group, None
        if group is None or not group.last:
            return
        self._finished = group.position
        for missing in self._missing:
            missing.see(group.position)
        with without_modes(), no_transforms(), torch.no_grad():
            overflows: bool | None = None
            for settings, writer in self._sinks:
                note = ""
                if settings.overflows and settings.has(group.position.iteration):
                    overflows = _overflows(group.outputs) if overflows is None else overflows
                    if not overflows or (settings.overflow_number and self._overflows >= settings.overflow_number):
                        continue
                    self._overflows += 1
                    note = "makes NaN or infinity"
                elif not settings.everything:
                    continue
                self._hand_in(settings, writer, group, note)

    def _fails(self, error: Exception) -> None:
        """Called when an operator has raised: write the requested dump, once for each error."""
        group, self._group = self._group, None
        if group is None:
            return
        with without_modes(), no_transforms(), torch.no_grad():
            for settings, writer in self._sinks:
                if settings.failures or settings.everything:
                    text = " ".join(str(error).split())
                    self._hand_in(settings, writer, group, f"raises {type(error).__name__}: {text:.200}")
                    writer.flush()
                    if settings.failures and writer.folder is not None and writer not in self._reported:
                        self._reported.append(writer)      # a graph that fails is run again by PyNative, where the same operator fails
                        _warn(f"dump: the inputs of {group.position.name} when it failed are in {writer.folder}")

    def _hand_in(self, settings: Settings, writer: Writer, group: _Group, note: str) -> None:
        at = group.position
        if not _is_for_this_device(settings):
            return
        if not note and not (
            settings.has(at.iteration) and settings.takes(at.name, at.operator) and (not settings.marked or _is_marked(at))
        ):
            return
        kept: list[DumpedValue] = []
        if settings.inputs:
            values = [t if before is None else before for t, before in group.inputs]
            kept += [_copy_value("input", slot, t) for slot, t in enumerate(values) if _is_dumpable(t)]
        if settings.outputs and settings.failures != "inputs":
            values = group.outputs
            kept += [_copy_value("output", slot, t) for slot, t in enumerate(values) if _is_dumpable(t)]
        writer.put(Record(at, group.order, kept, note))


def _innermost() -> Any:
    return next(iter(reversed(list(modes_of_now()))), None)


def _is_for_this_device(settings: Settings) -> bool:
    """Return whether `support_device` has the device of this process; CPUs have no numbers."""
    if settings.devices is None or STORE.get("device_target") == "CPU":
        return True
    return (STORE.get("device_id") if STORE.source("device_id")[0] != DEFAULT else process.rank()) in settings.devices


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree.leaves(value) if isinstance(leaf, torch.Tensor)]


def _written_tensors(function: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The tensors that a kernel writes into."""
    schema = function._schema
    if not schema.is_mutable:
        return []
    tensors: list[torch.Tensor] = []
    for number, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            tensors += _tensors(args[number] if number < len(args) else kwargs.get(argument.name))
    return tensors


def _memory(t: torch.Tensor) -> int:
    if t.layout is not torch.strided:
        return id(t)
    return t.untyped_storage().data_ptr() if _has_memory(t) else t.untyped_storage()._cdata


def _has_memory(t: torch.Tensor) -> bool:
    """Return whether there are values to read: `jvp` has derivatives that are known to be zero, and lie nowhere."""
    try:
        t.untyped_storage().data_ptr()
    except RuntimeError:
        return False
    return True


def _is_dumpable(t: torch.Tensor) -> bool:
    return t.layout is torch.strided and t.dtype in FROM_TORCH and not t.is_meta and _has_memory(t)


def _copy(t: torch.Tensor) -> torch.Tensor:
    with without_modes(), no_transforms(), torch.no_grad():
        return outside_of_transforms(t).detach().clone() if _is_dumpable(t) else t


def _copy_value(side: str, slot: int, t: torch.Tensor) -> DumpedValue:
    """A tensor's values on the host, in memory of their own."""
    copied = outside_of_transforms(t).detach().to("cpu", copy=True).contiguous()
    return DumpedValue(side, slot, creation.array_of(copied), str(FROM_TORCH[t.dtype]))


def _overflows(outputs: Sequence[torch.Tensor]) -> bool:
    return any(t.is_floating_point() and not bool(torch.isfinite(outside_of_transforms(t)).all()) for t in outputs if _is_dumpable(t))


# ---- dump_mode 2

_marked_cells: weakref.WeakSet[Any] = weakref.WeakSet()
_marked_operators: set[str] = set()


def mark(cell: Any, is_on: bool) -> None:
    """`set_dump` of a Cell: what runs in it, and in Cells inside of it, is dumped where `dump_mode` is 2."""
    (_marked_cells.add if is_on else _marked_cells.discard)(cell)
    current_operator.marked = frozenset(map(id, _marked_cells))
    current_operator.resume_following()


def mark_operator(name: str, is_on: bool) -> None:
    """`set_dump` of a primitive."""
    (_marked_operators.add if is_on else _marked_operators.discard)(name)


def _is_marked(at: current_operator.Position) -> bool:
    return at.is_marked or at.operator.removesuffix("Grad") in _marked_operators
