"""`mindspore.mint`: functions and layers with PyTorch's arguments.

Functions with the same arguments and meaning in `ops` are those operators; the others are defined in this package.
"""
from __future__ import annotations

from typing import Any

from torchspore.mindspore import ops
from torchspore.mindspore.mint import creation, elementwise, linear, rearrange, reduction

_SHARED_WITH_OPS = tuple(
    "abs acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax asin asinh atan atan2 atanh bitwise_and bitwise_or "
    "bitwise_xor broadcast_to ceil cos cosh cross dot dstack erf erfc erfinv exp exp2 expm1 eye flip floor gcd greater gt hstack inverse "
    "isclose isfinite isinf le less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor "
    "masked_select matmul maximum minimum mm nan_to_num ne neg negative not_equal pow ravel reciprocal rsqrt sigmoid sign sin sinc "
    "sinh square swapaxes tan tanh tile tril triu unique_consecutive unsqueeze".split(),
)
"""Operators of `ops` with the same arguments and meaning."""
_HOMES = (creation, elementwise, linear, rearrange, reduction)


def _functions() -> dict[str, Any]:
    """Return the public functions defined in the modules of this package, without those that the modules import."""
    functions = {
        name: value for home in _HOMES for name, value in vars(home).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == home.__name__
    }
    return {**{name: getattr(ops, name) for name in _SHARED_WITH_OPS}, **functions}


globals().update(_functions())

from torchspore.mindspore.mint import distributed, linalg, nn, optim, special  # noqa: E402
from torchspore.mindspore.mint.nn import functional  # noqa: E402

__all__ = sorted({*_functions(), "distributed", "functional", "linalg", "nn", "optim", "special"})
