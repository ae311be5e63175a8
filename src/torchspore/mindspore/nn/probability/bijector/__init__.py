"""`mindspore.nn.probability.bijector`: functions with an inverse, and the logarithms of their derivatives."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import list_choices, message, short, with_type
from torchspore.engine.tensors.dtypes import float32
from torchspore.mindspore import ops
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell

_O: Any = ops
_KINDS = ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian")


class Bijector(Cell):
    """An invertible function: a subclass defines `_forward`, `_inverse`, `_forward_log_jacobian`, `_inverse_log_jacobian`.

    `param` holds its parameters by name, which become Tensors of `dtype` (None: float32).
    """

    def __init__(
        self, is_constant_jacobian: bool = False, is_injective: bool = True, name: str | None = None, dtype: Any = None,
        param: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        for key, value in (("is_constant_jacobian", is_constant_jacobian), ("is_injective", is_injective)):
            if not isinstance(value, bool):
                raise TypeError(message(f"Bijector({key}={short(value)})", f"a bool, got {type(value).__name__}"))
        if name is not None and not isinstance(name, str):
            raise TypeError(message(f"{type(self).__name__}(name={short(name)})", with_type("a str", name)))
        self.is_constant_jacobian, self.is_injective = is_constant_jacobian, is_injective
        self.name, self.dtype = name or type(self).__name__, dtype
        self.parameters = {key: self._parameter_(key, value) for key, value in (param or {}).items()}
        self.batch_shape = np.broadcast_shapes(*(parameter.shape for parameter in self.parameters.values()))
        self.is_scalar_batch = self.batch_shape == ()

    def _parameter_(self, key: str, value: Any) -> Any:
        if not isinstance(value, (Tensor, int, float, list, np.ndarray)) or isinstance(value, bool):
            raise TypeError(message(f"{self.name}({key}={short(value)})", f"a number, a list or a Tensor, got {type(value).__name__}"))
        return value if isinstance(value, Tensor) else Tensor(value, self.dtype or float32)

    def _of_(self, name: str, value: Any) -> Any:
        if not isinstance(value, Tensor):
            raise TypeError(message(f"{self.name}.{name}({short(value)})", f"a Tensor, got {type(value).__name__}"))
        formula = getattr(self, f"_{name}", None)
        if formula is None:
            raise NotImplementedError(message(f"{self.name}.{name}", f"a class with _{name}"))
        return formula(value)

    def forward(self, value: Any) -> Any:
        """The function at `value`."""
        return self._of_("forward", value)

    def inverse(self, value: Any) -> Any:
        """The inverse function at `value`."""
        return self._of_("inverse", value)

    def forward_log_jacobian(self, value: Any) -> Any:
        """The logarithm of the function's derivative at `value`."""
        return self._of_("forward_log_jacobian", value)

    def inverse_log_jacobian(self, value: Any) -> Any:
        """The logarithm of the inverse function's derivative at `value`."""
        return self._of_("inverse_log_jacobian", value)

    def construct(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call one of the four functions by `name` with a Tensor; or transform a Distribution."""
        from torchspore.mindspore.nn.probability.distribution import Distribution, TransformedDistribution

        if isinstance(name, Distribution):
            return TransformedDistribution(self, name, *args, **kwargs)
        if name not in _KINDS:
            raise ValueError(message(f"{self.name}({short(name)})", list_choices(_KINDS)))
        return getattr(self, name)(*args, **kwargs)


class PowerTransform(Bijector):
    """(1 + power * x)^(1 / power); for a power of 0, exp(x)."""

    def __init__(self, power: Any = 0.0, name: str = "PowerTransform") -> None:
        super().__init__(name=name, param={"power": power})
        self.power = self.parameters["power"]
        if (self.power.asnumpy() < 0).any():
            raise ValueError(message(f"{name}(power={short(power)})", "a power from 0 on"))

    def _either_(self, none: Any, some: Any) -> Any:
        """Return `none` where the power is 0, else `some`, computed with a power that is never 0."""
        is_zero = self.power == 0
        safe = _O.where(is_zero, _O.ones_like(self.power), self.power)
        return _O.where(is_zero, none, some(safe))

    def _forward(self, x: Any) -> Any:
        return self._either_(_O.exp(x), lambda power: _O.exp(_O.log1p(x * power) / power))

    def _inverse(self, y: Any) -> Any:
        return self._either_(_O.log(y), lambda power: _O.expm1(_O.log(y) * power) / power)

    def _forward_log_jacobian(self, x: Any) -> Any:
        return self._either_(x, lambda power: (1 / power - 1) * _O.log1p(x * power))

    def _inverse_log_jacobian(self, y: Any) -> Any:
        return (self.power - 1) * _O.log(y)


class Exp(PowerTransform):
    """exp(x)."""

    def __init__(self, name: str = "Exp") -> None:
        super().__init__(0.0, name)


class ScalarAffine(Bijector):
    """scale * x + shift."""

    def __init__(self, scale: Any = 1.0, shift: Any = 0.0, name: str = "ScalarAffine") -> None:
        super().__init__(is_constant_jacobian=True, name=name, param={"scale": scale, "shift": shift})
        self.scale, self.shift = self.parameters["scale"], self.parameters["shift"]

    def _forward(self, x: Any) -> Any:
        return self.scale * x + self.shift

    def _inverse(self, y: Any) -> Any:
        return (y - self.shift) / self.scale

    def _forward_log_jacobian(self, x: Any) -> Any:
        return _O.cast(_O.log(_O.abs(self.scale)), x.dtype)

    def _inverse_log_jacobian(self, y: Any) -> Any:
        return -self._forward_log_jacobian(y)


class Softplus(Bijector):
    """log(1 + exp(sharpness * x)) / sharpness."""

    def __init__(self, sharpness: Any = 1.0, name: str = "Softplus") -> None:
        super().__init__(name=name, param={"sharpness": sharpness})
        self.sharpness = self.parameters["sharpness"]

    def _forward(self, x: Any) -> Any:
        return -_O.logsigmoid(-self.sharpness * x) / self.sharpness

    def _inverse(self, y: Any) -> Any:
        return y + _O.log(-_O.expm1(-self.sharpness * y)) / self.sharpness

    def _forward_log_jacobian(self, x: Any) -> Any:
        return _O.logsigmoid(self.sharpness * x)

    def _inverse_log_jacobian(self, y: Any) -> Any:
        return -_O.log(-_O.expm1(-self.sharpness * y))


class GumbelCDF(Bijector):
    """exp(-exp(-(x - loc) / scale)), which transforms Gumbel's distribution to the uniform one."""

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, name: str = "GumbelCDF") -> None:
        super().__init__(name=name, param={"loc": loc, "scale": scale})
        self.loc, self.scale = self.parameters["loc"], self.parameters["scale"]
        if not (self.scale.asnumpy() > 0).all():
            raise ValueError(message(f"{name}(scale={short(scale)})", "a scale above 0"))

    def _forward(self, x: Any) -> Any:
        return _O.exp(-_O.exp(-(x - self.loc) / self.scale))

    def _inverse(self, y: Any) -> Any:
        return self.loc - self.scale * _O.log(-_O.log(y))

    def _forward_log_jacobian(self, x: Any) -> Any:
        z = (x - self.loc) / self.scale
        return -z - _O.exp(-z) - _O.log(self.scale)

    def _inverse_log_jacobian(self, y: Any) -> Any:
        return _O.log(self.scale / (-_O.log(y) * y))


class Invert(Bijector):
    """The inverse of another bijector."""

    def __init__(self, bijector: Any, name: str = "") -> None:
        if not isinstance(bijector, Bijector):
            raise TypeError(message(f"Invert({short(bijector)})", f"a Bijector, got {type(bijector).__name__}"))
        shown = f"Invert{bijector.name}" if name == "" else name
        super().__init__(bijector.is_constant_jacobian, bijector.is_injective, shown, bijector.dtype)
        self.bijector = bijector
        self.parameters, self.batch_shape = bijector.parameters, bijector.batch_shape

    def _forward(self, x: Any) -> Any:
        return self.bijector.inverse(x)

    def _inverse(self, y: Any) -> Any:
        return self.bijector.forward(y)

    def _forward_log_jacobian(self, x: Any) -> Any:
        return self.bijector.inverse_log_jacobian(x)

    def _inverse_log_jacobian(self, y: Any) -> Any:
        return self.bijector.forward_log_jacobian(y)


__all__ = ["Bijector", "Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]
