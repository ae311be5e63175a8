"""Ctrl-C while a graph is captured: it arrives, once, and leaves nothing torn."""
from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

from torchspore.base import interrupts

X = Tensor(np.ones((2, 8), np.float32))
DELAYS = [0.002 * step for step in range(1, 26)]


class Tower(nn.Cell):
    """Deep enough that its trace takes a while; counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.Dense(8, 8, weight_init="ones", bias_init="zeros") for _ in range(40)])
        self.count = ms.Parameter(Tensor(0.0), name="count")

    def construct(self, x: Any) -> Any:
        self.count += 1
        for layer in self.layers:
            x = layer(x) / 8
        return x


@pytest.fixture(autouse=True)
def pynative_after() -> Any:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def interrupted(net: Any, delay: float) -> bool:
    """Whether a call of `net` that gets a Ctrl-C after a while ends with it."""
    gone = threading.Event()

    def send() -> None:
        time.sleep(delay)
        if not gone.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        net(X)
        gone.set()
        sender.join()
        time.sleep(0)
        return False
    except KeyboardInterrupt:
        gone.set()
        sender.join()
        return True


def test_it_arrives_and_leaves_nothing_torn() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    before, arrived = signal.getsignal(signal.SIGINT), 0
    for delay in DELAYS:
        net = Tower()
        try:
            arrived += interrupted(net, delay)
        except KeyboardInterrupt:              # it came just after the call
            arrived += 1
        assert signal.getsignal(signal.SIGINT) is before
        runs = float(net.count.asnumpy())
        assert runs in (0.0, 1.0)              # not half of it
        for _ in range(2):
            np.testing.assert_array_equal(net(X).asnumpy(), np.ones((2, 8), np.float32))
        assert float(net.count.asnumpy()) == runs + 2
    assert arrived > len(DELAYS) // 2          # else the hard case does not occur


def test_the_second_one_is_not_delayed() -> None:
    seen: list[str] = []
    code = "def send():\n    raise_signal(2)\n    seen.append('first')\n    raise_signal(2)\n    seen.append('second')\n"
    names: dict[str, Any] = {"raise_signal": signal.raise_signal, "seen": seen}
    exec(compile(code, interrupts.__file__, "exec"), names)
    with pytest.raises(KeyboardInterrupt), interrupts.postponed():
        names["send"]()
    assert seen == ["first"]


def test_in_code_of_the_program_it_is_not_delayed() -> None:
    with pytest.raises(KeyboardInterrupt), interrupts.postponed():
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the handler runs before this line")
