"""Argument checks for custom transforms, as decorators of `__init__`."""

# ruff: noqa: F401
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.validator_helpers import (
    FLOAT_MAX_INTEGER,
    FLOAT_MIN_INTEGER,
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    UINT8_MAX,
    UINT8_MIN,
    UINT32_MAX,
    check_number,
    check_type,
)


def _checks(check: Callable[[str, dict[str, Any]], None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that calls `check` with the named arguments of a method before each call."""

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(method)

        @functools.wraps(method)
        def checked(self: Any, *arguments: Any, **keywords: Any) -> Any:
            bound = signature.bind(self, *arguments, **keywords)
            bound.apply_defaults()
            check(type(self).__name__, bound.arguments)
            return method(self, *arguments, **keywords)

        return checked

    return decorate


def _transforms(call: str, arguments: dict[str, Any]) -> None:
    transforms = arguments["transforms"]
    check_type(call, "transforms", transforms, (list, tuple), "a list of functions or transforms")
    if not transforms:
        raise ValueError(message(f"{call}(transforms={short(transforms)})", "at least one function or transform"))
    for index, step in enumerate(transforms):
        if not callable(step):
            raise TypeError(message(f"{call}: transforms[{index}] = {short(step)}", f"a function or transform, got {type(step).__name__}"))


def _transforms_and_chance(call: str, arguments: dict[str, Any]) -> None:
    _transforms(call, arguments)
    check_number(call, "prob", arguments["prob"], 0, 1)


check_random_transform_ops = _checks(_transforms)
check_compose_list = check_transforms_list = check_random_transform_ops
check_random_apply = _checks(_transforms_and_chance)
