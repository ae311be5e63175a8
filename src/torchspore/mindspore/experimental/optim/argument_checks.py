"""Checks of the arguments of optimizers and schedulers.

MindSpore accepts truth values, NumPy numbers and Tensors as most numbers, and any int as a number of epochs.
"""
from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from torchspore.base.arguments import check_type
from torchspore.base.text import message, short, with_type
from torchspore.engine.tensors.dtypes import Type
from torchspore.mindspore.common.tensor import Tensor


def check(name: str, *, is_signed: bool = False, **arguments: Any) -> None:
    """Raises TypeError unless a value is an int or a float; a decay may be True. Unless `is_signed`, a number below 0 is a ValueError."""
    for key, value in arguments.items():
        if (isinstance(value, bool) and key != "weight_decay") or not isinstance(value, (int, float)):
            raise TypeError(message(f"{name}({key}={value!r:.40})", with_type("a number", value)))
        if value < 0 and not is_signed:
            raise ValueError(message(f"{name}({key}={value})", "a number from 0 on"))
        if key == "weight_decay" and not math.isfinite(value):
            raise ValueError(message(f"{name}({key}={value})", "a finite number"))


def read_numbers(name: str, **arguments: Any) -> dict[str, Any]:
    """Return numbers as those of Python: of a number, a truth value, NumPy's number or a Tensor of one element.

    Raises TypeError for other values, ValueError for a number below 0.
    """
    values = {key: _read_number(name, key, value) for key, value in arguments.items()}
    for key, value in values.items():
        if value < 0:
            raise ValueError(message(f"{name}({key}={value})", "a number from 0 on"))
    return values


def read_positive(name: str, **arguments: Any) -> dict[str, Any]:
    """Return numbers as `read_numbers` does; 0 is a ValueError too."""
    values = read_numbers(name, **arguments)
    for key, value in values.items():
        if value == 0:
            raise ValueError(message(f"{name}({key}={value})", "a number above 0"))
    return values


def check_rate(name: str, rate: Any) -> None:
    """Raises ValueError for a learning rate of 0. The optimizer checks all else."""
    if isinstance(rate, (int, float, Tensor)) and float(rate) == 0:
        raise ValueError(message(f"{name}(lr={rate})", "a number above 0"))


def check_floats(name: str, **arguments: Any) -> None:
    """Raises TypeError unless each argument is a float."""
    for key, value in arguments.items():
        if not isinstance(value, float):
            raise TypeError(message(f"{name}({key}={value!r:.40})", with_type("a float", value)))


def check_flags(name: str, **arguments: Any) -> None:
    """Raises TypeError for a value that is not a bool."""
    for key, value in arguments.items():
        if not isinstance(value, bool):
            raise TypeError(message(f"{name}({key}={value!r:.40})", with_type("a bool", value)))


def read_flags(**arguments: Any) -> dict[str, bool]:
    """Return the truth of each value, which may have any type."""
    return {key: bool(value) for key, value in arguments.items()}


def read_betas(name: str, betas: Any) -> tuple[float, float]:
    """Return the first two numbers. Raises TypeError unless there are two, ValueError for numbers outside [0, 1)."""
    values = betas.asnumpy().tolist() if isinstance(betas, Tensor) and betas.ndim == 1 and name in ("Adam", "AdamW") else betas
    if not isinstance(values, (tuple, list)) or len(values) < 2:
        raise TypeError(f"{name}(betas={betas!r:.40}): expected a tuple of two numbers.")
    check(name, **{f"betas[{i}]": value for i, value in enumerate(values)})
    if not max(values[:2]) < 1 or not min(values[:2]) < 1:
        raise ValueError(f"{name}(betas={betas!r:.40}): expected numbers below 1.")
    return values[0], values[1]


def check_factor(name: str, **arguments: Any) -> None:
    """Raises TypeError unless each argument is an int or a float."""
    for key, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(message(f"{name}({key}={value!r:.40})", with_type("a number", value)))


def read_factor(name: str, key: str, value: Any) -> float:
    """Return a factor as a float: of a number, a truth value, NumPy's number or a Tensor of one element."""
    return float(_read_number(name, key, value))


def _read_number(name: str, key: str, value: Any) -> Any:
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, (numbers.Real, np.bool_)):
        return float(value)
    if isinstance(value, Tensor) and value.size == 1:
        return value.item()
    raise TypeError(message(f"{name}({key}={value!r:.40})", with_type("a number", value)))


def check_steps(name: str, key: str, value: Any) -> None:
    """Raises TypeError unless a number of epochs is an int. MindSpore accepts True, 0 and negative numbers too."""
    check_type(name, key, value, (int, bool), "an int")


def check_least(name: str, key: str, rates: list[Any]) -> None:
    """Raises TypeError for the smallest rate of a group that cannot become a Tensor."""
    for rate in rates:
        if isinstance(rate, (str, dict, type, Type)) or callable(rate):
            raise TypeError(message(f"{name}({key}={short(rate)})", with_type("a number", rate)))
