"""Layers that torch lacks. The output of a port contains the text of those that it calls."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchspore.port.compat.functions import kl_div, one_hot, pad_to_keep_size, softmax_cross_entropy, two_sided
from torchspore.port.compat.images import avg_pool2d, avg_pool3d, interpolate_bicubically, max_pool2d, max_pool3d, resize_bilinear


class LinearWithActivation(nn.Linear):
    """A Linear layer whose result goes through an activation."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, activation: Any = None) -> None:
        super().__init__(in_features, out_features, bias)
        self.activation = activation

    def forward(self, input: Tensor) -> Tensor:
        """Return the activated result."""
        result = super().forward(input)
        return result if self.activation is None else self.activation(result)


class KeepSizeConv1d(nn.Conv1d):
    """A convolution that pads its input so that the result has ceil(size / stride) elements."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution."""
        return super().forward(pad_to_keep_size(input, self.kernel_size, self.stride, self.dilation))


class KeepSizeConv2d(nn.Conv2d):
    """A convolution that pads its input so that the result has ceil(size / stride) elements in each direction."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution."""
        return super().forward(pad_to_keep_size(input, self.kernel_size, self.stride, self.dilation))


class KeepSizeConv3d(nn.Conv3d):
    """A convolution that pads its input so that the result has ceil(size / stride) elements in each direction."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution."""
        return super().forward(pad_to_keep_size(input, self.kernel_size, self.stride, self.dilation))


class PaddedConv1d(KeepSizeConv1d):
    """A convolution whose way of padding is an argument: 'same', 'valid' or 'pad'."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True,
    ) -> None:
        padding = padding if pad_mode == "pad" else 0
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias)
        self.pad_mode = pad_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution."""
        return super().forward(input) if self.pad_mode == "same" else nn.Conv1d.forward(self, input)


class PaddedConv2d(KeepSizeConv2d):
    """A convolution whose way of padding is an argument: 'same', 'valid' or 'pad'."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True,
    ) -> None:
        padding = two_sided(padding) if pad_mode == "pad" else 0
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias)
        self.pad_mode = pad_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution."""
        return super().forward(input) if self.pad_mode == "same" else nn.Conv2d.forward(self, input)


class PaddedConv3d(KeepSizeConv3d):
    """A convolution whose way of padding is an argument: 'same', 'valid' or 'pad'."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True,
    ) -> None:
        padding = two_sided(padding) if pad_mode == "pad" else 0
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias)
        self.pad_mode = pad_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution."""
        return super().forward(input) if self.pad_mode == "same" else nn.Conv3d.forward(self, input)


