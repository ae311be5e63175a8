"""The state that a trace can reach besides attributes of Cells: the values of the names in its functions.

Python has no hook for a read of `module.SCALE` or `Config.width`, but such a read needs the name. Each name in a function that ran, as a
name or as a text, is therefore looked up in each module, class and function of the program that the trace has met. Its value counts as
read: possibly more than was read, never less.
"""
from __future__ import annotations

import abc
import builtins
import functools
import gc
import logging
import sys
import types
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, MutableMapping
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np
import torch

from torchspore.base.frames import is_user_file
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture import namespaces
from torchspore.graph.capture.ambient_state.introspection import Registrations, TypeFacts, names_in
from torchspore.graph.capture.ambient_state.process_state import SETTINGS
from torchspore.graph.capture.code_names import (
    IMPORTS,
    STORES,
    attributes_in,
    chains_in,
    codes_in,
    compared_in,
    names_asked_in,
    names_of,
    texts_in,
)
from torchspore.graph.capture.converted_code import original
from torchspore.graph.capture.namespaces import BY_NAME, BY_VALUE, Space
from torchspore.graph.capture.ownership import is_identified_by_names, is_librarys_class, is_programs_class, is_programs_module
from torchspore.graph.capture.snapshot import CACHED
from torchspore.graph.capture.state import MISSING, Attached, Bases, Cells, ClassNames, Function, is_constant
from torchspore.graph.capture.value_kinds import PLAIN
from torchspore.translations import translate

_LIBRARIES = ("torch.", "torchspore.")
_Reader = Callable[[MutableMapping[str, Any], str, Any, bool], None]
_Settled = Callable[[MutableMapping[str, Any], str, Any], None]

