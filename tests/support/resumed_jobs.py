"""A training of several ranks that a test interrupts and resumes."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np

STEPS = 6


def begun(mode: str, cuts: int = 2, **options: Any) -> Any:
    """A step of a net of two products with Adam, whose weights and state are cut among all ranks, and its batches."""
    from mindspore import Tensor, nn, ops
    from mindspore.communication import get_group_size, get_rank, init
    from mindspore.ops import operations as P

    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    is_split = mode == "semi_auto_parallel"
    if get_group_size() > 1:
        ms.set_auto_parallel_context(
            parallel_mode=mode, dataset_strategy="full_batch" if is_split else "data_parallel", gradients_mean=not is_split,
            enable_parallel_optimizer=True, parallel_optimizer_config={"parallel_optimizer_threshold": 0}, **options,
        )

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.up = ms.Parameter(Tensor(np.random.RandomState(1).randn(16, 32).astype(np.float32) * 0.1), name="up")
            self.down = ms.Parameter(Tensor(np.random.RandomState(2).randn(32, 8).astype(np.float32) * 0.1), name="down")
            self.first, self.second = P.MatMul(), P.MatMul()
            if is_split and get_group_size() > 1:
                rows = get_group_size() // cuts
                self.first.shard(((rows, 1), (1, cuts)))
                self.second.shard(((rows, cuts), (cuts, 1)))

        def construct(self, x: Any) -> Any:
            return self.second(ops.relu(self.first(x, self.up)), self.down)

    net = Net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 0.01)).set_train()
    rank, size, random = get_rank(), get_group_size(), np.random.RandomState(7)
    whole = [random.rand(8, 16).astype(np.float32) for _ in range(STEPS)]
    parts = whole if is_split else [x[rank * 8 // size:(rank + 1) * 8 // size] for x in whole]
    return step, [(Tensor(x), Tensor(x[:, :8] * 2)) for x in parts], rank


def values(step: Any, folder: str) -> dict[str, np.ndarray]:
    """The whole values of all Parameters, through a file."""
    from mindspore.communication import get_rank

    path = f"{folder}/final_{get_rank()}.ckpt"
    ms.save_checkpoint(step, path)
    return {name: value.asnumpy() for name, value in ms.load_checkpoint(path).items()}
