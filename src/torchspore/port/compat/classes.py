"""Layers with the arguments of MindSpore's: for classes that a program hands on, derives from, or creates with `**arguments`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchspore.port.compat.functions import activation_named, fill_initially, in_format, pad_to_keep_size
from torchspore.port.compat.layers import PaddedConv1d, PaddedConv2d, PaddedConv3d, PaddedConvTranspose2d, PaddedConvTranspose3d


class GELU(nn.GELU):
    """A GELU that is approximated by tanh by default."""

    def __init__(self, approximate: bool = True) -> None:
        super().__init__("tanh" if approximate else "none")


class LayerNorm(nn.LayerNorm):
    """A LayerNorm whose default epsilon is 1e-7."""

    def __init__(
        self, normalized_shape: Any, begin_norm_axis: int = -1, begin_params_axis: int = -1, gamma_init: Any = None, beta_init: Any = None,
        epsilon: float = 1e-7, dtype: Any = None,
    ) -> None:
        super().__init__(normalized_shape, eps=epsilon)
        self.epsilon = epsilon
        for parameter, value in ((self.weight, gamma_init), (self.bias, beta_init)):
            if value is not None:
                fill_initially(parameter, value)

    def layer_norm(self, x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, None, None]:
        """Return the normalized values."""
        return F.layer_norm(x, self.normalized_shape, weight, bias, self.eps), None, None


class GroupNorm(nn.GroupNorm):
    """A GroupNorm whose initial values are arguments."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, gamma_init: Any = None, beta_init: Any = None,
    ) -> None:
        super().__init__(num_groups, num_channels, eps)
        self.requires_grad_(affine)
        for parameter, value in ((self.weight, gamma_init), (self.bias, beta_init)):
            if value is not None:
                fill_initially(parameter, value)


class BatchNorm1d(nn.BatchNorm1d):
    """A BatchNorm1d whose momentum is the share of the old average."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, gamma_init: Any = None,
        beta_init: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum=1 - momentum)
        self.requires_grad_(affine)
        for parameter, value in ((self.weight, gamma_init), (self.bias, beta_init)):
            if value is not None:
                fill_initially(parameter, value)


class BatchNorm2d(nn.BatchNorm2d):
    """A BatchNorm2d whose momentum is the share of the old average."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, gamma_init: Any = None,
        beta_init: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum=1 - momentum)
        self.requires_grad_(affine)
        for parameter, value in ((self.weight, gamma_init), (self.bias, beta_init)):
            if value is not None:
                fill_initially(parameter, value)


