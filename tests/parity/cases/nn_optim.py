"""Optimizers: five steps from given weights with given gradients, and the names of what they keep."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.nn.optim.optimizer import opt_init_args_register
from parity.case import case, raised

rng = np.random.RandomState(11)
START = {"weight": rng.randn(3, 2).astype(np.float32), "bias": rng.randn(3).astype(np.float32), "bn.gamma": np.ones(2, np.float32)}
GRADIENTS = [[rng.randn(*value.shape).astype(np.float32) for value in START.values()] for _ in range(5)]


class _Rate(nn.learning_rate_schedule.LearningRateSchedule):
    def construct(self, global_step):
        return 0.1 / (1.0 + 0.5 * global_step.astype(ms.float32))


OPTIMIZERS = {
    "SGD": lambda p: nn.SGD(p, 0.1),
    "SGD_momentum": lambda p: nn.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "SGD_dampening": lambda p: nn.SGD(p, 0.1, momentum=0.8, dampening=0.2),
    "Momentum": lambda p: nn.Momentum(p, 0.1, 0.9),
    # use_nesterov is not recorded: 2.10's CPU kernel of Momentum passes over it and gives the plain formula's numbers.
    "Momentum_decay": lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.01),
    "Momentum_scale": lambda p: nn.Momentum(p, 0.1, 0.9, loss_scale=8.0),
    "Adam": lambda p: nn.Adam(p, 0.01),
    "Adam_options": lambda p: nn.Adam(p, 0.01, beta1=0.8, beta2=0.9, eps=0.1, weight_decay=0.05),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.1),
    "Adam_amsgrad": lambda p: nn.Adam(p, 0.01, use_amsgrad=True),
    "AdamOffload": lambda p: nn.AdamOffload(p, 0.01, weight_decay=0.1),
    "RMSProp": lambda p: nn.RMSProp(p, 0.1),
    "RMSProp_momentum": lambda p: nn.RMSProp(p, 0.1, decay=0.8, momentum=0.9, epsilon=0.1, weight_decay=0.1, loss_scale=4.0),
    "RMSProp_centered": lambda p: nn.RMSProp(p, [0.1, 0.05, 0.02, 0.02, 0.02], centered=True, momentum=0.5, epsilon=0.001),
    "Adagrad": lambda p: nn.Adagrad(p, learning_rate=0.1, weight_decay=0.1),
    "Adagrad_fixed": lambda p: nn.Adagrad(p, 0.5, nn.ExponentialDecayLR(0.1, 0.5, 2)),
    # update_slots=False is not recorded: 2.10's CPU kernel accumulates all the same.
    "Adadelta": lambda p: nn.Adadelta(p),
    "Adadelta_options": lambda p: nn.Adadelta(p, 0.5, rho=0.7, epsilon=0.01, weight_decay=0.1, loss_scale=2.0),
    "AdaMax": lambda p: nn.AdaMax(p, 0.01),
    "AdaMax_options": lambda p: nn.AdaMax([{"params": p[:1], "lr": 0.1}, {"params": p[1:]}], 0.01, 0.8, 0.9, 0.1, 0.05),
    "ASGD": lambda p: nn.ASGD(p, 0.1),
    "ASGD_averaging": lambda p: nn.ASGD(p, 0.2, lambd=0.1, alpha=0.5, t0=2.0, weight_decay=0.1),
    "Rprop": lambda p: nn.Rprop(p, 0.05),
    "Rprop_limits": lambda p: nn.Rprop(p, 0.05, etas=(0.2, 1.5), step_sizes=(0.01, 0.08), weight_decay=0.1),
    "AdaFactor": lambda p: nn.AdaFactor(p),
    "AdaFactor_rate": lambda p: nn.AdaFactor(p, 0.1, scale_parameter=False, relative_step=False, clip_threshold=0.5, decay_rate=0.6),
    "AdaFactor_warmup": lambda p: nn.AdaFactor(p, warmup_init=True, weight_decay=0.1, beta1=0.5, eps=(1e-3, 0.5)),
    "AdaFactor_compression": lambda p: nn.AdaFactor(p, compression=True),
    "list_of_rates": lambda p: nn.Momentum(p, [0.1, 0.05, 0.02, 0.01, 0.005], 0.9),
    "schedule": lambda p: nn.SGD(p, _Rate()),
    "exponential": lambda p: nn.Adam(p, nn.ExponentialDecayLR(0.1, 0.5, 2)),
    "cosine": lambda p: nn.Momentum(p, nn.CosineDecayLR(0.01, 0.1, 4), 0.9),
    "groups": lambda p: nn.Momentum([{"params": p[:1], "lr": 0.5, "weight_decay": 0.1}, {"params": p[1:]}], 0.1, 0.9, weight_decay=0.02),
    "groups_ordered": lambda p: nn.Adam([{"params": p[1:], "weight_decay": 0.1}, {"params": p[:1]}, {"order_params": p}], 0.01),
}


@case(over=OPTIMIZERS, rtol=1e-5, atol=1e-6, graph=True)
def steps(make):
    parameters = [ms.Parameter(ms.Tensor(value), name=name) for name, value in START.items()]
    optimizer = make(parameters)
    order = [[param.name for param in parameters].index(parameter.name) for parameter in optimizer.parameters]
    rates = []
    for gradients in GRADIENTS:
        rates.append(
            np.asarray(optimizer.get_lr()[0].asnumpy() if isinstance(optimizer.get_lr(), (tuple, list)) else optimizer.get_lr().asnumpy())
        )
        optimizer(tuple(ms.Tensor(gradients[index]) for index in order))
    return {
        **{parameter.name: parameter.asnumpy() for parameter in parameters},
        "kept": sorted([parameter.name, str(parameter.dtype), list(parameter.shape)] for parameter in optimizer.get_parameters()),
        "order": order,
        "global_step": optimizer.global_step.asnumpy(),
    }


LATER = "AdamOffload RMSProp RMSProp_centered Adagrad Adadelta AdaMax Rprop AdaFactor".split()


@case(over={name: OPTIMIZERS[name] for name in LATER}, rtol=1e-5, atol=1e-6)
def one_number(make):
    """Parameters of no axis and of three."""
    values = {"scalar": np.array([2.0], np.float32), "cube": np.arange(8, dtype=np.float32).reshape(2, 2, 2) - 3}
    parameters = [ms.Parameter(ms.Tensor(value), name=name) for name, value in values.items()]
    optimizer = make(parameters)
    for step in range(3):
        optimizer(tuple(ms.Tensor(np.full_like(value, 0.5 - step)) for value in values.values()))
    return {parameter.name: parameter.asnumpy() for parameter in parameters}


RATES = {
    "cosine_decay_lr": lambda: nn.cosine_decay_lr(0.01, 0.1, 6, 2, 2),
    "exponential_decay_lr": lambda: nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1, is_stair=True),
    "inverse_decay_lr": lambda: nn.inverse_decay_lr(0.1, 0.5, 6, 2, 1),
    "natural_exp_decay_lr": lambda: nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2),
    "piecewise_constant_lr": lambda: nn.piecewise_constant_lr([2, 5], [0.1, 0.01]),
    "polynomial_decay_lr": lambda: nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5),
    "warmup_lr": lambda: nn.warmup_lr(0.1, 6, 2, 2),
}


@case(over=RATES, rtol=1e-6)
def rates(make):
    return {"output": np.array(make())}


SCHEDULES = {
    "CosineDecayLR": lambda: nn.CosineDecayLR(0.01, 0.1, 4),
    "ExponentialDecayLR": lambda: nn.ExponentialDecayLR(0.1, 0.9, 4),
    "ExponentialDecayLR_stair": lambda: nn.ExponentialDecayLR(0.1, 0.9, 4, is_stair=True),
    "InverseDecayLR": lambda: nn.InverseDecayLR(0.1, 0.9, 4, True),
    "NaturalExpDecayLR": lambda: nn.NaturalExpDecayLR(0.1, 0.9, 4, True),
    "NaturalExpDecayLR_smooth": lambda: nn.NaturalExpDecayLR(0.1, 0.9, 4),
    "PolynomialDecayLR": lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5),
    "PolynomialDecayLR_again": lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, 2.0, True),
    "WarmUpLR": lambda: nn.WarmUpLR(0.1, 4),
}


@case(over=SCHEDULES, rtol=1e-5, atol=1e-7)
def schedules(make):
    schedule = make()
    return {"output": np.array([schedule(ms.Tensor(step, ms.int32)).asnumpy() for step in range(7)])}


def single():
    return [ms.Parameter(ms.Tensor([1.0], ms.float32), name="w")]


@case(over={
    "types": [
        lambda: nn.cosine_decay_lr("0.1", 0.1, 6, 2, 2), lambda: nn.exponential_decay_lr(0.1, 0.9, 6.0, 2, 1),
        lambda: nn.WarmUpLR(0.1, 4.0),
    ],
    "values": [lambda: nn.cosine_decay_lr(0.2, 0.1, 6, 2, 2), lambda: nn.piecewise_constant_lr([5, 2], [0.1, 0.1]),
               lambda: nn.piecewise_constant_lr([5], [0.1, 0.1]), lambda: nn.PolynomialDecayLR(0.1, 0.2, 4, 0.5),
               lambda: nn.warmup_lr(0.1, 0, 2, 2)],
    "optimizer_types": [
        lambda: nn.RMSProp(single(), decay=1), lambda: nn.RMSProp(single(), centered=1), lambda: nn.RMSProp(single(), epsilon="a"),
        lambda: nn.Adagrad(single(), accum=1), lambda: nn.Adagrad(single(), update_slots=0), lambda: nn.Adadelta(single(), rho=1),
        lambda: nn.AdaMax(single(), beta1=1), lambda: nn.Rprop(single(), etas=[0.5, 1.2]), lambda: nn.Rprop(single(), etas=(1, 2)),
        lambda: nn.AdaFactor(single(), scale_parameter=1), lambda: nn.Lamb(single(), 0.1, beta1="a"),
        lambda: nn.LARS(nn.SGD(single(), 0.1), coefficient="a"), lambda: nn.LARS(nn.SGD(single(), 0.1), use_clip=1),
    ],
    "optimizer_values": [
        lambda: nn.RMSProp(single(), epsilon=-1.0), lambda: nn.RMSProp(single(), decay=-0.1), lambda: nn.RMSProp(single(), momentum=-0.1),
        lambda: nn.Adagrad(single(), accum=-0.1), lambda: nn.Adadelta(single(), rho=1.5), lambda: nn.Adadelta(single(), epsilon=-0.1),
        lambda: nn.AdaMax(single(), beta1=1.0), lambda: nn.Rprop(single(), etas=(1.5, 2.0)),
        lambda: nn.Rprop(single(), step_sizes=(2.0, 1.0)),
        lambda: nn.AdaFactor(single(), 0.1), lambda: nn.AdaFactor(single(), warmup_init=True, relative_step=False),
        lambda: nn.Lamb(single(), 0.1, beta1=1.0), lambda: nn.Lamb(single(), 0.1, eps=-1.0), lambda: nn.RMSProp([], 0.1),
    ],
})  # fmt: skip
def refused(calls):
    return {"errors": [raised(call) for call in calls]}


class _CustomOptimizer(nn.Optimizer):
    """A program's own optimizer, as the model zoo writes them."""

    @opt_init_args_register
    def __init__(self, params, learning_rate=0.1, share=0.5):
        super().__init__(learning_rate, params, weight_decay=0.1, loss_scale=2.0)
        self.share = share
        self.kept = self.parameters.clone(prefix="kept", init="zeros")

    def construct(self, gradients):
        gradients = self.scale_grad(self.decay_weight(gradients))
        updates = self.hyper_map(ops.partial(_step, self.share, self.get_lr()), self.parameters, gradients, self.kept, self.optim_filter)
        ops.assign_add(self.global_step, self.global_step_increase_tensor)
        if self.use_parallel:
            self.broadcast_params(updates)
        return updates


def _step(share, rate, parameter, gradient, moment, selected):
    if selected:
        ops.assign(moment, moment * share + gradient)
        ops.assign(parameter, parameter - rate * moment)
    return True


@case(rtol=1e-5, atol=1e-6)
def own_optimizer():
    parameters = [ms.Parameter(ms.Tensor(value), name=name) for name, value in START.items()]
    optimizer = _CustomOptimizer(parameters, share=0.7)
    for gradients in GRADIENTS:
        optimizer(tuple(map(ms.Tensor, gradients)))
    return {
        **{parameter.name: parameter.asnumpy() for parameter in parameters}, "global_step": optimizer.global_step.asnumpy(),
        "init_learning_rate": optimizer.init_learning_rate,
        "flags": [optimizer.optim_filter, optimizer.dynamic_decay_flags, optimizer.use_parallel, optimizer.is_group_params_ordered],
    }
