"""The interpreter of graphs: torch's results, without tqdm, whose lock forked processes share."""
from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.fx.interpreter

from torchspore.engine.torch_internals.interpreter import Interpreter
from torchspore.graph.passes.layout import record_strides


def _refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("a progress bar was created")


def _compute(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    z = torch.sin(x) * y
    return z, [z + 1, x]


def test_results_are_those_of_torch_without_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    module, inputs = torch.fx.symbolic_trace(_compute), (torch.rand(3), torch.rand(3))
    expected = torch.fx.Interpreter(module).run(*inputs)
    monkeypatch.setattr(torch.fx.interpreter, "tqdm", _refuse)
    interpreter = Interpreter(module)
    torch.testing.assert_close(interpreter.run(*inputs), expected, rtol=0, atol=0)
    assert not [node for node in interpreter.env if node.op == "placeholder"]          # values are freed after their last use
    torch.testing.assert_close(interpreter.run(*inputs), expected, rtol=0, atol=0)


def test_passes_run_graphs_without_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.fx.interpreter, "tqdm", _refuse)
    module = record_strides(torch.fx.symbolic_trace(_compute), [torch.rand(2, 3).t(), torch.rand(3, 2)])
    assert [node.meta["val"].stride() for node in module.graph.nodes if node.op == "placeholder"] == [(1, 3), (2, 1)]
