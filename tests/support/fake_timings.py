"""Stand-ins for the clock that compares the forms of a graph: tests pass one to `measurement.measured_by`."""
from __future__ import annotations

import itertools
from typing import Any

import pytest


class Last:
    """Whatever was entered last is the fastest. `seen` has the names of all forms that were measured."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._least = 1.0

    def __call__(self, forms: dict[str, Any], inputs: Any, turns: Any) -> dict[str, float]:
        self.seen += [name for name in forms if name not in self.seen]
        taken = {}
        for name in forms:
            self._least /= 2
            taken[name] = self._least
        return taken


def nobody(forms: dict[str, Any], inputs: Any, turns: Any) -> dict[str, float]:
    """Fails: nothing may be measured here."""
    pytest.fail(f"measured: {', '.join(forms)}")


def takes(**seconds: float) -> Any:
    """Forms by name take so many seconds, others none."""
    return lambda forms, inputs, turns: {name: seconds.get(name, 0.0) for name in forms}


def ticks() -> Any:
    """A clock that moves on by a millisecond each time that it is looked at."""
    at = itertools.count()
    return lambda: next(at) / 1000
