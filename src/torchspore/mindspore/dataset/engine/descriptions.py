"""Descriptions of pipelines: the steps with their arguments, for `explain`, the watchdog and the picture in notebooks.

A description reads no data and runs no user code: an object appears by its name or its type.
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
from torchspore.mindspore.dataset.core.constructor_arguments import arguments, constructor_of
from torchspore.mindspore.dataset.core.operation import TensorOperation
from torchspore.mindspore.dataset.engine.dataset import Dataset
from torchspore.mindspore.dataset.engine.failures import name_of

_LONGEST = 60
_ITEMS, _BRANCHES, _DEPTH = 4, 3, 3
_PLAIN = (bool, int, float, str, bytes, type(None), Path, np.generic, np.dtype)


def name(step: Dataset) -> str:
    """Return the name of the method that creates a step; the class name of a source."""
    kind = type(step).__name__
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.removesuffix("Dataset")).lower() if step.children else kind


def label(step: Dataset) -> str:
    """Return a short description of a step: `map(Decode, Resize)`, `batch(32)`; only the class name for a source."""
    first = next((value for value in non_default_arguments(step).values()), None) if step.children else None
    return name(step) if first is None else f"{name(step)}({_cut(_listed(first))})"


def non_default_arguments(instance: Any) -> dict[str, Any]:
    """Return the non-default arguments of a step or transform by name, without the datasets that it reads."""
    constructor = constructor_of(instance)
    if constructor is None:
        return {}
    defaults = {key: parameter.default for key, parameter in inspect.signature(constructor).parameters.items()}
    named = arguments(instance).items()
    return {key: value for key, value in named if not _is_default(value, defaults.get(key)) and not _is_dataset(value)}


def shown(value: Any) -> str:
    """Describe a value in one short line: arrays by dtype and shape, functions and transforms by name, other objects by type."""
    if isinstance(value, Enum):
        return _cut(f"{type(value).__name__}.{value.name}")
    if isinstance(value, _PLAIN):
        return short(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of {list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return _cut(f"[{_listed(value)}]")
    if isinstance(value, dict):
        return _cut(f"{{{_join_parts([short(key) for key in list(value)[:_ITEMS]], len(value))}}}")
    if isinstance(value, TensorOperation):
        parts = ", ".join(f"{key}={shown(argument)}" for key, argument in non_default_arguments(value).items())
        return f"{type(value).__name__}({parts})"
    return _cut(str(name_of(value)))


def chain(dataset: Dataset, workers: Callable[[Dataset], str] | None = None, depth: int = _DEPTH) -> str:
    """Describe a pipeline from its source to its last step; `workers` returns the text after a step's name."""
    steps = []
    step = dataset
    while True:
        steps.append(label(step) + (workers(step) if workers is not None else ""))
        if len(step.children) != 1:
            break
        step = step.children[0]
    if step.children:
        below = [chain(child, workers, depth - 1) for child in step.children[:_BRANCHES]] if depth else [".."]
        steps.append(f"({_join_parts(below, len(step.children) if depth else 1)})")
    return " > ".join(reversed(steps))


def steps_of(dataset: Dataset) -> Iterator[Dataset]:
    """Yield every step and source of a pipeline, once."""
    seen: set[int] = set()
    pending = [dataset]
    while pending:
        step = pending.pop()
        if id(step) not in seen:
            seen.add(id(step))
            yield step
            pending.extend(step.children)


def _listed(value: Any) -> str:
    """Return the text in parentheses: only the names of transforms and functions."""
    if not isinstance(value, (list, tuple)):
        return type(value).__name__ if isinstance(value, TensorOperation) else shown(value)
    return _join_parts([_listed(item) if not isinstance(item, (list, tuple)) else shown(item) for item in value[:_ITEMS]], len(value))


def _join_parts(parts: list[str], count: int) -> str:
    return ", ".join(parts) + (f", .. {count - len(parts)} more" if count > len(parts) else "")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + " .."


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) in (bool, int, float, str) and type(value) is type(default) and value == default)


def _is_dataset(value: Any) -> bool:
    return isinstance(value, Dataset) or (isinstance(value, (list, tuple)) and any(isinstance(item, Dataset) for item in value))
