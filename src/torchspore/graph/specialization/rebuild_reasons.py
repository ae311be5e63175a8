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
from torchspore.translations import translate

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_LONGEST = 40
"""So many characters of a value are shown at most; a longer one is left out."""
_MOST = 3
"""So many guards are named at most."""


def rebuild_reason(entry: Entry, table: Table) -> str:
    """Return what differs from the graphs that a table has; empty where it has none."""
    if entry.graphs:
        reasons = list(dict.fromkeys(_failed_guards(entry.graphs[0])))
        return translate("; ").join(reasons[:_MOST]) or translate("a variable or a Parameter changed")
    others = [(key, other) for key, other in table.items() if other is not entry and other.graphs]
    if not others:
        return ""
    keys = {id(other): key for key, other in table.items()}
    return _form_difference(entry.form, others[-1][1].form) or _number_difference(keys[id(entry)], others[-1][0])


def _failed_guards(graph: Graph) -> Iterator[str]:
    for read in graph.reads():
        if not read.holds():
            thing = translate("the attribute {name!r}") if read.is_attribute else translate("the variable {name!r}")
            yield _changed(thing.format(name=read.name), _value(read.value), _value(read.now()))
    for name, before, now in graph.changed_inputs():
        tensor = translate("the Tensor {name!r}").format(name=name) if name else translate("a Tensor")
        shown = _tensor(*before), _tensor(*now)
        yield _changed(tensor, *shown) if shown[0] != shown[1] else _moved(tensor)
    for read in graph.rebound():
        yield translate("{name!r} names another Tensor").format(name=read.name)


def _value(value: Any) -> str:
    """Return a value in a few characters; empty if it has no short text that stays the same."""
    if value is MISSING:
        return translate("nothing")
    if isinstance(value, TensorBase):
        return _tensor(value._t.shape, value._t.dtype)
    if isinstance(value, type):
        return value.__qualname__
    is_plain = type(value) in _PLAIN or (type(value) is tuple and all(type(item) in _PLAIN for item in value))
    text = repr(value) if is_plain else ""
    return text if len(text) <= _LONGEST else ""


def _tensor(shape: Any, dtype: Any) -> str:
    return f"{FROM_TORCH[dtype]}{list(shape)}"


def _changed(thing: str, before: str, now: str) -> str:
    """Return a sentence about a change, with both values if they are short and differ."""
    text = translate("{thing} changed from {before} to {now}") if before and now and before != now else translate("{thing} changed")
    return text.format(thing=thing, before=before, now=now)


def _moved(tensor: str) -> str:
    return translate("{tensor} has other strides or another device").format(tensor=tensor)


def _form_difference(form: Any, other: Any) -> str:
    """Return the difference between two forms of a call: (function, arguments, options, settings, era, whether it is recorded)."""
    _, arguments, options, settings, era, recorded = form
    if not _are_equal(other[1], arguments):
        return _argument_difference(other[1], arguments)
    for (name, value), (_, before) in zip(options, other[2]):
        if value != before:
            return _changed(translate("the option {name}").format(name=name), _value(before), _value(value))
    if other[3] != settings:
        return _settings_difference(other[3], settings)
    if other[4] != era:
        return translate("how Cells are called changed (hooks, to_float)")
    return translate("a gradient is taken around it") if recorded and not other[5] else ""


def _settings_difference(before: Any, now: Any) -> str:
    for field in dataclasses.fields(now):
        old, new = getattr(before, field.name), getattr(now, field.name)
        if old != new:
            return _changed(translate("the compile option {name}").format(name=field.name), _value(old), _value(new))
    return translate("the compile options changed")


def _number_difference(key: Any, other: Any) -> str:
    """Return the difference between two keys of one form: (form, which numbers are inputs, the values of the others)."""
    for value, before in zip(key[2:], other[2:]):
        if type(value) is not type(before) or value != before:
            return _changed(translate("a number among the arguments"), _value(before), _value(value))
    return translate("a number among the arguments changes and became an input of the graph")


def _argument_difference(before: Any, now: Any) -> str:
    """The first argument that differs between two signatures of (arguments, keyword arguments)."""
    (old, old_keywords), (new, new_keywords) = before, now
    for number, (first, other) in enumerate(zip(old[1:], new[1:]), 1):
        if not _are_equal(first, other):
            return _one_argument(translate("argument {name}").format(name=number), first, other)
    if len(old) != len(new):
        return _changed(translate("the number of arguments"), str(len(old) - 1), str(len(new) - 1))
    named, named_before = dict((new_keywords or (dict,))[1:]), dict((old_keywords or (dict,))[1:])
    for name in (*named, *named_before):
        if name not in named or name not in named_before:
            before_and_now = (f"({', '.join(map(str, names))})" for names in (named_before, named))
            return _changed(translate("the keyword arguments"), *before_and_now)
        if not _are_equal(named[name], named_before[name]):
            return _one_argument(translate("argument {name}").format(name=repr(name)), named_before[name], named[name])
    return translate("the shapes, dtypes or values of the arguments are others")


def _one_argument(argument: str, before: Any, now: Any) -> str:
    argument, before, now = _first_difference(argument, before, now)
    old, new = _signature(before), _signature(now)
    return _moved(f"{argument}, {new},") if old and old == new else _changed(argument, old, new)


def _first_difference(argument: str, before: Any, now: Any) -> tuple[str, Any, Any]:
    """Return the first item that differs between two sequences or dicts of one length, as `argument 3[0]`, with both signatures."""
    while all(type(form) is tuple and form and form[0] in (tuple, list, dict) for form in (before, now)):
        if before[0] is not now[0] or len(before) != len(now):
            break
        pairs = zip(before[1:], now[1:])
        position = next((index for index, (old, new) in enumerate(pairs) if not _are_equal(old, new)), None)
        if position is None:
            break
        old, new = before[position + 1], now[position + 1]
        if before[0] is dict:
            if not _are_equal(old[0], new[0]):
                break
            argument, before, now = f"{argument}[{old[0]!r}]", old[1], new[1]
        else:
            argument, before, now = f"{argument}[{position}]", old, new
    return argument, before, now


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
