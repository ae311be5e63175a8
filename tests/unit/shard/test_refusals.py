"""Kernels that refuse values in a graph that is split: the program's line, its operator with whole shapes, our words."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from support import failing_kernels

from torchspore.errors import StrategyRefused


@pytest.mark.parametrize("stages", [1, 2])
def test_the_line_and_the_operator_are_named(stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=stages)
    result = failing_kernels.refused(list(failing_kernels.CASES), 2, stages)
    assert len(result) == len(failing_kernels.CASES)
    for case, (kind, text) in zip(failing_kernels.CASES, result):
        expected, begins = failing_kernels.expected(case, 8 // stages)
        assert kind == expected and begins in text, text


def test_two_parameters_of_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of an optimizer is found by names: numbers came out wrong with enable_parallel_optimizer."""
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")

    class Both(nn.Cell):
        def __init__(self) -> None:
            super().__init__(auto_prefix=False)
            self.one, self.other = nn.Dense(4, 4), nn.Dense(4, 4)

        def construct(self, x: Tensor) -> Tensor:
            return self.other(self.one(x))

    with pytest.raises(StrategyRefused, match="two Parameters with the name 'weight' in a graph that is split: expected names that differ"):
        Both()(Tensor(np.ones((4, 4), np.float32)))


@pytest.mark.parametrize("mode", ["data_parallel", "hybrid_parallel"])
def test_one_process_has_not_the_parts_of_several(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    ms.set_auto_parallel_context(parallel_mode=mode, device_num=4)
    net = nn.Dense(4, 4)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    with pytest.raises(RuntimeError) as raised:
        step(Tensor(np.ones((4, 4), np.float32)), Tensor(np.ones((4, 4), np.float32)))
    assert str(raised.value).endswith(
        f"parallel_mode={mode!r} in one process that simulates 4: expected 'semi_auto_parallel' or 'auto_parallel', which split operators."
        "\n\nhint: torchspore workers -n 4 SCRIPT runs a process for each part of the batch."
    )
