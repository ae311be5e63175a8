"""The Python state that a trace reads: a graph is used only while that state is unchanged, and a trace leaves no change in it.

The state consists of attributes of Cells and, for the functions that ran, of globals, free variables and defaults, and the attributes of
modules, classes and functions that they name. Each is stored with a snapshot of its value.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchspore.engine.random import random_state as seeds
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture.snapshot import MISSING, Node, Object, Unwatchable, Walk, constant, is_constant
from torchspore.graph.capture.snapshot_nodes import Attributes

__all__ = [
    "MISSING", "Attached", "Bases", "Cells", "ClassNames", "Contents", "Function", "Named", "Randomness", "Read", "Unwatchable", "View",
    "hold", "is_constant", "tensors_in",
]


@dataclass
class Read:
    """One thing read: `holder[name]` had `value`."""

    holder: MutableMapping[str, Any]
    name: str
    value: Any
    snapshot: Any                          # returns whether a present value equals the recorded one
    is_attribute: bool
    is_constant: bool = False              # then only another object can make a difference

    def __post_init__(self) -> None:
        self.is_constant = (is_constant(self.value) or self.value is MISSING) and not isinstance(self.value, TensorBase)

    def now(self) -> Any:
        """Return the current value."""
        return self.holder.get(self.name, MISSING)

    def holds(self) -> bool:
        """Return whether it is as it was; a Tensor may be another one, its own check follows."""
        now = self.holder.get(self.name, MISSING)
        if now is self.value and self.is_constant:
            return True
        if isinstance(self.value, TensorBase):
            return isinstance(now, TensorBase)
        return bool(self.snapshot.holds(now))


def current(sources: Iterable[Any]) -> list[Any]:
    """Return the sources with the current values in place of the recorded ones."""
    return [source.now() if isinstance(source, Read) else source for source in sources]


def hold(reads: Iterable[Read]) -> bool:
    """Return whether all of them are as they were."""
    return all(read.holds() for read in reads)


class View(MutableMapping[str, Any]):
    """Names that Python keeps elsewhere than in a dict."""

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Cells(View):
    """The free variables of a function as a mapping."""

    def __init__(self, names: tuple[str, ...], closure: tuple[Any, ...]) -> None:
        self._cells = dict(zip(names, closure))

    def __getitem__(self, name: str) -> Any:
        try:
            return self._cells[name].cell_contents
        except ValueError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        self._cells[name].cell_contents = value

    def __delitem__(self, name: str) -> None:
        del self._cells[name].cell_contents

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)


class ClassNames(View):
    """The members in the body of a class."""

    def __init__(self, cls: type) -> None:
        self._class = cls
        self.get: Any = vars(cls).get

    def is_body_of(self, cls: type | None) -> bool:
        """Return whether these are the members of `cls`."""
        return self._class is cls

    def __getitem__(self, name: str) -> Any:
        return vars(self._class)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        type.__setattr__(self._class, name, value)

    def __delitem__(self, name: str) -> None:
        type.__delattr__(self._class, name)

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self._class))


class Attached(View):
    """Attributes of a Tensor that a program reads: those that it attached, and the name and flags of a Parameter."""

    _ATTRIBUTES = {"name": "_name", "requires_grad": "_requires_grad"}

    def __init__(self, tensor: TensorBase) -> None:
        self._attributes_now = tensor.__dict__

    def get(self, name: str, default: Any = None) -> Any:
        return default if name[0] == "_" else self._attributes_now.get(self._ATTRIBUTES.get(name, name), default)

    def __getitem__(self, name: str) -> Any:
        return self._attributes_now[self._ATTRIBUTES.get(name, name)]

    def __setitem__(self, name: str, value: Any) -> None:
        self._attributes_now[self._ATTRIBUTES.get(name, name)] = value

    def __delitem__(self, name: str) -> None:
        del self._attributes_now[self._ATTRIBUTES.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes_now)


class Named(View):
    """Attributes of a class, a function or an object that Python stores under special names, those of `NAMES`."""

    NAMES: frozenset[str]

    def __init__(self, item: Any) -> None:
        self._item = item

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self._item, name, default)

    def __getitem__(self, name: str) -> Any:
        return getattr(self._item, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._item, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self._item, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.NAMES)


class Bases(Named):
    """The bases of a class."""

    NAMES = frozenset(("__bases__",))


class Function(View):
    """The code and the defaults of a function."""

    NAMES = ("__code__", "__defaults__", "__kwdefaults__")

    def __init__(self, function: Any) -> None:
        self._function = function

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self._function, name)

    def __getitem__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._function, name, value)

    def __delitem__(self, name: str) -> None:
        setattr(self._function, name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.NAMES)


class Randomness:
    """Python's and NumPy's random state at one moment, and that of initializers."""

    def __init__(self) -> None:
        self._python, self._numpy = random.getstate(), np.random.get_state(legacy=False)
        self._derivations, self._derived = seeds.SEED.derivations, seeds.state()

    def was_used(self) -> bool:
        """Return whether one of them has moved on since."""
        if seeds.SEED.derivations != self._derivations:
            return True
        now: Any = np.random.get_state(legacy=False)
        then: Any = self._numpy
        moved = now["state"]["pos"] != then["state"]["pos"] or not np.array_equal(now["state"]["key"], then["state"]["key"])
        return random.getstate() != self._python or moved or now["gauss"] != then["gauss"]

    def restore(self) -> None:
        """Restore them."""
        seeds.restore(self._derived)
        random.setstate(self._python)
        np.random.set_state(self._numpy)


def tensors_in(value: Any) -> Iterator[TensorBase]:
    """Yield the Tensors in a tuple and in its nested tuples, which have no snapshot because nothing in them can change."""
    for item in value if isinstance(value, tuple) else ():
        if isinstance(item, TensorBase):
            yield item
        else:
            yield from tensors_in(item)


class Contents:
    """Snapshots of mutable values that a trace could change in place, to detect and undo changes."""

    def __init__(self, counts_by_name: Callable[[Any], bool] = lambda value: False) -> None:
        self._nodes: dict[int, Node] = {}
        self._of_state: set[int] = set()
        self._counts_by_name, self._objects = counts_by_name, list[Object]()
        self.unwatched: list[tuple[str, str]] = []
        """Attributes of plain objects that can't be watched, and why: a trace that names one ends."""

    def take(self, value: Any, is_argument: bool = False) -> tuple[Node, list[Any]]:
        """A snapshot of `value`, and the modules, functions and classes met in it; its parts are remembered. Raises Unwatchable.

        `is_argument` says that it is an argument, and so no part of the program's state.
        """
        walk = Walk(self._nodes, self._counts_by_name)
        node = walk.take(value)
        if not is_argument:
            self._of_state.update(walk.seen())
        self._objects += walk.objects
        self.unwatched += walk.unwatched
        return node, walk.met                  # a RecursionError requests a larger stack: calls may nest deeply here, as well as values

    def narrow(self, names: frozenset[str]) -> None:
        """From now on only these attributes of plain objects count: the finished trace has read no others."""
        for watched in self._objects:
            watched.narrow(names)

    def keep(self, attributes: dict[str, Any]) -> None:
        """Remembers the attributes of a Cell as they are."""
        self._nodes.setdefault(id(attributes), Attributes(attributes, constant))

    def tensors(self) -> set[int]:
        """The ids of the Tensors inside of the program's state: these are the same ones while the contents hold."""
        nodes = (self._nodes[key] for key in self._of_state if key in self._nodes)
        return {id(item) for node in nodes for item in tensors_in(tuple(node.inside()))}

    def ids(self) -> set[int]:
        """The ids of all that was met."""
        return set(self._nodes)

    def restore(self) -> list[Any]:
        """Undo changes in place; return all that were found."""
        return [node.value for node in self._nodes.values() if node.restore()]
