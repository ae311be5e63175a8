"""`nn.DistributedGradReducer` in the modes that split graphs: those sum gradients themselves, so it is refused."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

X = Tensor(np.ones((8, 4), np.float32))


class Step(nn.Cell):
    """Gradients that the program reduces itself."""

    def __init__(self) -> None:
        super().__init__(auto_prefix=False)
        self.net = nn.Dense(4, 4)
        self.reduce = nn.DistributedGradReducer(self.net.trainable_params())
        self.gradients = ms.grad(self.net, None, self.net.trainable_params())

    def construct(self, x: Tensor) -> Any:
        return self.reduce(self.gradients(x))


@pytest.mark.parametrize("mode", ["semi_auto_parallel", "auto_parallel"])
@pytest.mark.parametrize("compiles_only", [False, True])
def test_it_is_refused(mode: str, compiles_only: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode=mode, device_num=8, dataset_strategy="full_batch")
    step = Step()
    with pytest.raises(RuntimeError, match=f"DistributedGradReducer with parallel_mode='{mode}': expected 'data_parallel'"):
        step.compile(X) if compiles_only else step(X)


def test_runs_on_one_device() -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
    assert [gradient.shape for gradient in Step()(X)] == [(4, 4), (4,)]
