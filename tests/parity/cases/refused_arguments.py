"""Functions with a wrong kind or number in place of the question mark, for which torch would compute something: the kind of error."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops  # noqa: F401  (the calls name it)
from parity.case import case, raised

CALLS = """
ops.gather(ROWS, AT, ?): 1.5 | 1.0 | True | 'a'
ops.gather(ROWS, AT, 0, ?): 0.0
ops.one_hot(AT, ?, ONE, ZERO): 3.0 | 1.5 | True
ops.one_hot(AT, 3, ONE, ZERO, axis=?): 0.0 | True
ops.topk(ROWS, ?): 1.5 | 1.0 | True | 0
ops.topk(ROWS, 1, largest=?): 1 | 0 | None | 1.5
ops.topk(ROWS, 1, sorted=?): 1 | 0 | None | 1.5
ops.prod(ROWS, 0, ?): 1 | 0 | 'a' | None
ops.var(ROWS, 0, ?): 1.5 | 1.0
ops.std(ROWS, 0, ?): 1.5 | 1.0
ops.var_mean(ROWS, 0, ?): 1.5 | 1.0
ops.std_mean(ROWS, 0, ?): 1.5 | 1.0
ops.round(ROWS, decimals=?): 1.0 | None
ops.linspace(0.0, 1.0, ?): 1.5 | 2.0 | True | 0
ops.scatter_nd(Tensor([[0], [1]]), ROWS, ?): [3, 2] | (3.0, 2.0) | (3.5, 2)
ops.unsorted_segment_sum(ROWS, AT, ?): 2.0 | 1.5 | True
ops.reverse_sequence(ROWS, AT + 1, ?): 1.5 | 1.0 | True
ops.strided_slice(ROWS, (0, 0), (1, 2), (1, 1), begin_mask=?): True | -1
ops.strided_slice(ROWS, (0, 0), (1, 2), (1, 1), end_mask=?): True | -1
ops.multinomial(WEIGHTS, ?): 1.5 | 1.0 | True
ops.matrix_band_part(ROWS, ?, 1): 1.5 | 1.0 | True
ops.svd(ROWS, False, ?): 1 | 0 | 'a' | None
ops.svd(ROWS, ?): 1 | 0 | 'a' | None
ops.argmax(ROWS, 0, ?): 1 | 'a' | 1.5
ops.dropout(ROWS, 0.5, ?): 1 | 'a' | 1.5
ops.dropout1d(WIDE, 0.5, ?): 1 | 0 | 'a' | None
ops.cross_entropy(ROWS, AT, label_smoothing=?): -1.0 | True | 1
ops.gaussian_nll_loss(ROWS, ROWS, ROWS, ?): 1 | 0 | None
ops.gaussian_nll_loss(ROWS, ROWS, ROWS, eps=?): -1.0 | 0.0
ops.multi_margin_loss(ROWS, AT.astype(ms.int64), ?): 1.0 | True
ops.adaptive_avg_pool1d(WIDE, ?): 0
ops.max_unpool1d(WIDE, WHERE, 2, 2, ?): -1
ops.batch_norm(ROWS, WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS, momentum=?): -1.0 | 2.5 | 1 | True
ops.batch_norm(ROWS, WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS, eps=?): 0.0 | 2.5 | 1
ops.affine_grid(Tensor(np.ones((1, 2, 3), np.float32)), (1, 1, 2, 2), ?): 1 | 0 | 'a' | None
"""
ROWS = Tensor(np.array([[1.0, 2.0], [3.0, 4.5]], np.float32))
WIDE = Tensor(np.arange(8, dtype=np.float32).reshape(1, 2, 4))
WEIGHTS = Tensor([0.5, 0.25], ms.float32)
WHERE = Tensor(np.arange(8).reshape(1, 2, 4) % 4, ms.int64)
AT, ONE, ZERO = Tensor([0, 1], ms.int32), Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)


@case(over={line.partition(": ")[0]: line for line in CALLS.strip().splitlines()})
def refused(line):
    call, _, values = line.partition(": ")
    return {value: raised(lambda value=value: eval(call.replace("?", value))) for value in values.split(" | ")}
