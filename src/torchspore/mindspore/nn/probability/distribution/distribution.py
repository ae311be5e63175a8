"""Base class of distributions: parameters from the constructor or a call, and functions that follow from each other."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.text import list_choices, message, short, with_type
from torchspore.engine.tensors.dtypes import float32
from torchspore.mindspore import ops
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell


class Distribution(Cell):
    """A distribution with parameters named in `arguments`; `param` contains those of the constructor, by name.

    Each function accepts other parameters: `prob(value, mean, sd)`. Parameters that the constructor did not get are required there.
    """

    _arguments_: tuple[str, ...] = ()
    _counts_ = False
    """True if its values are integers, so that an integer dtype is allowed."""

    def __init__(self, seed: int | None, dtype: Any, name: str, param: dict[str, Any]) -> None:
        super().__init__()
        if seed is not None and not is_int(seed):
            raise TypeError(message(f"{name}(seed={short(seed)})", f"an int or None, got {type(seed).__name__}"))
        if not isinstance(name, str):
            raise TypeError(message(f"{type(self).__name__}(name={short(name)})", with_type("a str", name)))
        if dtype is not None and "Float" not in str(dtype) and not (self._counts_ and "Int" in str(dtype)):
            raise TypeError(message(f"{name}(dtype={dtype})", "a dtype of numbers" if self._counts_ else "a dtype of floats"))
        self.name, self.dtype, self.seed = name, dtype, seed or 0
        self._uniform_, self._normal_ = ops.UniformReal(seed or 0), ops.StandardNormal(seed or 0)
        self._gamma_, self._poisson_ = ops.Gamma(seed or 0), ops.Poisson(seed or 0)
        parameters = {key: param.get(key) for key in self._arguments_}
        self.parameters = {key: None if value is None else self._tensor_(key, value) for key, value in parameters.items()}
        for key, value in self.parameters.items():
            if value is not None:
                self._check_(key, value.asnumpy())
        shapes = [value.shape for value in self.parameters.values() if value is not None]
        self.broadcast_shape = self.batch_shape = np.broadcast_shapes(*shapes) if len(shapes) == len(self._arguments_) else None
        self.is_scalar_batch = all(shape == () for shape in shapes)

    def _tensor_(self, key: str, value: Any) -> Any:
        """Return a parameter as a Tensor of floats."""
        if not isinstance(value, (Tensor, int, float, list, np.ndarray)) or isinstance(value, bool):
            raise TypeError(message(f"{self.name}({key}={short(value)})", f"a number, a list or a Tensor, got {type(value).__name__}"))
        return value if isinstance(value, Tensor) else Tensor(value, self._float_())

    def _float_(self) -> Any:
        return self.dtype if "Float" in str(self.dtype) else float32

    def _check_(self, key: str, value: Any) -> None:
        """Raises ValueError for impossible values of a parameter."""

    def _parameters_of_call_(self, values: tuple[Any, ...], named: dict[str, Any], taken: tuple[str, ...] | None = None) -> list[Any]:
        """Return the parameters of one call: by position, by name, else the constructor's."""
        names = self._arguments_ if taken is None else taken
        by_name = {**dict(zip(names, values)), **named}
        if len(values) > len(names) or set(by_name) - set(names):
            raise TypeError(message(f"{self.name}: parameters {', '.join(by_name)}", list_choices(names)))
        out = []
        for key in names:
            value = by_name.get(key)
            value = self.parameters.get(key) if value is None else value
            if value is None:
                raise TypeError(message(f"{self.name} without {key}", f"{key}, to the constructor or to the call"))
            out.append(ops.cast(self._tensor_(key, value), self._float_()))
        return out

    def _value_(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            raise TypeError(message(f"{self.name}: value={short(value)}", f"a Tensor, got {type(value).__name__}"))
        return ops.cast(value, self._float_())

    def _formula_(self, *names: str) -> Callable[..., Any]:
        """Return the first of these functions that the class defines."""
        for name in names:
            formula = getattr(type(self), name, None)
            if formula is not None:
                return getattr(self, name)
        raise NotImplementedError(message(f"{type(self).__name__}.{names[0].strip('_')}", "a function that this distribution has"))

    def _has_(self, name: str) -> bool:
        return getattr(type(self), name, None) is not None

    def get_dist_type(self) -> str:
        """The name of this distribution for `kl_loss` and `cross_entropy`."""
        return type(self).__name__

    def get_dist_args(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the parameters; those passed here override the constructor's."""
        return tuple(self._parameters_of_call_(args, kwargs))

    def prob(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The density, or the probability, at `value`."""
        formula = self._formula_("_prob", "_log_prob")(self._value_(value), *self._parameters_of_call_(args, kwargs))
        return formula if self._has_("_prob") else ops.exp(formula)

    def log_prob(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the density, or of the probability, at `value`."""
        formula = self._formula_("_log_prob", "_prob")(self._value_(value), *self._parameters_of_call_(args, kwargs))
        return formula if self._has_("_log_prob") else ops.log(formula)

    def cdf(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of at most `value`."""
        return self._formula_("_cdf")(self._value_(value), *self._parameters_of_call_(args, kwargs))

    def log_cdf(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the probability of at most `value`."""
        return ops.log(self.cdf(value, *args, **kwargs))

    def survival_function(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of more than `value`."""
        return 1.0 - self.cdf(value, *args, **kwargs)

    def log_survival(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the probability of more than `value`."""
        return ops.log(self.survival_function(value, *args, **kwargs))

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """The mean."""
        return self._formula_("_mean")(*self._parameters_of_call_(args, kwargs))

    def mode(self, *args: Any, **kwargs: Any) -> Any:
        """The most probable value."""
        return self._formula_("_mode")(*self._parameters_of_call_(args, kwargs))

    def var(self, *args: Any, **kwargs: Any) -> Any:
        """The variance."""
        out = self._formula_("_var", "_sd")(*self._parameters_of_call_(args, kwargs))
        return out if self._has_("_var") else ops.square(out)

    def sd(self, *args: Any, **kwargs: Any) -> Any:
        """The standard deviation."""
        out = self._formula_("_sd", "_var")(*self._parameters_of_call_(args, kwargs))
        return out if self._has_("_sd") else ops.sqrt(out)

    def entropy(self, *args: Any, **kwargs: Any) -> Any:
        """The entropy, in nats."""
        return self._formula_("_entropy")(*self._parameters_of_call_(args, kwargs))

    def _two_(self, dist: Any, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        if dist != self.get_dist_type():
            raise ValueError(message(f"{self.name}: dist={short(dist)}", repr(self.get_dist_type())))
        others = tuple(f"{key}_b" for key in self._arguments_)
        count = len(others)
        theirs = {key: value for key, value in named.items() if key in others}
        mine = {key.removesuffix("_a"): value for key, value in named.items() if key not in others}
        return self._parameters_of_call_(values[:count], theirs, others), self._parameters_of_call_(values[count:], mine)

    def kl_loss(self, dist: str, *args: Any, **kwargs: Any) -> Any:
        """The Kullback-Leibler divergence from this distribution to `dist`, whose parameters come first in `args`."""
        divergence = self._formula_("_kl_loss")
        other_parameters, parameters = self._two_(dist, args, kwargs)
        return divergence(parameters, other_parameters)

    def cross_entropy(self, dist: str, *args: Any, **kwargs: Any) -> Any:
        """The cross entropy with another distribution: the entropy of this one plus the divergence."""
        entropy, divergence = self._formula_("_entropy"), self._formula_("_kl_loss")
        other_parameters, parameters = self._two_(dist, args, kwargs)
        return entropy(*parameters) + divergence(parameters, other_parameters)

    def sample(self, *args: Any, **kwargs: Any) -> Any:
        """Draw numbers, in the shape `shape` before that of the parameters; the parameters may follow it."""
        draw = self._formula_("_sample")
        shape = args[0] if args else kwargs.pop("shape", ())
        if not isinstance(shape, (tuple, list)):
            raise TypeError(message(f"{self.name}.sample(shape={short(shape)})", f"a tuple, got {type(shape).__name__}"))
        parameters = self._parameters_of_call_(args[1:], kwargs)
        full_shape = tuple(shape) + tuple(np.broadcast_shapes(*(parameter.shape for parameter in parameters)))
        out = draw(full_shape or (1,), *parameters)
        return ops.cast(ops.reshape(out, full_shape), self.dtype)

    def construct(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call the function `name` with its arguments, for a distribution inside a Cell."""
        allowed = (
            "prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival", "mean", "mode", "var", "sd", "entropy", "kl_loss",
            "cross_entropy", "sample", "get_dist_args", "get_dist_type",
        )
        if name not in allowed:
            raise ValueError(message(f"{self.name}({short(name)})", list_choices(allowed)))
        return getattr(self, name)(*args, **kwargs)

    def extend_repr(self) -> str:
        shown = {key: value.asnumpy().tolist() for key, value in self.parameters.items() if value is not None}
        return ", ".join(f"{key} = {value}" for key, value in shown.items()) or f"batch_shape = {self.batch_shape}"


def above_zero(name: str, key: str, value: Any) -> None:
    """Raises ValueError unless all values are above 0."""
    if not (value > 0).all():
        raise ValueError(message(f"{name}({key}={value.tolist()})", "values above 0"))


def between(name: str, key: str, value: Any) -> None:
    """Raises ValueError unless all values are probabilities above 0 and below 1."""
    if not ((value > 0) & (value < 1)).all():
        raise ValueError(message(f"{name}({key}={value.tolist()})", "probabilities above 0 and below 1"))


EULER = float(np.euler_gamma)
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
