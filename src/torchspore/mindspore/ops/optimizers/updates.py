"""Optimizer steps as primitives: each writes new values into its Parameters.

The formulas are those of the papers named in the docstrings, with MindSpore's positions of epsilon. `row_updates` has steps on some rows.
"""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.ops.declaration.declare import op, updating

T = torch.Tensor


def _moments(m: T, v: T, g: T, beta1: Any, beta2: Any) -> tuple[T, T]:
    return m * beta1 + g * (1 - beta1), v * beta2 + g * g * (1 - beta2)


def corrected(lr: Any, beta1_power: Any, beta2_power: Any) -> Any:
    """Return Adam's learning rate including the bias correction."""
    return lr * (1 - beta2_power) ** 0.5 / (1 - beta1_power)


def adam(m: T, v: T, g: T, rate: Any, beta1: Any, beta2: Any, epsilon: Any, nesterov: bool) -> tuple[T, T, T]:
    """Return the step to subtract, and the new moments."""
    m, v = _moments(m, v, g, beta1, beta2)
    ahead = m * beta1 + g * (1 - beta1) if nesterov else m
    return rate * ahead / (torch.sqrt(v) + epsilon), m, v


LOCK, NESTEROV = ("use_locking",), ("use_locking", "use_nesterov")


@updating("var", "m", "v", primitive="Adam", init=NESTEROV, name="_adam_primitive")
def _adam_primitive(
    var: T, m: T, v: T, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, gradient: T,
    use_locking: bool = False, use_nesterov: bool = False,
) -> Any:
    """A step of Adam (Kingma and Ba); returns (var, m, v)."""
    step, m, v = adam(m, v, gradient, corrected(lr, beta1_power, beta2_power), beta1, beta2, epsilon, use_nesterov)
    return var - step, m, v


@updating("m", "v", primitive="AdamNoUpdateParam", init=NESTEROV, gives=-1)
def _adam_no_update(
    m: T, v: T, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, gradient: T, use_locking: bool = False,
    use_nesterov: bool = False,
) -> Any:
    """Return the change of the Parameter in a step of Adam; the moments are updated in place."""
    step, new_m, new_v = adam(m, v, gradient, corrected(lr, beta1_power, beta2_power), beta1, beta2, epsilon, use_nesterov)
    return new_m, new_v, -step


def _adam_w(var: T, m: T, v: T, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any, g: T) -> Any:
    g = g.to(m.dtype)
    m, v = _moments(m, v, g, beta1, beta2)
    wide_var = var.to(m.dtype)
    return wide_var - lr * (m / (torch.sqrt(v) + epsilon) + decay * wide_var), m, v


@updating("var", "m", "v", primitive="AdamWeightDecay", init=LOCK)
def _adam_weight_decay(
    var: T, m: T, v: T, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any, gradient: T, use_locking: bool = False,
) -> Any:
    """A step of Adam with decoupled weight decay and without bias correction; returns (var, m, v)."""
    return _adam_w(var, m, v, lr, beta1, beta2, epsilon, decay, gradient)


@updating("var", "m", "v", primitive="FusedCastAdamWeightDecay", init=LOCK)
def _fused_cast_adam_weight_decay(
    var: T, m: T, v: T, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any, gradient: T, use_locking: bool = False,
) -> Any:
    """`AdamWeightDecay` for a float16 Parameter with float32 moments, computed in float32; returns (var, m, v)."""
    return _adam_w(var, m, v, lr, beta1, beta2, epsilon, decay, gradient)


@updating("var", "m", "v", primitive="ApplyAdaMax")
def _ada_max(var: T, m: T, v: T, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: T) -> Any:
    """A step of AdaMax (Kingma and Ba); returns (var, m, v)."""
    m, v = m * beta1 + grad * (1 - beta1), torch.maximum(v * beta2, torch.abs(grad))
    return var - lr / (1 - beta1_power) * m / (v + epsilon), m, v


def _amsgrad(var: T, m: T, v: T, vhat: T, rate: Any, beta1: Any, beta2: Any, epsilon: Any, g: T) -> Any:
    m, v = _moments(m, v, g, beta1, beta2)
    vhat = torch.maximum(vhat, v)
    return var - rate * m / (torch.sqrt(vhat) + epsilon), m, v, vhat


