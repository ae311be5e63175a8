"""Generated kernels between exchanges: chosen by shapes alone, compared with O0 in a run that no other process is asked for."""
from __future__ import annotations

from typing import Any

import pytest
import torch

from torchspore.engine.graph.backend import eager_codegen, exchanging, fusion, inductor
from torchspore.engine.private import make_fx

_functional: Any = torch.ops._c10d_functional


def step(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    y = torch.tanh(x * w + 1) * 0.5
    y = _functional.wait_tensor.default(_functional.all_reduce.default(y, "sum", "world"))
    return [torch.sigmoid(y * 2 - w) + y]


def traced(rows: int) -> tuple[torch.fx.GraphModule, list[torch.Tensor]]:
    inputs = [torch.randn(rows, 64), torch.randn(64)]
    return make_fx(step, tracing_mode="fake")(*inputs), inputs


def targets(module: torch.fx.GraphModule) -> list[str]:
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The parts that kernels are asked for; they are run operator by operator."""
    found: list[Any] = []

    def kernel(part: torch.fx.GraphModule, level: str) -> Any:
        found.append(part)
        return eager_codegen.compile(part)

    monkeypatch.setattr(inductor, "kernel", kernel)
    monkeypatch.setattr(fusion, "_kernels", {})
    return found


def test_what_lies_between_exchanges_becomes_kernels(written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "_seconds", lambda *_: pytest.fail("something is timed"))
    module, inputs = traced(4096)
    found = exchanging.with_kernels(module, lambda: inputs, eager_codegen.compile, fusion.is_fusable)
    assert found is not None and len(written) == 2
    names = targets(found)
    start = names.index("_c10d_functional.all_reduce.default")
    assert names[start + 1] == "_c10d_functional.wait_tensor.default" and not any(name.startswith("aten.") for name in names)
    torch.testing.assert_close(exchanging.answered(found)(*inputs), exchanging.answered(module)(*inputs))  # type: ignore[misc]


def test_small_parts_stay_operators(written: list[Any]) -> None:
    module, inputs = traced(2)
    assert exchanging.with_kernels(module, lambda: inputs, eager_codegen.compile, fusion.is_fusable) is None and not written


def test_kernels_with_other_numbers_are_left_out(written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(part: torch.fx.GraphModule, level: str) -> Any:
        code = eager_codegen.compile(part)
        return lambda *given: [out * 1.01 for out in code(*given)]

    monkeypatch.setattr(inductor, "kernel", wrong)
    module, inputs = traced(4096)
    assert exchanging.with_kernels(module, lambda: inputs, eager_codegen.compile, fusion.is_fusable) is None


def test_an_exchange_that_only_others_can_answer_is_left_alone() -> None:
    from torchspore.engine.comm import operators

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(operators.barrier, ("world",))
    graph.output([x])
    assert exchanging.answered(torch.fx.GraphModule({}, graph)) is None
