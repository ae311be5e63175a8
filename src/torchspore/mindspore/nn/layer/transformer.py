"""Attention and transformers (Vaswani and others, 2017) as Cells."""
from __future__ import annotations

import copy
import math
from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.frames import line_prefix
from torchspore.base.text import message, short
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import HeUniform, Uniform, XavierNormal, XavierUniform, initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.basic import Dense, Dropout
from torchspore.mindspore.nn.layer.container import CellList
from torchspore.mindspore.nn.layer.normalization import LayerNorm


class MultiheadAttention(Cell):
    """Attention of `num_heads` heads over vectors of length `embed_dim`.

    A call with (query (L, N, E), key (S, N, kdim), value (S, N, vdim)), with `batch_first` N first, or without N, returns the result and
    with `need_weights` the weights (N, L, S), the mean over the heads unless `average_attn_weights` is False. `key_padding_mask` (N, S)
    and `attn_mask` (L, S) or (N * heads, L, S) forbid where True, or are added. `add_bias_kv` adds a trained key and value,
    `add_zero_attn` zeros. Raises ValueError if the lengths do not fit.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, has_bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention(num_heads={num_heads}): expected a divisor of embed_dim={embed_dim}.")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self._has_stacked_weight_ = self.kdim == embed_dim and self.vdim == embed_dim
        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = None
        if self._has_stacked_weight_:
            self.in_proj_weight = Parameter(initializer(XavierUniform(), (3 * embed_dim, embed_dim), dtype), name="in_proj_weight")
        else:
            for name, length in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
                weight_name = f"{name}_proj_weight"
                setattr(self, weight_name, Parameter(initializer(XavierUniform(), (embed_dim, length), dtype), name=weight_name))
        self.in_proj_bias = Parameter(initializer("zeros", (3 * embed_dim,), dtype), name="in_proj_bias") if has_bias else None
        self.bias_k = self.bias_v = None
        self.out_proj = Dense(embed_dim, embed_dim, HeUniform(5**0.5), Uniform(1 / math.sqrt(embed_dim)), has_bias, dtype=dtype)
        if add_bias_kv:
            self.bias_k = Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype), name="bias_k")
            self.bias_v = Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype), name="bias_v")

    def construct(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
        average_attn_weights: bool = True,
    ) -> Any:
        """Return (result, weights), or (result,) without weights."""
        batched = query.ndim == 3
        if not batched:
            query, key, value = (ops.expand_dims(x, 1) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else ops.expand_dims(key_padding_mask, 0)
        elif self.batch_first:
            query, key, value = (ops.swapaxes(x, 0, 1) for x in (query, key, value))
        if query.shape[2] != self.embed_dim or key.shape[:2] != value.shape[:2]:
            raise ValueError(
                f"{line_prefix()}MultiheadAttention: expected queries of length {self.embed_dim} and as many keys as values, got shapes "
                f"{query.shape}, {key.shape}, {value.shape}."
            )
        out, weights = self._attend_(*self._projected_(query, key, value), self._mask_(query, key, key_padding_mask, attn_mask))
        out = self.out_proj(out)
        if average_attn_weights:
            weights = ops.mean(weights, 1)
        if not batched:
            out, weights = ops.squeeze(out, 1), ops.squeeze(weights, 0)
        elif self.batch_first:
            out = ops.swapaxes(out, 0, 1)
        return (out, weights) if need_weights else (out,)

    def _projected_(self, query: Any, key: Any, value: Any) -> list[Any]:
        e = self.embed_dim
        stacked_weight = self.in_proj_weight
        parts = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        weights = [stacked_weight[i * e:(i + 1) * e] for i in range(3)] if self._has_stacked_weight_ else parts
        biases = [None] * 3 if self.in_proj_bias is None else [self.in_proj_bias[i * e:(i + 1) * e] for i in range(3)]
        return [ops.dense(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]

    def _mask_(self, query: Any, key: Any, padding: Any, mask: Any) -> Any:
        """Return the sum of the masks for the products (N, heads, L, S), or None."""
        length, batch, count = query.shape[0], query.shape[1], key.shape[0]
        _check_mask("attn_mask", mask, (dtypes.bool_, dtypes.uint8, dtypes.float16, dtypes.bfloat16, dtypes.float32))
        _check_mask("key_padding_mask", padding, (dtypes.bool_, dtypes.float16, dtypes.bfloat16, dtypes.float32))
        total = None
        if mask is not None:
            expected_shape = (length, count) if mask.ndim == 2 else (batch * self.num_heads, length, count)
            if mask.shape != expected_shape:
                raise ValueError(f"{line_prefix()}MultiheadAttention: attn_mask: expected shape {expected_shape}, got {mask.shape}.")
            total = _added(mask, query.dtype)
            total = total if mask.ndim == 2 else ops.reshape(total, (batch, self.num_heads, length, count))
        if padding is not None:
            if padding.shape != (batch, count):
                call = f"{line_prefix()}MultiheadAttention: key_padding_mask"
                raise ValueError(f"{call}: expected shape {(batch, count)}, got {padding.shape}.")
            padding_mask = ops.reshape(_added(padding, query.dtype), (batch, 1, 1, count))
            total = padding_mask if total is None else total + padding_mask
        return total

    def _attend_(self, q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any]:
        length, batch = q.shape[0], q.shape[1]
        more = 0
        if self.bias_k is not None:
            k = ops.concat((k, ops.tile(self.bias_k, (1, batch, 1))), 0)
            v = ops.concat((v, ops.tile(self.bias_v, (1, batch, 1))), 0)
            more += 1
        if self.add_zero_attn:
            zeros = ops.zeros((1, batch, self.embed_dim), q.dtype)
            k, v = ops.concat((k, zeros), 0), ops.concat((v, zeros), 0)
            more += 1
        q, k, v = (ops.transpose(ops.reshape(x, (x.shape[0], batch, self.num_heads, self.head_dim)), (1, 2, 0, 3)) for x in (q, k, v))
        products = ops.matmul(q / math.sqrt(self.head_dim), ops.swapaxes(k, 2, 3))
        if mask is not None:
            if more:
                mask = ops.concat((mask, ops.zeros((*mask.shape[:-1], more), mask.dtype)), -1)
            products = products + mask
        weights = ops.softmax(products, -1)
        dropped = ops.dropout(weights, self.dropout) if self.training and self.dropout else weights
        out = ops.reshape(ops.transpose(ops.matmul(dropped, v), (2, 0, 1, 3)), (length, batch, self.embed_dim))
        return out, weights


def _check_mask(argument: str, mask: Any, accepted: tuple[Any, ...]) -> None:
    """Raises ValueError for a mask of another dtype: integers would be added to the products."""
    if mask is not None and mask.dtype not in accepted:
        raise ValueError(f"{line_prefix()}MultiheadAttention: expected {argument} of truth values or floats, got {mask.dtype}.")


def _added(mask: Any, dtype: Any) -> Any:
    """Convert a mask to numbers that are added: minus infinity where it is True, or not 0 in uint8."""
    if mask.dtype == dtypes.uint8:
        mask = mask.astype(dtypes.bool_)
    if mask.dtype != dtypes.bool_:
        return mask.astype(dtype)
    return ops.masked_fill(ops.zeros(mask.shape, dtype), mask, float("-inf"))


def _activation(name: str, activation: Any) -> Any:
    """Return the function of a name ('relu' or 'gelu'), or the Cell or function itself."""
    if isinstance(activation, str):
        if activation not in ("relu", "gelu"):
            raise ValueError(f"{name}(activation={activation!r}): expected 'relu', 'gelu', a Cell or a function.")
        return ops.relu if activation == "relu" else ops.gelu
    if not callable(activation):
        raise TypeError(f"{name}(activation={activation!r:.40}): expected a name, a Cell or a function, got {type(activation).__name__}.")
    return activation


class TransformerEncoderLayer(Cell):
    """Self-attention and two dense layers, each with a residual connection and a layer norm: before them with `norm_first`, else after."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        self._arguments_ = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm2 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.dropout1, self.dropout2 = Dropout(p=dropout), Dropout(p=dropout)
        self.activation = _activation("TransformerEncoderLayer", activation)

    def construct(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None) -> Any:
        """The layer's result, of the shape of `src`."""
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any) -> Any:
        return self.dropout1(self.self_attn(x, x, x, key_padding_mask, False, attn_mask)[0])

    def _ff_block(self, x: Any) -> Any:
        return self.dropout2(self.dense2(self.dropout(self.activation(self.dense1(x)))))


