"""`mindspore.mint.special`: functions that are also in mint itself."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore import ops
from torchspore.mindspore.mint.nn.functional import log_softmax
from torchspore.mindspore.ops import erfc, exp2, expm1, log1p, sinc


def round(input: Any) -> Any:
    """Round to integers, halves to the even neighbour."""
    return ops.round(input)


__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]