class BatchNorm3d(nn.BatchNorm3d):
    """A BatchNorm3d whose momentum is the share of the old average."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, gamma_init: Any = None,
        beta_init: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum=1 - momentum)
        self.requires_grad_(affine)
        for parameter, value in ((self.weight, gamma_init), (self.bias, beta_init)):
            if value is not None:
                fill_initially(parameter, value)


class Dropout(nn.Dropout):
    """A Dropout with the probability to keep a value, or `p`, the probability to drop it."""

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: Any = None) -> None:
        super().__init__(1 - keep_prob if p is None else p)


class Conv2d(PaddedConv2d):
    """A convolution whose way of padding is an argument; no bias by default."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias)
        for parameter, value in ((self.weight, weight_init), (self.bias, bias_init)):
            if value is not None and parameter is not None:
                fill_initially(parameter, value)
        in_format(self, data_format)

    def conv2d(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return the convolution with another weight, without the bias."""
        if self.pad_mode == "same":
            x = pad_to_keep_size(x, self.kernel_size, self.stride, self.dilation)
        return F.conv2d(x, weight, None, self.stride, self.padding, self.dilation, self.groups)


class Conv1d(PaddedConv1d):
    """A convolution whose way of padding is an argument; no bias by default."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias)
        for parameter, value in ((self.weight, weight_init), (self.bias, bias_init)):
            if value is not None and parameter is not None:
                fill_initially(parameter, value)


class Conv3d(PaddedConv3d):
    """A convolution whose way of padding is an argument; no bias by default."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias)
        for parameter, value in ((self.weight, weight_init), (self.bias, bias_init)):
            if value is not None and parameter is not None:
                fill_initially(parameter, value)


class Conv2dTranspose(PaddedConvTranspose2d):
    """A transposed convolution whose way of padding is an argument; no bias by default."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias)
        for parameter, value in ((self.weight, weight_init), (self.bias, bias_init)):
            if value is not None and parameter is not None:
                fill_initially(parameter, value)


class Conv3dTranspose(PaddedConvTranspose3d):
    """A transposed convolution whose way of padding is an argument; no bias by default."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = None, bias_init: Any = None,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias)
        for parameter, value in ((self.weight, weight_init), (self.bias, bias_init)):
            if value is not None and parameter is not None:
                fill_initially(parameter, value)


class Dense(nn.Linear):
    """A Linear layer with an activation, whose initial values are arguments."""

    def __init__(
        self, in_channels: int, out_channels: int, weight_init: Any = None, bias_init: Any = None, has_bias: bool = True,
        activation: Any = None,
    ) -> None:
        super().__init__(in_channels, out_channels, has_bias)
        self.has_bias = has_bias
        self.activation = activation_named(activation) if isinstance(activation, str) else activation
        for parameter, value in ((self.weight, weight_init), (self.bias, bias_init)):
            if value is not None and parameter is not None:
                fill_initially(parameter, value)

    def forward(self, input: Tensor) -> Tensor:
        """Return the activated result."""
        result = super().forward(input)
        return result if self.activation is None else self.activation(result)


class Unfold(nn.Module):
    """Cuts pictures into patches whose values are channels."""

    def __init__(self, ksizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str = "valid") -> None:
        super().__init__()
        self.sizes, self.strides, self.rates, self.padding = ksizes[1:3], strides[1:3], rates[1:3], padding.lower()

    def forward(self, x: Tensor) -> Tensor:
        """Return the patches: batch, values of a patch, rows, columns."""
        reach = [(size - 1) * rate + 1 for size, rate in zip(self.sizes, self.rates)]
        if self.padding == "same":
            counts = [-(-length // step) for length, step in zip(x.shape[2:], self.strides)]
            missing = [max((n - 1) * s + r - length, 0) for n, s, r, length in zip(counts, self.strides, reach, x.shape[2:])]
            x = F.pad(x, [missing[1] // 2, missing[1] - missing[1] // 2, missing[0] // 2, missing[0] - missing[0] // 2])
        rows, columns = ((length - r) // step + 1 for length, r, step in zip(x.shape[2:], reach, self.strides))
        patches = F.unfold(x, tuple(self.sizes), tuple(self.rates), 0, tuple(self.strides))
        patches = patches.reshape(x.shape[0], x.shape[1], -1, rows, columns)
        return patches.transpose(1, 2).reshape(x.shape[0], -1, rows, columns)


class MatMul(nn.Module):
    """The product of matrices, which it transposes first."""

    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False) -> None:
        super().__init__()
        self.transpose_x1, self.transpose_x2 = transpose_x1, transpose_x2

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the product."""
        x1 = x1.mT if self.transpose_x1 and x1.ndim > 1 else x1
        return torch.matmul(x1, x2.mT if self.transpose_x2 and x2.ndim > 1 else x2)


class Initializer:
    """An initializer whose subclasses fill a NumPy array."""

    def __init__(self, **arguments: Any) -> None:
        self._kwargs = arguments

    def __call__(self, tensor: Tensor) -> Tensor:
        """Fill a tensor."""
        array = np.zeros(tuple(tensor.shape), np.float32)
        self._initialize(array)
        with torch.no_grad():
            return tensor.copy_(torch.from_numpy(array))

    def _initialize(self, arr: Any) -> None:
        raise NotImplementedError
