"""The thread that starts agreed exchanges: it never sees a line without an exchange, and its failure ends every wait."""
from __future__ import annotations

import collections
import threading
from typing import Any

import pytest

from torchspore.distributed.comm.handshake import Handshake, PendingExchange


class Store:
    """A store of one process."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def add(self, key: str, count: int) -> int:
        self.values[key] = self.values.get(key, 0) + count
        return int(self.values[key])

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)


class Work:
    """The handle of an exchange that is over."""

    def wait(self, patience: Any = None) -> None:
        pass

    def is_completed(self) -> bool:
        return True


class Lines(dict[str, "collections.deque[PendingExchange]"]):
    """Lines that can be read at any moment: each has at least one exchange from its first moment on."""

    def __setitem__(self, name: str, line: collections.deque[PendingExchange]) -> None:
        assert line, name
        super().__setitem__(name, line)

    def setdefault(self, name: str, line: Any = None) -> Any:
        assert name in self or line, name
        return super().setdefault(name, line)


def test_a_line_has_an_exchange_from_its_first_moment_on() -> None:
    handshake = Handshake(Store(), 0)
    handshake._lines = Lines()
    pending = [handshake.start(f"line {number % 3}", [(f"claim {number}", 1)], Work) for number in range(20)]
    for exchange in pending:
        exchange.wait()
    assert all(exchange.is_completed() for exchange in pending) and not handshake._lines
    handshake.end()


def test_a_failure_of_the_thread_ends_every_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Store):
        def check(self, keys: list[str]) -> bool:
            raise TypeError("a store of another kind")

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    handshake = Handshake(Broken(), 0)
    exchange = handshake.start("line", [("claim", 2)], Work)
    with pytest.raises(RuntimeError, match="the thread that starts exchanges failed: TypeError: a store of another kind"):
        exchange.wait()
    with pytest.raises(RuntimeError, match="a store of another kind"):
        handshake.start("another line", None, Work)
