"""Embedding tables with row gradients."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_int_type, is_int
from torchspore.base.text import list_choices, message, short
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common import server_session
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.remote_parameters import is_remote
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.collectives.remote_tables import remote_rows
from torchspore.mindspore.ops.declaration.limits import checked, int_alone, lengths, optional, real_type, truth
from torchspore.mindspore.ops.layers import layer_math

_TARGETS = ("CPU", "DEVICE")
_SLICES = ("batch_slice", "field_slice", "table_row_slice", "table_column_slice")


class EmbeddingLookup(Cell):
    """An embedding table: indexes (...) give (..., embedding_size); with `sparse`, its gradient has only the rows that were used.

    With target 'CPU' an index outside the table gives zeros. In a parameter server job, `vocab_cache_size` stores the table on the servers
    and that many recently used rows here. `max_norm` clips the norm of each vector. `slice_mode` sets how devices
    share the table. Raises TypeError and ValueError for arguments that do not fit, such as `sparse=False` with target 'CPU'.
    """

    BATCH_SLICE, FIELD_SLICE, TABLE_ROW_SLICE, TABLE_COLUMN_SLICE = _SLICES

    def __init__(
        self, vocab_size: int, embedding_size: int, param_init: Any = "normal", target: str = "CPU", slice_mode: str = "batch_slice",
        manual_shapes: Any = None, max_norm: float | None = None, sparse: bool = True, dtype: Any = dtypes.float32,
        vocab_cache_size: int = 0,
    ) -> None:
        super().__init__()
        if is_int(dtype):                                  # up to 2.7, vocab_cache_size was the ninth argument
            dtype, vocab_cache_size = dtypes.float32, dtype
        if not is_int(vocab_cache_size) or vocab_cache_size < 0:
            raise ValueError(message(f"EmbeddingLookup(vocab_cache_size={short(vocab_cache_size)})", "an int from 0 on"))
        for key, value in (("vocab_size", vocab_size), ("embedding_size", embedding_size)):
            check_int_type("EmbeddingLookup", key, value)
            if value < 1:
                raise ValueError(message(f"EmbeddingLookup({key}={value})", "an int above 0"))
        if not isinstance(sparse, bool):
            raise TypeError(message(f"EmbeddingLookup(sparse={short(sparse)})", f"a bool, got {type(sparse).__name__}"))
        if target not in _TARGETS:
            raise ValueError(message(f"EmbeddingLookup(target={short(target)})", list_choices(_TARGETS)))
        if slice_mode not in _SLICES:
            raise ValueError(message(f"EmbeddingLookup(slice_mode={short(slice_mode)})", list_choices(_SLICES)))
        if not sparse and target == "CPU":
            raise ValueError(message("EmbeddingLookup(sparse=False, target='CPU')", "sparse=True, or target='DEVICE'"))
        if max_norm is not None and max_norm <= 0:
            raise ValueError(message(f"EmbeddingLookup(max_norm={max_norm})", "a number above 0"))
        self.vocab_size, self.embedding_size, self.target, self.sparse = vocab_size, embedding_size, target, sparse
        self.max_norm, self.forward_unique = max_norm, False
        self.embedding_table = Parameter(initializer(param_init, [vocab_size, embedding_size], dtype), name="embedding_table")
        if sparse:
            self.embedding_table.__dict__["server_table"] = vocab_cache_size, True
        if vocab_cache_size and server_session.has_cluster():
            server_session.mark(self.embedding_table, True)
        self.vocab_cache_size = vocab_cache_size
        self.gatherv2 = ops.SparseGatherV2() if sparse else ops.Gather()
        self.embeddinglookup = ops.EmbeddingLookup()

    def construct(self, indices: Any) -> Any:
        """The rows at `indices`."""
        if is_remote(self.embedding_table):
            out = remote_rows(self.embedding_table, indices, self.target == "CPU")
        elif self.target == "CPU":
            out = self.embeddinglookup(self.embedding_table, indices, 0)
        else:
            out = self.gatherv2(self.embedding_table, indices, 0)
        if self.max_norm is None:
            return out
        length = (out * out).sum(-1, keepdims=True).sqrt()
        return out * (self.max_norm / ops.maximum(length, self.max_norm))

    def extend_repr(self) -> str:
        return f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, target={self.target}, sparse={self.sparse}"


_OPERATORS = ("SUM", "MEAN", "MAX")


class MultiFieldEmbeddingLookup(EmbeddingLookup):
    """An embedding table for features in fields: the sum, mean or maximum of each field's vectors times their values.

    A call with indexes (N, S), values (N, S) and field numbers (N, S) returns (N, field_size, embedding_size). The mean divides by the sum
    of the absolute values; the maximum ignores features of value 0; a field without features is 0. `feature_num_list` sets how many
    features of each field devices share, with slice_mode 'field_slice'.
    """

    OPERATOR_SUM, OPERATOR_MEAN, OPERATOR_MAX = _OPERATORS

    def __init__(
        self, vocab_size: int, embedding_size: int, field_size: int, param_init: Any = "normal", target: str = "CPU",
        slice_mode: str = "batch_slice", feature_num_list: Any = None, max_norm: float | None = None, sparse: bool = True,
        operator: str = "SUM", dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__(vocab_size, embedding_size, param_init, target, slice_mode, feature_num_list, max_norm, sparse, dtype)
        if not is_int(field_size):
            raise TypeError(message(f"MultiFieldEmbeddingLookup(field_size={short(field_size)})", "an int"))
        if field_size < 1:
            raise ValueError(message(f"MultiFieldEmbeddingLookup(field_size={field_size})", "an int above 0"))
        if operator not in _OPERATORS:
            raise ValueError(message(f"MultiFieldEmbeddingLookup(operator={short(operator)})", list_choices(_OPERATORS)))
        self.field_size, self.operator = field_size, operator

    def construct(self, input_indices: Any, input_values: Any, field_ids: Any) -> Any:
        """One vector for each field."""
        vectors = super().construct(input_indices) * ops.expand_dims(input_values, -1)
        return layer_math._by_field(vectors, input_values, field_ids, self.field_size, self.operator)


class EmbeddingExt(Cell):
    """An embedding table: indexes (...) give (..., embedding_dim).

    The row `padding_idx` is zeros initially and gets no gradient; rows longer than `max_norm` (in the norm `norm_type`) are scaled down in
    the table; `scale_grad_by_freq` divides a row's gradient by the number of its occurrences. `sparse` gradients are refused. `_weight` is
    the table, `_freeze` makes it constant.
    """

    @checked(
        num_embeddings=lengths(least=0), embedding_dim=lengths(least=0), padding_idx=optional(int_alone), max_norm=optional(real_type),
        norm_type=real_type, scale_grad_by_freq=truth, sparse=truth,
    )
    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None, _freeze: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if sparse:
            raise ValueError("EmbeddingExt(sparse=True): expected False, as in MindSpore.\n\nhint: nn.EmbeddingLookup is sparse.")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"EmbeddingExt(padding_idx={padding_idx}): expected a row of {num_embeddings}.")
        self.num_embeddings, self.embedding_dim, self.sparse = num_embeddings, embedding_dim, sparse
        self.padding_idx = padding_idx if padding_idx is None or padding_idx >= 0 else padding_idx + num_embeddings
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.dtype = dtypes.float32 if dtype is None else dtype
        table = initializer("normal", [num_embeddings, embedding_dim], self.dtype) if _weight is None else _weight
        if _weight is None and self.padding_idx is not None:
            table[self.padding_idx] = 0
        self.weight = Parameter(table, name="weight", requires_grad=not _freeze)

    def construct(self, input: Any) -> Any:
        """The rows at `input`."""
        return ops.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)

    def extend_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, padding_idx={self.padding_idx}, "
            f"max_norm={self.max_norm}, norm_type={self.norm_type}, scale_grad_by_freq={self.scale_grad_by_freq}, dtype={self.dtype}"
        )


__all__ = ["EmbeddingExt", "EmbeddingLookup", "MultiFieldEmbeddingLookup"]
