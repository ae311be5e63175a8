"""`base.arguments`: what the checks of arguments accept, and the exact messages of their refusals."""
from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import pytest

from torchspore.base import arguments


class Level(IntEnum):
    """An int by inheritance."""

    LOW = 1


ACCEPTED: dict[str, Callable[[], None]] = {
    "an int": lambda: arguments.check_type("f", "x", 3, int, "an int"),
    "one of several types": lambda: arguments.check_type("f", "x", 0.5, (int, float), "a number"),
    "a bool that is listed": lambda: arguments.check_type("f", "x", True, (bool, str), "True, False or a text"),
    "a subclass": lambda: arguments.check_int("f", "x", Level.LOW, 1),
    "True": lambda: arguments.check_bool("f", "x", True),
    "several bools": lambda: arguments.check_bools("f", x=True, y=False),
    "no bools": lambda: arguments.check_bools("f"),
    "a negative int": lambda: arguments.check_int_type("f", "x", -1),
    "the lowest": lambda: arguments.check_int("f", "x", 0, 0, 5),
    "the highest": lambda: arguments.check_int("f", "x", 5, 0, 5),
    "any int without a limit": lambda: arguments.check_int("f", "x", 10**30, 0),
    "counts": lambda: arguments.check_counts("f", x=1, y=7),
}

REFUSED: dict[str, tuple[Callable[[], None], type[Exception], str]] = {
    "another type": (
        lambda: arguments.check_type("f", "x", "a", int, "an int"), TypeError, "f(x='a'): expected an int, got str."),
    "a bool is not a number": (
        lambda: arguments.check_type("f", "x", True, (int, float), "a number"), TypeError, "f(x=True): expected a number, got bool."),
    "None": (lambda: arguments.check_type("f", "x", None, (str,), "a text"), TypeError, "f(x=None): expected a text, got NoneType."),
    "a hint": (
        lambda: arguments.check_type("f", "x", 1, str, "a text", hint="write f('1')."), TypeError,
        "f(x=1): expected a text, got int.\n\nhint: write f('1')."),
    "1 is not a bool": (lambda: arguments.check_bool("f", "x", 1), TypeError, "f(x=1): expected True or False, got int."),
    "the second of several": (
        lambda: arguments.check_bools("f", x=True, y="no"), TypeError, "f(y='no'): expected a bool, got str."),
    "a long value is cut": (
        lambda: arguments.check_bools("f", x="a" * 50), TypeError, "f(x='" + "a" * 39 + "): expected a bool, got str."),
    "a float is not an int": (lambda: arguments.check_int_type("f", "x", 1.0), TypeError, "f(x=1.0): expected an int, got float."),
    "a bool is not an int": (lambda: arguments.check_int("f", "x", False, 0), TypeError, "f(x=False): expected an int, got bool."),
    "below the lowest": (lambda: arguments.check_int("f", "x", -1, 0), ValueError, "f(x=-1): expected an int from 0."),
    "above the highest": (lambda: arguments.check_int("f", "x", 6, 0, 5), ValueError, "f(x=6): expected an int from 0 to 5."),
    "a hint of a limit": (
        lambda: arguments.check_int("f", "x", 6, 0, 5, hint="use 5"), ValueError, "f(x=6): expected an int from 0 to 5.\n\nhint: use 5."),
    "a count of 0": (lambda: arguments.check_counts("f", x=1, y=0), ValueError, "f(y=0): expected an int from 1 on."),
    "a count of another type": (lambda: arguments.check_counts("f", x="2"), TypeError, "f(x='2'): expected an int, got str."),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    ACCEPTED[name]()


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, error, text = REFUSED[name]
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error and str(caught.value) == text


@pytest.mark.parametrize(("value", "expected"), [(0, True), (Level.LOW, True), (True, False), (1.0, False), ("1", False), (None, False)])
def test_a_bool_is_not_an_int(value: Any, expected: bool) -> None:
    assert arguments.is_int(value) is expected
