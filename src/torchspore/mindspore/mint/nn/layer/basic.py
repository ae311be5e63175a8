"""Linear layers, embeddings, dropout, shapes as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_counts
from torchspore.base.text import message, with_type
from torchspore.engine.tensors import dtypes
from torchspore.mindspore.common.initializer import HeUniform, Normal, Uniform, initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.mint.nn import functional as F
from torchspore.mindspore.mint.nn.layer.shared import layer
from torchspore.mindspore.nn.cell import Cell

Flatten = layer("Flatten", F.flatten, start_dim=1, end_dim=-1)


class Identity(Cell):
    """Returns its input; the constructor accepts any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.arguments = (args, kwargs)

    def construct(self, input: Any) -> Any:
        """Return x."""
        return input


class Linear(Cell):
    """x @ weight.T + bias: (..., in_features) gives (..., out_features).

    `weight` (out, in) is initialized He-uniform, `bias` uniform within 1 / sqrt(in), unless the initializers say otherwise.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, weight_init: Any = None, bias_init: Any = None, dtype: Any = None,
    ) -> None:
        super().__init__()
        check_counts("Linear", in_features=in_features, out_features=out_features)
        if not isinstance(bias, bool):
            raise TypeError(message(f"Linear(bias={bias!r})", with_type("a bool", bias)))
        self.in_features, self.out_features, self.has_bias = in_features, out_features, bias
        kind = dtype or dtypes.float32
        weight_init = HeUniform(5**0.5) if weight_init is None else weight_init
        self.weight = Parameter(initializer(weight_init, [out_features, in_features], kind), name="weight")
        self.bias = None
        if bias:
            bias_init = Uniform(1 / in_features**0.5) if bias_init is None else bias_init
            self.bias = Parameter(initializer(bias_init, [out_features], kind), name="bias")

    def construct(self, input: Any) -> Any:
        """The layer's result for (..., in_features)."""
        return F.linear(input, self.weight, self.bias)

    def extend_repr(self) -> str:
        shown = f"input_features={self.in_features}, output_features={self.out_features}"
        return shown + (f", has_bias={self.has_bias}" if self.has_bias else "")


class Embedding(Cell):
    """The rows of `weight` (num_embeddings, embedding_dim) at integer indexes; the row `padding_idx` is zeros and stays so.

    `max_norm` scales rows down to that norm when they are used; `scale_grad_by_freq` divides gradients by the number of a row's uses.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None, _freeze: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_counts("Embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if sparse:
            raise ValueError("Embedding(sparse=True): expected False; gradients of embeddings are dense here.")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding(padding_idx={padding_idx}): expected one of {num_embeddings} rows.")
        shape = [num_embeddings, embedding_dim]
        if _weight is not None and list(_weight.shape) != shape:
            raise ValueError(f"Embedding(_weight=...) of shape {tuple(_weight.shape)}: expected {tuple(shape)}.")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx if padding_idx is None or padding_idx >= 0 else num_embeddings + padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.dtype = dtypes.float32 if dtype is None else dtype
        start = initializer(Normal(1.0), shape, self.dtype) if _weight is None else _weight
        self.weight = Parameter(start, name="weight", requires_grad=not _freeze)
        if self.padding_idx is not None and _weight is None:
            self.weight[self.padding_idx] = 0

    def construct(self, input: Any) -> Any:
        """The rows at `input`."""
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)

    def extend_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, padding_idx={self.padding_idx}, "
            f"max_norm={self.max_norm}, norm_type={self.norm_type}, scale_grad_by_freq={self.scale_grad_by_freq}, dtype={self.dtype}"
        )


class Dropout(Cell):
    """Sets elements to 0 with probability `p` while training, and divides the others by 1 - p."""

    _drop_ = staticmethod(F.dropout)

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}(p={p}): expected a number from 0 to 1.")
        self.p, self.inplace = p, inplace

    def construct(self, input: Any) -> Any:
        """The input after dropout."""
        return self._drop_(input, self.p, self.training, self.inplace)


class Dropout2d(Dropout):
    """Sets channels of (N, C, H, W) to 0 with probability `p` while training, and divides the others by 1 - p."""

    _drop_ = staticmethod(F.dropout2d)
