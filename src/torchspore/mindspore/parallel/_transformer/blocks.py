"""Transformer blocks and stacks of them, from the transformer library of MindSpore 1.x."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.container import CellList
from torchspore.mindspore.parallel._transformer.layers import _LayerNorm
from torchspore.mindspore.parallel._transformer.moe import MoE, MoEConfig
from torchspore.mindspore.parallel._transformer.op_parallel_config import (
    OpParallelConfig,
    default_dpmp_config,
    default_moeparallel_config,
    shares,
)
from torchspore.mindspore.parallel._transformer.transformer import (
    FeedForward,
    MultiHeadAttention,
    _get_lambda_func,
    default_transformer_config,
)

default_moe_config = MoEConfig()


class EmbeddingOpParallelConfig(OpParallelConfig):
    """Shares of an embedding's table; with `vocab_emb_dp` each process has the full table."""

    def __init__(self, data_parallel: int = 1, model_parallel: int = 1, vocab_emb_dp: bool = True) -> None:
        super().__init__(data_parallel, model_parallel)
        self.vocab_emb_dp = vocab_emb_dp


default_embedding_parallel_config = EmbeddingOpParallelConfig()


class VocabEmbedding(Cell):
    """A table of vectors: maps tokens (batch, length) to (vectors (batch, length, size), the table)."""

    def __init__(
        self, vocab_size: int, embedding_size: int, parallel_config: Any = default_embedding_parallel_config, param_init: Any = "normal",
    ) -> None:
        super().__init__()
        self.vocab_size, self.embedding_size, self.parallel_config = vocab_size, embedding_size, parallel_config
        self.embedding_table = Parameter(initializer(param_init, [vocab_size, embedding_size]), name="embedding_table")
        self.gather = ops.Gather()
        parts = shares(parallel_config)
        if parts is not None:
            by_data = getattr(parallel_config, "vocab_emb_dp", True)
            self.gather.shard(((1 if by_data else parts[1], 1), (parts[0], 1)))

    def construct(self, input_ids: Any) -> Any:
        """Returns (vectors, the table)."""
        return self.gather(self.embedding_table, input_ids, 0), self.embedding_table.value()


class AttentionMask(Cell):
    """A causal attention mask: from `input_mask` (batch, length), 0 for padding, a mask (batch, length, length) that is 1 where a token
    attends to itself or an earlier one, and neither is padding.
    """

    def __init__(self, seq_length: int, parallel_config: Any = default_dpmp_config) -> None:
        super().__init__()
        if not is_int(seq_length) or seq_length < 1:
            raise ValueError(message(f"AttentionMask(seq_length={seq_length!r})", "an int from 1 on"))
        self.seq_length, self.parallel_config = seq_length, parallel_config

    def construct(self, input_mask: Any) -> Any:
        """Returns the mask, in float16."""
        is_token = ops.cast(ops.not_equal(input_mask, 0), dtypes.float16)
        pairs = ops.expand_dims(is_token, 1) * ops.expand_dims(is_token, 2)
        return pairs * ops.tril(ops.ones((self.seq_length, self.seq_length), dtypes.float16))


