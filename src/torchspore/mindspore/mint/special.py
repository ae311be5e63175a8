"""`mindspore.mint.special`: functions that are also in mint itself."""

from torchspore.mindspore import ops
from torchspore.mindspore.mint.forwarding import renaming
from torchspore.mindspore.mint.nn.functional import log_softmax
from torchspore.mindspore.ops import erfc, exp2, expm1, log1p, sinc

round = renaming("round(input: Any)", ops.round, "Round to integers, halves to the even neighbour.")


__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]