def cut_to_stride(result: Tensor, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    """The middle of a transposed convolution, stride times the input; an odd number of elements has one more cut at the end."""
    for axis, (length, step) in enumerate(zip(size, stride), 2):
        surplus = result.shape[axis] - length * step
        if surplus >= 0:
            result = result.narrow(axis, surplus // 2, length * step)
        else:
            padding = [0, 0] * (result.ndim - axis - 1) + [0, -surplus]
            result = F.pad(result, padding)
    return result


class KeepSizeConvTranspose1d(nn.ConvTranspose1d):
    """A transposed convolution whose result is stride times the input."""

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Return the convolution."""
        full = F.conv_transpose1d(input, self.weight, None, self.stride, 0, 0, self.groups, self.dilation)
        result = cut_to_stride(full, input.shape[2:], self.stride)
        return result if self.bias is None else result + self.bias[:, None]


class KeepSizeConvTranspose2d(nn.ConvTranspose2d):
    """A transposed convolution whose result is stride times the input."""

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Return the convolution."""
        full = F.conv_transpose2d(input, self.weight, None, self.stride, 0, 0, self.groups, self.dilation)
        result = cut_to_stride(full, input.shape[2:], self.stride)
        return result if self.bias is None else result + self.bias[:, None, None]


class KeepSizeConvTranspose3d(nn.ConvTranspose3d):
    """A transposed convolution whose result is stride times the input."""

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Return the convolution."""
        full = F.conv_transpose3d(input, self.weight, None, self.stride, 0, 0, self.groups, self.dilation)
        result = cut_to_stride(full, input.shape[2:], self.stride)
        return result if self.bias is None else result + self.bias[:, None, None, None]


class ConvTranspose2dWithZeros(nn.ConvTranspose2d):
    """A transposed convolution, followed by `output_padding` rows and columns of zeros."""

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Return the convolution."""
        padding = [int(number) for number in self.padding]
        result = F.conv_transpose2d(input, self.weight, self.bias, self.stride, padding, 0, self.groups, self.dilation)
        return F.pad(result, [0, self.output_padding[1], 0, self.output_padding[0]])


class PaddedConvTranspose1d(KeepSizeConvTranspose1d):
    """A transposed convolution whose way of padding is an argument: 'same', 'valid' or 'pad'."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True,
    ) -> None:
        padding = padding if pad_mode == "pad" else 0
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias)
        self.pad_mode = pad_mode

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Return the convolution."""
        return super().forward(input) if self.pad_mode == "same" else nn.ConvTranspose1d.forward(self, input)


class PaddedConvTranspose2d(KeepSizeConvTranspose2d):
    """A transposed convolution whose way of padding is an argument: 'same', 'valid' or 'pad'."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True,
    ) -> None:
        padding = two_sided(padding) if pad_mode == "pad" else 0
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias)
        self.pad_mode = pad_mode

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Return the convolution."""
        return super().forward(input) if self.pad_mode == "same" else nn.ConvTranspose2d.forward(self, input)


class PaddedConvTranspose3d(KeepSizeConvTranspose3d):
    """A transposed convolution whose way of padding is an argument: 'same', 'valid' or 'pad'."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True,
    ) -> None:
        padding = two_sided(padding) if pad_mode == "pad" else 0
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups, bias=bias)
        self.pad_mode = pad_mode

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Return the convolution."""
        return super().forward(input) if self.pad_mode == "same" else nn.ConvTranspose3d.forward(self, input)


class KeepSizeMaxPool1d(nn.Module):
    """The largest value in each window, ceil(size / stride) of them."""

    def __init__(self, kernel_size: int, stride: int) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride

    def forward(self, x: Tensor) -> Tensor:
        """Return the largest values."""
        padded = pad_to_keep_size(x, (self.kernel_size,), (self.stride,), (1,), float("-inf"))
        return F.max_pool1d(padded, self.kernel_size, self.stride)


class KeepSizeMaxPool2d(nn.Module):
    """The largest value in each window, ceil(size / stride) of them in each direction."""

    def __init__(self, kernel_size: Any, stride: Any) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride

    def forward(self, x: Tensor) -> Tensor:
        """Return the largest values."""
        return max_pool2d(x, self.kernel_size, self.stride, "same")


class KeepSizeAvgPool1d(nn.Module):
    """The mean of each window, ceil(size / stride) of them; windows at the border have fewer values."""

    def __init__(self, kernel_size: int, stride: int) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride

    def forward(self, x: Tensor) -> Tensor:
        """Return the means."""
        return avg_pool2d(x.unsqueeze(2), (1, self.kernel_size), (1, self.stride), "same").squeeze(2)


class KeepSizeAvgPool2d(nn.Module):
    """The mean of each window, ceil(size / stride) of them in each direction; windows at the border have fewer values."""

    def __init__(self, kernel_size: Any, stride: Any) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride

    def forward(self, x: Tensor) -> Tensor:
        """Return the means."""
        return avg_pool2d(x, self.kernel_size, self.stride, "same")


class KeepSizeMaxPool3d(KeepSizeMaxPool2d):
    """The largest value in each window of volumes, ceil(size / stride) of them in each direction."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the largest values."""
        return max_pool3d(x, self.kernel_size, self.stride, "same")


class KeepSizeAvgPool3d(KeepSizeAvgPool2d):
    """The mean of each window of volumes, ceil(size / stride) of them in each direction; zeros of the padding count."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the means."""
        return avg_pool3d(x, self.kernel_size, self.stride, "same")


class BicubicUpsample(nn.Module):
    """Cubic interpolation to a size, or by a factor."""

    def __init__(self, size: Any = None, scale_factor: Any = None, align_corners: bool | None = None) -> None:
        super().__init__()
        self.size, self.scale_factor, self.align_corners = size, scale_factor, align_corners

    def forward(self, x: Tensor) -> Tensor:
        """Return the images in the other size."""
        return interpolate_bicubically(x, self.size, self.scale_factor, self.align_corners)


def run_recurrent(layer: Any, x: Tensor, state: Any, lengths: Tensor | None) -> Any:
    """The results of a recurrent layer; with `lengths`, steps behind the end of a sequence are 0; an empty one keeps the first state."""
    if lengths is None:
        return layer.run(x, state)
    counts = lengths.cpu().long()
    packed = nn.utils.rnn.pack_padded_sequence(x, counts.clamp(min=1), batch_first=layer.batch_first, enforce_sorted=False)
    result, last = layer.run(packed, state)
    steps = x.shape[1 if layer.batch_first else 0]
    padded = nn.utils.rnn.pad_packed_sequence(result, batch_first=layer.batch_first, total_length=steps)[0]
    if bool((counts > 0).all()):
        return padded, last
    is_empty = (counts == 0).to(x.device)[:, None]
    lasts = last if isinstance(last, tuple) else (last,)
    firsts = [torch.zeros_like(value) for value in lasts] if state is None else state if isinstance(state, tuple) else (state,)
    states = tuple(torch.where(is_empty, first, value) for first, value in zip(firsts, lasts))
    padded = padded.masked_fill(is_empty[:, None] if layer.batch_first else is_empty, 0)
    return padded, states if isinstance(last, tuple) else states[0]


class LSTM(nn.LSTM):
    """An LSTM that takes the lengths of the sequences as third argument."""

    run = nn.LSTM.forward

    def forward(self, x: Tensor, state: Any = None, seq_length: Tensor | None = None) -> Any:  # type: ignore[override]
        """Return the outputs, and the last state."""
        return run_recurrent(self, x, state, seq_length)


class GRU(nn.GRU):
    """A GRU that takes the lengths of the sequences as third argument."""

    run = nn.GRU.forward

    def forward(self, x: Tensor, state: Any = None, seq_length: Tensor | None = None) -> Any:  # type: ignore[override]
        """Return the outputs, and the last state."""
        return run_recurrent(self, x, state, seq_length)


class RNN(nn.RNN):
    """A recurrent layer that takes the lengths of the sequences as third argument."""

    run = nn.RNN.forward

    def forward(self, x: Tensor, state: Any = None, seq_length: Tensor | None = None) -> Any:  # type: ignore[override]
        """Return the outputs, and the last state."""
        return run_recurrent(self, x, state, seq_length)


class FastGELU(nn.Module):
    """x * sigmoid(1.702 x), computed without an overflow."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the activated values."""
        return x * torch.sigmoid(1.702 * x)


class Pad(nn.Module):
    """Pads each axis by two numbers."""

    def __init__(self, paddings: Sequence[Sequence[int]], mode: str = "CONSTANT") -> None:
        super().__init__()
        self.paddings, self.mode = paddings, mode

    def forward(self, x: Tensor) -> Tensor:
        """Return the padded tensor."""
        if self.mode == "CONSTANT":
            return F.pad(x, [int(number) for pair in reversed(self.paddings) for number in pair])
        skipped = 1 if self.mode == "REFLECT" else 0                       # SYMMETRIC repeats the border
        for axis, (before, after) in enumerate(self.paddings):
            size = x.shape[axis]
            first, last = range(before - 1 + skipped, skipped - 1, -1), range(size - 1 - skipped, size - 1 - skipped - after, -1)
            x = x.index_select(axis, torch.tensor([*first, *range(size), *last], device=x.device))
        return x


class OneHot(nn.Module):
    """`on` at the positions along a new axis, `off` elsewhere."""

    def __init__(self, depth: int, on: float = 1.0, off: float = 0.0, axis: int = -1, dtype: Any = torch.float32) -> None:
        super().__init__()
        self.depth, self.on, self.off, self.axis, self.dtype = depth, on, off, axis, dtype

    def forward(self, index: Tensor) -> Tensor:
        """Return the values."""
        return one_hot(index, self.depth, self.on, self.off, self.axis).to(self.dtype)


class ResizeBilinear(nn.Module):
    """Bilinear interpolation to a size, or by a factor."""

    def __init__(self, half_pixel_centers: bool = False) -> None:
        super().__init__()
        self.half_pixel_centers = half_pixel_centers

    def forward(self, x: Tensor, size: Any = None, scale_factor: Any = None, align_corners: bool = False) -> Tensor:
        """Return the resized images."""
        if size is None:
            size = [length * scale_factor for length in x.shape[2:]]
        return resize_bilinear(x, size, align_corners, self.half_pixel_centers)


class LossBase(nn.Module):
    """The base of losses that are reduced by 'mean', 'sum' or 'none'."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def get_loss(self, x: Tensor, weights: Any = 1.0) -> Tensor:
        """Return the weighted values, reduced."""
        x = x * weights
        return x.mean() if self.reduction == "mean" else x.sum() if self.reduction == "sum" else x


class CrossEntropyLoss(nn.CrossEntropyLoss):
    """The cross entropy, for class numbers of any integer type."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return super().forward(input, target if target.is_floating_point() else target.long())


class NLLLoss(nn.NLLLoss):
    """The negative log likelihood, for class numbers of any integer type."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return super().forward(input, target.long())


class KLDivLoss(nn.Module):
    """The divergence of log probabilities from probabilities; values of the target up to 0 count as 0."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return kl_div(x, target, self.reduction)


class SoftmaxCrossEntropyWithLogits(nn.Module):
    """The cross entropy of logits, with class numbers if `sparse`, else with probabilities."""

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__()
        self.sparse, self.reduction = sparse, reduction

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss. A class outside of the logits counts as a row of zeros."""
        if self.sparse and self.reduction == "mean":
            return F.cross_entropy(logits, labels.long())
        if self.sparse:
            labels = one_hot(labels, logits.shape[-1]).to(logits)
        losses, _ = softmax_cross_entropy(logits, labels)
        return losses.mean() if self.reduction == "mean" else losses.sum() if self.reduction == "sum" else losses


class WithLoss(nn.Module):
    """The loss of a network's result."""

    def __init__(self, backbone: nn.Module, loss_fn: Any) -> None:
        super().__init__()
        self._backbone, self._loss_fn = backbone, loss_fn

    def forward(self, data: Any, label: Any) -> Any:
        """Return the loss."""
        return self._loss_fn(self._backbone(data), label)


class ClipByNorm(nn.Module):
    """Scales x down to a length."""

    def __init__(self, axis: Any = None) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor, clip_norm: Any) -> Tensor:
        """Return the scaled values."""
        length = torch.sqrt(torch.sum(x * x)) if self.axis is None else torch.sqrt(torch.sum(x * x, dim=self.axis, keepdim=True))
        return x * clip_norm / torch.maximum(length, torch.as_tensor(clip_norm, dtype=x.dtype))


class RMSELoss(nn.MSELoss):
    """The root of the mean square of the differences."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return super().forward(input, target).sqrt()


class CentralCrop(nn.Module):
    """The center of images (..., H, W): a fraction of height and width."""

    def __init__(self, central_fraction: float) -> None:
        super().__init__()
        self.central_fraction = central_fraction

    def forward(self, image: Tensor) -> Tensor:
        """Return the center."""
        top, left = (int((length - length * self.central_fraction) / 2) for length in image.shape[-2:])
        return image[..., top : image.shape[-2] - top, left : image.shape[-1] - left]
