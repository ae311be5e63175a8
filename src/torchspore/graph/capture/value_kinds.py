"""The kinds of values: unchanging, known by identity, compared by contents, or none of these."""
from __future__ import annotations

import array
import datetime
import decimal
import fractions
import functools
import io
import logging
import operator
import pathlib
import re
import struct
import sys
import threading
import types
import uuid
from collections import deque, namedtuple
from typing import Any

import numpy as np
import torch

from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors.tensor import TensorBase

MISSING = object()

PLAIN = (int, float, complex, str, bytes, bool, type(None))
VALUES: tuple[type, ...] = (
    range, slice, type(Ellipsis), np.generic, decimal.Decimal, fractions.Fraction, datetime.date, datetime.time, datetime.timedelta,
    datetime.tzinfo, uuid.UUID, pathlib.PurePath, re.Pattern,
)
"""Values that never change, compared by equality."""

_SETTLED: tuple[type, ...] = (
    types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, np.dtype, property, staticmethod, classmethod,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType, types.CodeType,
    logging.Logger, logging.Handler, logging.Manager,
)


def is_constant(value: Any) -> bool:
    """Return whether `value` can't change by itself: then only its name can be given another one."""
    kind = type(value)
    if kind in PLAIN:
        return True
    if kind is types.BuiltinFunctionType:
        return not _is_bound(value)
    if isinstance(value, tuple):
        return (kind is tuple or not attributes(value)) and all(is_constant(item) for item in value)
    return isinstance(value, (*PLAIN, TensorBase, *(_SETTLED, FRONT.settled), *VALUES)) and not _has_attributes(value)


def _has_attributes(value: Any) -> bool:
    """Return whether a subclass of a plain type carries attributes of its own."""
    return isinstance(value, PLAIN) and bool(getattr(value, "__dict__", None))


def _is_bound(value: Any) -> bool:
    """Return whether a function written in C is a method of something that may change, as `[].append`."""
    return not (value.__self__ is None or isinstance(value.__self__, (types.ModuleType, type)))


def is_settled(value: Any) -> bool:
    """Return whether `value` is known by identity."""
    return isinstance(value, (_SETTLED, FRONT.settled)) and not (isinstance(value, types.BuiltinFunctionType) and _is_bound(value))


def is_exhaustible(value: Any) -> bool:
    """Return whether `value` is an iterator that C code or a generator advances, or a stream: nothing shows its position."""
    if isinstance(value, io.IOBase):
        return isinstance(value, (io.StringIO, io.BytesIO)) or (not value.closed and value.readable())
    method = getattr(type(value), "__next__", None)
    return method is not None and not isinstance(method, types.FunctionType) and not hasattr(value, "fileno")


def attributes(value: Any) -> dict[str, Any] | None:
    """Return the `__dict__` of an object, without its class's attribute hooks; None if it has none."""
    try:
        attributes = value.__dict__ if isinstance(value, threading.local) else object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return attributes if isinstance(attributes, dict) else None


@functools.lru_cache(maxsize=4096)
def _slots(kind: Any) -> tuple[Any, ...]:
    """The slots that classes written in Python give to their objects."""
    return tuple(
        descriptor for cls in kind.__mro__ if "__slots__" in vars(cls) for descriptor in vars(cls).values()
        if isinstance(descriptor, types.MemberDescriptorType)
    )


_CONTAINER_TYPES: tuple[Any, ...] = (
    *PLAIN, list, tuple, deque, dict, set, frozenset, np.ndarray, bytearray, array.array, memoryview, threading.local, TensorBase,
)
"""Kinds written in C whose contents are looked into, and their subclasses."""

_Named = namedtuple("_Named", "item")
_UNCHANGING: tuple[Any, ...] = (
    type(threading.Lock()), type(threading.RLock()), io.IOBase, types.GenericAlias, types.UnionType, types.ClassMethodDescriptorType,
    types.TracebackType, types.FrameType, types.CellType, type(sys.flags), type(re.match("", "")), type(datetime.datetime_CAPI),
    type(vars(_Named)["item"]), struct.Struct, operator.itemgetter, operator.attrgetter, np.ufunc, type(np.concatenate),
    BaseException, super, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Tensor, torch.Generator,
)
"""Kinds written in C in which nothing changes that a program reads unnoticed: a lock is taken and given back, a stream's methods are
noticed when they are called."""


@functools.lru_cache(maxsize=4096)
def hides_state(kind: Any) -> bool:
    """Return whether objects of a class keep something in C where nothing shows it: a queue, an array of ctypes, a hash, a weak reference.

    Objects of classes written in Python have room for their slots, attributes and weak references, and for nothing else.
    """
    if issubclass(kind, (*_CONTAINER_TYPES, *_UNCHANGING, *_SETTLED, *VALUES)):
        return False
    described_size = len(_slots(kind)) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)  # a negative one is outside of the object
    return kind.__basicsize__ > object.__basicsize__ + described_size * struct.calcsize("P")


def slots_of(value: Any) -> tuple[Any, ...]:
    """The slots of an object."""
    kind: Any = type(value)
    return _slots(kind)
