"""Arguments of MindSpore's that are refused by name here: each with a call that asks for it, and why.

tests/unit/front/test_refused_arguments.py sees each refusal; docs/reference/names.md is generated out of this table.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mindspore as ms
import numpy as np
from mindspore import dataset, mint, nn, ops


class Refused(NamedTuple):
    """What is refused of a public name: the argument, a call that asks for it, and why it can't be had."""

    argument: str
    call: Callable[[], Any]
    why: str


def parameters() -> list[ms.Parameter]:
    return [ms.Parameter(ms.Tensor(np.ones(2, np.float32)), name="w")]


def ones(*shape: int) -> ms.Tensor:
    return ms.Tensor(np.ones(shape, np.float32))


ONE_PROCESS = "one process so far"
ASCEND = "Ascend's own hardware or tools"
LIKE_IT = "MindSpore 2.10 refuses it too"

REFUSED: dict[str, list[Refused]] = {
    "mindspore.mint.nn.Embedding": [Refused("sparse", lambda: mint.nn.Embedding(3, 2, sparse=True), LIKE_IT)],
    "mindspore.ops.DynamicRNN": [
        Refused("direction", lambda: ops.DynamicRNN(direction="REDIRECTIONAL")(ones(2, 1, 3), ones(5, 8), ones(8)), LIKE_IT),
    ],
    "mindspore.ops.Send": [Refused("dest_rank", lambda: ops.Send(0, 1)(ones(1)), ONE_PROCESS)],
    "mindspore.ops.Receive": [Refused("src_rank", lambda: ops.Receive(0, 1, [1], ms.float32)(), ONE_PROCESS)],
    "mindspore.ops.AlltoAll": [Refused("split_count", lambda: ops.AlltoAll(2, 0, 0)(ones(2)), ONE_PROCESS)],
    "mindspore.Profiler": [
        Refused("job_id", lambda: ms.Profiler(job_id="1"), ASCEND),
        Refused("l2_cache", lambda: ms.Profiler(l2_cache=True), ASCEND),
    ],
    "mindspore.export": [
        Refused("file_format", lambda: ms.export(nn.Dense(2, 2), ones(1, 2), file_name="net", file_format="AIR"), ASCEND),
        Refused("dataset", lambda: ms.export(nn.Dense(2, 2), ones(1, 2), file_name="net", file_format="MINDIR", dataset=1),
                "a file contains only the network"),
    ],
    "mindspore.train.Model": [
        Refused("predict(backend)", lambda: ms.Model(nn.Dense(2, 2)).predict(ones(1, 2), backend="lite"), "no MindSpore Lite"),
    ],
    "mindspore.nn.PipelineGradReducer": [Refused("opt_shard", lambda: nn.PipelineGradReducer(parameters(), opt_shard=True), ONE_PROCESS)],
    "mindspore.communication.create_group": [Refused("rank_ids", lambda: ms.communication.create_group("two", [0, 1]), ONE_PROCESS)],
    "mindspore.mint.zeros": [Refused("device", lambda: mint.zeros(2, device="Ascend:1"), "set_device sets where Tensors are created")],
    "mindspore.dataset.transforms.Concatenate": [Refused("axis", lambda: dataset.transforms.Concatenate(axis=1), LIKE_IT)],
}
