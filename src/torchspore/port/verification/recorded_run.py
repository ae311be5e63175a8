"""How a program creates and calls its Cells: what `verify` repeats with the ported Modules."""
from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import io
import os
import runpy
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torchspore.mindspore import nn
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.port.verification.absent_packages import absent_package, placeholders


@dataclass
class Recorded:
    """The first call of a Cell: its arguments, and its state before the call."""

    cell: Any
    """A copy of the Cell at the time of the call."""
    original: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    state: dict[str, np.ndarray[Any, Any]]
    is_training: bool
    creation: str = ""
    """The call of the program's function that creates the Cell, if a function does."""


@dataclass
class Recording:
    """The events of a program's Cells."""

    creations: dict[int, tuple[Any, tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)
    """The Cell and the arguments of its constructor, by the Cell's id."""
    calls: dict[str, Recorded] = field(default_factory=dict)
    """The first call that was not inside another call, by the name of the class."""
    training: set[str] = field(default_factory=set)
    """Classes whose objects are created with an optimizer or a training step."""
    error: BaseException | None = None
    absent: set[str] = field(default_factory=set)
    """Packages that the file imports, and that are not installed."""
    namespace: dict[str, Any] = field(default_factory=dict)


def as_arrays(value: Any) -> Any:
    """Return a nest with copies of its Tensors as arrays."""
    if isinstance(value, Tensor):
        return ArrayOfTensor(np.array(value.asnumpy(), copy=True))
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(as_arrays(item) for item in value)
    if isinstance(value, dict):
        return {key: as_arrays(item) for key, item in value.items()}
    return value


@dataclass
class ArrayOfTensor:
    """The values of a Tensor at the time of a call."""

    values: np.ndarray[Any, Any]


def state_of(cell: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return copies of a Cell's Parameters by their paths."""
    return {path: np.array(parameter.asnumpy(), copy=True) for path, parameter in cell.parameters_and_names()}


class Recorder:
    """Notes creations of Cells, and calls of the classes in `names`."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.recording = Recording()
        self._depth = 0
        self._constructors: dict[type, Any] = {}
        """The constructor that each wrapped class had."""

    def record_creations(self, cls: type) -> None:
        """Wrap the constructor of a class until the recording ends."""
        if "__init__" not in vars(cls) or cls in self._constructors:
            return
        original, recorder = vars(cls)["__init__"], self

        @functools.wraps(original)
        def init(cell: Any, *args: Any, **kwargs: Any) -> None:
            if type(cell).__init__ is init:
                recorder.recording.creations[id(cell)] = (cell, args, kwargs)
            original(cell, *args, **kwargs)

        cls.__init__ = init  # type: ignore[misc]
        self._constructors[cls] = original

    def _takes_training(self, cell: Any) -> bool:
        """Return whether the program creates a Cell with an optimizer or a training step."""
        _, args, kwargs = self.recording.creations.get(id(cell), (None, (), {}))
        return any(isinstance(value, (nn.TrainOneStepCell, nn.Optimizer)) for value in [*args, *kwargs.values()])

    def _call(self, original: Any) -> Any:
        @functools.wraps(original)
        def call(cell: Any, *args: Any, **kwargs: Any) -> Any:
            name = type(cell).__name__
            if name not in self.names:
                return original(cell, *args, **kwargs)
            if self._takes_training(cell):
                self.recording.training.add(name)
                return original(cell, *args, **kwargs)
            if self._depth == 0 and name not in self.recording.calls:
                with contextlib.suppress(Exception):
                    copied = copy.deepcopy(cell)
                    self.recording.calls[name] = Recorded(copied, cell, as_arrays(args), as_arrays(kwargs), state_of(cell), cell.training)
            self._depth += 1
            try:
                return original(cell, *args, **kwargs)
            finally:
                self._depth -= 1

        return call

    @contextlib.contextmanager
    def active(self) -> Iterator[Recording]:
        """Record while the block runs."""
        call = Cell.__call__
        recorder = self

        def init_subclass(cls: Any, /, **kwargs: Any) -> None:
            recorder.record_creations(cls)

        before = vars(Cell).get("__init_subclass__")
        layers = [item for item in vars(nn).values() if isinstance(item, type) and issubclass(item, Cell)]
        for item in dict.fromkeys(base for layer in layers for base in layer.__mro__ if issubclass(base, Cell)):
            self.record_creations(item)
        Cell.__init_subclass__ = classmethod(init_subclass)  # type: ignore[assignment]
        Cell.__call__ = self._call(call)  # type: ignore[method-assign]
        try:
            yield self.recording
        finally:
            Cell.__call__ = call  # type: ignore[method-assign]
            if before is None:
                del Cell.__init_subclass__
            else:
                Cell.__init_subclass__ = before  # type: ignore[method-assign]
            for cls, original in self._constructors.items():
                cls.__init__ = original  # type: ignore[misc]
            self._constructors.clear()


def run(path: str, names: set[str], as_program: bool, arguments: tuple[str, ...] = (), package: tuple[str, str] | None = None) -> Recording:
    """Run a file as the user's program, or import it; its output is discarded. Errors are noted in the recording.

    `package`: the folder at which its imports begin, and the name of its module, if it is in a package. If the run ends because a package
    is not installed, before it calls a Cell, it is repeated with a placeholder for the package.
    """
    folder = package[0] if package is not None else os.path.dirname(os.path.abspath(path))
    absent: set[str] = set()
    while True:
        before = set(sys.modules)
        with placeholders(absent):
            recording = _run_once(path, Recorder(names), as_program, arguments, package, folder)
        name = absent_package(recording.error, folder)
        if name is None or name in absent or recording.calls:
            recording.absent = absent
            return recording
        absent.add(name)
        for name in set(sys.modules) - before:               # those that the run has imported from the program
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(os.path.join(folder, "")):
                del sys.modules[name]


def _run_once(
    path: str, recorder: Recorder, as_program: bool, arguments: tuple[str, ...], package: tuple[str, str] | None, folder: str,
) -> Recording:
    before = sys.argv
    sys.argv = [path, *arguments]
    sys.path.insert(0, folder)
    name = "__main__" if as_program else "ported_source"
    try:
        with recorder.active() as recording, contextlib.redirect_stdout(io.StringIO()):
            try:
                if package is not None and "." in package[1]:
                    recording.namespace = vars(importlib.import_module(package[1]))
                else:
                    recording.namespace = runpy.run_path(path, run_name=name)
            except SystemExit:
                pass
            except Exception as error:
                recording.error = error
    finally:
        sys.argv = before
        sys.path.remove(folder)
    return recording
