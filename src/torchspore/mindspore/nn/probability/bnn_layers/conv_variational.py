"""A convolution that draws its weights in each call."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_counts
from torchspore.base.text import message, short
from torchspore.mindspore import ops
from torchspore.mindspore.nn.layer.conv import Conv2d
from torchspore.mindspore.nn.probability.bnn_layers.layer_distribution import NormalPrior, Variational, normal_post_fn


class ConvReparam(Conv2d, Variational):
    """A convolution of (N, in_channels, H, W) with weight and bias drawn from learned distributions (Kingma and Welling, 2013).

    The arguments are those of Conv2d and of DenseReparam. Raises TypeError and ValueError for arguments that do not fit.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_prior_fn: Any = NormalPrior,
        weight_posterior_fn: Any = normal_post_fn, bias_prior_fn: Any = NormalPrior, bias_posterior_fn: Any = normal_post_fn,
    ) -> None:
        check_counts("ConvReparam", in_channels=in_channels, out_channels=out_channels, group=group)
        if not isinstance(has_bias, bool):
            raise TypeError(message(f"ConvReparam(has_bias={short(has_bias)})", f"True or False, got {type(has_bias).__name__}"))
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, "normal", "zeros")
        functions = (weight_prior_fn, weight_posterior_fn, bias_prior_fn, bias_posterior_fn)
        for parameter in (self.weight, self.bias):
            if parameter is not None:
                parameter.requires_grad = False                 # a checkpoint entry that is not used
        self._build_distributions_(tuple(self.weight.shape), out_channels if has_bias else None, functions)

    def construct(self, x: Any) -> Any:
        """The convolution of x, with weights drawn for this call."""
        bias = self.bias_posterior("sample") if self.has_bias else None
        weight = self.weight_posterior("sample")
        return ops.conv2d(x, weight, bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group)

    def extend_repr(self) -> str:
        return (
            f"in_channels={self.in_channels}, out_channels={self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"pad_mode={self.pad_mode}, padding={self.padding}, dilation={self.dilation}, group={self.group}, {self._shown_()}"
        )
