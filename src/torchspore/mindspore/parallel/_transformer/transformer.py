"""Attention and feed-forward nets of the transformer library of MindSpore 1.x."""
from __future__ import annotations

import math
from typing import Any

from torchspore.base.text import message
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.basic import Dropout
from torchspore.mindspore.parallel._transformer.layers import _Linear
from torchspore.mindspore.parallel._transformer.op_parallel_config import (
    MoEParallelConfig,
    OpParallelConfig,
    check_share,
    default_dpmp_config,
    shares,
)

_FORBIDDEN = -10000.0


class TransformerRecomputeConfig:
    """Settings of recomputation in the backward pass; stored for the program's use of `Cell.recompute`."""

    def __init__(
        self, recompute: bool = False, parallel_optimizer_comm_recompute: bool = False, mp_comm_recompute: bool = True,
        recompute_slice_activation: bool = False,
    ) -> None:
        self.recompute, self.parallel_optimizer_comm_recompute = recompute, parallel_optimizer_comm_recompute
        self.mp_comm_recompute, self.recompute_slice_activation = mp_comm_recompute, recompute_slice_activation


default_transformer_recompute_config = TransformerRecomputeConfig()


class TransformerOpParallelConfig:
    """All shares of a transformer; `dp_mp_config` and `moe_parallel_config` are its parts. There is one pipeline stage."""

    def __init__(
        self, data_parallel: int = 1, model_parallel: int = 1, expert_parallel: int = 1, pipeline_stage: int = 1, micro_batch_num: int = 1,
        recompute: Any = default_transformer_recompute_config, optimizer_shard: bool = False, gradient_aggregation_group: int = 4,
        vocab_emb_dp: bool = True,
    ) -> None:
        self.dp_mp_config = OpParallelConfig(data_parallel, model_parallel)
        self.moe_parallel_config = MoEParallelConfig(data_parallel, model_parallel, expert_parallel)
        self.data_parallel, self.model_parallel, self.expert_parallel = data_parallel, model_parallel, expert_parallel
        self.pipeline_stage, self.micro_batch_num = _check_single_stage(pipeline_stage), micro_batch_num
        self.recompute, self.optimizer_shard, self.vocab_emb_dp = recompute, optimizer_shard, vocab_emb_dp
        self.gradient_aggregation_group = gradient_aggregation_group


def _check_single_stage(stages: Any) -> int:
    """The number of pipeline stages. Raises ValueError for several."""
    if check_share("pipeline_stage", stages) > 1:
        raise ValueError(message(f"pipeline_stage={stages}", "1: a graph is not split into stages"))
    return 1


default_transformer_config = TransformerOpParallelConfig()


