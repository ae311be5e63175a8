"""Which modules and classes belong to the program: a trace reads them by name. Also writes that bypass these names."""
from __future__ import annotations

import argparse
import functools
import sys
import types
from types import CodeType
from typing import Any

from torchspore.base.frames import is_user_file
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture.code_names import names_of

_BAGS = (object, *argparse.Namespace.__mro__)
"""Python's classes that add nothing to the names of a program."""


@functools.lru_cache(maxsize=4096)
def counts_by_name(cls: Any) -> bool:
    """Return whether attributes of objects of a class are read by names alone: every base is the program's, written in Python."""
    return all(base in _BAGS or is_programs_class(base) for base in cls.__mro__) and cls is not object and "__slots__" not in vars(cls)


def is_identified_by_names(value: Any) -> bool:
    """Return whether attributes of an object are read by names alone."""
    cls: Any = type(value)
    return counts_by_name(cls)


def is_identified_by_identity(value: Any) -> bool:
    """Return whether an argument is an object of which attributes count by name, and that is equal to itself alone."""
    cls: Any = type(value)
    return counts_by_name(cls) and cls.__eq__ is object.__eq__ and cls.__hash__ is object.__hash__


def is_programs_module(module: types.ModuleType) -> bool:
    """Return whether a module is the program's own, or of a library that is neither Python's, nor torch's, nor ours."""
    file = vars(module).get("__file__")                           # a `__getattr__` of the class is not called
    if file is not None:
        return is_user_file(file)
    return vars(module).get("__spec__") is None


@functools.lru_cache(maxsize=4096)
def is_programs_class(cls: type) -> bool:
    """Return the same for a class; a class written in C belongs to nobody."""
    if not cls.__flags__ & 1 << 9:                               # Py_TPFLAGS_HEAPTYPE
        return False
    module = sys.modules.get(cls.__module__)
    return module is None or is_programs_module(module)


@functools.lru_cache(maxsize=4096)
def is_librarys_class(cls: type) -> bool:
    """Return whether a class is of MindSpore's names, where a program may put something else; of Tensors their metaclass tells."""
    return cls.__module__.startswith("torchspore.mindspore.") and not issubclass(cls, TensorBase)


@functools.lru_cache(maxsize=4096)
def writes_past(cls: Any) -> bool:
    """Return whether a class may write attributes of its objects without `setattr`, which counts the changes of Cells."""
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