class ReachableState:
    """The names of one trace and the namespaces in which they may be defined."""

    def __init__(self, read: _Reader, read_settled: _Settled) -> None:
        """`read_settled` records values that are known by identity and lead to no other state."""
        self._read, self._read_settled = read, read_settled
        self._met: dict[int, Any] = {}
        self._names: dict[str, None] = {}
        self._stored: set[str] = set()
        self._spaces: list[Space] = []
        self._entered: set[CodeType] = set()
        self._nested: set[CodeType] = set()
        self._functions: dict[CodeType, list[FunctionType]] = {}
        self._cached: set[CodeType] = set()
        self._bodies: dict[type, ClassNames] = {}
        self._bases: dict[type, Bases] = {}
        self._absent: list[tuple[dict[str, Any], str]] = []
        self._probed: set[str] = set()
        """Texts that may be names for `getattr` or `hasattr`: their absence counts too."""
        self._full_spaces: list[Space] = []
        """The modules and classes of which names may be computed."""
        self.listens = False
        """True if code that ran names a function that reports which attributes it reads."""
        self._facts: dict[int, TypeFacts] = {}
        self._registrations: dict[abc.ABCMeta, Registrations] = {}
        self._spaces_of: dict[type, list[Space]] = {}
        self._queried: set[tuple[type, str]] = set()
        self._looks_by_value = False
        self.compares = False
        """True if code that ran checks whether containers are the same object."""

    # ---- objects that the trace meets

    def meet(self, item: Any) -> None:
        """Add a module, a class, a function, a wrapper of one, or a Tensor, which may have attributes."""
        if id(item) in self._met or item is None:
            return
        self._met[id(item)] = item
        if id(item) in BY_VALUE:
            self._looks_by_value = True
        setting = SETTINGS.get(id(item))
        if setting is not None:
            self._read_settled(setting, "", setting.text())
        self._record_queried_type(item)
        if isinstance(item, type):
            self._meet_class(item)
        elif isinstance(item, types.ModuleType):
            if is_programs_module(item):
                self._add(space := Space(vars(item), absent=self._probed))
                self._full_spaces.append(space)
                self._look(space, "__getattr__")                 # Python looks it up itself
                self._read_all()
        elif isinstance(item, FunctionType):
            self._meet_function(item)
        elif isinstance(item, TensorBase):
            self._add(Space(Attached(item), absent=self._stored))
        elif isinstance(item, logging.Logger):
            self._add(Space(vars(item)))
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
        """Record the contents of a value that has no name."""
        if is_constant(value):
            self.meet(type(value))
        else:
            self._read({name: value}, name, value, False)

    def _record_queried_type(self, item: Any) -> None:
        """Record the properties of a class or function of the program that code which ran may read."""
        queried = [name for name in TypeFacts.NAMES if name in self._names]
        if not queried:
            return
        if (
            is_programs_class(item)
            if isinstance(item, type)
            else isinstance(item, FunctionType) and is_user_file(item.__code__.co_filename)
        ):
            facts = self._facts.setdefault(id(item), TypeFacts(item))
            for name in queried:
                self._read(facts, name, facts.get(name), False)

    def _read_registrations(self, cls: abc.ABCMeta) -> None:
        """Record which classes are registered with an abstract class."""
        if cls not in self._registrations:
            registrations = self._registrations[cls] = Registrations(cls)
            self._read_settled(registrations, "", registrations.get(""))

    def _meet_class(self, cls: type) -> None:
        if isinstance(cls, abc.ABCMeta):
            self._read_registrations(cls)
        spaces = self._spaces_of[cls] = []
        for index, base in enumerate(cls.__mro__):
            nearer = [self._names_of(c) for c in cls.__mro__[:index] if is_programs_class(c)]
            if is_programs_class(base):
                self._read(self._bases.setdefault(base, Bases(base)), "__bases__", base.__bases__, False)
                self._add(space := Space(self._names_of(base), nearer, vars(base), self._probed))
                spaces.append(space)
                if not issubclass(base, TensorBase):
                    self._full_spaces.append(space)
                for name, value in list(vars(base).items()):
                    if name[:2] == "__" and isinstance(value, FunctionType) and name not in namespaces.AT_BIRTH:   # Python looks them up
                        self._look(space, name)
            elif is_librarys_class(base):
                self._add(Space(self._names_of(base), nearer, vars(base), self._probed if base is FRONT.cell else (), is_settled=True))
            for name in ("construct", "bprop"):                  # these the front end looks up
                if name in vars(base):
                    self._look(Space(self._names_of(base), owner=vars(base)), name)
        self._read_all()
        metaclass = type(cls)
        if metaclass is not type:
            self.meet(metaclass)
            nearer = [self._names_of(base) for base in cls.__mro__ if is_programs_class(base)]     # Python looks there before
            for base in type.mro(metaclass):
                if is_programs_class(base):
                    self._add(Space(self._names_of(base), nearer, vars(base)))

    def _names_of(self, cls: type) -> ClassNames:
        body = self._bodies.get(cls)
        if body is None:
            body = self._bodies[cls] = ClassNames(cls)
        return body

    def _meet_function(self, function: FunctionType) -> None:
        code = original(function.__code__)
        self._functions.setdefault(code, []).append(function)
        if not is_user_file(code.co_filename):                       # a wrapper, of ours or of the standard library
            for content in _contents(function):
                if isinstance(content, (FunctionType, types.MethodType, functools.partial)):
                    self.meet(content)
        else:
            attributes = vars(function)
            if any(name not in ("_graphs_", "_jit_config_", "source", "__wrapped__") for name in attributes):
                self._add(Space(attributes))
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
        """Add a function of the program at its first run; `running` may be its converted form."""
        if running.co_filename == "<string>" and str(frame.f_globals.get("__name__")).startswith(_LIBRARIES):
            return                                               # the methods of a dataclass of torch have no file
        code = original(running)
        is_recorded = code in self._functions or code in self._nested
        self._visit(code, frame.f_globals)
        self._meet_arguments(frame, running)
        if not is_recorded:
            for holder in gc.get_referrers(code):
                if isinstance(holder, FunctionType):
                    self.meet(holder)

    def named(self) -> frozenset[str] | None:
        """Return the names in the code that ran; None if it may have asked objects for attributes by other names."""
        if self._looks_by_value or not BY_NAME.isdisjoint(self._names):
            return None
        return frozenset(self._names)

    def names(self, name: str) -> bool:
        """Return whether what ran, or is about to, may ask an object for this attribute."""
        return name in self._names or self._looks_by_value or not BY_NAME.isdisjoint(self._names)

    def fills(self, running: CodeType) -> bool:
        """Return whether what begins to run will be kept by `functools.lru_cache`."""
        return original(running) in self._cached

    def _visit(self, code: CodeType, variables: dict[str, Any]) -> None:
        self._entered.add(code)
        self._nested.update(c for c in codes_in(code) if c is not code)
        names, attributes, queried = list(dict.fromkeys(names_of(code))), attributes_in(code), names_asked_in(code)
        for name in names:
            if name in attributes:
                continue                       # `self.loss` reads no variable `loss`, which a script sets in each step
            if name in variables:
                self._read(variables, name, variables[name], False)
            elif name in queried or ("globals" in queried and name in texts_in(code)):
                # A name of Python's own, or none that the program can do without: it may come later.
                self._read(variables, name, MISSING, False)
                self.listens |= name in namespaces.TELL
                if name in vars(builtins) and name not in namespaces.GUARDED:
                    self._read_settled(vars(builtins), name, vars(builtins)[name])
            elif name.isidentifier() and not hasattr(builtins, name):
                self._absent.append((variables, name))
        for chain in chains_in(code):
            self._follow(chain, variables)
        self.compares = self.compares or _compares(code, queried, variables)
        self._looks_by_value |= namespaces.MATCHES in code.co_code[::2]
        self._import(code, names, variables)
        names += [namespaces.ATTRIBUTE_OPERATIONS[name] for name in names if name in namespaces.ATTRIBUTE_OPERATIONS]
        self._stored |= names_asked_in(code, STORES)
        self._know(names, texts_in(code) if not namespaces.TELL.keys().isdisjoint(names) else frozenset())
        for function in list(self._functions.get(code, ())):
            self._open(function)
        self._read_all()

    def _know(self, names: Iterable[str], probed: Iterable[str]) -> None:
        """Look up more names in all namespaces; of those that may be `probed`, their absence counts too."""
        new, probed = [name for name in names if name not in self._names], [name for name in probed if name not in self._probed]
        self._names.update(dict.fromkeys(new))
        self._probed.update(probed)
        for space in list(self._spaces):
            for name in (*new, *probed):
                self._look(space, name)
        if not TypeFacts.NAMES.isdisjoint(new):
            for item in list(self._met.values()):
                self._record_queried_type(item)

    def note_query(self, name: str) -> None:
        """Record that something is asked for an attribute whose name may have been computed."""
        if name not in self._names or name not in self._probed:
            self._know((name,), (name,))

    def _read_all(self) -> None:
        """Read everything in the program's modules and classes, where names may be computed: `vars(config)[f"width{i}"]`."""
        while self.named() is None and self._full_spaces:
            space = self._full_spaces.pop()
            names = names_in(space.origin)
            self._read(names, "", names.get(""), False)
            for name, value in list(space.origin.items()):
                if name[:2] == "__":
                    continue
                if isinstance(value, _CONTAINERS) or is_identified_by_names(value):
                    self._read(space.holder, name, value, False)
                elif is_constant(value):
                    self._read_settled(space.holder, name, value)
                    self._unwrap(value)

    def ask(self, cls: type, name: str) -> None:
        """Record that a Cell of this class is asked for an attribute whose name may have been computed."""
        if (cls, name) not in self._queried:
            self._queried.add((cls, name))
            if name not in self._names:
                for space in self._spaces_of.get(cls, ()):
                    self._look(space, name)

    def _follow(self, chain: tuple[str, ...], variables: MutableMapping[str, Any]) -> None:
        """Record values of modules of libraries that a program may replace: `math.sqrt`, `sys.argv`."""
        value: Any = variables.get(chain[0])
        for name in chain[1:]:
            held: dict[str, Any] = vars(value) if isinstance(value, types.ModuleType) else {}
            value = held.get(name, MISSING)
            if name not in held or held is vars(torch) or value is sys.modules:
                return
            self._looks_by_value |= id(value) in BY_VALUE
            if isinstance(value, abc.ABCMeta):
                self._read_registrations(value)
            if isinstance(value, _NUMPYS) or (isinstance(value, _SETTLED) and is_constant(value)):
                self._read_settled(held, name, value)
            elif type(value) in (list, tuple, dict, set) and len(value) < _FEW and all(isinstance(item, PLAIN) for item in value):
                self._read(held, name, value, False)

    def _meet_arguments(self, frame: FrameType, code: CodeType) -> None:
        variables = frame.f_locals
        count = code.co_argcount + code.co_kwonlyargcount
        for name in code.co_varnames[:count]:
            value = variables.get(name)
            if isinstance(value, (type, types.ModuleType, FunctionType)):
                self.meet(value)
            elif value is not None:
                self.meet(type(value))

    def _open(self, function: FunctionType) -> None:
        """Record the free variables and defaults of a function that runs."""
        if not is_user_file(original(function.__code__).co_filename):
            return
        if function.__closure__:
            cells = Cells(function.__code__.co_freevars, function.__closure__)
            for name, value in cells.items():
                if name not in ("__class__", "_cf", "_cf_parts"):
                    self._read(cells, name, value, False)
            for chain in chains_in(original(function.__code__)):
                self._follow(chain, cells)
        holder = Function(function)
        for name in Function.NAMES:
            value = getattr(function, name)
            if value is not None:
                self._read(holder, name, value, False)

    def _import(self, code: CodeType, names: list[str], variables: dict[str, Any]) -> None:
        """Meets the modules that a function imports when it runs."""
        package, imported = variables.get("__package__"), names_asked_in(code, IMPORTS)
        if not namespaces.BY_MODULE.isdisjoint(names):                        # `sys.modules[__name__].k`
            values = [variables.get(name) for name in ("__name__", *names)]
            names = [*names, *(name for name in values if isinstance(name, str))]
        for name in names:
            for full in (name, f"{package}.{name}") if package else (name,):
                module = sys.modules.get(full)
                if isinstance(module, types.ModuleType):
                    self.meet(module)
                    if name in imported:
                        self._read(sys.modules, full, module, False)

    # ---- names in namespaces

    def _add(self, space: Space) -> None:
        self._spaces.append(space)
        for name in list(self._names):
            self._look(space, name)

    def _look(self, space: Space, name: str) -> None:
        value = space.origin.get(name, MISSING)
        if (value is MISSING and name not in space.absent) or (name[:2] == "__" and name in namespaces.PYTHONS):
            return
        if name == "__getattribute__" and isinstance(space.holder, ClassNames) and space.holder.is_body_of(FRONT.cell):
            return                                       # the hook of trace_guard_hooks, which Cell has only while a trace runs
        if space.is_settled:
            self._read_settled(space.holder, name, value)
        else:
            self._read(space.holder, name, value, False)
            self._unwrap(value)
        for nearer in space.nearer:
            if nearer.get(name, MISSING) is MISSING:
                self._read(nearer, name, MISSING, False)

    def undo_new(self) -> str | None:
        """Delete the variables that did not exist before the trace; return whether there were any."""
        reason = None
        for variables, name in self._absent:
            if name in variables:
                del variables[name]
                reason = translate("assigns the variable {name!r}").format(name=name)
        return reason


def _compares(code: CodeType, queried: Container[str], variables: dict[str, Any]) -> bool:
    """Return whether a function asks of something that is not a constant, class or function whether it is one thing with something else."""
    if "id" in queried and "id" not in variables:
        return True
    return any(
        name is None or not is_constant(variables.get(name)) or isinstance(variables.get(name), tuple) for name in compared_in(code)
    )


_CONTAINERS = (*PLAIN, list, tuple, dict, set, deque, np.ndarray, functools.partial, types.SimpleNamespace, TensorBase)
_FEW = 1000
_NUMPYS = (np.ufunc, type(np.sum))
_SETTLED = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType, *PLAIN)


def _contents(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
