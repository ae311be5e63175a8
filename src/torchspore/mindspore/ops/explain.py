"""Errors of operators: the user's line first, then what was given and what torch found wrong with it."""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from torchspore.base.frames import user_frame
from torchspore.engine import dtypes
from torchspore.engine.tensor import TensorBase

_TYPE_WORDS = re.compile(r"dtype|scalar type|same type|must be Tensor|not implemented for '|Expected.*type|unexpected keyword|missing \d|positional argument|argument '", re.I)
_SHAPE_WORDS = re.compile(r"size|shape|dimension|dim |index|broadcast|number of channels|channels|kernel|mat1|must match|out of range|range", re.I)


def explain(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], error: Exception) -> Exception:
    """The error to raise in place of torch's `error`; one of our own passes through as it is."""
    text = str(error)
    if getattr(error, "explained", False) or "out of memory" in text:
        return error
    kind = type(error)
    if isinstance(error, NotImplementedError) or (kind is RuntimeError and _TYPE_WORDS.search(text)):
        kind = TypeError
    elif kind is RuntimeError:
        kind = ValueError if _SHAPE_WORDS.search(text) else RuntimeError
    name = getattr(function, "__name__", str(function))
    message = f"{place()}{name}({_given(function, arguments, keywords)}): {_first_sentence(text)}"
    made = kind(message)
    made.explained = True  # type: ignore[attr-defined]
    return made


def place() -> str:
    """`train.py:12: `, the user's line that is running now, or nothing where there is none."""
    found = user_frame()
    return f"{found[0]}:{found[1]}: " if found else ""


def _given(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    names += [f"argument {i}" for i in range(len(names), len(arguments))]
    return ", ".join(f"{name}: {shown(value)}" for name, value in [*zip(names, arguments), *keywords.items()])


def shown(value: Any) -> str:
    """A value in a few words: a Tensor as `Float32[2, 3]`."""
    if isinstance(value, TensorBase):
        t = value._t
        return f"{dtypes.FROM_TORCH.get(t.dtype, t.dtype)}{list(t.shape)}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, TensorBase) for item in value):
        return "(" + ", ".join(shown(item) for item in value) + ")"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _first_sentence(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    first = lines[0].strip() if lines else "failed"
    return first if first.endswith(".") else first + "."