@updating("var", "m", "v", "vhat", primitive="ApplyAdamWithAmsgrad", init=("beta1", "beta2", "epsilon", "use_locking"))
def _adam_with_amsgrad(
    var: T, m: T, v: T, vhat: T, beta1_power: Any, beta2_power: Any, lr: Any, grad: T, beta1: float = 0.9, beta2: float = 0.999,
    epsilon: float = 1e-08, use_locking: bool = False,
) -> Any:
    """A step of AMSGrad (Reddi and others); returns (var, m, v, vhat)."""
    return _amsgrad(var, m, v, vhat, corrected(lr, beta1_power, beta2_power), beta1, beta2, epsilon, grad)


@updating("var", "m", "v", "vhat", primitive="ApplyAdamWithAmsgradV2", init=LOCK)
def _adam_with_amsgrad_v2(
    var: T, m: T, v: T, vhat: T, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: T,
    use_locking: bool = False,
) -> Any:
    """A step of AMSGrad (Reddi and others); returns (var, m, v, vhat)."""
    return _amsgrad(var, m, v, vhat, corrected(lr, beta1_power, beta2_power), beta1, beta2, epsilon, grad)


def adadelta(var: T, accum: T, accum_update: T, lr: Any, rho: Any, epsilon: Any, g: T) -> Any:
    """A step of Adadelta (Zeiler): the new values and both accumulators."""
    accum = accum * rho + g * g * (1 - rho)
    step = torch.sqrt(accum_update + epsilon) * g / torch.sqrt(accum + epsilon)
    return var - lr * step, accum, accum_update * rho + step * step * (1 - rho)


@updating("var", "accum", "accum_update", primitive="ApplyAdadelta")
def _apply_adadelta(var: T, accum: T, accum_update: T, lr: Any, rho: Any, epsilon: Any, grad: T) -> Any:
    """A step of Adadelta (Zeiler); returns (var, accum, accum_update)."""
    return adadelta(var, accum, accum_update, lr, rho, epsilon, grad)


def adagrad(var: T, accum: T, lr: Any, g: T, update_slots: bool, epsilon: float = 0.0) -> Any:
    """A step of Adagrad (Duchi and others): the new values and squares, which stay unchanged if `update_slots` is False."""
    accum = accum + g * g if update_slots else accum
    return var - lr * g / (torch.sqrt(accum) + epsilon), accum


@updating("var", "accum", primitive="ApplyAdagrad", init=("update_slots",))
def _apply_adagrad(var: T, accum: T, lr: Any, grad: T, update_slots: bool = True) -> Any:
    """A step of Adagrad (Duchi and others); returns (var, accum)."""
    return adagrad(var, accum, lr, grad, update_slots)


@updating("var", "accum", primitive="ApplyAdagradV2", init=("epsilon", "update_slots"))
def _apply_adagrad_v2(var: T, accum: T, lr: Any, grad: T, epsilon: float, update_slots: bool = True) -> Any:
    """A step of Adagrad with `epsilon` added to the root; returns (var, accum)."""
    return adagrad(var, accum, lr, grad, update_slots, epsilon)


@updating("var", "gradient_accumulator", "gradient_squared_accumulator", primitive="ApplyAdagradDA", init=LOCK)
def _adagrad_da(
    var: T, gradient_accumulator: T, gradient_squared_accumulator: T, grad: T, lr: Any, l1: Any, l2: Any, global_step: Any,
    use_locking: bool = False,
) -> Any:
    """A step of Adagrad with dual averaging (Duchi and others); returns (var, both accumulators)."""
    return adagrad_da(var, gradient_accumulator, gradient_squared_accumulator, grad, lr, l1, l2, global_step)


def adagrad_da(var: T, total: T, squares: T, g: T, lr: Any, l1: Any, l2: Any, step: Any) -> Any:
    """A step of Adagrad with dual averaging: the new values, the sum of gradients and of their squares."""
    total, squares = total + g, squares + g * g
    shrunk = torch.sign(total) * torch.clamp(torch.abs(total) - l1 * step, min=0)
    return 0 * var - lr * shrunk / (l2 * step * lr + torch.sqrt(squares)), total, squares


