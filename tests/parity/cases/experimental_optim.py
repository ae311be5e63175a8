"""Optimizers with groups of options, five steps each, and the schedulers of their rates."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore.experimental import optim
from mindspore.experimental.optim import lr_scheduler
from parity.case import case, raised

rng = np.random.RandomState(11)
START = {"weight": rng.randn(3, 2).astype(np.float32), "bias": rng.randn(3).astype(np.float32)}
GRADIENTS = [[rng.randn(*value.shape).astype(np.float32) for value in START.values()] for _ in range(5)]
OPTIMIZERS = {
    # Adam's amsgrad is not recorded: 2.10 passes over it on the CPU.
    "Adam": lambda p: optim.Adam(p), "Adam_options": lambda p: optim.Adam(p, 0.1, (0.8, 0.9), 1e-3, 0.1),
    "Adam_eps": lambda p: optim.Adam(p, 0.1, eps=0.01), "AdamW_eps": lambda p: optim.AdamW(p, 0.1, eps=0.01),
    "AdamW_eps_amsgrad": lambda p: optim.AdamW(p, 0.1, (0.8, 0.9), 0.01, amsgrad=True),
    "Adam_up": lambda p: optim.Adam(p, maximize=True), "AdamW": lambda p: optim.AdamW(p, 0.1, weight_decay=0.1),
    "AdamW_amsgrad": lambda p: optim.AdamW(p, amsgrad=True, maximize=True),
    "SGD": lambda p: optim.SGD(p, 0.1), "SGD_momentum": lambda p: optim.SGD(p, 0.1, 0.9, weight_decay=0.1),
    "SGD_nesterov": lambda p: optim.SGD(p, 0.1, 0.9, nesterov=True), "SGD_dampening": lambda p: optim.SGD(p, 0.1, 0.8, 0.2),
    "SGD_up": lambda p: optim.SGD(p, 0.1, maximize=True),
    "Adagrad": lambda p: optim.Adagrad(p), "Adagrad_options": lambda p: optim.Adagrad(p, 0.1, 0.1, 0.1, 0.5, 1e-3, maximize=True),
    "Adadelta": lambda p: optim.Adadelta(p), "Adadelta_options": lambda p: optim.Adadelta(p, 0.5, 0.8, 1e-3, 0.1, maximize=True),
    "ASGD": lambda p: optim.ASGD(p, 0.1), "ASGD_options": lambda p: optim.ASGD(p, 0.1, 0.1, 0.5, 2.0, 0.1, True),
    "Adamax": lambda p: optim.Adamax(p), "Adamax_options": lambda p: optim.Adamax(p, 0.1, (0.8, 0.9), 1e-2, 0.1, maximize=True),
    "NAdam": lambda p: optim.NAdam(p), "NAdam_options": lambda p: optim.NAdam(p, 0.1, (0.8, 0.9), 1e-2, 0.1, 0.1),
    "RAdam": lambda p: optim.RAdam(p, 0.1), "RAdam_options": lambda p: optim.RAdam(p, 0.1, (0.8, 0.7), 1e-2, 0.1),
    "RMSprop": lambda p: optim.RMSprop(p), "RMSprop_options": lambda p: optim.RMSprop(p, 0.1, 0.8, 1e-3, 0.1, 0.5, True, True),
    "Rprop": lambda p: optim.Rprop(p), "Rprop_options": lambda p: optim.Rprop(p, 0.05, (0.2, 1.5), (0.01, 0.08), maximize=True),
    "groups": lambda p: optim.Adam([{"params": p[:1], "lr": 0.5, "weight_decay": 0.1}, {"params": p[1:]}], 0.1),
}


def parameters():
    return [ms.Parameter(ms.Tensor(value), name=name) for name, value in START.items()]


@case(over=OPTIMIZERS, rtol=1e-4, atol=1e-5, graph=True)
def steps(make):
    mine = parameters()
    optimizer = make(mine)
    for gradients in GRADIENTS:
        optimizer(tuple(map(ms.Tensor, gradients)))
    layout = [[p.name, list(p.shape)] for p in optimizer.get_parameters() if p.name != "mu_product"]
    options = {key: value for key, value in optimizer.param_groups[0].items() if key not in ("params", "lr")}
    return {**{tensor.name: tensor.asnumpy() for tensor in mine}, "kept": sorted(layout), "options": sorted(options),
            "rates": [float(group["lr"].asnumpy()) for group in optimizer.param_groups]}  # fmt: skip


class _CustomScheduler(lr_scheduler.LRScheduler):
    """A program's own scheduler."""

    def __init__(self, optimizer, factor=0.5, last_epoch=-1):
        self.factor = factor
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._last_lr]
        return [lr * 1.0 for lr in self._last_lr] if self.last_epoch != 2 else [lr / self.factor for lr in self._last_lr]


