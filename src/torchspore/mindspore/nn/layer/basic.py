"""Dense, Dropout, Flatten and similar layers."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.text import message, short
from torchspore.context.store import STORE
from torchspore.engine.random.operator_streams import OperatorStream
from torchspore.engine.tensors import dtypes
from torchspore.errors import NameRefused
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import HeUniform, Uniform, initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.remote_parameters import is_remote
from torchspore.mindspore.common.seed import _get_graph_seed
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.parts import Part
from torchspore.mindspore.ops.collectives.remote_tables import remote_rows
from torchspore.mindspore.ops.declaration.kind_checks import check_kinds
from torchspore.mindspore.ops.declaration.limits import axes, checked, lengths, optional, truth
from torchspore.mindspore.ops.linear_algebra.matrix_products import dense_layer
from torchspore.mindspore.ops.random_draws import dropouts


class Dense(Cell):
    """x @ weight.T + bias, then an activation: (..., in_channels) gives (..., out_channels).

    `weight` (out, in) is initialized He-uniform, `bias` uniform within 1 / sqrt(in), unless the initializers say otherwise.
    """

    matmul, bias_add = Part(lambda _: ops.MatMul(transpose_b=True)), Part(lambda _: ops.BiasAdd())
    reshape, shape_op = Part(lambda _: ops.Reshape()), Part(lambda _: ops.Shape())

    def __init__(
        self, in_channels: int, out_channels: int, weight_init: Any = None, bias_init: Any = None, has_bias: bool = True,
        activation: Any = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        super().__init__()
        for name, value in (("in_channels", in_channels), ("out_channels", out_channels)):
            check_int_type("Dense", name, value)
            if value < 1:
                raise ValueError(message(f"Dense({name}={value})", "an int from 1 on"))
        check_kinds("Dense", "bool", has_bias=has_bias)
        self.in_channels, self.out_channels, self.has_bias = in_channels, out_channels, has_bias
        weight_init = HeUniform(5**0.5) if weight_init is None else weight_init
        self.weight = Parameter(initializer(weight_init, [out_channels, in_channels], dtype), name="weight")
        self.bias = None
        if has_bias:
            bias_init = Uniform(1 / in_channels**0.5) if bias_init is None else bias_init
            self.bias = Parameter(initializer(bias_init, [out_channels], dtype), name="bias")
        if activation is not None and not isinstance(activation, str) and not callable(activation):
            raise TypeError(f"Dense(activation={short(activation)}): expected a name or a Cell, got {type(activation).__name__}.")
        self.activation = get_activation(activation) if isinstance(activation, str) else activation
        self.activation_flag = self.activation is not None

    def construct(self, x: Any) -> Any:
        """The layer's result for x."""
        out = dense_layer(x, self.weight, self.bias)
        return self.activation(out) if self.activation is not None else out

    def extend_repr(self) -> str:
        shown = f"input_channels={self.in_channels}, output_channels={self.out_channels}, has_bias={self.has_bias}"
        return shown + (f", activation={self.activation}" if self.activation is not None else "")


