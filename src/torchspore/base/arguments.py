"""Checks of arguments: a wrong Python type is a TypeError, a wrong value a ValueError."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short, with_type
from torchspore.translations import translatable, translate

EXPECTATIONS = (
    translatable("a Cell"), translatable("a NumPy array"), translatable("a Tensor"), translatable("a bool"), translatable("a dict"),
    translatable("a file that exists"), translatable("a finite number"), translatable("a function"), translatable("a list of ints"),
    translatable("a list of names"), translatable("a list of numbers"), translatable("a list of paths"), translatable("a list of str"),
    translatable("a number"), translatable("a number above 0"), translatable("a path"), translatable("a str"),
    translatable("an existing file"), translatable("an existing folder"), translatable("an int"), translatable("an int above 0"),
    translatable("an int from 0"), translatable("an int from 0 on"), translatable("an int from 1"), translatable("an int from 1 on"),
    translatable("an int or None"), translatable("an int or a list of them"), translatable("at least 1"), translatable("at least one"),
    translatable("numbers"), translatable("text"), translatable("True or False"), translatable("True, False, 'thread' or 'process'"),
    translatable("a function or a Cell"), translatable("at least one Parameter"), translatable("a number from 0 on"),
    translatable("a name"), translatable("a list of Parameters"), translatable("Parameters"), translatable("a float"),
    translatable("the name of a group"), translatable("a file name"), translatable("a list or a tuple"),
    translatable("a Cell, a list or a dict"), translatable("a dtype of mindspore"),
    translatable("an object with __getitem__, an iterable, or a function that returns one"),
    translatable("a number, a list, a tuple, a NumPy array or a Tensor"),
)
"""The expectations of many checks, which `message` translates."""


def is_int(value: Any) -> bool:
    """Return whether `value` is an int and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_type(call: str, argument: str, value: Any, types: type | tuple[type, ...], expected: str, *, hint: str | None = None) -> None:
    """Raises TypeError unless `value` is one of `types`; a bool is not a number."""
    accepted = types if isinstance(types, tuple) else (types,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        raise TypeError(message(f"{call}({argument}={short(value)})", with_type(expected, value), hint=hint))


def check_bool(call: str, argument: str, value: Any) -> None:
    """Raises TypeError unless `value` is True or False."""
    check_type(call, argument, value, bool, "True or False")


def check_bools(call: str, **arguments: Any) -> None:
    """Raises TypeError for an argument that is not a bool."""
    for argument, value in arguments.items():
        if not isinstance(value, bool):
            raise TypeError(message(f"{call}({argument}={value!r:.40})", with_type("a bool", value)))


def check_int_type(call: str, argument: str, value: Any) -> None:
    """Raises TypeError unless `value` is an int and not a bool."""
    check_type(call, argument, value, int, "an int")


def check_int(call: str, argument: str, value: Any, low: int, high: int | None = None, *, hint: str | None = None) -> None:
    """Raises TypeError unless `value` is an int, ValueError unless it is in [low, high]; `high` None is no limit."""
    check_type(call, argument, value, int, "an int", hint=hint)
    if value < low or (high is not None and value > high):
        expected = translate("an int from {low}") if high is None else translate("an int from {low} to {high}")
        raise ValueError(message(f"{call}({argument}={value!r})", expected.format(low=low, high=high), hint=hint))


def check_counts(call: str, **counts: Any) -> None:
    """Raises TypeError for a value that is not an int, ValueError for one below 1."""
    for argument, value in counts.items():
        check_int_type(call, argument, value)
        if value < 1:
            raise ValueError(message(f"{call}({argument}={value})", "an int from 1 on"))
