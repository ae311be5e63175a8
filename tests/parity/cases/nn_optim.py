"""Optimizers: five steps from given weights with given gradients, and the names of what they keep."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn
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
    order = [[one.name for one in parameters].index(one.name) for one in optimizer.parameters]
    rates = []
    for gradients in GRADIENTS:
        rates.append(
            np.asarray(optimizer.get_lr()[0].asnumpy() if isinstance(optimizer.get_lr(), (tuple, list)) else optimizer.get_lr().asnumpy())
        )
        optimizer(tuple(ms.Tensor(gradients[index]) for index in order))
    return {
        **{one.name: one.asnumpy() for one in parameters},
        "kept": sorted([one.name, str(one.dtype), list(one.shape)] for one in optimizer.get_parameters()),
        "order": order,
        "global_step": optimizer.global_step.asnumpy(),
    }


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


@case(over={
    "types": [
        lambda: nn.cosine_decay_lr("0.1", 0.1, 6, 2, 2), lambda: nn.exponential_decay_lr(0.1, 0.9, 6.0, 2, 1),
        lambda: nn.WarmUpLR(0.1, 4.0),
    ],
    "values": [lambda: nn.cosine_decay_lr(0.2, 0.1, 6, 2, 2), lambda: nn.piecewise_constant_lr([5, 2], [0.1, 0.1]),
               lambda: nn.piecewise_constant_lr([5], [0.1, 0.1]), lambda: nn.PolynomialDecayLR(0.1, 0.2, 4, 0.5),
               lambda: nn.warmup_lr(0.1, 0, 2, 2)],
})  # fmt: skip
def refused(calls):
    return {"errors": [raised(call) for call in calls]}