SCHEDULERS = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2, 0.5), "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [1, 3, 3], 0.5),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, 0.25, 3), "LinearLR": lambda o: lr_scheduler.LinearLR(o, 0.2, 0.8, 4),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.7), "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 4, 2.0),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.8),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 3, 0.01),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2, 0.01),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.5, 2, 3),
    "CyclicLR_2": lambda o: lr_scheduler.CyclicLR(o, [0.1, 0.2], [0.5, 0.9], 2, mode="triangular2"),
    "CyclicLR_range": lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.5, 2, mode="exp_range", gamma=0.8),
    "own": lambda o: _CustomScheduler(o),
}


def two_groups():
    mine = parameters()
    return optim.SGD([{"params": mine[:1], "lr": 0.5}, {"params": mine[1:]}], lr=0.1)


@case(over=SCHEDULERS, rtol=1e-5, atol=1e-7)
def schedule(make):
    optimizer = two_groups()
    scheduler = make(optimizer)
    rates = []
    for _ in range(8):
        rates.append([float(group["lr"].asnumpy()) for group in optimizer.param_groups])
        scheduler.step()
    return {"rates": np.array(rates, np.float32), "last": np.array([float(lr.asnumpy()) for lr in scheduler.get_last_lr()], np.float32)}


@case(rtol=1e-5)
def one_after_another():
    optimizer = two_groups()
    first, second = lr_scheduler.ConstantLR(optimizer, 0.1, 2), lr_scheduler.ExponentialLR(optimizer, 0.9)
    scheduler = lr_scheduler.SequentialLR(optimizer, [first, second], [3])
    rates = []
    for _ in range(6):
        rates.append([float(group["lr"].asnumpy()) for group in optimizer.param_groups])
        scheduler.step()
    return {"rates": np.array(rates, np.float32)}


PLATEAUS = {
    "min": lambda o: lr_scheduler.ReduceLROnPlateau(o, "min", 0.5, 1), "max": lambda o: lr_scheduler.ReduceLROnPlateau(o, "max", 0.5, 0),
    "cool": lambda o: lr_scheduler.ReduceLROnPlateau(o, "min", 0.5, 0, 0.1, "abs", 2, [0.2, 0.05]),
}


@case(over=PLATEAUS, rtol=1e-5)
def plateau(make):
    optimizer = two_groups()
    scheduler = make(optimizer)
    rates = []
    for metric in (3.0, 2.0, 2.0, 2.0, 1.95, 1.0, 1.0, 1.0, 1.0):
        scheduler.step(ms.Tensor(metric, ms.float32))
        rates.append([float(group["lr"].asnumpy()) for group in optimizer.param_groups])
    return {"rates": np.array(rates, np.float32)}


@case(over={
    "types": [
        lambda: optim.Adam(1), lambda: optim.Adam(parameters(), "a"), lambda: optim.SGD(parameters(), 0.1, nesterov=1),
        lambda: lr_scheduler.StepLR(1, 2), lambda: lr_scheduler.StepLR(two_groups(), 2.0),
        lambda: lr_scheduler.LambdaLR(two_groups(), [1, 2]),
    ],
    "values": [
        lambda: optim.Adam(parameters(), -0.1), lambda: optim.Adam([]), lambda: optim.SGD(parameters(), 0.1, -1.0),
        lambda: optim.Adam(parameters(), betas=(1.0, 0.9)), lambda: lr_scheduler.LinearLR(two_groups(), 2.0),
        lambda: lr_scheduler.ConstantLR(two_groups(), 2.0), lambda: lr_scheduler.LambdaLR(two_groups(), [lambda e: 1]),
        lambda: lr_scheduler.ReduceLROnPlateau(two_groups(), "x"), lambda: lr_scheduler.CosineAnnealingWarmRestarts(two_groups(), 0),
    ],
})
def refused(calls):
    return {"errors": [raised(call) for call in calls]}
