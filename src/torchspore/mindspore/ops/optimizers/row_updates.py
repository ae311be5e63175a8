"""Optimizer steps for some rows of Parameters, as primitives; `updates` has the steps for all rows."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.formulas.row_gradients import summed
from torchspore.mindspore.ops.declaration.declare import updating
from torchspore.mindspore.ops.optimizers.updates import (
    LOCK,
    NESTEROV,
    adadelta,
    adagrad,
    adagrad_da,
    adam,
    centered_rms,
    corrected,
    ftrl,
    proximal,
    proximal_adagrad,
    rms,
)

T = torch.Tensor


def _check_rows(states: tuple[T, ...], g: T, indices: T) -> None:
    """Raise ValueError unless all states have one shape, `indices` has one axis, and `g` has one row of a state for each index."""
    shapes = [tuple(state.shape) for state in states]
    if len(set(shapes)) > 1:
        raise ValueError(f"the var shape must be equal to the shapes of the states, got {', '.join(map(str, shapes))}.")
    if indices.ndim != 1:
        raise ValueError(f"the indices rank must be equal to 1, but got {indices.ndim}.")
    if g.shape[:1] != indices.shape:
        raise ValueError(f"the grad_shape[0] must be equal to indices_shape[0] which is {indices.shape[0]}, but got {tuple(g.shape)}.")
    if tuple(g.shape[1:]) != shapes[0][1:]:
        raise ValueError(f"the var_shape[1:] must be equal to grad_shape[1:] which is {tuple(g.shape[1:])}, but got {shapes[0][1:]}.")


def _at_rows(states: tuple[T, ...], g: T, indices: T, step: Callable[..., Any]) -> tuple[T, ...]:
    """Apply a step to the rows at `indices`; the gradients of a repeated row are summed."""
    _check_rows(states, g, indices)
    at, sums, _ = summed(indices, g)
    new = step(*[state.index_select(0, at) for state in states], sums)
    return tuple(state.index_copy(0, at, rows.to(state.dtype)) for state, rows in zip(states, new))


@updating("var", "m", "v", primitive="FusedSparseAdam", init=NESTEROV)
def _fused_sparse_adam(
    var: T, m: T, v: T, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, gradient: T, indices: T,
    use_locking: bool = False, use_nesterov: bool = False,
) -> Any:
    """A step of Adam with a gradient of some rows; other rows have gradient 0 and still move. Return (var, m, v)."""
    _check_rows((var, m, v), gradient, indices)
    full_gradient = torch.zeros_like(var).index_add(0, indices.long(), gradient)
    step, m, v = adam(m, v, full_gradient, corrected(lr, beta1_power, beta2_power), beta1, beta2, epsilon, use_nesterov)
    return var - step, m, v


@updating("var", "m", "v", primitive="FusedSparseLazyAdam", init=NESTEROV)
def _fused_sparse_lazy_adam(
    var: T, m: T, v: T, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, gradient: T, indices: T,
    use_locking: bool = False, use_nesterov: bool = False,
) -> Any:
    """A step of Adam for some rows; all others stay unchanged. Return (var, m, v)."""

    def step(p: T, first: T, second: T, g: T) -> Any:
        change, first, second = adam(
            first, second, g, corrected(lr, beta1_power, beta2_power), beta1, beta2, epsilon, use_nesterov,
        )
        return p - change, first, second

    return _at_rows((var, m, v), gradient, indices, step)


_FTRL = ("lr", "l1", "l2", "lr_power", "use_locking")


@updating("var", "accum", "linear", primitive="FusedSparseFtrl", init=_FTRL)
def _fused_sparse_ftrl(
    var: T, accum: T, linear: T, grad: T, indices: T, lr: float, l1: float, l2: float, lr_power: float, use_locking: bool = False,
) -> Any:
    """A step of FTRL for some rows; return (var, accum, linear)."""
    return _at_rows((var, accum, linear), grad, indices, lambda p, a, b, g: ftrl(p, a, b, g, lr, l1, l2, lr_power))


@updating("var", "accum", "linear", primitive="SparseApplyFtrl", init=_FTRL)
def _sparse_ftrl(
    var: T, accum: T, linear: T, grad: T, indices: T, lr: float, l1: float, l2: float, lr_power: float, use_locking: bool = False,
) -> Any:
    """A step of FTRL for some rows; return (var, accum, linear)."""
    return _at_rows((var, accum, linear), grad, indices, lambda p, a, b, g: ftrl(p, a, b, g, lr, l1, l2, lr_power))


@updating("var", "accum", "linear", primitive="SparseApplyFtrlV2", init=("lr", "l1", "l2", "l2_shrinkage", "lr_power", "use_locking"))
def _sparse_ftrl_v2(
    var: T, accum: T, linear: T, grad: T, indices: T, lr: float, l1: float, l2: float, l2_shrinkage: float, lr_power: float,
    use_locking: bool = False,
) -> Any:
    """A step of FTRL with L2 shrinkage for some rows; return (var, accum, linear)."""
    return _at_rows((var, accum, linear), grad, indices, lambda p, a, b, g: ftrl(p, a, b, g, lr, l1, l2, lr_power, l2_shrinkage))


@updating("var", "accum", primitive="FusedSparseProximalAdagrad", init=LOCK)
def _fused_sparse_proximal_adagrad(
    var: T, accum: T, lr: Any, l1: Any, l2: Any, grad: T, indices: T, use_locking: bool = False,
) -> Any:
    """A step of proximal Adagrad for some rows; return (var, accum)."""
    return _at_rows((var, accum), grad, indices, lambda p, a, g: proximal_adagrad(p, a, lr, l1, l2, g))


@updating("var", "accum", primitive="SparseApplyProximalAdagrad", init=LOCK)
def _sparse_proximal_adagrad(var: T, accum: T, lr: Any, l1: Any, l2: Any, grad: T, indices: T, use_locking: bool = False) -> Any:
    """A step of proximal Adagrad for some rows; return (var, accum)."""
    return _at_rows((var, accum), grad, indices, lambda p, a, g: proximal_adagrad(p, a, lr, l1, l2, g))


@updating("var", "accum", primitive="SparseApplyAdagrad", init=("lr", "update_slots", "use_locking"))
def _sparse_adagrad(var: T, accum: T, grad: T, indices: T, lr: float, update_slots: bool = True, use_locking: bool = False) -> Any:
    """A step of Adagrad for some rows; return (var, accum)."""
    return _at_rows((var, accum), grad, indices, lambda p, a, g: adagrad(p, a, lr, g, update_slots))


@updating("var", "accum", primitive="SparseApplyAdagradV2", init=("lr", "epsilon", "use_locking", "update_slots"))
def _sparse_adagrad_v2(
    var: T, accum: T, grad: T, indices: T, lr: float, epsilon: float, use_locking: bool = False, update_slots: bool = True,
) -> Any:
    """A step of Adagrad with `epsilon` added under the root, for some rows; return (var, accum)."""

    def step(p: T, a: T, g: T) -> Any:
        a = a + g * g if update_slots else a
        return p - lr * g / torch.sqrt(a + epsilon), a

    return _at_rows((var, accum), grad, indices, step)


@updating("var", "accum", "accum_update", primitive="SparseApplyAdadelta", init=("epsilon", "use_locking"))
def _sparse_adadelta(
    var: T, accum: T, accum_update: T, lr: Any, rho: Any, grad: T, indices: T, epsilon: float, use_locking: bool = False,
) -> Any:
    """A step of Adadelta for some rows; return (var, accum, accum_update)."""
    return _at_rows((var, accum, accum_update), grad, indices, lambda p, a, u, g: adadelta(p, a, u, lr, rho, epsilon, g))


@updating("var", "ms", "mom", primitive="SparseApplyRMSProp", init=("rho", "momentum", "epsilon", "use_locking"))
def _sparse_rms_prop(
    var: T, ms: T, mom: T, lr: Any, grad: T, indices: T, rho: float, momentum: float, epsilon: float, use_locking: bool = False,
) -> Any:
    """A step of RMSProp for some rows; return (var, ms, mom)."""
    return _at_rows((var, ms, mom), grad, indices, lambda p, s, m, g: rms(p, s, m, lr, g, rho, momentum, epsilon))


@updating("var", "grad_accum", "grad_square_accum", primitive="SparseApplyAdagradDA", init=LOCK)
def _sparse_adagrad_da(
    var: T, grad_accum: T, grad_square_accum: T, grad: T, indices: T, lr: Any, l1: Any, l2: Any, global_step: Any,
    use_locking: bool = False,
) -> Any:
    """A step of Adagrad with dual averaging for some rows; return (var, both accumulators)."""
    states = (var, grad_accum, grad_square_accum)
    return _at_rows(states, grad, indices, lambda p, a, s, g: adagrad_da(p, a, s, g, lr, l1, l2, global_step))


@updating("var", "mg", "ms", "mom", primitive="SparseApplyCenteredRMSProp", init=LOCK, gives=1)
def _sparse_centered_rms_prop(
    var: T, mg: T, ms: T, mom: T, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: T, indices: T, use_locking: bool = False,
) -> Any:
    """A step of RMSProp with the variance of the gradient, for some rows; return var."""
    return _at_rows((var, mg, ms, mom), grad, indices, lambda p, m, s, v, g: centered_rms(p, m, s, v, g, lr, rho, momentum, epsilon))


@updating("var", "accum", primitive="SparseApplyMomentum", init=NESTEROV, gives=1)
def _sparse_momentum(
    var: T, accum: T, lr: Any, grad: T, indices: T, momentum: Any, use_locking: bool = False, use_nesterov: bool = False,
) -> Any:
    """A step with momentum for some rows; return var."""

    def step(p: T, a: T, g: T) -> Any:
        a = a * momentum + g
        return p - lr * (g + a * momentum if use_nesterov else a), a

    return _at_rows((var, accum), grad, indices, step)


@updating("var", primitive="SparseApplyProximalGradientDescent", init=LOCK)
def _sparse_proximal_descent(var: T, alpha: Any, l1: Any, l2: Any, grad: T, indices: T, use_locking: bool = False) -> Any:
    """A proximal gradient descent step for some rows; return var."""
    return _at_rows((var,), grad, indices, lambda p, g: (proximal(p - alpha * g, alpha, l1, l2),))[0]