class _Layer(Cell):
    """Base of the encoder and decoder layers: norms before attention and feed-forward net, and the cache of earlier tokens."""

    def _build_(self, hidden: int, inner: int, heads: int, batch: int, source: int, target: int, options: dict[str, Any]) -> None:
        types, rates = options["types"], options["rates"]
        config = options["parallel_config"]
        config = getattr(config, "dp_mp_config", config)
        self.batch_size, self.hidden_size, self.use_past = batch, hidden, options["use_past"]
        self.post_layernorm_residual = options["post_layernorm_residual"]
        self.layernorm1, self.layernorm2 = (_LayerNorm((hidden,)).to_float(types["layernorm"]) for _ in range(2))
        parts = shares(config)
        if parts is not None:
            for norm in (self.layernorm1, self.layernorm2):
                norm.shard(((parts[0], 1),))
        attention = {
            "hidden_dropout_rate": rates[1], "attention_dropout_rate": rates[0], "softmax_compute_type": types["softmax"],
            "param_init_type": types["init"], "parallel_config": config,
        }
        self.attention = MultiHeadAttention(batch, source, source, hidden, heads, use_past=self.use_past, **attention)
        if target:
            self.cross_attention = MultiHeadAttention(batch, source, target, hidden, heads, use_past=self.use_past, **attention)
            self.cross_attention_layernorm = _LayerNorm((hidden,)).to_float(types["layernorm"])
            if parts is not None:
                self.cross_attention_layernorm.shard(((parts[0], 1),))
        self.use_moe = options["moe_config"].expert_num > 1
        ending = {"hidden_size": hidden, "ffn_hidden_size": inner, "dropout_rate": rates[1], "hidden_act": options["hidden_act"]}
        if self.use_moe:
            self.output = MoE(
                **ending, param_init_type=types["init"], moe_config=options["moe_config"],
                parallel_config=_of_experts(options["parallel_config"]),
            )
        else:
            self.output = FeedForward(**ending, param_init_type=types["init"], parallel_config=config)
        if self.use_past:
            size = hidden // heads
            self.key_past = Parameter(initializer("zeros", (batch, heads, size, source), dtypes.float16), name="key_past")
            self.value_past = Parameter(initializer("zeros", (batch, heads, source, size), dtypes.float16), name="value_past")

    def _attended_(self, x: Any, mask: Any, init_reset: Any, valid: Any) -> tuple[Any, Any]:
        """Return x (rows, hidden) after self-attention, and keys and values."""
        normed = self.layernorm1(x)
        if self.use_past:
            keep_factor = 1.0 - ops.cast(init_reset, dtypes.float16) if hasattr(init_reset, "dtype") else float(not init_reset)
            before = self.key_past * keep_factor, self.value_past * keep_factor
            seen, present = self.attention(normed, normed, normed, mask, *before, valid)
            ops.assign(self.key_past, ops.cast(present[0], dtypes.float16))
            ops.assign(self.value_past, ops.cast(present[1], dtypes.float16))
        else:
            seen, present = self.attention(normed, normed, normed, mask)
        return (normed if self.post_layernorm_residual else x) + seen, present

    def _ended_(self, x: Any) -> tuple[Any, Any]:
        """Return x plus the feed-forward net's output, and the loss of experts, which is 0 without them."""
        normed = self.layernorm2(x)
        out, loss = self.output(normed) if self.use_moe else (self.output(normed), None)
        return (normed if self.post_layernorm_residual else x) + out, loss

    def _settings_(self, out: Any, shape: Any, present: Any, loss: Any) -> Any:
        out = ops.reshape(out, shape)
        return (out, present, loss) if self.use_moe else (out, present)


def _of_experts(config: Any) -> Any:
    """Return the experts' part of a configuration; the default if it has none."""
    return getattr(config, "moe_parallel_config", config if hasattr(config, "expert_parallel") else default_moeparallel_config)


def _options(arguments: dict[str, Any]) -> dict[str, Any]:
    """The common arguments of layers and stacks, by purpose."""
    return {
        "types": {
        "layernorm": arguments["layernorm_compute_type"], "softmax": arguments["softmax_compute_type"],
        "init": arguments["param_init_type"],
        },
        "rates": (arguments["attention_dropout_rate"], arguments["hidden_dropout_rate"]),
        **{name: arguments[name] for name in ("post_layernorm_residual", "hidden_act", "use_past", "moe_config", "parallel_config")},
    }


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward net, with norms before them, over x (batch, length, hidden) or (batch * length, hidden).

    Returns (x, (keys, values)), and the loss of experts if `moe_config` has several.
    """

    def __init__(
        self, batch_size: int, hidden_size: int, ffn_hidden_size: int, num_heads: int, seq_length: int, attention_dropout_rate: float = 0.1,
        hidden_dropout_rate: float = 0.1, post_layernorm_residual: bool = False, layernorm_compute_type: Any = dtypes.float32,
        softmax_compute_type: Any = dtypes.float32, param_init_type: Any = dtypes.float32, hidden_act: Any = "gelu", use_past: bool = False,
        moe_config: Any = default_moe_config, parallel_config: Any = default_dpmp_config,
    ) -> None:
        super().__init__()
        options = _options(locals())
        self.seq_length = seq_length
        self._build_(hidden_size, ffn_hidden_size, num_heads, batch_size, seq_length, 0, options)

    def construct(self, x: Any, input_mask: Any = None, init_reset: Any = True, batch_valid_length: Any = None) -> Any:
        """Returns (x, (keys, values))."""
        out, present = self._attended_(ops.reshape(x, (-1, self.hidden_size)), input_mask, init_reset, batch_valid_length)
        out, loss = self._ended_(out)
        return self._settings_(out, x.shape, present, loss)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, and a feed-forward net, with norms before them, over (batch, length, hidden).

    Returns (x, (keys, values, the encoder's keys, the encoder's values)).
    """

    def __init__(
        self, hidden_size: int, ffn_hidden_size: int, num_heads: int, batch_size: int, src_seq_length: int, tgt_seq_length: int,
        attention_dropout_rate: float = 0.1, hidden_dropout_rate: float = 0.1, post_layernorm_residual: bool = False,
        use_past: bool = False, layernorm_compute_type: Any = dtypes.float32, softmax_compute_type: Any = dtypes.float32,
        param_init_type: Any = dtypes.float32, hidden_act: Any = "gelu", moe_config: Any = default_moe_config,
        parallel_config: Any = default_dpmp_config,
    ) -> None:
        super().__init__()
        options = _options(locals())
        if use_past:
            raise ValueError(message("TransformerDecoderLayer(use_past=True)", "False: MindSpore's decoder keeps no tokens either"))
        self.src_seq_length, self.tgt_seq_length = src_seq_length, tgt_seq_length
        self._build_(hidden_size, ffn_hidden_size, num_heads, batch_size, tgt_seq_length, src_seq_length, options)

    def construct(
        self, hidden_stats: Any, decoder_mask: Any, encoder_output: Any = None, memory_mask: Any = None, init_reset: Any = True,
        batch_valid_length: Any = None,
    ) -> Any:
        """Returns (x, (keys, values, ...))."""
        out, present = self._attended_(ops.reshape(hidden_stats, (-1, self.hidden_size)), decoder_mask, init_reset, batch_valid_length)
        if encoder_output is not None:
            normed = self.cross_attention_layernorm(out)
            memory = ops.reshape(encoder_output, (-1, self.hidden_size))
            seen, other = self.cross_attention(normed, memory, memory, memory_mask)
            out, present = (normed if self.post_layernorm_residual else out) + seen, (*present, *other)
        out, loss = self._ended_(out)
        return self._settings_(out, hidden_stats.shape, present, loss)


