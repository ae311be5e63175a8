"""State that the parts of an `if` or a loop may change besides their results: local names, lists, dicts, objects, attributes of Cells."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import CellType, FunctionType, MethodType
from typing import Any

from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture.state import is_constant

_DEPTH = 4


class _Unbound:
    """The value of a name without a value."""

    def __repr__(self) -> str:
        return "no value"


UNBOUND: Any = _Unbound()


@dataclass(frozen=True)
class Local:
    """A local name of converted code; two are the same when they are the same variable."""

    cell: CellType
    name: str
    foreign: bool = False          # it belongs to another function than the one with the `if` or loop

    def get(self) -> Any:
        """Return the present value, or UNBOUND."""
        try:
            return self.cell.cell_contents
        except ValueError:
            return UNBOUND

    def set(self, value: Any) -> None:
        """Assign another value."""
        if value is UNBOUND:
            try:
                del self.cell.cell_contents
            except ValueError:
                pass
        else:
            self.cell.cell_contents = value

    @property
    def key(self) -> Any:
        """Return the key that identifies it."""
        return id(self.cell)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Contents:
    """The contents of a list, a dict, a set or an object's `__dict__`."""

    holder: Any

    def get(self) -> Any:
        """A copy of it."""
        return self.holder.copy()

    def set(self, value: Any) -> None:
        """Replace the contents."""
        self.holder.clear()
        self.holder.extend(value) if isinstance(self.holder, list) else self.holder.update(value)

    @property
    def key(self) -> Any:
        """Return the key that identifies it."""
        return id(self.holder)

    def __str__(self) -> str:
        return f"what is in the {type(self.holder).__name__}"


@dataclass(frozen=True, eq=False)
class Attribute:
    """An attribute of a Cell."""

    owner: Any
    name: str
    missing: Any = UNBOUND

    def get(self) -> Any:
        """Its value, or UNBOUND."""
        return self.owner.__dict__.get(self.name, UNBOUND)

    def set(self, value: Any) -> None:
        """Sets it as the program would, so that frames around see it."""
        setattr(self.owner, self.name, value)

    def put(self, value: Any) -> None:
        """Set it without notifying listeners."""
        if value is UNBOUND:
            self.owner.__dict__.pop(self.name, None)
        else:
            self.owner.__dict__[self.name] = value

    @property
    def key(self) -> Any:
        """Return the key that identifies it."""
        return (id(self.owner), self.name)

    def __str__(self) -> str:
        return f"self.{self.name}"


@dataclass(frozen=True, eq=False)
class WrittenTensor:
    """The values of a Tensor from outside."""

    tensor: TensorBase

    @property
    def key(self) -> Any:
        """Return the key that identifies it."""
        return (id(self.tensor), "values")

    def __str__(self) -> str:
        return "the values of a Tensor"


Location = Local | Contents | Attribute | WrittenTensor


class MutableState:
    """The local names and containers that some functions can reach, with their present values."""

    def __init__(self, functions: tuple[FunctionType, ...]) -> None:
        self.all: list[Local | Contents] = []
        self._seen: set[int] = set()
        for function in functions:
            self._enter(function, function.__code__.co_filename, False)
        self.before = [(location, location.get()) for location in self.all]
        """(Position, present value)."""

    def _enter(self, function: FunctionType, file: str, foreign: bool) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if id(cell) in self._seen or name in ("_cf", "__class__"):
                continue
            self._seen.add(id(cell))
            if not name.startswith("_cf_"):
                self.all.append(Local(cell, name, foreign))
            try:
                self._look(cell.cell_contents, file, _DEPTH, foreign or not name.startswith("_cf_"))
            except ValueError:
                continue

    def _look(self, value: Any, file: str, depth: int, foreign: bool) -> None:
        if isinstance(value, MethodType):
            value = value.__func__
        if isinstance(value, FunctionType):
            if value.__closure__ and id(value) not in self._seen:
                self._seen.add(id(value))
                self._enter(value, file, foreign)
            return
        if depth == 0 or id(value) in self._seen or is_constant(value) or value is UNBOUND:
            return
        for item in self._items(value):
            self._look(item, file, depth - 1, foreign)

    def _items(self, value: Any) -> Iterator[Any]:
        if isinstance(value, (list, dict, set)):
            self._seen.add(id(value))
            self.all.append(Contents(value))
            yield from value.values() if isinstance(value, dict) else list(value)
        elif isinstance(value, tuple):
            yield from value
        elif isinstance(attributes := getattr(value, "__dict__", None), dict) and not isinstance(value, type):
            self._seen.add(id(value))
            self.all.append(Contents(attributes))
            yield from list(attributes.values())

    def changes(self) -> list[tuple[Local | Contents, Any, Any]]:
        """Return the changes: (position, earlier value, present value)."""
        found_locations: list[tuple[Local | Contents, Any, Any]] = []
        for location, before in self.before:
            now = location.get()
            if isinstance(location, Contents):
                if not _is_equal(before, now):
                    found_locations.append((location, before, now))
            elif now is not before:
                found_locations.append((location, before, now))
        return found_locations

    def restore(self) -> None:
        """Restore everything."""
        for location, before, _ in self.changes():
            location.set(before)


def _is_equal(before: Any, now: Any) -> bool:
    if len(before) != len(now):
        return False
    if isinstance(before, dict):
        return list(before) == list(now) and all(now[key] is item for key, item in before.items())
    return before == now if isinstance(before, set) else all(a is b for a, b in zip(before, now))
