"""Generated kernels between exchanges: chosen by shapes alone, compared with O0 in a run that no other process is asked for."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from support import fake_timings, kernel_compilers

from torchspore.engine.torch_internals.torch_private import make_fx
from torchspore.graph.backend import collective_segments, eager_codegen, fusion, inductor, measurement
from torchspore.graph.passes.layout import record_strides

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
def kernel_parts() -> Iterator[list[Any]]:
    """The parts that kernels are asked for; they are run operator by operator."""
    compiler = kernel_compilers.OneByOne()
    with inductor.compiled_by(compiler):
        yield compiler.written


def test_operators_between_exchanges_become_kernels(kernel_parts: list[Any], measured_by: Any) -> None:
    measured_by(fake_timings.nobody)
    module, inputs = traced(4096)
    result = collective_segments.with_kernels(module, lambda: inputs, eager_codegen.compile, fusion.is_fusable)
    assert result is not None and len(kernel_parts) == 2
    names = targets(result)
    start = names.index("_c10d_functional.all_reduce.default")
    assert names[start + 1] == "_c10d_functional.wait_tensor.default" and not any(name.startswith("aten.") for name in names)
    torch.testing.assert_close(collective_segments.answered(result)(*inputs), collective_segments.answered(module)(*inputs))  # type: ignore[misc]


def test_small_parts_stay_operators(kernel_parts: list[Any]) -> None:
    module, inputs = traced(2)
    assert collective_segments.with_kernels(module, lambda: inputs, eager_codegen.compile, fusion.is_fusable) is None and not kernel_parts


def test_kernels_with_other_numbers_are_omitted() -> None:
    wrong = kernel_compilers.OneByOne(factor=1.01)
    module, inputs = traced(4100)                          # kernels are kept by shape
    with inductor.compiled_by(wrong):
        assert collective_segments.with_kernels(module, lambda: inputs, eager_codegen.compile, fusion.is_fusable) is None
    assert wrong.written


def of_a_stage(x: torch.Tensor, elsewhere: torch.Tensor) -> list[torch.Tensor]:
    """What one stage of a pipeline runs: a value comes from the one before, one goes there; an assert on what is there."""
    ours = torch.ops.torchspore
    y = _functional.wait_tensor.default(ours.receive.default(list(x.shape), x.dtype, x.device, 0, 7, "world"))
    y = torch.tanh(y * x + 1) * 0.5
    _functional.wait_tensor.default(ours.send.default(y, 0, 8, "world"))
    return [torch.sigmoid(y * 2 - x)]


def test_a_stage_of_a_pipeline_gets_kernels_too(kernel_parts: list[Any]) -> None:
    import torchspore.distributed.comm.operators  # noqa: F401
    from torchspore.graph.control_flow import execution

    class Elsewhere(torch.Tensor):
        """Nothing can be computed with it."""

        @classmethod
        def __torch_dispatch__(cls, function: Any, *_: Any, **__: Any) -> Any:
            raise AssertionError(f"{function} of a value that lies elsewhere")

    inputs = [torch.randn(4096, 64), torch.randn(64, 64)]
    module = make_fx(of_a_stage, tracing_mode="fake")(*inputs)
    result = next(iter(module.graph.find_nodes(op="output")))
    with module.graph.inserting_before(result):
        module.graph.call_function(execution.check, (next(iter(module.graph.nodes)), "AssertionError: what the others sent is otherwise"))
    inputs[1] = torch.Tensor._make_wrapper_subclass(Elsewhere, (64, 64))
    output = collective_segments.with_kernels(module, lambda: inputs, eager_codegen.compile, fusion.is_fusable)
    assert output is not None and len(kernel_parts) == 2 and "torchspore.receive.default" in targets(output)


def test_a_run_that_fails_says_that_nothing_can_be_measured() -> None:
    module = make_fx(lambda x, at: [x[at] * 2], tracing_mode="fake")(torch.randn(4, 64), torch.tensor([1]))
    with pytest.raises(measurement.Unrunnable, match="out of"):
        collective_segments.with_kernels(module, lambda: [torch.randn(4, 64), torch.tensor([9])], eager_codegen.compile, fusion.is_fusable)


def test_a_recurrent_layer_keeps_what_its_gradient_needs_while_strides_are_looked_up() -> None:
    lstm = torch.nn.LSTM(4, 6, batch_first=True)

    def step(x: torch.Tensor, *weights: torch.Tensor) -> list[torch.Tensor]:
        arguments = [weight.requires_grad_() for weight in weights]
        out = torch.lstm(x, [x.new_zeros(1, 2, 6)] * 2, arguments, True, 1, 0.0, True, False, True)[0]
        return list(torch.autograd.grad(out.sum(), arguments))

    inputs = [torch.randn(2, 3, 4), *(weight.detach() for weight in lstm.parameters())]
    module = make_fx(step, tracing_mode="fake")(*inputs)
    assert any("mkldnn_rnn_layer_backward" in name for name in targets(module))
    record_strides(module, inputs)


def test_an_exchange_that_only_others_can_answer_is_unchanged() -> None:
    from torchspore.distributed.comm import operators

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(operators.barrier, ("world",))
    graph.output([x])
    assert collective_segments.answered(torch.fx.GraphModule({}, graph)) is None
