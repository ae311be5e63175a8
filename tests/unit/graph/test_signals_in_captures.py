"""Exceptions that handlers of signals raise during a capture: they arrive once, and later calls behave as before."""
from __future__ import annotations

import builtins
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops

from torchspore.base.interrupts import postponed
from torchspore.engine.torch_internals.torch_private import modes_of_now

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="alarms of POSIX")

X = Tensor(np.ones((2, 8), np.float32))


class Late(Exception):
    """Raised by the handler of an alarm."""


class Tower(nn.Cell):
    """Deep enough that its trace takes a while."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.Dense(8, 8, weight_init="ones", bias_init="zeros") for _ in range(10)])
        self.norm = nn.LayerNorm((8,))

    def construct(self, x: Any) -> Any:
        for layer in self.layers:
            x = ops.relu(layer(x) / 8) + self.norm(x)
        return x


def raise_late(number: int, frame: FrameType | None) -> None:
    raise Late


@pytest.fixture
def alarms() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, raise_late)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    ms.set_context(mode=ms.PYNATIVE_MODE)


def state() -> list[Any]:
    """What a capture changes in this thread and in the process."""
    return [
        list(modes_of_now()), torch.is_grad_enabled(), torch._C._meta_in_tls_dispatch_include(), torch.is_autocast_cache_enabled(),
        torch._C._autograd._saved_tensors_hooks_is_enabled(), sys.getprofile(), builtins.print, builtins.__import__,
        "__getattribute__" in vars(nn.Cell), torch.empty(0).device.type, signal.getsignal(signal.SIGALRM),
        torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.Python),
    ]


@pytest.mark.parametrize("count", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_an_alarm_at_any_time_leaves_nothing(count: int, alarms: None) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    before, arrived = state(), 0
    expected = Tower()(X).asnumpy()
    started = time.perf_counter()
    Tower()(X)
    seconds = time.perf_counter() - started
    for step in range(count):
        net, has_ended = Tower(), False
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds * (step + 1) * 1.2 / count)
            net(X)
            has_ended = True
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Late:
            arrived += 1
        assert has_ended or signal.getitimer(signal.ITIMER_REAL)[0] == 0
        assert state() == before
        np.testing.assert_array_equal(net(X).asnumpy(), expected)
    assert arrived > count / 3


class Endless(nn.Cell):
    """Its Python code does not end."""

    def construct(self, x: Any) -> Any:
        count = 0
        while count >= 0:
            count += 1
        return x


def test_an_alarm_ends_a_loop_of_the_program(alarms: None) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    before = state()
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    with pytest.raises(Late):
        Endless()(X)
    assert state() == before


def test_each_waiting_handler_runs_once_after_the_block() -> None:
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        if number == signal.SIGUSR1:
            raise Late

    numbers = signal.SIGUSR1, signal.SIGUSR2
    before = [signal.signal(number, note) for number in numbers]
    inner = compile("def send():\n    for number in numbers * 2:\n        raise_signal(number)\n", postponed.__code__.co_filename, "exec")
    names = {"numbers": numbers, "raise_signal": signal.raise_signal}
    exec(inner, names)                                         # not code of the program
    try:
        with pytest.raises(Late), postponed():
            names["send"]()  # type: ignore[operator]
            assert not seen
        assert seen == list(numbers)
        assert [signal.getsignal(number) for number in numbers] == [note, note]
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)
