"""Pipelines in words: the steps with what they were made of, for `explain`, the watchdog and the picture in notebooks.

Nothing is read for it, and nothing of the user's runs: an object is told by its name or its type.
"""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import short
from torchspore.mindspore.dataset.core.operation import TensorOperation
from torchspore.mindspore.dataset.core.recording import arguments, constructor_of
from torchspore.mindspore.dataset.engine.dataset import Dataset
from torchspore.mindspore.dataset.engine.failures import name_of

_LONGEST = 60
_ITEMS, _BRANCHES, _DEPTH = 4, 3, 3
_PLAIN = (bool, int, float, str, bytes, type(None), Path, np.generic, np.dtype)


def name(step: Dataset) -> str:
    """A step as the method that makes it is called; a source as its class."""
    kind = type(step).__name__
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.removesuffix("Dataset")).lower() if step.children else kind


def label(step: Dataset) -> str:
    """A step in a few words: `map(Decode, Resize)`, `batch(32)`; a source by its class alone."""
    first = next((value for value in said(step).values()), None) if step.children else None
    return name(step) if first is None else f"{name(step)}({_cut(_listed(first))})"


def said(made: Any) -> dict[str, Any]:
    """What a step or transform was made with, by name, as far as it is not the default; the datasets it reads are left out."""
    constructor = constructor_of(made)
    if constructor is None:
        return {}
    defaults = {key: one.default for key, one in inspect.signature(constructor).parameters.items()}
    return {key: value for key, value in arguments(made).items() if not _is_default(value, defaults.get(key)) and not _is_dataset(value)}


def shown(value: Any) -> str:
    """A value in one line, never long: arrays by dtype and shape, functions and transforms by name, other objects by type."""
    if isinstance(value, Enum):
        return _cut(f"{type(value).__name__}.{value.name}")
    if isinstance(value, _PLAIN):
        return short(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of {list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return _cut(f"[{_listed(value)}]")
    if isinstance(value, dict):
        return _cut(f"{{{_some([short(key) for key in list(value)[:_ITEMS]], len(value))}}}")
    if isinstance(value, TensorOperation):
        parts = ", ".join(f"{key}={shown(one)}" for key, one in said(value).items())
        return f"{type(value).__name__}({parts})"
    return _cut(str(name_of(value)))


def chain(dataset: Dataset, workers: Callable[[Dataset], str] | None = None, depth: int = _DEPTH) -> str:
    """A pipeline from its source to its last step; `workers` says what follows a step's name."""
    steps = []
    step = dataset
    while True:
        steps.append(label(step) + (workers(step) if workers is not None else ""))
        if len(step.children) != 1:
            break
        step = step.children[0]
    if step.children:
        below = [chain(child, workers, depth - 1) for child in step.children[:_BRANCHES]] if depth else [".."]
        steps.append(f"({_some(below, len(step.children) if depth else 1)})")
    return " > ".join(reversed(steps))


def steps_of(dataset: Dataset) -> Iterator[Dataset]:
    """Every step and source of a pipeline, once."""
    seen: set[int] = set()
    left = [dataset]
    while left:
        step = left.pop()
        if id(step) not in seen:
            seen.add(id(step))
            yield step
            left.extend(step.children)


def _listed(value: Any) -> str:
    """What stands between brackets: of transforms and functions only the names."""
    if not isinstance(value, (list, tuple)):
        return type(value).__name__ if isinstance(value, TensorOperation) else shown(value)
    return _some([_listed(one) if not isinstance(one, (list, tuple)) else shown(one) for one in value[:_ITEMS]], len(value))


def _some(parts: list[str], count: int) -> str:
    return ", ".join(parts) + (f", .. {count - len(parts)} more" if count > len(parts) else "")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + " .."


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) in (bool, int, float, str) and type(value) is type(default) and value == default)


def _is_dataset(value: Any) -> bool:
    return isinstance(value, Dataset) or (isinstance(value, (list, tuple)) and any(isinstance(one, Dataset) for one in value))
