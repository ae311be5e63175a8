"""Layers that record statistics for the optimizer `thor`: the covariances of their inputs and of the gradients of their outputs.

While the flag `thor` is set, a call stores the mean of x xᵀ in `matrix_a`, its backward pass that of g gᵀ in `matrix_g`. They compute in
float16, as in MindSpore. (Chen and others, THOR, arXiv 2106.02925; Martens and Grosse, K-FAC, arXiv 1503.05671.)
"""
from __future__ import annotations

from typing import Any

from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.layer.basic import Dense, Embedding
from torchspore.mindspore.nn.layer.conv import Conv2d
from torchspore.mindspore.nn.layer.embedding import EmbeddingLookup


class _WithStatistics:
    """Base class of the layers."""

    matrix_a: Parameter
    matrix_g: Parameter
    _watch: Any

    def _keep_(self, inputs: list[int], outputs: int) -> None:
        self.matrix_a = Parameter(initializer("zeros", inputs), name="matrix_a", requires_grad=False)
        self.matrix_g = Parameter(initializer("zeros", [outputs, outputs]), name="matrix_g", requires_grad=False)
        self.thor = False
        self._watch = ops.InsertGradientOf(self.save_gradient)

    def save_gradient(self, dout: Any) -> Any:
        """Store the covariance of the gradient (..., outputs); return the gradient."""
        rows = ops.reshape(dout, (-1, dout.shape[-1]))
        ops.assign(self.matrix_g, ops.cast(ops.matmul(ops.swapaxes(rows, 0, 1), rows) / rows.shape[0], dtypes.float32))
        return dout


def _half(x: Any) -> Any:
    return ops.cast(x, dtypes.float16)


class DenseThor(_WithStatistics, Dense):
    """A dense layer for `thor`, in float16. The arguments are those of Dense."""

    def __init__(
        self, in_channels: int, out_channels: int, weight_init: Any = "normal", bias_init: Any = "zeros", has_bias: bool = True,
        activation: Any = None,
    ) -> None:
        Dense.__init__(self, in_channels, out_channels, weight_init, bias_init, has_bias, activation)
        self._keep_([in_channels, in_channels], out_channels)

    def construct(self, x: Any) -> Any:
        """The layer's result for x, in float16."""
        x = _half(x)
        out = ops.matmul(x, ops.swapaxes(_half(self.weight), 0, 1))
        if self.thor:
            rows = ops.reshape(x, (-1, self.in_channels))
            products = ops.matmul(ops.swapaxes(rows, 0, 1), rows)
            ops.assign(self.matrix_a, ops.cast(products / self.in_channels, dtypes.float32))
            out = self._watch(out)
        if self.has_bias:
            out = out + _half(self.bias)
        return self.activation(out) if self.activation is not None else out


class Conv2dThor(_WithStatistics, Conv2d):
    """A convolution for `thor`, in float16. The arguments are those of Conv2d."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = "normal", bias_init: Any = "zeros",
    ) -> None:
        Conv2d.__init__(
            self, in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init,
        )
        self._pieces = in_channels // group * self.kernel_size[0] * self.kernel_size[1]
        self._keep_([self._pieces, self._pieces], out_channels)

    def construct(self, x: Any) -> Any:
        """The convolution of x, in float16."""
        x = _half(x)
        form = (self.stride, self.pad_mode, self.padding, self.dilation)
        out = ops.conv2d(x, _half(self.weight), None, *form, self.group)
        if self.thor and self.group == 1:
            pick = ops.reshape(ops.eye(self._pieces, self._pieces, dtypes.float16), (self._pieces, *self.weight.shape[1:]))
            seen = ops.reshape(ops.transpose(ops.conv2d(x, pick, None, *form), (0, 2, 3, 1)), (-1, self._pieces))
            ops.assign(self.matrix_a, ops.cast(ops.matmul(ops.swapaxes(seen, 0, 1), seen / seen.shape[0]), dtypes.float32))
            out = ops.transpose(self._watch(ops.transpose(out, (0, 2, 3, 1))), (0, 3, 1, 2))
        return out + ops.reshape(_half(self.bias), (1, -1, 1, 1)) if self.has_bias else out


class EmbeddingThor(_WithStatistics, Embedding):
    """An embedding table for `thor`; `matrix_a` counts how often each row was used. The arguments are those of Embedding."""

    def __init__(
        self, vocab_size: int, embedding_size: int, use_one_hot: bool = False, embedding_table: Any = "normal", dtype: Any = dtypes.float32,
        padding_idx: int | None = None,
    ) -> None:
        Embedding.__init__(self, vocab_size, embedding_size, use_one_hot, embedding_table, dtype, padding_idx)
        self._keep_([vocab_size], embedding_size)

    def construct(self, ids: Any) -> Any:
        """The rows at `ids`."""
        out = Embedding.construct(self, ids)
        return self._counted_(ids, self.vocab_size, out) if self.thor else out

    def _counted_(self, ids: Any, count: int, out: Any) -> Any:
        one_hot_ids = ops.one_hot(ops.reshape(ids, (-1,)), count, 1.0, 0.0)
        ops.assign(self.matrix_a, ops.cast(ops.sum(one_hot_ids, 0), dtypes.float32))
        return self._watch(out)


class EmbeddingLookupThor(_WithStatistics, EmbeddingLookup):
    """As EmbeddingThor, with the arguments of EmbeddingLookup."""

    def __init__(
        self, vocab_size: int, embedding_size: int, param_init: Any = "normal", target: str = "CPU", slice_mode: str = "batch_slice",
        manual_shapes: Any = None, max_norm: float | None = None, sparse: bool = True,
    ) -> None:
        EmbeddingLookup.__init__(self, vocab_size, embedding_size, param_init, target, slice_mode, manual_shapes, max_norm, sparse)
        self._count = vocab_size
        self._keep_([vocab_size], embedding_size)

    def construct(self, indices: Any) -> Any:
        """The rows at `indices`."""
        out = EmbeddingLookup.construct(self, indices)
        return EmbeddingThor._counted_(self, indices, self._count, out) if self.thor else out  # type: ignore[arg-type]
