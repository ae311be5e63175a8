"""Line search for the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and 3.6), by SciPy."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from torchspore.base.text import message, with_type
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.ops.gradients.gradient import grad


class LineSearchResults(NamedTuple):
    """The result of `line_search`; `nit` and `k` count the step lengths tried, `a_k` is the step, f_k and g_k value and gradient there."""

    failed: bool
    nit: int
    nfev: int
    ngev: int
    k: int
    a_k: float
    f_k: float
    g_k: Tensor
    status: int


class Measured:
    """`f` and its gradient in SciPy's form: float64 arrays, computed on Tensors of x0's dtype; it counts the evaluations."""

    def __init__(self, f: Callable[..., Any], jac: Callable[..., Any] | None, like: Tensor, args: tuple[Any, ...] = ()) -> None:
        self._f, self._jac, self._like, self._args = f, jac or grad(f), like, args
        self.values = self.gradients = 0

    def tensor(self, x: Any) -> Tensor:
        """Return `x` in the dtype of the program's point."""
        return Tensor(np.asarray(x), self._like.dtype)

    def value(self, x: Any) -> float:
        """Return the function at x. Raises ValueError unless it is one number."""
        self.values += 1
        out = self._f(self.tensor(x), *self._args)
        if not isinstance(out, Tensor) or out.size != 1:
            raise ValueError(f"the function: expected a Tensor of one element, got {getattr(out, 'shape', type(out).__name__)}.")
        return float(out.asnumpy().reshape(()))

    def gradient(self, x: Any) -> np.ndarray[Any, Any]:
        """Return the gradient at x, in the shape of x."""
        self.gradients += 1
        return np.asarray(self._jac(self.tensor(x), *self._args).asnumpy(), np.float64)


def point(value: Any, name: str) -> Tensor:
    """Return `value`, a Tensor with one axis. Raises TypeError or ValueError with the argument's name."""
    if not isinstance(value, Tensor):
        raise TypeError(message(f"{name}", with_type("a Tensor", value)))
    if value.ndim != 1:
        raise ValueError(f"{name}: expected one axis, got shape {value.shape}.")
    return value


def line_search(
    f: Callable[..., Any], xk: Tensor, pk: Tensor, jac: Callable[..., Any] | None = None, gfk: Any = None, old_fval: Any = None,
    old_old_fval: Any = None, c1: float = 1e-4, c2: float = 0.9, maxiter: int = 20,
) -> LineSearchResults:
    """Find the step from `xk` (n,) along `pk` (n,) after which func decreases enough (c1) and its slope flattens enough (c2).

    `gfk` and `old_fval` are gradient and value at xk, if they are known, `old_old_fval` the value at the preceding point. `failed` is True
    if `maxiter` tries did not find one; a_k is then 1.
    """
    from scipy.optimize import line_search as search

    measured = Measured(f, jac, point(xk, "line_search(xk)"))
    start, direction = (np.asarray(v.asnumpy(), np.float64) for v in (xk, point(pk, "line_search(pk)")))
    initial = [None if v is None else np.asarray(v, np.float64) for v in (gfk, old_fval, old_old_fval)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = search(measured.value, measured.gradient, start, direction, *initial, c1=c1, c2=c2, maxiter=maxiter)[0]
    failed, length = step is None, 1.0 if step is None else float(step)
    end = start + length * direction
    value, slope = measured.value(end), measured.gradient(end)
    tried = max(measured.values - 2, 1)
    return LineSearchResults(
        failed, tried, measured.values - 1, measured.gradients - 1, tried, length, value, measured.tensor(slope), 1 if failed else 0,
    )
