"""The functions that a graph from a file may name. A file is data: its functions compute with tensors and have no other effect."""
from __future__ import annotations

import importlib
import operator
import re
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import torch

from torchspore.base.context_values import during
from torchspore.engine.torch_internals import custom_operators, torch_private

_ANY = re.compile(
    r"(?!_?(test|foobar|print|assert_scalar|from_file|pin_memory)|.*_unsafe$|set_?$|set_data|record_stream|resize.*|save|warn)\w+"
)
"""ATen operators without files, texts or memory other than the operands', and without trust in unchecked numbers."""
_OPERATORS = {
    "aten": _ANY, "prims": re.compile(r"(?!_|resize|device_put)\w+"),
    "mkldnn": re.compile(
        r"_(convolution|linear|convolution_transpose)_pointwise_?|_reorder_(convolution|convolution_transpose|linear)_weight"
    ),
}
"""The namespaces whose operators may be named, and which of them by their names."""
_ARGUMENTS = {"Tensor", "int", "SymInt", "float", "number", "bool", "str", "Generator", "Device"}
"""The argument types of operators that a file may name, alone, in lists or optional: no storage, no stream, no object."""
_DRAWING = re.compile(r"(?!python_call|print)\w+")
"""torchspore's operators that a graph for one of our own processes may name too: they draw from streams by number."""
_is_between_processes: ContextVar[bool] = ContextVar("between_processes", default=False)
_EXECUTION = "torchspore.graph.control_flow.execution"
_FUNCTIONS = {
    _EXECUTION: ("branch", "branch_keeping", "branch_back", "loop", "loop_keeping", "loop_back", "loop_back_second",
        "check", "say", "fail"),
}
"""torchspore's functions that graphs may contain."""


def between_processes() -> AbstractContextManager[None]:
    """Allow torchspore's operators in the block: the graph comes from this program through a pipe, and no file contains it."""
    return during(_is_between_processes, True)


def name(target: Any) -> str | None:
    """Return the name of a function that a graph in a file may contain; None for other functions."""
    if target is operator.getitem:
        return "getitem"
    if torch_private.is_operator(target):
        text = f"operator {target.namespace}.{target._opname}.{target._overloadname}"
        return text if _is_allowed(target) else None
    module, called = getattr(target, "__module__", None), getattr(target, "__name__", None)
    if called in _FUNCTIONS.get(str(module), ()) and getattr(importlib.import_module(str(module)), str(called)) is target:
        return f"function {module}:{called}"
    return None


def function(text: str) -> Any:
    """The function that has this name. Raises ValueError for one that no graph in a file may have."""
    if text == "getitem":
        return operator.getitem
    kind, _, path = text.partition(" ")
    if kind == "operator":
        target = _operator(path)
        if target is not None:
            return target
    module, _, called = path.partition(":")
    if kind == "function" and called in _FUNCTIONS.get(module, ()):
        return getattr(importlib.import_module(module), called)
    raise ValueError(f"{text!r:.80} is not an operator that a graph in a file may name")


def _operator(path: str) -> Any:
    namespace, _, rest = path.partition(".")
    base, _, overload = rest.partition(".")
    if namespace == "torchspore" and base in custom_operators.HOMES and _is_between_processes.get():
        return getattr(getattr(torch.ops.torchspore, base), overload)
    if namespace not in _OPERATORS or not torch_private.has_operator(namespace, base, "" if overload == "default" else overload):
        return None
    target = getattr(getattr(getattr(torch.ops, namespace), base), overload)
    return target if torch_private.is_operator(target) and _is_allowed(target) else None


def _is_allowed(target: Any) -> bool:
    if target.namespace == "torchspore":
        return _is_between_processes.get() and _DRAWING.fullmatch(target._opname) is not None
    names = _OPERATORS.get(target.namespace)
    if names is None or not names.fullmatch(target._opname):
        return False
    kinds = (re.sub(r"(List|Optional)\[|\]", "", str(argument.type)) for argument in target._schema.arguments)
    return all(kind in _ARGUMENTS for kind in kinds)
