"""Why a call needs another graph: the guard that failed, with the old and the new value where both are short."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch

from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture.state import MISSING
from torchspore.graph.specialization.compiled_graph import Graph
from torchspore.graph.specialization.graph_table import Entry, Table

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_LONGEST = 40
"""So many characters of a value are shown at most; a longer one is left out."""
_MOST = 3
"""So many guards are named at most."""


def rebuild_reason(entry: Entry, table: Table) -> str:
    """Return what differs from the graphs that a table has; empty where it has none."""
    if entry.graphs:
        reasons = list(dict.fromkeys(_failed_guards(entry.graphs[0])))
        return "; ".join(reasons[:_MOST]) or "a variable or a Parameter changed"
    others = [(key, other) for key, other in table.items() if other is not entry and other.graphs]
    if not others:
        return ""
    keys = {id(other): key for key, other in table.items()}
    return _form_difference(entry.form, others[-1][1].form) or _number_difference(keys[id(entry)], others[-1][0])


def _failed_guards(graph: Graph) -> Iterator[str]:
    for read in graph.reads():
        if not read.holds():
            kind = "attribute" if read.is_attribute else "variable"
            yield f"the {kind} {read.name!r} changed{_from_to(_value(read.value), _value(read.now()))}"
    for name, before, now in graph.changed_inputs():
        tensor = f"the Tensor {name!r}" if name else "a Tensor"
        shown = _tensor(*before), _tensor(*now)
        yield f"{tensor} changed{_from_to(*shown)}" if shown[0] != shown[1] else f"{tensor} has other strides or another device"
    for read in graph.rebound():
        yield f"{read.name!r} names another Tensor"


def _value(value: Any) -> str:
    """Return a value in a few characters; empty if it has no short text that stays the same."""
    if value is MISSING:
        return "nothing"
    if isinstance(value, TensorBase):
        return _tensor(value._t.shape, value._t.dtype)
    if isinstance(value, type):
        return value.__qualname__
    is_plain = type(value) in _PLAIN or (type(value) is tuple and all(type(item) in _PLAIN for item in value))
    text = repr(value) if is_plain else ""
    return text if len(text) <= _LONGEST else ""


def _tensor(shape: Any, dtype: Any) -> str:
    return f"{FROM_TORCH[dtype]}{list(shape)}"


def _from_to(before: str, now: str) -> str:
    return f" from {before} to {now}" if before and now and before != now else ""


def _form_difference(form: Any, other: Any) -> str:
    """Return the difference between two forms of a call: (function, arguments, options, settings, era, whether it is recorded)."""
    _, arguments, options, settings, era, recorded = form
    if not _are_equal(other[1], arguments):
        return _argument_difference(other[1], arguments)
    for (name, value), (_, before) in zip(options, other[2]):
        if value != before:
            return f"the option {name} changed{_from_to(_value(before), _value(value))}"
    if other[3] != settings:
        return _settings_difference(other[3], settings)
    if other[4] != era:
        return "how Cells are called changed (hooks, to_float)"
    return "a gradient is taken around it" if recorded and not other[5] else ""


def _settings_difference(before: Any, now: Any) -> str:
    for field in dataclasses.fields(now):
        old, new = getattr(before, field.name), getattr(now, field.name)
        if old != new:
            return f"the compile option {field.name} changed{_from_to(_value(old), _value(new))}"
    return "the compile options changed"


def _number_difference(key: Any, other: Any) -> str:
    """Return the difference between two keys of one form: (form, which numbers are inputs, the values of the others)."""
    for value, before in zip(key[2:], other[2:]):
        if type(value) is not type(before) or value != before:
            return f"a number among the arguments changed{_from_to(_value(before), _value(value))}"
    return "a number among the arguments changes and became an input of the graph"


def _argument_difference(before: Any, now: Any) -> str:
    """The first argument that differs between two signatures of (arguments, keyword arguments)."""
    (old, old_keywords), (new, new_keywords) = before, now
    for number, (first, other) in enumerate(zip(old[1:], new[1:]), 1):
        if not _are_equal(first, other):
            return _one_argument(f"argument {number}", first, other)
    if len(old) != len(new):
        return f"the number of arguments changed from {len(old) - 1} to {len(new) - 1}"
    named, named_before = dict((new_keywords or (dict,))[1:]), dict((old_keywords or (dict,))[1:])
    for name in (*named, *named_before):
        if name not in named or name not in named_before:
            return f"the keyword arguments changed from ({', '.join(map(str, named_before))}) to ({', '.join(map(str, named))})"
        if not _are_equal(named[name], named_before[name]):
            return _one_argument(f"argument {name!r}", named_before[name], named[name])
    return "the shapes, dtypes or values of the arguments are others"


def _one_argument(what: str, before: Any, now: Any) -> str:
    old, new = _signature(before), _signature(now)
    if old and old == new:
        return f"{what}, {new}, has other strides or another device"
    return f"{what} changed{_from_to(old, new)}"


def _signature(form: Any) -> str:
    """The part of a signature that stands for one argument, in words."""
    if isinstance(form, type):
        return form.__name__
    if not isinstance(form, tuple) or not form:
        return ""
    sizes, dtype = [part for part in form if isinstance(part, torch.Size)], [part for part in form if isinstance(part, torch.dtype)]
    if dtype and (sizes or type(form[0]) is tuple):
        return _tensor(sizes[0] if sizes else form[0], dtype[0])
    if form[0] in (tuple, list):
        inner = ", ".join(map(_signature, form[1:]))
        return f"{form[0].__name__}({inner})" if len(inner) <= _LONGEST else ""
    return _value(form[1]) if len(form) == 2 and form[0] in _PLAIN else ""


def _are_equal(first: Any, other: Any) -> bool:
    """Return whether two signatures are equal; the Parameters in them are by identity, because `==` of two compares their values."""
    if isinstance(first, TensorBase) or isinstance(other, TensorBase):
        return first is other
    if type(first) is tuple and type(other) is tuple:
        return len(first) == len(other) and all(map(_are_equal, first, other))
    return bool(first == other)
