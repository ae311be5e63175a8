"""The loss of the transformer library of MindSpore 1.x."""
from __future__ import annotations

from typing import Any

from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.parallel._transformer.op_parallel_config import _check_config, default_dpmp_config


class CrossEntropyLoss(Cell):
    """The mean cross entropy of logits (rows, classes) and labels (rows,), weighted by `input_mask` (rows,); computed in float32."""

    def __init__(self, parallel_config: Any = default_dpmp_config) -> None:
        super().__init__()
        _check_config(parallel_config)
        self.parallel_config = parallel_config

    def construct(self, logits: Any, label: Any, input_mask: Any) -> Any:
        """Returns the loss, a scalar."""
        logged = ops.log_softmax(ops.cast(logits, dtypes.float32), -1)
        label_scores = ops.gather_elements(logged, 1, ops.cast(ops.reshape(label, (-1, 1)), dtypes.int32))
        mask = ops.cast(ops.reshape(input_mask, (-1,)), dtypes.float32)
        return ops.sum(-ops.reshape(label_scores, (-1,)) * mask) / (ops.sum(mask) + 1e-8)
