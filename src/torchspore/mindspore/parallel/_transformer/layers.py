"""Linear maps, layer norms and checks of arguments of the transformer library."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torchspore.base.frames import line_prefix
from torchspore.base.text import list_choices, message, short
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.activation import get_activation


def _args_type_validator_check(*type_args: Any, **type_kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a constructor: each argument with a check here, by position or by name, is passed to it with its name."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        checks = signature.bind_partial(*type_args, **type_kwargs).arguments

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                if name in checks:
                    checks[name](value, name)
            return function(*args, **kwargs)

        return checked

    return decorate


def _valid_type_checks(types: Sequence[type], class_name: str) -> Callable[[Any, str], Any]:
    """Return a check that accepts values of the classes `types`, and raises TypeError for others."""

    def check(value: Any, name: str) -> Any:
        if not isinstance(value, tuple(types)):
            expected = " or ".join(kind.__name__ for kind in types)
            raise TypeError(message(f"{line_prefix()}{class_name}({name}={short(value)})", f"{expected}, got {type(value).__name__}"))
        return value

    return check


def _valid_value_checks(types: Sequence[Any], class_name: str) -> Callable[[Any, str], Any]:
    """Return a check that accepts the values `types`, and raises ValueError for others."""

    def check(value: Any, name: str) -> Any:
        if value not in types:
            raise ValueError(message(f"{line_prefix()}{class_name}({name}={short(value)})", list_choices(types)))
        return value

    return check


def _check_input_dtype(input_dtype: Any, param_name: str, allow_dtypes: Sequence[Any], cls_name: str) -> bool:
    """Return True if the dtype is one of those allowed. Raises TypeError for another."""
    if input_dtype not in allow_dtypes:
        raise TypeError(message(f"{line_prefix()}{cls_name}: {param_name} of {input_dtype}", list_choices(map(str, allow_dtypes))))
    return True


def _check_past_none_input_none(
    use_past: bool, param_name: str, func_name: str, default_value: Any, is_tensor: bool, is_default: bool,
) -> bool:
    """Return True if `param_name` is a Tensor with `use_past`, and its default without. Raises TypeError otherwise."""
    if use_past and not is_tensor:
        raise TypeError(message(f"{line_prefix()}{func_name}: {param_name}", "a Tensor, for use_past=True"))
    if not use_past and (is_tensor or not is_default):
        raise TypeError(message(f"{line_prefix()}{func_name}: {param_name}", f"{default_value}, for use_past=False"))
    return True


class _LayerInputCheck:
    """Checks of the input shapes of layers."""

    @staticmethod
    def check_shape_equal(input_shape: Any, param_name: str, func_name: str, target_shape: Any) -> bool:
        """Return True if the shape is `target_shape`, or one of a list of shapes. Raises ValueError for another."""
        several = bool(target_shape) and isinstance(target_shape[0], (list, tuple))
        shapes = [tuple(shape) for shape in (target_shape if several else [target_shape])]
        if tuple(input_shape) not in shapes:
            raise ValueError(message(f"{line_prefix()}{func_name}: {param_name} of shape {tuple(input_shape)}", list_choices(shapes)))
        return True

    @staticmethod
    def check_shape_length(input_shape: Any, param_name: str, func_name: str, target_len: Any) -> bool:
        """Return True if there are `target_len` axes, or a number in a list. Raises ValueError otherwise."""
        allowed = target_len if isinstance(target_len, list) else [target_len]
        if len(input_shape) not in allowed:
            raise ValueError(message(f"{line_prefix()}{func_name}: {param_name} of {len(input_shape)} axes", list_choices(allowed)))
        return True


class _LayerNorm(Cell):
    """Layer norm over the last axis, with `gamma` and `beta` of the shape `normalized_shape`."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, param_init_type: Any = dtypes.float32) -> None:
        super().__init__()
        if param_init_type not in (dtypes.float32, dtypes.float16):
            raise TypeError(message(f"_LayerNorm(param_init_type={param_init_type})", "float32 or float16"))
        self.gamma = Parameter(initializer("ones", normalized_shape, param_init_type), name="gamma")
        self.beta = Parameter(initializer("zeros", normalized_shape, param_init_type), name="beta")
        self.eps = eps
        self.strategy: Any = None

    def construct(self, x: Any) -> Any:
        """Returns `x` with mean 0 and variance 1 along the last axis, times gamma plus beta."""
        if self.strategy is not None:
            from torchspore.distributed.shard import function_strategies

            x = function_strategies.placed("an input of _LayerNorm", x, self.strategy)
        centred = x - ops.mean(x, -1, keep_dims=True)
        scale = ops.rsqrt(ops.mean(ops.square(centred), -1, keep_dims=True) + self.eps)
        return centred * scale * self.gamma + self.beta

    def shard(self, strategy: Any) -> _LayerNorm:  # type: ignore[override]
        """Sets the cut of the input in split graphs, `((rows, 1),)`; returns the layer.

        Raises ValueError for a strategy that cuts the last axis, which is normalised.
        """
        if strategy[0][-1] != 1:
            raise ValueError(message(f"_LayerNorm.shard({short(strategy)})", "1 for the last axis, which is normalised"))
        self.strategy = strategy
        return self