@updating("var", "m", primitive="ApplyAddSign")
def _add_sign(var: T, m: T, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: T) -> Any:
    """A step of AddSign (Bello and others); returns (var, m)."""
    m = m * beta + grad * (1 - beta)
    return var - lr * (alpha + sign_decay * torch.sign(grad) * torch.sign(m)) * grad, m


@updating("var", "m", primitive="ApplyPowerSign")
def _power_sign(var: T, m: T, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: T) -> Any:
    """A step of PowerSign (Bello and others); returns (var, m)."""
    m = m * beta + grad * (1 - beta)
    return var - lr * torch.exp(logbase * sign_decay * torch.sign(grad) * torch.sign(m)) * grad, m


def rms(var: T, mean_square: T, moment: T, lr: Any, g: T, decay: Any, momentum: Any, epsilon: Any) -> Any:
    """A step of RMSProp: the new values, mean of squares and moment."""
    mean_square = mean_square * decay + g * g * (1 - decay)
    moment = moment * momentum + lr * g / torch.sqrt(mean_square + epsilon)
    return var - moment, mean_square, moment


@updating("var", "mean_square", "moment", primitive="ApplyRMSProp", init=LOCK, gives=1)
def _rms_prop(
    var: T, mean_square: T, moment: T, learning_rate: Any, grad: T, decay: Any, momentum: Any, epsilon: Any, use_locking: bool = False,
) -> Any:
    """A step of RMSProp (Hinton); returns var."""
    return rms(var, mean_square, moment, learning_rate, grad, decay, momentum, epsilon)


@updating("var", "mean_gradient", "mean_square", "moment", primitive="ApplyCenteredRMSProp", init=LOCK, gives=1)
def _centered_rms_prop(
    var: T, mean_gradient: T, mean_square: T, moment: T, grad: T, learning_rate: Any, decay: Any, momentum: Any, epsilon: Any,
    use_locking: bool = False,
) -> Any:
    """A step of RMSProp with the variance of the gradient (Graves); returns var."""
    return centered_rms(var, mean_gradient, mean_square, moment, grad, learning_rate, decay, momentum, epsilon)


def centered_rms(var: T, mean: T, square: T, moment: T, g: T, lr: Any, decay: Any, momentum: Any, epsilon: Any) -> Any:
    """A step of RMSProp with the variance of the gradient: the new values, mean, mean of squares and moment."""
    mean, square = mean * decay + g * (1 - decay), square * decay + g * g * (1 - decay)
    moment = moment * momentum + lr * g / torch.sqrt(square - mean * mean + epsilon)
    return var - moment, mean, square, moment


def ftrl(var: T, accum: T, linear: T, g: T, lr: Any, l1: Any, l2: Any, power: Any, shrinkage: float = 0.0) -> Any:
    """A step of FTRL (McMahan and others): the new values, squares and linear terms."""
    total = accum + g * g
    linear = linear + g + 2 * shrinkage * var - (total**-power - accum**-power) / lr * var
    curve = total**-power / lr + 2 * l2
    return torch.where(torch.abs(linear) > l1, (torch.sign(linear) * l1 - linear) / curve, 0), total, linear


@updating("var", "accum", "linear", primitive="ApplyFtrl", init=LOCK, gives=1)
def _apply_ftrl(var: T, accum: T, linear: T, grad: T, lr: Any, l1: Any, l2: Any, lr_power: Any, use_locking: bool = False) -> Any:
    """A step of FTRL (McMahan and others); returns var."""
    return ftrl(var, accum, linear, grad, lr, l1, l2, lr_power)


@updating("var", primitive="ApplyGradientDescent")
def _gradient_descent(var: T, alpha: Any, delta: T) -> T:
    """var - alpha * delta; returns var."""
    return var - alpha * delta


@updating("variable", "accumulation", primitive="ApplyMomentum", init=("use_nesterov", "use_locking", "gradient_scale"), gives=1)
def _momentum(
    variable: T, accumulation: T, learning_rate: Any, gradient: T, momentum: Any, use_nesterov: bool = False, use_locking: bool = False,
    gradient_scale: float = 1.0,
) -> Any:
    """A step with momentum; returns the variable."""
    g = gradient * gradient_scale if gradient_scale != 1.0 else gradient
    accumulation = accumulation * momentum + g
    ahead = g + accumulation * momentum if use_nesterov else accumulation
    return variable - learning_rate * ahead, accumulation


