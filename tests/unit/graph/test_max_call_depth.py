"""`max_call_depth`: how deep calls may nest in a graph, far beyond Python's own limit where it allows that."""
from __future__ import annotations

import contextvars
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn
from support.processes import Run

import torchspore
from torchspore.cli import explain
from torchspore.context.public import scope
from torchspore.graph.capture import depth

X = Tensor(np.ones(2, np.float32))
VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)


class Leaf(nn.Cell):
    def construct(self, x):
        return x * 1.5


class Around(nn.Cell):
    def __init__(self, inner: nn.Cell) -> None:
        super().__init__()
        self.inner = inner

    def construct(self, x):
        return self.inner(x) + 1


class Refused(nn.Cell):
    """The innermost of a net that can't be captured."""

    def construct(self, x):
        return x * float(x.asnumpy()[0])


def nested(count: int, innermost: type[nn.Cell] = Leaf) -> nn.Cell:
    net = innermost()
    for _ in range(count - 1):
        net = Around(net)
    return net


def countdown(x: Any, n: int) -> Any:
    return x if n == 0 else countdown(x, n - 1) + 1


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, max_call_depth=1000)


def refused(call: Callable[[], Any], limit: int) -> None:
    with pytest.raises(RecursionError) as caught:
        call()
    assert re.sub(r"\S+test_max_call_depth\.py:\d+", "FILE:1", str(caught.value)) == (
        f"FILE:1: max_call_depth={limit}: calls of Cells and functions nest deeper than that.\n\n"
        f"hint: write set_context(max_call_depth={2 * limit}) if they should, or end the recursion."
    )


def test_deeper_cells_than_allowed_are_refused_with_the_name_of_the_option() -> None:
    ms.set_context(max_call_depth=20)
    refused(lambda: nested(21)(X), 20)
    refused(lambda: nested(40).compile(X), 20)
    assert nested(20)(X).asnumpy().tolist() == [20.5, 20.5]
    outcome = [row[3] for row in explain.rows() if row[0] == "max_call_depth"]
    assert outcome == ["applied: calls nest at most 20 deep while a graph is captured"]


def test_set_recursion_limit_sets_the_same_limit() -> None:
    ms.set_recursion_limit(10)
    refused(lambda: nested(11)(X), 10)
    assert nested(10)(X).shape == (2,)


def test_functions_count_too_and_an_endless_recursion_is_reported() -> None:
    ms.set_context(max_call_depth=30)
    assert float(ms.jit(countdown)(Tensor(0.0), 29)) == 29
    refused(lambda: ms.jit(countdown)(Tensor(0.0), 30), 30)
    ms.set_context(max_call_depth=1000)
    refused(lambda: ms.jit(countdown)(Tensor(0.0), -1), 1000)


@pytest.mark.slow
def test_2000_nested_cells_run_forward_and_backward() -> None:
    ms.set_context(max_call_depth=2100)
    net, before = nested(2000), sys.getrecursionlimit()
    assert net(X).asnumpy().tolist() == [2000.5, 2000.5]
    assert ms.grad(net)(X).asnumpy().tolist() == [1.5, 1.5]
    assert len(torchspore.graphs(net)) == 1 and sys.getrecursionlimit() == before
    assert net(X).asnumpy().tolist() == [2000.5, 2000.5] and torchspore.graphs(net)[0].runs == 2


@pytest.mark.slow
def test_a_deep_net_that_can_not_be_captured_runs_as_pynative() -> None:
    ms.set_context(max_call_depth=1500)
    net = nested(350, Refused)
    assert [net(X).asnumpy().tolist() for _ in range(2)] == [[350.0, 350.0]] * 2


def test_the_deep_thread_sees_what_its_caller_sees() -> None:
    VARIABLE.set(3)

    def look() -> Any:
        seen = (
            VARIABLE.get(), torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"), threading.get_ident(),
        )
        VARIABLE.set(4)
        return seen

    with torch.no_grad(), torch.autocast("cpu", torch.float16):
        result = depth.with_room(look)
        assert result[:5] == (3, False, False, True, torch.float16)
        assert not torch.is_grad_enabled() and torch.is_autocast_enabled("cpu")
    assert result[5] != threading.get_ident() and VARIABLE.get() == 4
    with torch.inference_mode():
        assert depth.with_room(torch.is_inference_mode_enabled)
    with pytest.raises(KeyError, match="stop"):
        depth.with_room(lambda: {}["stop"])


def test_a_scope_of_the_caller_reaches_the_deep_capture() -> None:
    with scope(max_call_depth=450):
        refused(lambda: nested(500)(X), 450)
        assert nested(440)(X).shape == (2,)


def test_control_c_ends_a_deep_capture_cleanly() -> None:
    started, ended = threading.Event(), []

    def endless() -> None:
        try:
            started.set()
            while True:
                time.sleep(0.01)
        except KeyboardInterrupt:
            ended.append(threading.current_thread().name)
            raise

    def interrupt() -> None:
        started.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        depth.with_room(endless)
    assert ended == ["torchspore-deep"]
    for thread in threading.enumerate():
        if thread.name == "torchspore-deep":
            thread.join(10)
            assert not thread.is_alive()


DEEP = """
import sys
import mindspore as ms
from mindspore import Tensor, nn
class Around(nn.Cell):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def construct(self, x):
        return self.inner(x) + 1
net = nn.ReLU()
for _ in range(2000):
    net = Around(net)
try:
    print(float(net(Tensor(1.0))))
except RecursionError:
    print("refused")
sys.setrecursionlimit(20000)
print(float(net(Tensor(1.0))), float(ms.grad(net)(Tensor(1.0))))
"""


@pytest.mark.slow
def test_pynative_does_not_crash(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(DEEP)
    ran = run("run", "deep.py")
    assert (ran.code, ran.out, ran.err) == (0, "refused\n2001.0 1.0\n", "")