class _Linear(Cell):
    """Computes x @ weight + bias in `compute_dtype`; the result has the dtype of x; `weight` is (out, in) with `transpose_b`, or (in, out).

    With `expert_num` above 1 there is a map for each expert: weight (experts, in, out), and x (outer_batch, experts, n, in).
    """

    def __init__(
        self, in_channels: int, out_channels: int, weight_init: Any = "normal", bias_init: Any = "zeros", has_bias: bool = True,
        activation: Any = None, transpose_b: bool = True, expert_num: int = 1, outer_batch: int = 1, expert_group_size: int | None = None,
        param_init_type: Any = dtypes.float32, compute_dtype: Any = dtypes.float16,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.has_bias, self.transpose_b = in_channels, out_channels, has_bias, transpose_b
        self.expert_num, self.outer_batch, self.expert_group_size, self.dtype = expert_num, outer_batch, expert_group_size, compute_dtype
        shape = (out_channels, in_channels) if transpose_b else (in_channels, out_channels)
        experts = () if expert_num == 1 else (expert_num,)
        self.weight = Parameter(initializer(weight_init, (*experts, *shape), param_init_type), name="weight")
        if has_bias:
            wide = (out_channels,) if expert_num == 1 else (1, expert_num, 1, out_channels)
            self.bias = Parameter(initializer(bias_init, wide, param_init_type), name="bias")
        self.activation = get_activation(activation) if isinstance(activation, str) else activation() if activation else None
        self.matmul = ops.MatMul(False, transpose_b) if expert_num == 1 else ops.BatchMatMul(False, transpose_b)
        self.bias_add, self.strategy_activation = ops.Add(), None

    def construct(self, x: Any) -> Any:
        """Maps x (..., in) to (..., out)."""
        shape, before = (*x.shape[:-1], self.out_channels), x.dtype
        x = ops.reshape(x, (-1, self.in_channels))
        if self.expert_num > 1:
            x = ops.reshape(x, (self.outer_batch, self.expert_num, -1, self.in_channels))
        out = self.matmul(ops.cast(x, self.dtype), ops.cast(self.weight, self.dtype))
        if self.has_bias:
            out = self.bias_add(out, ops.cast(self.bias, self.dtype))
        if self.activation is not None:
            out = self.activation(out)
            if self.strategy_activation is not None:
                from torchspore.distributed.shard import function_strategies

                out = function_strategies.placed("the activation of _Linear", out, self.strategy_activation)
        return ops.cast(ops.reshape(out, shape), before)

    def shard(  # type: ignore[override]
        self, strategy_matmul: Any, strategy_bias: Any = None, strategy_activation: Any = None,
    ) -> _Linear:
        """Sets the cuts of the product, the sum with the bias and the activation in split graphs; returns the layer."""
        self.matmul.shard(strategy_matmul)
        if self.has_bias and strategy_bias is not None:
            self.bias_add.shard(strategy_bias)
        if self.activation is not None:
            self.strategy_activation = strategy_activation
        return self
