"""torch's tracers and its compiler work in another thread while a graph is captured."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from torchspore.engine.torch_internals.torch_private import graph_of


class Doubled(torch.nn.Module):
    """Twice its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def run_elsewhere(act: Callable[[], Any]) -> list[Any]:
    """Return what `act` returns or raises in another thread."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(act())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results


@pytest.mark.parametrize("has_open_sizes", [False, True])
def test_another_thread_compiles_during_a_trace(has_open_sizes: bool) -> None:
    results = []
    compiled = torch.compile(lambda x: x + 1, backend="eager")

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        results.extend(run_elsewhere(lambda: compiled(torch.ones(2)).tolist()))
        return [x * 2]

    graph_of(function, [torch.ones(3)], has_open_sizes)
    assert results == [[2.0, 2.0]]


def test_another_thread_traces_symbolically_across_the_end_of_a_trace() -> None:
    call, get = torch.nn.Module.__call__, torch.nn.Module.__getattr__
    entered, ended = threading.Event(), threading.Event()
    graphs: list[Any] = []

    class Waiting(torch.nn.Module):
        """Its trace continues after ours."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            entered.set()
            assert ended.wait(60)
            return x * 2

    thread = threading.Thread(target=lambda: graphs.append(torch.fx.symbolic_trace(Waiting())))

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        thread.start()
        assert entered.wait(60)
        return [x * 2]

    module = graph_of(function, [torch.ones(3)])
    ended.set()
    thread.join()
    assert [node.op for node in module.graph.nodes] == ["placeholder", "call_function", "output"]
    assert graphs and graphs[0](torch.ones(1)).item() == 2
    assert (torch.nn.Module.__call__, torch.nn.Module.__getattr__) == (call, get)
    assert not torch.fx._symbolic_trace.is_fx_tracing()
    assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).item() == 2


def test_modules_of_torch_are_unchanged_during_a_trace() -> None:
    seen = []

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        seen.append((torch.nn.Module.__call__, torch.nn.Module.__getattr__))
        return [Doubled()(x)]

    before = torch.nn.Module.__call__, torch.nn.Module.__getattr__
    graph_of(function, [torch.ones(3)])
    assert seen == [before]


def test_a_compiled_function_inside_of_a_trace_is_refused_as_by_torch() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    with pytest.raises(RuntimeError, match="FX to symbolically trace"):
        graph_of(lambda x: [compiled(x)], [torch.ones(3)])