class _Stack(Cell):
    """A stack of layers."""

    def _stack_(self, layers: list[Cell], lambda_func: Any, offset: int, parallel_config: Any) -> None:
        configure = lambda_func or _get_lambda_func()
        for number, layer in enumerate(layers):
            if hasattr(parallel_config, "pipeline_stage"):
                configure(layer, layer_id=number, offset=offset, parallel_config=parallel_config, layers=len(layers))
        self.num_layers, self.use_moe = len(layers), bool(layers) and layers[0].use_moe
        self.blocks = CellList(layers)

    def _through_(self, x: Any, *others: Any) -> Any:
        presents, total = [], None
        for block in self.blocks:
            out = block(x, *others)
            x, present = out[0], out[1]
            presents.append(present)
            if self.use_moe:
                total = out[2] if total is None else total + out[2]
        return (x, tuple(presents), total) if self.use_moe else (x, tuple(presents))


class TransformerEncoder(_Stack):
    """`num_layers` encoder layers over (batch, length, hidden): returns (x, the keys and values of each layer)."""

    def __init__(
        self, batch_size: int, num_layers: int, hidden_size: int, ffn_hidden_size: int, seq_length: int, num_heads: int,
        attention_dropout_rate: float = 0.1, hidden_dropout_rate: float = 0.1, hidden_act: Any = "gelu",
        post_layernorm_residual: bool = False, layernorm_compute_type: Any = dtypes.float32, softmax_compute_type: Any = dtypes.float32,
        param_init_type: Any = dtypes.float32, lambda_func: Any = None, offset: int = 0, use_past: bool = False,
        moe_config: Any = default_moe_config, parallel_config: Any = default_transformer_config,
    ) -> None:
        super().__init__()
        self._stack_([TransformerEncoderLayer(
            batch_size, hidden_size, ffn_hidden_size, num_heads, seq_length, attention_dropout_rate, hidden_dropout_rate,
            post_layernorm_residual, layernorm_compute_type, softmax_compute_type, param_init_type, hidden_act, use_past, moe_config,
            parallel_config,
        ) for _ in range(num_layers)], lambda_func, offset, parallel_config)

    def construct(self, hidden_states: Any, attention_mask: Any, init_reset: Any = True, batch_valid_length: Any = None) -> Any:
        """Returns (x, keys and values)."""
        return self._through_(hidden_states, attention_mask, init_reset, batch_valid_length)


