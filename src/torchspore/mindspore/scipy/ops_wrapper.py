"""`mindspore.scipy.ops_wrapper`: matrices with replaced diagonals."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore import ops
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.tensor import Tensor
from torchspore.public_names import missing


def matrix_set_diag(input_x: Any, diagonal: Any, k: Any = 0, alignment: str = "RIGHT_LEFT") -> Any:
    """Replace the diagonals `k`, a number or the lowest and the highest, of matrices `input_x` (..., M, N) by `diagonal`.

    `alignment` sets how diagonals shorter than the longest are aligned in `diagonal`: those above the main one, then those below.
    Raises ValueError for another `k`.
    """
    if isinstance(k, bool) or not isinstance(k, (int, list, tuple)):
        raise ValueError(message(f"matrix_set_diag(k={short(k)})", "an int, or the lowest and the highest"))
    diagonals = [k, k] if isinstance(k, int) else [k[0], k[-1]]
    return ops.matrix_set_diag(input_x, diagonal, Tensor(diagonals, mstype.int32), alignment)


__getattr__ = missing(__name__)
