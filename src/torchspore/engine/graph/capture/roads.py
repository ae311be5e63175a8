"""By which roads a trace reads Python's state beside attributes of Cells: what the names in its functions stand for.

Nothing tells of a look at `module.SCALE` or `Config.width`. But whoever looks needs the name: so each name that stands in a function
that ran, as a name or as a text, is looked up in each module, class and function of the program's that the trace has met, whichever
comes first. What is there counts as read: more than was, but never less.
"""
from __future__ import annotations

import argparse
import builtins
import copy
import dataclasses
import dis
import functools
import gc
import inspect
import json
import logging
import operator
import os
import pickle
import pprint
import sys
import types
from collections.abc import Callable, Container, Iterator, MutableMapping
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np
import torch

from torchspore.base.frames import is_users
from torchspore.engine.graph.capture.code_names import IMPORTS, STORES, asked_in, attributes_in, chains_in, codes_in, compared_in, names_of
from torchspore.engine.graph.capture.originals import original
from torchspore.engine.graph.capture.snapshot import CACHED
from torchspore.engine.graph.capture.state import MISSING, Attached, Bases, Cells, ClassNames, Function, is_constant
from torchspore.engine.graph.capture.value_kinds import PLAIN
from torchspore.engine.graph.capture.world import SETTINGS
from torchspore.engine.tensor import TensorBase

_Reader = Callable[[MutableMapping[str, Any], str, Any, bool], None]
_Settled = Callable[[MutableMapping[str, Any], str, Any], None]

ENVIRONMENT: dict[CodeType, str] = {
    getattr(type(os.environ), name).__code__: what for name, what in (
        ("__getitem__", "reads"), ("__iter__", "reads all"), ("__len__", "reads all"), ("copy", "reads all"), ("__setitem__", "changes"),
        ("__delitem__", "changes"),
    ) if hasattr(getattr(type(os.environ), name, None), "__code__")
}
"""What the methods of `os.environ` do."""


