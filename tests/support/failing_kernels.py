"""A net whose kernels refuse values: an index beyond its table, a target beyond the classes, a division by zero, an assert."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn
from mindspore.ops import operations as P

from torchspore.distributed.shard.gather import is_absent

CASES = {
    "gather": (IndexError, "take", "Gather(Float32[8, 16], Int32[{rows}]): an index is beyond the axis."),
    "target": (ValueError, "loss", "CrossEntropy(Float32[{rows}, 4], Int32[{rows}]): expected classes from 0 to 3, got "),
    "divide": (ZeroDivisionError, "share", "floor_divide(Int32[{rows}], Int32[{rows}]): integers can't be divided by zero."),
}
"""By name what is raised: the kind, the line's mark, and the text behind it."""


class Lookup(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.gather = Parameter(Tensor(np.ones((8, 16), np.float32)), name="table"), P.Gather()

    def construct(self, ids: Any, by: Any) -> Any:
        x = self.gather(self.table, ids, 0)  # take
        return x + (ids // by).astype(ms.float32).expand_dims(-1)  # share


class Product(nn.Cell):
    def __init__(self, cut: int) -> None:
        super().__init__()
        self.weight, self.matmul = Parameter(Tensor(np.full((16, 4), 0.1, np.float32)), name="w"), P.MatMul()
        if cut > 1:
            self.matmul.shard(((1, 1), (1, cut)))

    def construct(self, x: Any) -> Any:
        return self.matmul(x, self.weight)


class Net(nn.Cell):
    def __init__(self, cut: int, stages: int) -> None:
        super().__init__()
        self.first, self.second, self.loss = Lookup(), Product(cut), nn.CrossEntropyLoss()
        if stages > 1:
            self.first.pipeline_stage, self.second.pipeline_stage = 0, 1

    def construct(self, ids: Any, by: Any, y: Any) -> Any:
        return self.loss(self.second(self.first(ids, by)), y)  # loss


def refused(cases: Sequence[str], devices: int, stages: int) -> list[tuple[str, str]]:
    """The kind and text of what steps raise whose values do not fit, after one that was fine."""
    net = Net(devices // stages, stages)
    step_net = nn.PipelineCell(net, 2) if stages > 1 else net
    step = nn.TrainOneStepCell(step_net, nn.Adam(net.trainable_params(), 1e-2))
    step(*batch_of())
    parameters = [p for p in step.get_parameters() if "_sharded_layout" not in p.__dict__ or not is_absent(p.__dict__["_sharded_layout"])]
    values_before = [p._t.clone() for p in parameters]
    results = []
    for case in cases:
        try:
            step(*batch_of(case))
        except Exception as error:
            results.append((type(error).__name__, str(error)))
    for p, before in zip(parameters, values_before):
        np.testing.assert_array_equal(p._t.numpy(), before.numpy())
    return results


def batch_of(case: str = "") -> tuple[Any, ...]:
    """A batch, with a value that does not fit where a case says so."""
    ids, by, y = np.arange(8, dtype=np.int32), np.full(8, 2, np.int32), np.arange(8, dtype=np.int32) % 4
    if case:
        {"gather": ids, "target": y, "divide": by}[case][5] = 0 if case == "divide" else 9
    return Tensor(ids), Tensor(by), Tensor(y)


def expected(case: str, rows: int) -> tuple[str, str]:
    """The kind of error, and how its text begins behind the folder of the file."""
    kind, mark, text = CASES[case]
    line = next(at for at, entry in enumerate(Path(__file__).read_text().splitlines(), 1) if entry.endswith(f"# {mark}"))
    return kind.__name__, f"{Path(__file__).name}:{line}: {text.format(rows=rows)}"


def begin(devices: int, stages: int) -> None:
    """GRAPH_MODE, split over so many devices, for a function that `Workers` runs."""
    from mindspore.communication import init

    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=stages)
