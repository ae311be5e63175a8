"""Random nets whose Cells lie in random stages of a pipeline: values skip stages and go back, weights are shared, some Cells have none."""
from __future__ import annotations

import random
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

SCHEDULES = ("1f1b", "gpipe", "zero_bubble_v", "interleaved")


class Piece(nn.Cell):
    """A product with a weight of its own or of another piece."""

    def __init__(self, name: str, weight: Any, source: random.Random) -> None:
        super().__init__()
        values = np.random.default_rng(source.randrange(1000)).standard_normal((8, 8)) / 3
        self.weight = Parameter(Tensor(values.astype(np.float32)), name=f"{name}.weight") if weight is None else weight
        self.norm = nn.BatchNorm1d(8) if source.random() < 0.2 else None
        self.kind = source.randrange(3)

    def construct(self, x: Any) -> Any:
        y = ops.matmul(x, self.weight)
        if self.norm is not None:
            y = self.norm(y)
        return ops.tanh(y) if self.kind == 0 else ops.relu(y) + x if self.kind == 1 else y * 0.5


class Random(nn.Cell):
    """Pieces that read the sums of earlier values."""

    def __init__(self, seed: int, stages: int) -> None:
        super().__init__()
        source = random.Random(seed)
        self.pieces, self.given, indices = nn.CellList(), [], []
        for at in range(source.randint(stages, 3 * stages)):
            other = self.pieces[source.randrange(at)].weight if at and source.random() < 0.25 else None
            piece = Piece(f"pieces.{at}", other, source)
            kind = source.random()
            stage = None if kind < 0.1 else source.randrange(stages) if kind < 0.4 else min(at * stages // 6, stages - 1)
            if stage is not None:
                piece.pipeline_stage = stage
            indices.append(stage)
            self.pieces.append(piece)
            self.given.append(sorted({at, source.randint(0, at)} if source.random() < 0.4 else {at}))
        self.told = f"{indices}, {self.given}"

    def construct(self, x: Any) -> Any:
        values = [x]
        for piece, given in zip(self.pieces, self.given):
            total = values[given[0]]
            for at in given[1:]:
                total = total + values[at]
            values.append(piece(total))
        return values[-1]


def trained(seed: int, stages: int, is_cut: bool, ways: int = 1) -> tuple[list[float], str, Any]:
    """The losses of three steps, what the net is, and the training Cell.

    One device that stands beside simulated ones, of which `ways` in a stage have rows of their own, is given rows in an order in which its
    parts hold the rows that theirs do.
    """
    source = random.Random(-seed)
    parts, schedule, strategy = source.choice((1, 2, 4)), SCHEDULES[seed % len(SCHEDULES)], source.choice(("full_batch", "data_parallel"))
    ms.set_context(mode=ms.GRAPH_MODE)
    if is_cut:
        name = "1f1b" if schedule == "interleaved" else schedule
        config = {} if schedule == "1f1b" else {"pipeline_config": {"pipeline_interleave": True, "pipeline_scheduler": name}}
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", dataset_strategy=strategy, pipeline_stages=stages, **config,
        )
    ms.set_seed(1)
    net = Random(seed, stages)
    optimizer = source.choice((nn.Adam, nn.Momentum, nn.SGD, nn.RMSProp))
    arguments = (0.9,) if optimizer is nn.Momentum else ()
    cell = nn.WithLossCell(net, nn.MSELoss())
    step = nn.TrainOneStepCell(nn.PipelineCell(cell, parts) if parts > 1 else cell, optimizer(net.trainable_params(), 0.01, *arguments))
    step.set_train()
    rows = np.random.default_rng(seed)
    losses = []
    for _ in range(3):
        batch = [rows.standard_normal((16, 8)).astype(np.float32) for _ in range(2)]
        if ways > 1 and strategy == "data_parallel" and not is_cut:
            batch = [each.reshape(ways, parts, -1, 8).swapaxes(0, 1).reshape(16, 8) for each in batch]
        losses.append(float(step(*map(Tensor, batch)).asnumpy()))
    norms = sum(piece.norm is not None for piece in net.pieces)
    return losses, f"{optimizer.__name__}, {parts} parts, {schedule}, {strategy}, {norms} norms, {net.told}", step