class Roads:
    """The names and the places where they may stand, of one trace."""

    def __init__(self, read: _Reader, read_settled: _Settled) -> None:
        """`read_settled` keeps what is known by identity and is no way to anything else."""
        self._read, self._read_settled = read, read_settled
        self._met: dict[int, Any] = {}
        self._names: dict[str, None] = {}
        self._stored: set[str] = set()
        self._spaces: list[_Space] = []
        self._entered: set[CodeType] = set()
        self._nested: set[CodeType] = set()
        self._functions: dict[CodeType, list[FunctionType]] = {}
        self._cached: set[CodeType] = set()
        self._bodies: dict[type, ClassNames] = {}
        self._bases: dict[type, Bases] = {}
        self._absent: list[tuple[dict[str, Any], str]] = []
        self._modules: list[dict[str, Any]] = []
        self._looks_by_value = False
        self.compares = False
        """Whether something that ran asks of containers whether they are one and the same."""

    # ---- what the trace meets

    def meet(self, item: Any) -> None:
        """Is told of a module, a class, a function, something that wraps one, or a Tensor, which may carry attributes."""
        if id(item) in self._met or item is None:
            return
        self._met[id(item)] = item
        if id(item) in _BY_VALUE:
            self._looks_by_value = True
        setting = SETTINGS.get(id(item))
        if setting is not None:
            self._read_settled(setting, "", setting.text())
        if isinstance(item, type):
            self._meet_class(item)
        elif isinstance(item, types.ModuleType):
            if is_programs_module(item):
                self._add(_Space(vars(item)))
                self._modules.append(vars(item))
                self._read_modules()
        elif isinstance(item, FunctionType):
            self._meet_function(item)
        elif isinstance(item, TensorBase):
            self._add(_Space(Attached(item), absent=self._stored))
        elif isinstance(item, logging.Logger):
            self._add(_Space(vars(item)))
        else:
            self._unwrap(item)
            kind: Any = type(item)
            if callable(item) and is_programs_class(kind):           # an object of the program's that is called as a function
                self._hold("self", item)

    def _unwrap(self, item: Any) -> None:
        if isinstance(item, types.MethodType):
            self.meet(item.__func__)
            self._hold("self", item.__self__)
        elif isinstance(item, CACHED):
            wrapped = getattr(item, "__wrapped__", None)
            self.meet(wrapped)
            if isinstance(wrapped, FunctionType) and wrapped.__code__ not in self._entered:
                self._cached.add(wrapped.__code__)
                self._visit(wrapped.__code__, wrapped.__globals__)
        elif isinstance(item, functools.singledispatchmethod):
            self.meet(item.dispatcher)
        elif isinstance(item, functools.partial):
            self.meet(item.func)
            self._hold("arguments", (item.args, tuple(item.keywords.items())))
        elif isinstance(item, property):
            for part in (item.fget, item.fset, item.fdel):
                self.meet(part)
        elif isinstance(item, (staticmethod, classmethod)):
            self.meet(item.__func__)
        elif isinstance(item, functools.cached_property):
            self.meet(item.func)

    def _hold(self, name: str, value: Any) -> None:
        """Keeps what is in a value that nothing names."""
        if is_constant(value):
            self.meet(type(value))
        else:
            self._read({name: value}, name, value, False)

    def _meet_class(self, cls: type) -> None:
        for place, base in enumerate(cls.__mro__):
            if is_programs_class(base):
                self._read(self._bases.setdefault(base, Bases(base)), "__bases__", base.__bases__, False)
                nearer = [self._names_of(c) for c in cls.__mro__[:place] if is_programs_class(c)]
                self._add(_Space(self._names_of(base), nearer, vars(base)))
                for name, value in list(vars(base).items()):
                    if name[:2] == "__" and isinstance(value, FunctionType) and name not in _AT_BIRTH:   # Python looks these up itself
                        self._look(self._spaces[-1], name)
            for name in ("construct", "bprop"):                  # these the front end looks up
                if name in vars(base):
                    self._look(_Space(self._names_of(base), held=vars(base)), name)
        metaclass = type(cls)
        if metaclass is not type:
            self.meet(metaclass)
            nearer = [self._names_of(base) for base in cls.__mro__ if is_programs_class(base)]     # Python looks there before
            for base in type.mro(metaclass):
                if is_programs_class(base):
                    self._add(_Space(self._names_of(base), nearer, vars(base)))

    def _names_of(self, cls: type) -> ClassNames:
        found = self._bodies.get(cls)
        if found is None:
            found = self._bodies[cls] = ClassNames(cls)
        return found

    def _meet_function(self, function: FunctionType) -> None:
        code = original(function.__code__)
        self._functions.setdefault(code, []).append(function)
        if not is_users(code.co_filename):                       # a wrapper, of ours or of the standard library
            for content in _contents(function):
                if isinstance(content, (FunctionType, types.MethodType, functools.partial)):
                    self.meet(content)
        else:
            own = vars(function)
            if any(name not in ("_graphs", "_jit_config", "source", "__wrapped__") for name in own):
                self._add(_Space(own))
        self.meet(getattr(function, "__wrapped__", None))
        if hasattr(function, "registry") and hasattr(function, "dispatch"):          # functools.singledispatch
            self._hold("registry", function.registry)
        if code in self._entered:
            self._open(function)

    def tensors(self) -> set[int]:
        """The ids of the Tensors that the trace has met in the program's state."""
        return {key for key, item in self._met.items() if isinstance(item, TensorBase)}

    # ---- what runs

    def enter(self, frame: FrameType, running: CodeType) -> None:
        """Is told of a function of the program's the first time it runs; `running` may be its converted form."""
        code = original(running)
        known = code in self._functions or code in self._nested
        self._visit(code, frame.f_globals)
        self._meet_arguments(frame, running)
        if not known:
            for holder in gc.get_referrers(code):
                if isinstance(holder, FunctionType):
                    self.meet(holder)

    def named(self) -> frozenset[str] | None:
        """The names that stand in what ran; None where it may have asked objects for attributes whose names stand nowhere."""
        if self._looks_by_value or not _BY_NAME.isdisjoint(self._names):
            return None
        return frozenset(self._names)

    def names(self, name: str) -> bool:
        """Whether what ran, or is about to, may ask an object for this attribute."""
        return name in self._names or self._looks_by_value or not _BY_NAME.isdisjoint(self._names)

    def fills(self, running: CodeType) -> bool:
        """Whether what begins to run will be kept by `functools.lru_cache`."""
        return original(running) in self._cached

    def _visit(self, code: CodeType, variables: dict[str, Any]) -> None:
        self._entered.add(code)
        self._nested.update(c for c in codes_in(code) if c is not code)
        names, attributes, asked = list(dict.fromkeys(names_of(code))), attributes_in(code), asked_in(code)
        for name in names:
            if name in attributes:
                continue                       # `self.loss` asks for no variable `loss`, which a script sets in each step
            if name in variables:
                self._read(variables, name, variables[name], False)
            elif name in asked:                # a name of Python's own, or none that the program can do without: it may come later
                self._read(variables, name, MISSING, False)
                if name in vars(builtins) and name not in _GUARDED:
                    self._read_settled(vars(builtins), name, vars(builtins)[name])
            elif name.isidentifier() and not hasattr(builtins, name):
                self._absent.append((variables, name))
        for chain in chains_in(code):
            self._follow(chain, variables)
        self.compares = self.compares or _compares(code, asked, variables)
        self._looks_by_value |= _MATCHES in code.co_code[::2]
        self._import(code, names, variables)
        names += [_ASKS[name] for name in names if name in _ASKS]
        new = [name for name in names if name not in self._names]
        self._names.update(dict.fromkeys(new))
        self._stored |= asked_in(code, STORES)
        for space in list(self._spaces):
            for name in new:
                self._look(space, name)
        for function in list(self._functions.get(code, ())):
            self._open(function)
        self._read_modules()

    def _read_modules(self) -> None:
        """What is in the program's other modules, where names may be computed: `getattr(config, f"width{i}")`."""
        if self.named() is None:
            for variables in self._modules:
                for name, value in list(variables.items()):
                    if name[:2] != "__" and isinstance(value, (*PLAIN, list, tuple, dict, set, TensorBase, np.ndarray)):
                        self._read(variables, name, value, False)
            self._modules.clear()

    def _follow(self, chain: tuple[str, ...], variables: dict[str, Any]) -> None:
        """Keeps what stands in modules of libraries, where somebody may put something else: `math.sqrt`, `sys.argv`."""
        value: Any = variables.get(chain[0])
        for name in chain[1:]:
            held: dict[str, Any] = vars(value) if isinstance(value, types.ModuleType) else {}
            value = held.get(name, MISSING)
            if name not in held or held is vars(torch) or value is sys.modules:
                return
            if isinstance(value, _NUMPYS) or (isinstance(value, _SETTLED) and is_constant(value)):
                self._read_settled(held, name, value)
            elif type(value) in (list, tuple, dict, set) and len(value) < _FEW and all(isinstance(item, PLAIN) for item in value):
                self._read(held, name, value, False)

    def _meet_arguments(self, frame: FrameType, code: CodeType) -> None:
        held = frame.f_locals
        count = code.co_argcount + code.co_kwonlyargcount
        for name in code.co_varnames[:count]:
            value = held.get(name)
            if isinstance(value, (type, types.ModuleType, FunctionType)):
                self.meet(value)
            elif value is not None:
                self.meet(type(value))

    def _open(self, function: FunctionType) -> None:
        """What a function that runs holds itself: free variables and defaults."""
        if not is_users(original(function.__code__).co_filename):
            return
        if function.__closure__:
            cells = Cells(function.__code__.co_freevars, function.__closure__)
            for name, value in cells.items():
                if name not in ("__class__", "_cf", "_cf_parts"):
                    self._read(cells, name, value, False)
        held = Function(function)
        for name in Function.NAMES:
            value = getattr(function, name)
            if value is not None:
                self._read(held, name, value, False)

    def _import(self, code: CodeType, names: list[str], variables: dict[str, Any]) -> None:
        """Meets the modules that a function imports when it runs."""
        package, imported = variables.get("__package__"), asked_in(code, IMPORTS)
        for name in names:
            for full in (name, f"{package}.{name}") if package else (name,):
                module = sys.modules.get(full)
                if isinstance(module, types.ModuleType):
                    self.meet(module)
                    if name in imported:
                        self._read(sys.modules, full, module, False)

    # ---- names in places

    def _add(self, space: _Space) -> None:
        self._spaces.append(space)
        for name in list(self._names):
            self._look(space, name)

    def _look(self, space: _Space, name: str) -> None:
        value = space.held.get(name, MISSING)
        if (value is MISSING and name not in space.absent) or (name[:2] == "__" and name in _PYTHONS):
            return
        self._read(space.holder, name, value, False)
        self._unwrap(value)
        for nearer in space.nearer:
            if nearer.get(name, MISSING) is MISSING:
                self._read(nearer, name, MISSING, False)

    def undo_new(self) -> str | None:
        """Takes away the variables that did not exist before the trace; says so."""
        reason = None
        for variables, name in self._absent:
            if name in variables:
                del variables[name]
                reason = f"assigns the variable {name!r}"
        return reason


