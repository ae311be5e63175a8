"""Dense layers that draw their weights in each call."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_counts
from torchspore.base.text import message, short
from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.basic import get_activation
from torchspore.mindspore.nn.probability.bnn_layers.layer_distribution import NormalPrior, Variational, normal_post_fn
from torchspore.mindspore.nn.probability.distribution import Normal


class _DenseVariational(Variational):
    """Base class of both layers."""

    def __init__(
        self, in_channels: int, out_channels: int, activation: Any = None, has_bias: bool = True, weight_prior_fn: Any = NormalPrior,
        weight_posterior_fn: Any = normal_post_fn, bias_prior_fn: Any = NormalPrior, bias_posterior_fn: Any = normal_post_fn,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_counts(name, in_channels=in_channels, out_channels=out_channels)
        if not isinstance(has_bias, bool):
            raise TypeError(message(f"{name}(has_bias={short(has_bias)})", f"True or False, got {type(has_bias).__name__}"))
        self.in_channels, self.out_channels, self.has_bias = in_channels, out_channels, has_bias
        functions = (weight_prior_fn, weight_posterior_fn, bias_prior_fn, bias_posterior_fn)
        self._build_distributions_((out_channels, in_channels), out_channels if has_bias else None, functions)
        self.activation = get_activation(activation) if isinstance(activation, str) else activation
        if self.activation is not None and not isinstance(self.activation, Cell):
            raise ValueError(message(f"{name}(activation={short(activation)})", "a name such as 'relu', or a Cell"))
        self.activation_flag = self.activation is not None

    def construct(self, x: Any) -> Any:
        """The layer's result for x (N, in_channels), with weights drawn for this call."""
        out = self._products_(x)
        if self.has_bias:
            out = ops.bias_add(out, self.bias_posterior("sample"))
        return self.activation(out) if self.activation is not None else out

    def _products_(self, x: Any) -> Any:
        """Return x times the drawn weights."""
        raise NotImplementedError

    def extend_repr(self) -> str:
        shown = f"in_channels={self.in_channels}, out_channels={self.out_channels}, {self._shown_()}"
        return shown + (f", activation={self.activation}" if self.activation is not None else "")


class DenseReparam(_DenseVariational):
    """x @ weight.T + bias with weight and bias drawn from learned distributions (Kingma and Welling, 2013).

    `activation` is a name or a Cell. `weight_prior_fn()` returns the prior distribution, `weight_posterior_fn(name, shape)` the
    learned one, and likewise for the bias. Raises TypeError and ValueError for arguments that do not fit.
    """

    def _products_(self, x: Any) -> Any:
        """Return x times one weight for all rows."""
        return ops.matmul(x, ops.swapaxes(self.weight_posterior("sample"), 0, 1))


class DenseLocalReparam(_DenseVariational):
    """As DenseReparam, but the products themselves are drawn, for each row (Kingma, Salimans and Welling, 2015)."""

    def __init__(
        self, in_channels: int, out_channels: int, activation: Any = None, has_bias: bool = True, weight_prior_fn: Any = NormalPrior,
        weight_posterior_fn: Any = normal_post_fn, bias_prior_fn: Any = NormalPrior, bias_posterior_fn: Any = normal_post_fn,
    ) -> None:
        super().__init__(
            in_channels, out_channels, activation, has_bias, weight_prior_fn, weight_posterior_fn, bias_prior_fn, bias_posterior_fn,
        )
        self.normal = Normal()

    def _products_(self, x: Any) -> Any:
        """Draw from the distribution of the products."""
        mean = ops.matmul(x, ops.swapaxes(self.weight_posterior("mean"), 0, 1))
        variance = ops.matmul(ops.square(x), ops.swapaxes(ops.square(self.weight_posterior("sd")), 0, 1))
        return self.normal("sample", (), mean, ops.sqrt(variance) + 1e-6)