class TransformerDecoderLayer(Cell):
    """Self-attention, attention to a memory and two dense layers, as in TransformerEncoderLayer."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        self._arguments_ = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm_first = norm_first
        self.norm1, self.norm2, self.norm3 = (LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype) for _ in range(3))
        self.dropout1, self.dropout2, self.dropout3 = (Dropout(p=dropout) for _ in range(3))
        self.activation = _activation("TransformerDecoderLayer", activation)

    def construct(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Any:
        """The layer's result, of the shape of `tgt`."""
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), tgt_mask, tgt_key_padding_mask)
            x = x + self._mha_block(self.norm2(x), memory, memory_mask, memory_key_padding_mask)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + self._mha_block(x, memory, memory_mask, memory_key_padding_mask))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any) -> Any:
        return self.dropout1(self.self_attn(x, x, x, key_padding_mask, False, attn_mask)[0])

    def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any) -> Any:
        return self.dropout2(self.multihead_attn(x, mem, mem, key_padding_mask, False, attn_mask)[0])

    def _ff_block(self, x: Any) -> Any:
        return self.dropout3(self.dense2(self.dropout(self.activation(self.dense1(x)))))


def _copies(call: str, layer: Any, count: Any) -> CellList:
    """Return `count` equal layers. MindSpore draws new weights instead of copying those of `layer`, and so does this function.

    A layer of a user class is copied with its weights. Raises TypeError for a value that is not a Cell or not an int, ValueError for a
    number below 0.
    """
    if not isinstance(layer, Cell):
        raise TypeError(message(f"{call}({short(layer)})", f"a layer, got {type(layer).__name__}"))
    check_int_type(call, "num_layers", count)
    if count < 0:
        raise ValueError(message(f"{call}(num_layers={count})", "an int from 0 on"))
    if type(layer) in (TransformerEncoderLayer, TransformerDecoderLayer):
        layer = type(layer)(*layer._arguments_)
    return CellList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Cell):
    """`num_layers` copies of an encoder layer in sequence, and `norm` at the end."""

    def __init__(self, encoder_layer: Cell, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _copies("TransformerEncoder", encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def construct(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None) -> Any:
        """The encoder's result, of the shape of `src`."""
        for layer in self.layers:
            src = layer(src, src_mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Cell):
    """`num_layers` copies of a decoder layer in sequence, and `norm` at the end."""

    def __init__(self, decoder_layer: Cell, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _copies("TransformerDecoder", decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def construct(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Any:
        """The decoder's result, of the shape of `tgt`."""
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Cell):
    """An encoder and a decoder: (src (S, N, E), tgt (T, N, E)) give (T, N, E), with `batch_first` N first, or without N."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
        dropout: float = 0.1, activation: Any = "relu", custom_encoder: Any = None, custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype)
        norm = lambda: LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        if custom_encoder is None:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*shared), num_encoder_layers, norm())
        if custom_decoder is None:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*shared), num_decoder_layers, norm())
        for parameter in self.get_parameters():
            if parameter.ndim > 1:
                parameter.set_data(initializer("xavier_uniform", parameter.shape, parameter.dtype))
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def construct(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None, src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
    ) -> Any:
        """The decoder's result, of the shape of `tgt`."""
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            shapes = f"{src.shape} and {tgt.shape}"
            raise ValueError(f"{line_prefix()}Transformer: expected vectors of length {self.d_model}, got shapes {shapes}.")
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ValueError(f"{line_prefix()}Transformer: expected equal batches, got shapes {src.shape} and {tgt.shape}.")
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)


__all__ = [
    "MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]