class _Space:
    """Where names may stand: `holder` for what is read of it; `nearer` are the classes in which Python looks first.

    That a name of `absent` does not stand there counts too.
    """

    def __init__(
        self, holder: MutableMapping[str, Any], nearer: list[ClassNames] | None = None, held: Any = None, absent: Container[str] = (),
    ) -> None:
        self.holder, self.nearer, self.absent = holder, nearer or [], absent
        self.held: Any = holder if held is None else held


def _compares(code: CodeType, asked: Container[str], variables: dict[str, Any]) -> bool:
    """Whether a function asks of something that is no constant, class or function whether it is one thing with something else."""
    if "id" in asked and "id" not in variables:
        return True
    return any(
        name is None or not is_constant(variables.get(name)) or isinstance(variables.get(name), tuple) for name in compared_in(code)
    )


_ASKS = {
    "trainable_params": "requires_grad", "untrainable_params": "requires_grad", "parameters_dict": "name", "check_names": "name",
    "parameters_broadcast_dict": "name",
}
"""Methods of Cells that ask their Parameters for an attribute."""
_GUARDED = ("print", "input", "open")
"""Built-in functions that are others while a trace runs, which they end."""
_FEW = 1000
_NUMPYS = (np.ufunc, type(np.sum))
_SETTLED = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType, *PLAIN)
_AT_BIRTH = {"__init__", "__new__", "__post_init__", "__init_subclass__", "__repr__", "__str__"}
_PYTHONS = {"__dict__", "__weakref__", "__doc__", "__module__", "__slots__", "__name__", "__qualname__", "__file__", "__builtins__"}