class Dropout(Cell):
    """Sets elements to 0 while training and divides the others by the fraction that stays.

    `p` is the dropped fraction; the first positional argument is the fraction that *stays*, as in 1.x. Raises ValueError outside the range.
    """

    dropout = Part(lambda cell: ops.Dropout(cell.keep_prob if cell.p is None else 1 - cell.p, *cell._stream_.seeds))

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__()
        if p is None:
            if isinstance(keep_prob, bool) or not isinstance(keep_prob, (int, float)):
                raise TypeError(f"Dropout(keep_prob={keep_prob!r}): expected a float, got {type(keep_prob).__name__}.")
            if not 0 < keep_prob <= 1:
                raise ValueError(f"Dropout(keep_prob={keep_prob}): expected a number above 0 and up to 1.")
        elif isinstance(p, bool) or not isinstance(p, (int, float)):
            raise TypeError(f"Dropout(p={p!r}): expected a float, got {type(p).__name__}.")
        elif not 0 <= p < 1:
            raise ValueError(f"Dropout(p={p}): expected a number from 0 to below 1.")
        self.keep_prob, self.p = keep_prob, p
        self._stream_ = OperatorStream(_get_graph_seed(0, "dropout"))

    def construct(self, x: Any) -> Any:
        """x with elements dropped while training, else x."""
        if not self.training or self.keep_prob == 1 or self.p == 0:
            return x
        return dropouts._layer_dropout(x, self.keep_prob if self.p is None else 1.0 - self.p, self._stream_)

    def extend_repr(self) -> str:
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class Flatten(Cell):
    """Merges the axes from `start_dim` to `end_dim`."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def construct(self, x: Any) -> Any:
        """x with those axes merged."""
        return ops.flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Identity(Cell):
    """Returns its input."""

    def construct(self, x: Any) -> Any:
        """Return x."""
        return x


class Embedding(Cell):
    """A table of vectors: indexes (...) give (..., embedding_size).

    `padding_idx` is a row that is zeros initially. `use_one_hot` computes the same result by a matrix product.
    """

    gather, one_hot, array_mul = Part(lambda _: ops.Gather()), Part(lambda _: ops.OneHot()), Part(lambda _: ops.MatMul())
    reshape_flat, reshape, expand = Part(lambda _: ops.Reshape()), Part(lambda _: ops.Reshape()), Part(lambda _: ops.ExpandDims())
    get_shp, concat = Part(lambda _: ops.Shape()), Part(lambda _: ops.Concat())

    @checked(vocab_size=lengths(), embedding_size=lengths(), use_one_hot=truth, padding_idx=optional(lengths(least=0)))
    def __init__(
        self, vocab_size: int, embedding_size: int, use_one_hot: bool = False, embedding_table: Any = "normal", dtype: Any = dtypes.float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size, self.embedding_size = vocab_size, embedding_size
        self.use_one_hot, self.dtype, self.padding_idx = use_one_hot, dtype, padding_idx
        table = initializer(embedding_table, [vocab_size, embedding_size], dtype)
        if padding_idx is not None:
            if not 0 <= padding_idx < vocab_size:
                raise ValueError(f"Embedding(padding_idx={padding_idx}): expected a row from 0 to {vocab_size - 1}.")
            table[padding_idx] = 0
        self.embedding_table = Parameter(table, name="embedding_table")
        if not use_one_hot:
            self.embedding_table.__dict__["server_table"] = 0, bool(STORE.get("enable_sparse"))

    def construct(self, ids: Any) -> Any:
        """The rows at `ids`."""
        if is_remote(self.embedding_table):
            return remote_rows(self.embedding_table, ids)
        if self.use_one_hot:
            return ops.matmul(ops.one_hot(ids, self.vocab_size, 1.0, 0.0).astype(self.dtype), self.embedding_table)
        return ops.gather(self.embedding_table, ids, 0)

    def extend_repr(self) -> str:
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
            f"embedding_table={self.embedding_table}, dtype={self.dtype}, padding_idx={self.padding_idx}"
        )


class Pad(Cell):
    """Pads each axis by the rows of `paddings`; `mode` is 'CONSTANT' (zeros), 'REFLECT' or 'SYMMETRIC'."""

    def __init__(self, paddings: Any, mode: str = "CONSTANT") -> None:
        super().__init__()
        if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
            raise ValueError(f"Pad(mode={mode!r}): expected 'CONSTANT', 'REFLECT' or 'SYMMETRIC'.")
        if not isinstance(paddings, tuple):
            raise TypeError(
                f"Pad(paddings={paddings!r:.40}): expected a tuple of (before, after) for each axis, got {type(paddings).__name__}."
            )
        if any(len(row) != 2 for row in paddings):
            raise ValueError(f"Pad(paddings={paddings!r:.40}): expected (before, after) for each axis.")
        self.paddings, self.mode = paddings, mode
        self.pad = ops.Pad(paddings) if mode == "CONSTANT" else ops.MirrorPad(mode)

    def construct(self, x: Any) -> Any:
        """The padded x."""
        return self.pad(x) if self.mode == "CONSTANT" else self.pad(x, self.paddings)


def check_dense_input_shape(x: Any, prim_name: str | None = None) -> None:
    """Raises ValueError for the shape of a dense layer's input with fewer than two axes; a helper of 1.x."""
    if len(x) < 2:
        raise ValueError(f"{prim_name or 'Dense'}: expected an input of at least two axes, got shape {tuple(x)}.")


class ClipByNorm(Cell):
    """Scales a Tensor down so that its norm along `axis` is at most `clip_norm`."""

    @checked(axis=optional(axes(tuple, list)))
    def __init__(self, axis: Any = None) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any, clip_norm: Any) -> Any:
        """x scaled down."""
        norm = ops.sqrt(ops.sum(ops.square(x), self.axis, True))
        return x * clip_norm / ops.maximum(norm, clip_norm)


def get_activation(name: str | None, prim_name: str | None = None) -> Any:
    """Return the activation Cell of this name. Raises KeyError for an unknown one."""
    from torchspore.mindspore.nn.layer.activation import ACTIVATIONS

    if name is None:
        return None
    if name not in ACTIVATIONS:
        raise NameRefused(f"get_activation({name!r}): expected one of {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]()


__all__ = ["ClipByNorm", "Dense", "Dropout", "Embedding", "Flatten", "Identity", "Pad", "get_activation"]