class TransformerDecoder(_Stack):
    """`num_layers` decoder layers over (batch, length, hidden): returns (x, the keys and values of each layer)."""

    def __init__(
        self, num_layers: int, batch_size: int, hidden_size: int, ffn_hidden_size: int, src_seq_length: int, tgt_seq_length: int,
        num_heads: int, attention_dropout_rate: float = 0.1, hidden_dropout_rate: float = 0.1, post_layernorm_residual: bool = False,
        layernorm_compute_type: Any = dtypes.float32, softmax_compute_type: Any = dtypes.float32, param_init_type: Any = dtypes.float32,
        hidden_act: Any = "gelu", lambda_func: Any = None, use_past: bool = False, offset: int = 0, moe_config: Any = default_moe_config,
        parallel_config: Any = default_transformer_config,
    ) -> None:
        super().__init__()
        self._stack_([TransformerDecoderLayer(
            hidden_size, ffn_hidden_size, num_heads, batch_size, src_seq_length, tgt_seq_length, attention_dropout_rate,
            hidden_dropout_rate, post_layernorm_residual, use_past, layernorm_compute_type, softmax_compute_type, param_init_type,
            hidden_act, moe_config, parallel_config,
        ) for _ in range(num_layers)], lambda_func, offset, parallel_config)

    def construct(
        self, hidden_states: Any, attention_mask: Any, encoder_output: Any = None, memory_mask: Any = None, init_reset: Any = True,
        batch_valid_length: Any = None,
    ) -> Any:
        """Returns (x, keys and values)."""
        return self._through_(hidden_states, attention_mask, encoder_output, memory_mask, init_reset, batch_valid_length)


class Transformer(Cell):
    """An encoder, a decoder, or both: returns (output, the encoder's keys and values, the decoder's, the loss of experts or 0)."""

    def __init__(
        self, hidden_size: int, batch_size: int, ffn_hidden_size: int, src_seq_length: int, tgt_seq_length: int, encoder_layers: int = 3,
        decoder_layers: int = 3, num_heads: int = 2, attention_dropout_rate: float = 0.1, hidden_dropout_rate: float = 0.1,
        hidden_act: Any = "gelu", post_layernorm_residual: bool = False, layernorm_compute_type: Any = dtypes.float32,
        softmax_compute_type: Any = dtypes.float32, param_init_type: Any = dtypes.float32, lambda_func: Any = None, use_past: bool = False,
        moe_config: Any = default_moe_config, parallel_config: Any = default_transformer_config,
    ) -> None:
        super().__init__()
        if encoder_layers < 1 and decoder_layers < 1:
            raise ValueError(message(f"Transformer(encoder_layers={encoder_layers}, decoder_layers={decoder_layers})", "one layer or more"))
        shared = {
            "attention_dropout_rate": attention_dropout_rate, "hidden_dropout_rate": hidden_dropout_rate, "hidden_act": hidden_act,
            "post_layernorm_residual": post_layernorm_residual, "layernorm_compute_type": layernorm_compute_type,
            "softmax_compute_type": softmax_compute_type, "param_init_type": param_init_type, "use_past": use_past,
            "moe_config": moe_config, "parallel_config": parallel_config,
            "lambda_func": lambda_func or _get_lambda_func(max(encoder_layers, 0) + max(decoder_layers, 0)),
        }
        self.encoder_layers, self.decoder_layers, self.use_moe = encoder_layers, decoder_layers, moe_config.expert_num > 1
        if encoder_layers > 0:
            self.encoder = TransformerEncoder(
                batch_size, encoder_layers, hidden_size, ffn_hidden_size, src_seq_length, num_heads, **shared,
            )
        if decoder_layers > 0:
            self.decoder = TransformerDecoder(
                decoder_layers, batch_size, hidden_size, ffn_hidden_size, src_seq_length, tgt_seq_length, num_heads,
                offset=max(encoder_layers, 0), **shared,
            )

    def construct(
        self, encoder_inputs: Any, encoder_masks: Any, decoder_inputs: Any = None, decoder_masks: Any = None, memory_mask: Any = None,
        init_reset: Any = True, batch_valid_length: Any = None,
    ) -> Any:
        """Returns (output, the encoder's keys and values, the decoder's, the loss of experts)."""
        out = encoder_present = decoder_present = None
        loss: Any = 0.0
        if self.encoder_layers > 0:
            result = self.encoder(encoder_inputs, encoder_masks, init_reset, batch_valid_length)
            out, encoder_present = result[0], result[1]
            loss = loss + result[2] if self.use_moe else loss
        if self.decoder_layers > 0:
            result = self.decoder(decoder_inputs, decoder_masks, out, memory_mask, init_reset, batch_valid_length)
            out, decoder_present = result[0], result[1]
            loss = loss + result[2] if self.use_moe else loss
        return out, encoder_present, decoder_present, loss
