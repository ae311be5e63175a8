"""A cache of measurements: the variant of a graph, the kernel of a cluster or a product.

Only these are stored between processes, apart from Inductor's directory (TORCHINDUCTOR_CACHE_DIR), which contains the compiled kernels
under the hash of their source. A store on disk (`stored_in`) has the same two methods: `find` is called if memory has no answer, `keep`
receives each new choice. Keys are fingerprints (fingerprint.py): they contain everything that a choice depends on, including the torch
version and the CPU, so that an entry of another machine or version never matches.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

LIMIT = 20_000
"""Choices kept in memory; then all are forgotten."""


class Store(Protocol):
    """Storage of choices for the next process."""

    def find(self, key: str) -> str | None:
        """The choice that was kept under this key."""

    def keep(self, key: str, choice: str) -> None:
        """Store a choice."""


class _Active:
    """The store of the choices."""

    def __init__(self) -> None:
        self.store: Store | None = None


ACTIVE = _Active()
_choices: dict[str, str] = {}


@contextmanager
def stored_in(other: Store) -> Iterator[None]:
    """Let the block read choices from `other` too, and store its choices there."""
    before, ACTIVE.store = ACTIVE.store, other
    try:
        yield
    finally:
        ACTIVE.store = before


def find(key: str) -> str | None:
    """The choice made before for this key, in this process or, with a store, in an earlier one."""
    choice = _choices.get(key)
    if choice is None and ACTIVE.store is not None:
        choice = ACTIVE.store.find(key)
        if choice is not None:
            _choices[key] = choice
    return choice


def keep(key: str, choice: str) -> None:
    """Store a choice for later graphs."""
    if len(_choices) >= LIMIT:
        _choices.clear()
    _choices[key] = choice
    if ACTIVE.store is not None:
        ACTIVE.store.keep(key, choice)


def forget() -> None:
    """Forgets all choices of this process."""
    _choices.clear()