_BY_NAME = frozenset((
    "getattr", "hasattr", "vars", "dir", "__dict__", "__getattribute__", "__getstate__", "eval", "exec", "locals", "format_map",
))
"""What asks an object for attributes whose names are computed, or for all."""
_BY_VALUE: dict[int, Any] = {id(thing): thing for thing in (
    getattr, hasattr, vars, dir, eval, exec, operator.attrgetter, operator.methodcaller, copy.copy, copy.deepcopy, pickle.dump,
    pickle.dumps, dataclasses.asdict, dataclasses.astuple, dataclasses.replace, dataclasses.fields, json.dump, json.dumps, pprint.pprint,
    pprint.pformat, inspect.getmembers, inspect.getattr_static, object.__getattribute__,
)}
"""The same as things that may have another name in the program, and libraries' functions that do it; by their ids, as some have no hash."""
_MATCHES = dis.opmap.get("MATCH_CLASS", -1)


_BAGS = (object, *argparse.Namespace.__mro__)
"""Classes of Python's own that add nothing to what a program names."""


@functools.lru_cache(maxsize=4096)
def counts_by_name(cls: Any) -> bool:
    """Whether attributes of objects of a class are read by names alone: every base is the program's, written in Python."""
    return all(base in _BAGS or is_programs_class(base) for base in cls.__mro__) and cls is not object and "__slots__" not in vars(cls)


def is_known_by_names(value: Any) -> bool:
    """Whether attributes of an object are read by names alone."""
    cls: Any = type(value)
    return counts_by_name(cls)


def is_known_by_itself(value: Any) -> bool:
    """Whether an argument is an object of which attributes count by name, and that is equal to itself alone."""
    cls: Any = type(value)
    return counts_by_name(cls) and cls.__eq__ is object.__eq__ and cls.__hash__ is object.__hash__


def is_programs_module(module: types.ModuleType) -> bool:
    """Whether a module is the program's own, or of a library that is neither Python's, nor torch's, nor ours."""
    file = getattr(module, "__file__", None)
    if file is not None:
        return is_users(file)
    return getattr(module, "__spec__", None) is None


@functools.lru_cache(maxsize=4096)
def is_programs_class(cls: type) -> bool:
    """The same for a class; one written in C is nobody's."""
    if not cls.__flags__ & 1 << 9:                               # Py_TPFLAGS_HEAPTYPE
        return False
    module = sys.modules.get(cls.__module__)
    return module is None or is_programs_module(module)


@functools.lru_cache(maxsize=4096)
def writes_past(cls: Any) -> bool:
    """Whether a class may write attributes of its objects by another way than `setattr`, which is where changes of Cells are counted."""
    for base in cls.__mro__:
        if is_programs_class(base):
            if "__setattr__" in vars(base):
                return True
            for value in vars(base).values():
                code = getattr(getattr(value, "__func__", value), "__code__", None)
                if isinstance(code, CodeType) and not ({"__dict__", "vars"} | PAST).isdisjoint(names_of(code)):
                    return True
    return False


PAST = {"__setattr__", "__delattr__", "__getattribute__"}
"""Methods of `object` by which attributes are read and written unnoticed."""


def _contents(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