def _get_lambda_func(total_layer: int | None = None) -> Any:
    """The function that a stack calls for each block: sets the block's stage and recomputation.

    `total_layer` counts the layers of encoder and decoder together if both are one pipeline.
    """

    def configure_block(network: Cell, layer_id: int, offset: int, parallel_config: Any, layers: int) -> None:
        count = total_layer or layers
        network.pipeline_stage = min((layer_id + offset) * parallel_config.pipeline_stage // count, parallel_config.pipeline_stage - 1)
        recompute = parallel_config.recompute
        if recompute if isinstance(recompute, bool) else recompute.recompute:
            network.recompute()

    return configure_block


class FeedForward(Cell):
    """Two dense layers with an activation between them, followed by dropout, over x (..., hidden)."""

    def __init__(
        self, hidden_size: int, ffn_hidden_size: int, dropout_rate: float, hidden_act: Any = "gelu", expert_num: int = 1,
        expert_group_size: int | None = None, param_init_type: Any = dtypes.float32, parallel_config: Any = default_dpmp_config,
    ) -> None:
        super().__init__()
        if not 0 <= dropout_rate < 1:
            raise ValueError(message(f"FeedForward(dropout_rate={dropout_rate})", "a number from 0 to below 1"))
        self.parallel_config = parallel_config
        experts = {"expert_num": expert_num, "expert_group_size": expert_group_size, "param_init_type": param_init_type}
        self.mapping = _Linear(hidden_size, ffn_hidden_size, activation=hidden_act, transpose_b=False, **experts)
        self.projection = _Linear(ffn_hidden_size, hidden_size, transpose_b=False, **experts)
        self.dropout = Dropout(p=dropout_rate)
        parts = shares(parallel_config)
        experts = getattr(parallel_config, "expert_parallel", 1) if expert_num > 1 else 0
        if parts is not None or experts > 1:
            self._cut(*(parts or (1, 1)), experts)

    def _cut(self, data: int, model: int, experts: int) -> None:
        """Sets the cuts of the products: the first by columns, the second by rows; with experts each device has some of them."""
        rows = (1, experts, 1) if experts else (data,)
        weights = (experts,) if experts else ()
        biases = (1, experts, 1) if experts else ()
        wide, narrow = (*rows, model), (*rows, 1)
        self.mapping.shard((narrow, (*weights, 1, model)), (wide, (*biases, model)), (wide,))
        self.projection.shard((wide, (*weights, model, 1)), (narrow, (*biases, 1)))

    def construct(self, x: Any) -> Any:
        """Returns the output, of the shape and dtype of x; it computes in float16."""
        return ops.cast(self.dropout(self.projection(self.mapping(ops.cast(x, dtypes.float16)))), x.dtype)


class MultiHeadAttention(Cell):
    """Attention of `num_heads` heads; called with query, key, value (batch, length, hidden) or (batch * length, hidden) and a mask.

    `attention_mask` (batch, src, tgt) is 1 where a query attends to a key; None means all keys. Returns (result in the shape of the query,
    (keys (batch, heads, size, tgt), values (batch, heads, tgt, size))). With `use_past` the caller stores these: `key_past`, `value_past`
    are those of the earlier tokens, and `batch_valid_length` (batch,) is the position of the new token.
    """

    def __init__(
        self, batch_size: int, src_seq_length: int, tgt_seq_length: int, hidden_size: int, num_heads: int,
        hidden_dropout_rate: float = 0.1, attention_dropout_rate: float = 0.1, compute_dtype: Any = dtypes.float16,
        softmax_compute_type: Any = dtypes.float32, param_init_type: Any = dtypes.float32, use_past: bool = False,
        parallel_config: Any = default_dpmp_config,
    ) -> None:
        super().__init__()
        if hidden_size % num_heads:
            raise ValueError(message(f"MultiHeadAttention(num_heads={num_heads})", f"a divisor of hidden_size={hidden_size}"))
        for name, value in (("hidden_dropout_rate", hidden_dropout_rate), ("attention_dropout_rate", attention_dropout_rate)):
            if not 0 <= value < 1:
                raise ValueError(message(f"MultiHeadAttention({name}={value})", "a number from 0 to below 1"))
        self.batch_size, self.src_seq_length, self.tgt_seq_length = batch_size, src_seq_length, tgt_seq_length
        self.hidden_size, self.n_head, self.size_per_head = hidden_size, num_heads, hidden_size // num_heads
        self.use_past, self.softmax_dtype, self.dtype = use_past, softmax_compute_type, compute_dtype
        self.parallel_config = parallel_config
        types = {"param_init_type": param_init_type, "compute_dtype": compute_dtype}
        self.projection = _Linear(hidden_size, hidden_size, transpose_b=False, **types)
        self.dense1, self.dense2, self.dense3 = (_Linear(hidden_size, hidden_size, **types) for _ in range(3))
        self.dropout, self.prob_dropout = Dropout(p=hidden_dropout_rate), Dropout(p=attention_dropout_rate)
        self.batch_matmul, self.softmax = ops.BatchMatMul(), ops.Softmax()
        parts = shares(parallel_config)
        if parts is not None:
            self._cut(*parts)

    def _cut(self, data: int, model: int) -> None:
        """Sets the cuts of the products: queries, keys and values by heads, the projection by rows."""
        for dense in (self.dense1, self.dense2, self.dense3):
            dense.shard(((data, 1), (model, 1)), ((data, model), (model,)))
        self.projection.shard(((data, model), (model, 1)), ((data, 1), (1,)))
        heads = (data, model, 1, 1)
        self.batch_matmul.shard((heads, heads))
        self.softmax.shard((heads,))

    def construct(
        self, query_tensor: Any, key_tensor: Any, value_tensor: Any, attention_mask: Any, key_past: Any = None, value_past: Any = None,
        batch_valid_length: Any = None,
    ) -> Any:
        """Returns (result, (keys, values))."""
        batch = query_tensor.shape[0] if query_tensor.ndim == 3 else query_tensor.shape[0] // self._length(query_tensor)
        q, k, v = (
            ops.transpose(ops.reshape(dense(ops.cast(x, self.dtype)), (batch, -1, self.n_head, self.size_per_head)), (0, 2, 1, 3))
            for dense, x in ((self.dense1, query_tensor), (self.dense2, key_tensor), (self.dense3, value_tensor))
        )
        k = ops.swapaxes(k, 2, 3)
        if self.use_past and key_past is not None:
            k, v = self._joined(k, v, key_past, value_past, batch_valid_length)
        scale = math.sqrt(math.sqrt(self.size_per_head))           # half of the scale on each side, because of float16's small range
        products = ops.cast(self.batch_matmul(q / scale, k / scale), self.softmax_dtype)
        if attention_mask is not None:
            forbidden = (1.0 - ops.cast(ops.expand_dims(attention_mask, 1), products.dtype)) * _FORBIDDEN
            products = products + forbidden
        weights = self.prob_dropout(ops.cast(self.softmax(products), self.dtype))
        out = ops.reshape(ops.transpose(self.batch_matmul(weights, v), (0, 2, 1, 3)), (*query_tensor.shape[:-1], self.hidden_size))
        return ops.cast(self.dropout(self.projection(out)), query_tensor.dtype), (k, v)

    def _length(self, query: Any) -> int:
        """Return the number of tokens per sequence in a 2-D query: one, if earlier tokens are cached and the batch has one row each."""
        return 1 if self.use_past and query.shape[0] == self.batch_size else self.src_seq_length

    def _joined(self, k: Any, v: Any, key_past: Any, value_past: Any, valid: Any) -> tuple[Any, Any]:
        """Return keys and values with the cached ones: one new token is stored at its position, several are the first ones."""
        if k.shape[3] > 1:
            seen = ops.cast(ops.arange(k.shape[3]) < ops.reshape(valid, (-1, 1, 1, 1)), k.dtype)
            return k * seen, v * ops.swapaxes(seen, 2, 3)
        at = ops.cast(ops.equal(ops.arange(key_past.shape[3]), ops.reshape(valid, (-1, 1, 1, 1)) - 1), k.dtype)
        return key_past + k * at, value_past + v * ops.swapaxes(at, 2, 3)
