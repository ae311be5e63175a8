"""Minimization of functions of several variables: SciPy's BFGS and L-BFGS with gradients of Tensors."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.scipy.optimize._steps import Measured, point


class OptimizeResults(NamedTuple):
    """The result of `minimize`: the point, whether it is a minimum within the tolerance, and the effort."""

    x: Tensor
    success: bool
    status: int
    fun: float
    jac: Tensor
    hess_inv: Tensor | None
    nfev: int
    njev: int
    nit: int


_OPTIONS = {
    "bfgs": {"maxiter": "maxiter", "gtol": "gtol", "norm": "norm"},
    "lbfgs": {"maxiter": "maxiter", "gtol": "gtol", "ftol": "ftol", "maxfun": "maxfun", "maxls": "maxls", "history_size": "maxcor"},
}
_SCIPY = {"bfgs": "BFGS", "lbfgs": "L-BFGS-B"}


def minimize(
    func: Callable[..., Any], x0: Tensor, args: tuple[Any, ...] = (), method: str | None = None, jac: Callable[..., Any] | None = None,
    hess: Any = None, hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: float | None = None, callback: Any = None,
    options: Any = None,
) -> OptimizeResults:
    """Minimize func(x, *args) from `x0` (n,) by `method` 'BFGS' or 'LBFGS' (SciPy's L-BFGS-B).

    `jac` returns the gradient; default: computed. `options`: maxiter, gtol, for BFGS norm, for LBFGS history_size, ftol, maxfun and
    maxls.
    Raises ValueError for another method or option, NotImplementedError for 'LAGRANGE' and for hess, hessp, bounds, constraints and
    callback, which MindSpore does not support for these methods either.
    """
    solver = _solver(method)
    for name, value in {"hess": hess, "hessp": hessp, "bounds": bounds, "constraints": constraints or None, "callback": callback}.items():
        if value is not None:
            raise NotImplementedError(f"minimize({name}=...): expected none; MindSpore does not support it for {method!r} either.")
    measured = Measured(func, jac, point(x0, "minimize(x0)"), tuple(args))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = _run(solver, measured, np.asarray(x0.asnumpy(), np.float64), tol, _options(solver, options))
    inverse = measured.tensor(result.hess_inv) if solver == "bfgs" else None
    return OptimizeResults(
        measured.tensor(result.x), bool(result.success), int(result.status), float(result.fun), measured.tensor(result.jac),
        inverse, int(result.nfev), int(result.njev), int(result.nit),
    )


def _run(solver: str, measured: Measured, start: Any, tol: float | None, options: dict[str, Any]) -> Any:
    from scipy import optimize

    return optimize.minimize(measured.value, start, method=_SCIPY[solver], jac=measured.gradient, tol=tol, options=options)


def _solver(method: Any) -> str:
    if method is None:
        raise ValueError("minimize(method=None): expected 'BFGS' or 'LBFGS'.")
    name = str(method).lower()
    if name == "lagrange":
        raise NotImplementedError("minimize(method='LAGRANGE'): not supported.\n\nhint: 'BFGS' and 'LBFGS' minimize without constraints.")
    if name not in _OPTIONS:
        raise ValueError(f"minimize(method={method!r}): expected 'BFGS' or 'LBFGS'.")
    return name


def _options(solver: str, options: Any) -> dict[str, Any]:
    allowed = _OPTIONS[solver]
    unknown = sorted(set(options or ()) - set(allowed))
    if unknown:
        raise ValueError(f"minimize(options={unknown}): expected some of {', '.join(allowed)} for method {solver.upper()!r}.")
    return {allowed[name]: value for name, value in (options or {}).items() if value is not None}