@updating("variable", "accumulation", primitive="FusedWeightScaleApplyMomentum")
def _weight_scale_momentum(
    weight_decay: Any, loss_scale: Any, variable: T, accumulation: T, learning_rate: Any, gradient: T, momentum: Any,
) -> Any:
    """A step with momentum on loss_scale * gradient + weight_decay * variable; returns both variables."""
    accumulation = accumulation * momentum + gradient * loss_scale + weight_decay * variable
    return variable - learning_rate * accumulation, accumulation


@updating("var", "accum", primitive="ApplyKerasMomentum", init=NESTEROV)
def _keras_momentum(var: T, accum: T, lr: Any, grad: T, momentum: Any, use_locking: bool = False, use_nesterov: bool = False) -> Any:
    """A step with momentum that includes the learning rate; returns (var, accum)."""
    accum = accum * momentum - grad * lr
    return var + (accum * momentum - grad * lr if use_nesterov else accum), accum


def proximal(moved: T, rate: Any, l1: Any, l2: Any) -> T:
    """Shrink values towards 0 by l1 and l2 (Duchi and Singer)."""
    return torch.sign(moved) * torch.clamp(torch.abs(moved) - rate * l1, min=0) / (1 + rate * l2)


@updating("var", primitive="ApplyProximalGradientDescent")
def _proximal_descent(var: T, alpha: Any, l1: Any, l2: Any, delta: T) -> T:
    """A proximal gradient descent step (Duchi and Singer); returns var."""
    return proximal(var - alpha * delta, alpha, l1, l2)


def proximal_adagrad(var: T, accum: T, lr: Any, l1: Any, l2: Any, g: T) -> Any:
    """A proximal Adagrad step: the new values and squares."""
    accum = accum + g * g
    rate = lr / torch.sqrt(accum)
    return proximal(var - rate * g, rate, l1, l2), accum


@updating("var", "accum", primitive="ApplyProximalAdagrad", init=LOCK)
def _apply_proximal_adagrad(var: T, accum: T, lr: Any, l1: Any, l2: Any, grad: T, use_locking: bool = False) -> Any:
    """A proximal Adagrad step (Duchi and Singer); returns (var, accum)."""
    return proximal_adagrad(var, accum, lr, l1, l2, grad)


@updating("parameters", "accum", "stat", primitive="SGD", init=("dampening", "weight_decay", "nesterov"), gives=1)
def _sgd(
    parameters: T, gradient: T, learning_rate: T, accum: T, momentum: T, stat: T, dampening: float = 0.0, weight_decay: float = 0.0,
    nesterov: bool = False,
) -> Any:
    """A step of gradient descent with momentum; where `stat` is above 0, at first, accum becomes the gradient. Returns parameters."""
    if nesterov and dampening:
        raise ValueError(f"dampening={dampening}: expected 0.0 if nesterov is True.")
    g = gradient + weight_decay * parameters if weight_decay else gradient
    new = torch.where(stat > 0, g, accum * momentum + g * (1 - dampening))
    step = torch.where(momentum != 0, g + new * momentum if nesterov else new, g)
    return parameters - learning_rate * step, torch.where(momentum != 0, new, accum), torch.zeros_like(stat)


@op(primitive="LARSUpdate", init=("epsilon", "hyperpara", "use_clip"))
def _lars(
    weight: T, gradient: T, norm_weight: T, norm_gradient: T, weight_decay: Any, learning_rate: Any, epsilon: float = 1e-05,
    hyperpara: float = 0.001, use_clip: bool = False,
) -> T:
    """Scale the gradient by LARS (You and others); the norms are passed as sums of squares."""
    size, slope = torch.sqrt(norm_weight), torch.sqrt(norm_gradient)
    trust = hyperpara * size / (slope + weight_decay * size + epsilon)
    trust = torch.where((size > 0) & (slope > 0), trust, 1.0)
    if use_clip:
        trust = torch.clamp(trust / learning_rate, max=1.0)
    return trust * (gradient + weight_decay * weight)
