"""Constructors of transforms, optimizers and schedules with NaN, truth values and NumPy numbers: the kind of error, or none."""
from __future__ import annotations

import mindspore as ms
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import mindspore.experimental.optim as optim
import mindspore.experimental.optim.lr_scheduler as lr_scheduler
import numpy as np
from parity.case import case, raised

CALLS = """
vision.Rescale(?, 1): nan | inf | True
vision.AdjustGamma(1, ?): nan | inf
vision.RandomErasing(?): nan | 2
vision.RandomErasing(value=?): 0.5 | True | -1 | 300 | 'x' | 'random' | [1] | [1, 2, 3] | [0.5, 1, 2] | (1, 2) | None
vision.GaussianBlur(3, ?): nan | True | (True, False) | 'a'
vision.MixUp(2, ?): nan | inf | 2.0**31 | 0
vision.RandomAffine(1, shear=?): nan | True | np.float32(2) | 2.0**31 | 0 | [1] | [0.5, 0.5, 0.5] | (1, 2, 3, 4)
vision.RandomColorAdjust(?): nan | True | np.int32(2) | np.float32(0.5) | -1
vision.RandomColorAdjust(hue=?): np.float32(0.5) | 0.6
vision.RandomPerspective(?): 1 | 0 | 0.5
vision.RandomPerspective(prob=?): 1 | 0.5
vision.RandomRotation(1, center=?): 1 | [1, 2] | (1, 2) | (True, 1) | None
vision.Rotate(1, center=?): 1 | [1, 2] | (1, 2) | ('a', 1)
vision.Rotate(?): nan | inf | 2.0**31
vision.RandomSolarize(?): [1, 2] | (0.5, 1.0) | (1, 2)
vision.Resize(?): True
vision.TenCrop(1, ?): None | 1
vision.PadToSize(4, ?): np.int32(1) | [] | () | None
transforms.Fill(?): np.int32(2) | np.float64(2) | nan
transforms.PadEnd([2], ?): np.float32(2) | 2
transforms.RandomApply([vision.RandomCrop(2)], ?): nan
optim.Adam(P(), ?): True | False | 0.0
optim.RMSprop(P(), ?): True | 0 | 0.0
optim.SGD(P(), ?): True | 0.0
optim.Adam(P(), eps=?): True | 0 | np.float32(0.5) | T(1.0) | -1.0
optim.NAdam(P(), eps=?): 0 | np.int64(2) | T(1) | 'a'
optim.Adam(P(), betas=?): (nan, 0.5) | [0.5, 0.5, 0.5] | T([0.5, 0.5])
optim.Adamax(P(), betas=?): T([0.5, 0.5]) | (0.5, 1.0)
optim.Adam(P(), maximize=?): 1 | None | 'a'
optim.SGD(P(), 0.1, maximize=?): 1 | True
optim.SGD(P(), 0.1, dampening=?): -1.0
optim.Adadelta(P(), rho=?): 1 | np.float32(0.5) | T(1.0)
optim.ASGD(P(), lambd=?): 1 | -0.5
optim.ASGD(P(), alpha=?): -1 | True
optim.Adagrad(P(), lr_decay=?): True | np.float32(0.5)
optim.Adagrad(P(), initial_accumulator_value=?): T(1.0) | np.float32(0.5)
optim.Adam(P(), weight_decay=?): True | np.float32(0.5)
lr_scheduler.ReduceLROnPlateau(O(), min_lr=?): 'x' | {} | 0
"""
nan, inf = float("nan"), float("inf")


def T(values):
    return ms.Tensor(values)


def P():
    return [ms.Parameter(ms.Tensor(np.ones((2, 3), np.float32)), name="w")]


def O():  # noqa: E743
    return optim.SGD(P(), lr=0.1, momentum=0.5)


NAMES = {
    "vision": vision, "transforms": transforms, "optim": optim, "lr_scheduler": lr_scheduler, "np": np, "T": T, "P": P, "O": O,
    "nan": nan, "inf": inf,
}


def _one(line):
    call, values = line.split(": ", 1)

    def outcomes():
        return {value: raised(lambda value=value: eval(call.replace("?", value, 1), dict(NAMES))) for value in values.split(" | ")}

    return call, outcomes


@case()
def constructors():
    return {call: outcomes() for call, outcomes in map(_one, CALLS.strip().splitlines())}


RATES = (
    "ConstantLR(o, factor=nan)", "ConstantLR(o, factor=True)", "ConstantLR(o, factor=np.float32(0.5))", "ConstantLR(o, factor=T(0.5))",
    "ConstantLR(o, total_iters=True)", "ConstantLR(o, total_iters=False)", "CosineAnnealingLR(o, T_max=True)",
    "CosineAnnealingLR(o, T_max=0)", "CosineAnnealingLR(o, T_max=-1)", "CosineAnnealingLR(o, T_max=2, eta_min=True)",
    "CosineAnnealingWarmRestarts(o, T_0=True)", "CosineAnnealingWarmRestarts(o, T_0=2, T_mult=True)", "LinearLR(o, start_factor=True)",
    "LinearLR(o, start_factor=np.float32(0.5))", "LinearLR(o, end_factor=T(0.5))", "LinearLR(o, total_iters=True)",
    "LinearLR(o, total_iters=False)", "PolynomialLR(o, total_iters=True)", "PolynomialLR(o, total_iters=0)",
    "PolynomialLR(o, total_iters=-1)", "StepLR(o, step_size=True)", "StepLR(o, step_size=0)", "StepLR(o, step_size=-2)",
)


@case(rtol=1e-5)
def schedules():
    rates = {}
    for call in RATES:
        o = O()
        scheduler = eval(f"lr_scheduler.{call}", {**NAMES, "o": o})
        values = [float(o.param_groups[0]["lr"])]
        for _ in range(4):
            scheduler.step()
            values.append(float(o.param_groups[0]["lr"]))
        rates[call] = np.array(values, np.float32)
    return rates
