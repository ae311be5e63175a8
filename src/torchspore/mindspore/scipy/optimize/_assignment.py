"""The linear assignment problem."""
from __future__ import annotations

import sys
from typing import Any

from torchspore.mindspore.common import dtype as types
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.scipy.ops import assign


def linear_sum_assignment(cost_matrix: Any, maximize: bool, dimension_limit: Any = None) -> Any:
    """(rows, columns), int64, of the assignment of `cost_matrix` (M, N) with the smallest sum of costs, the largest with `maximize`.

    Only the first `dimension_limit` columns (an int64 Tensor without axes) are used; missing assignments are -1 at the end.
    Raises TypeError for other kinds of arguments, ValueError for another rank.
    """
    limit = Tensor(sys.maxsize, types.int64) if dimension_limit is None else dimension_limit
    if not isinstance(limit, Tensor) or limit.dtype != types.int64 or limit.ndim != 0:
        raise TypeError(f"linear_sum_assignment(dimension_limit={dimension_limit!r:.60}): expected an int64 Tensor of no axes.")
    return assign(cost_matrix, int(limit), maximize)
