"""A layer, batch normalization and an activation in one Cell."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, with_type
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.activation import LeakyReLU
from torchspore.mindspore.nn.layer.basic import Dense, get_activation
from torchspore.mindspore.nn.layer.conv import Conv2d
from torchspore.mindspore.nn.layer.normalization import BatchNorm1d, BatchNorm2d


class _Combined(Cell):
    """Base class: the batch normalization, if any, and the activation."""

    def _finish_(self, norm: Any, has_bn: bool, activation: Any, alpha: float, after_fake: bool) -> None:
        for name, value in (("has_bn", has_bn), ("after_fake", after_fake)):
            if not isinstance(value, bool):
                raise TypeError(message(f"{type(self).__name__}({name}={value!r:.40})", with_type("a bool", value)))
        self.has_bn, self.after_fake, self.has_act = has_bn, after_fake, activation is not None
        self.activation = activation
        if has_bn:
            self.batchnorm = norm
        if activation == "leakyrelu":
            self.activation = LeakyReLU(alpha)
        elif isinstance(activation, str):
            self.activation = get_activation(activation)
        elif activation is not None and not isinstance(activation, Cell):
            raise TypeError(f"{type(self).__name__}(activation={activation!r:.40}): expected a name, a Cell or None.")

    def _finished_(self, x: Any) -> Any:
        x = self.batchnorm(x) if self.has_bn else x
        return self.activation(x) if self.has_act else x


class Conv2dBnAct(_Combined):
    """A convolution of images, with `has_bn` batch normalization, and an activation: a name, a Cell or None.

    `alpha` is the slope of the activation 'leakyrelu'. `after_fake` places nodes of quantization-aware training; it does not change the
    numbers of the layer.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, pad_mode: str = "same", padding: Any = 0,
        dilation: Any = 1, group: int = 1, has_bias: bool = False, weight_init: Any = "normal", bias_init: Any = "zeros",
        has_bn: bool = False, momentum: float = 0.997, eps: float = 1e-5, activation: Any = None, alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.conv = Conv2d(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init,
        )
        self._finish_(BatchNorm2d(out_channels, eps, momentum) if has_bn else None, has_bn, activation, alpha, after_fake)

    def construct(self, x: Any) -> Any:
        """The layer's result for x."""
        return self._finished_(self.conv(x))


class DenseBnAct(_Combined):
    """A dense layer, with `has_bn` batch normalization, and an activation: a name, a Cell or None.

    `alpha` is the slope of the activation 'leakyrelu'. `after_fake` places nodes of quantization-aware training; it does not change the
    numbers of the layer.
    """

    def __init__(
        self, in_channels: int, out_channels: int, weight_init: Any = "normal", bias_init: Any = "zeros", has_bias: bool = True,
        has_bn: bool = False, momentum: float = 0.9, eps: float = 1e-5, activation: Any = None, alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self._finish_(BatchNorm1d(out_channels, eps, momentum) if has_bn else None, has_bn, activation, alpha, after_fake)

    def construct(self, x: Any) -> Any:
        """The layer's result for x."""
        return self._finished_(self.dense(x))


__all__ = ["Conv2dBnAct", "DenseBnAct"]
