"""Normal distributions of weights: a fixed prior and a learned posterior."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.engine.tensors.dtypes import float32
from torchspore.mindspore import ops
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.probability.distribution import Normal


class NormalPrior(Cell):
    """A constant normal distribution; a call takes the name of a function and its arguments: prior('log_prob', x)."""

    def __init__(self, dtype: Any = float32, mean: Any = 0, std: Any = 0.1) -> None:
        super().__init__()
        self.normal = Normal(mean, std, dtype=dtype)

    def construct(self, *inputs: Any) -> Any:
        """Call the function that the first input names."""
        return self.normal(*inputs)


class NormalPosterior(Cell):
    """A normal distribution of this shape with learned mean and width, as `NAME_mean` and `NAME_untransformed_std`.

    The width is log(1 + exp(untransformed_std)) + 1e-6. Both are drawn from a normal distribution initially. Raises TypeError.
    """

    def __init__(
        self, name: str, shape: Any, dtype: Any = float32, loc_mean: float = 0, loc_std: float = 0.1, untransformed_scale_mean: float = -5,
        untransformed_scale_std: float = 0.1,
    ) -> None:
        super().__init__()
        if not isinstance(name, str):
            raise TypeError(message(f"NormalPosterior({short(name)}, ...)", f"a str, got {type(name).__name__}"))
        if not isinstance(shape, (tuple, list)):
            raise TypeError(message(f"NormalPosterior(shape={short(shape)})", f"a tuple or a list, got {type(shape).__name__}"))
        for key, value in (
            ("loc_mean", loc_mean), ("loc_std", loc_std), ("untransformed_scale_mean", untransformed_scale_mean),
            ("untransformed_scale_std", untransformed_scale_std),
        ):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or ("std" in key and value < 0):
                expected = "a number" if "std" not in key else "a number from 0 on"
                raise TypeError(message(f"NormalPosterior({key}={short(value)})", f"{expected}, got {type(value).__name__}"))
        # MindSpore draws both with NumPy.
        self.mean = Parameter(Tensor(np.random.normal(loc_mean, loc_std, shape), dtype=dtype), name=f"{name}_mean")
        spread = np.random.normal(untransformed_scale_mean, untransformed_scale_std, shape)
        self.untransformed_std = Parameter(Tensor(spread, dtype=dtype), name=f"{name}_untransformed_std")
        self.normal = Normal()

    def _std_trans_(self, std_pre: Any) -> Any:
        """log(1 + exp(x)) + 1e-6, which is above 0."""
        return ops.log1p(ops.exp(std_pre)) + 1e-6

    def construct(self, *inputs: Any) -> Any:
        """Call the function that the first input names: 'mean', 'sd', 'sample', or any of `Normal` with its arguments."""
        name, *others = inputs
        std = self._std_trans_(self.untransformed_std)
        if name == "mean":
            return self.mean.value()
        if name == "sd":
            return std
        if name == "sample" and not others:
            others = [()]
        return self.normal(name, *others, self.mean, std)


def normal_post_fn(name: str, shape: Any) -> NormalPosterior:
    """The default learned distribution of weights."""
    return NormalPosterior(name=name, shape=shape)


class Variational(Cell):
    """Base class of the layers: prior and posterior distributions of weight and bias, and their divergence."""

    def _build_distributions_(self, weight: tuple[int, ...], bias: int | None, functions: tuple[Any, Any, Any, Any]) -> None:
        """Create the distributions. Raises TypeError for a value that is not a function or Cell."""
        names = ("weight_prior_fn", "weight_posterior_fn", "bias_prior_fn", "bias_posterior_fn")
        for name, function in zip(names, functions):
            if not isinstance(function, Cell) and not callable(function):
                raise TypeError(message(f"{type(self).__name__}({name}={short(function)})", f"a function, got {type(function).__name__}"))
        for kind, shape, (prior, posterior) in (("weight", weight, functions[:2]), ("bias", bias, functions[2:])):
            if shape is None:
                continue
            setattr(self, f"{kind}_prior", prior if isinstance(prior, Cell) else prior())
            shape = [shape] if isinstance(shape, int) else list(shape)
            learned = posterior(name=f"bnn_{kind}", shape=shape)
            setattr(self, f"{kind}_posterior", learned)
            for part in ("mean", "untransformed_std"):
                if hasattr(learned, part):
                    getattr(learned, part).name = f"{kind}_posterior.{part}"

    def compute_kl_loss(self) -> Any:
        """Return the divergence of the posterior from the prior distributions, summed over weight and bias."""
        kinds = ("weight", "bias") if self.has_bias else ("weight",)
        total = None
        for kind in kinds:
            learned = getattr(self, f"{kind}_posterior")
            divergence = ops.sum(getattr(self, f"{kind}_prior")("kl_loss", "Normal", learned("mean"), learned("sd")))
            total = divergence if total is None else total + divergence
        return total

    def _shown_(self) -> str:
        parts = []
        for kind in ("weight", "bias"):
            if kind == "weight" or self.has_bias:
                learned = getattr(self, f"{kind}_posterior")
                parts.append(f"{kind}_mean={learned.mean}, {kind}_std={learned.untransformed_std}")
            if kind == "weight":
                parts.append(f"has_bias={self.has_bias}")
        return ", ".join(parts)
