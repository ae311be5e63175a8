"""Tables of vectors whose gradients are rows."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, one_of, short
from torchspore.engine import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.cell import Cell

_TARGETS = ("CPU", "DEVICE")
_SLICES = ("batch_slice", "field_slice", "table_row_slice", "table_column_slice")


class EmbeddingLookup(Cell):
    """A table of vectors: indexes (...) give (..., embedding_size); with `sparse` its gradient holds the rows that were used, no others.

    With target 'CPU' an index beyond the table gives zeros. `max_norm` clips the length of each vector. `slice_mode` says how devices
    share the table. Raises TypeError and ValueError for arguments that do not fit, such as `sparse=False` with target 'CPU'.
    """

    def __init__(
        self, vocab_size: int, embedding_size: int, param_init: Any = "normal", target: str = "CPU", slice_mode: str = "batch_slice",
        manual_shapes: Any = None, max_norm: float | None = None, sparse: bool = True, dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        for key, value in (("vocab_size", vocab_size), ("embedding_size", embedding_size)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(message(f"EmbeddingLookup({key}={short(value)})", f"an int, got {type(value).__name__}"))
            if value < 1:
                raise ValueError(message(f"EmbeddingLookup({key}={value})", "an int above 0"))
        if not isinstance(sparse, bool):
            raise TypeError(message(f"EmbeddingLookup(sparse={short(sparse)})", f"a bool, got {type(sparse).__name__}"))
        if target not in _TARGETS:
            raise ValueError(message(f"EmbeddingLookup(target={short(target)})", one_of(_TARGETS)))
        if slice_mode not in _SLICES:
            raise ValueError(message(f"EmbeddingLookup(slice_mode={short(slice_mode)})", one_of(_SLICES)))
        if not sparse and target == "CPU":
            raise ValueError(message("EmbeddingLookup(sparse=False, target='CPU')", "sparse=True, or target='DEVICE'"))
        if max_norm is not None and max_norm <= 0:
            raise ValueError(message(f"EmbeddingLookup(max_norm={max_norm})", "a number above 0"))
        self.vocab_size, self.embedding_size, self.target, self.sparse = vocab_size, embedding_size, target, sparse
        self.max_norm, self.forward_unique = max_norm, False
        self.embedding_table = Parameter(initializer(param_init, [vocab_size, embedding_size], dtype), name="embedding_table")
        self.gatherv2 = ops.SparseGatherV2() if sparse else ops.Gather()
        self.embeddinglookup = ops.EmbeddingLookup()

    def construct(self, indices: Any) -> Any:
        """The rows that `indices` names."""
        if self.target == "CPU":
            out = self.embeddinglookup(self.embedding_table, indices, 0)
        else:
            out = self.gatherv2(self.embedding_table, indices, 0)
        if self.max_norm is None:
            return out
        length = (out * out).sum(-1, keepdims=True).sqrt()
        return out * (self.max_norm / ops.maximum(length, self.max_norm))

    def extend_repr(self) -> str:
        return f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, target={self.target}, sparse={self.sparse}"
