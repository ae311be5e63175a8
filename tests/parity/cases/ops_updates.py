"""Steps of optimizers as primitives: what they leave in their Parameters after two calls.

Some are asked with positive numbers only: MindSpore 2.10's kernels on the CPU take the sign of a negative number for 1 (ApplyFtrl,
ApplyAdagradDA), and leave rows alone whose gradient is 0 (SparseApplyRMSProp).
"""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case
from parity.forms import apply_writing

P = np.array([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0], [0.1, 0.2, 0.3]], np.float32)
G = np.array([[0.5, 1.0, -0.25], [-1.0, 0.75, 2.0], [0.0, 0.5, -0.5]], np.float32)
A = np.array([[0.3, 0.1, 0.2], [0.5, 0.4, 0.1], [0.2, 0.2, 0.6]], np.float32)
B = np.abs(P) + np.float32(0.1)
ROWS = np.array([2, 0, 2], np.int32)
ONCE = np.array([2, 0, 1], np.int32)


def t(number):
    return np.array(number, np.float32)


def shuffled(make, *order):
    """An operator whose Parameters do not stand in front: called with the arguments in another order."""
    operator = make()
    return lambda: lambda *inputs: operator(*[inputs[i] for i in order])


SIX = (0.9, 0.99, t(0.01), 0.9, 0.99, 1e-6)
TENSORS = tuple(map(t, (0.9, 0.99, 0.01, 0.9, 0.99, 1e-6)))
STEPS = {
    "Adam": lambda: apply_writing(ops.Adam, P, A, B, arguments=(0.9, 0.99, 0.01, 0.9, 0.99, 1e-6, G), times=2),
    "Adam_tensors": lambda: apply_writing(ops.Adam, P, A, B, arguments=(*TENSORS, G), times=2),
    "Adam_nesterov": lambda: apply_writing(lambda: ops.Adam(use_nesterov=True), P, A, B, arguments=(*TENSORS, G), times=2),
    "AdamWeightDecay": lambda: apply_writing(ops.AdamWeightDecay, P, A, B, arguments=(0.01, 0.9, 0.99, 1e-6, 0.1, G), times=2),
    "AdamWeightDecay_tensor": lambda: apply_writing(ops.AdamWeightDecay, P, A, B, arguments=(t(0.01), 0.9, 0.99, 1e-6, 0.0, G), times=2),
    "ApplyAdaMax": lambda: apply_writing(ops.ApplyAdaMax, P, A, B, arguments=(0.9, 0.01, 0.9, 0.99, 1e-6, G), times=2),
    "ApplyAdadelta": lambda: apply_writing(ops.ApplyAdadelta, P, A, B, arguments=(0.01, 0.9, 1e-6, G), times=2),
    "ApplyAdagrad": lambda: apply_writing(ops.ApplyAdagrad, P, A, arguments=(0.01, G), times=2),
    "ApplyAdagradV2": lambda: apply_writing(lambda: ops.ApplyAdagradV2(epsilon=1e-3), P, A, arguments=(0.01, G), times=2),
    "ApplyAdagradDA": lambda: apply_writing(ops.ApplyAdagradDA, P, A, B, arguments=(np.abs(G), 0.01, 0.05, 0.1, 2), times=2),
    "ApplyAdamWithAmsgrad": lambda: apply_writing(ops.ApplyAdamWithAmsgrad, P, A, B, A, arguments=(t(0.9), t(0.99), t(0.01), G), times=2),
    "ApplyAdamWithAmsgradV2": lambda: apply_writing(ops.ApplyAdamWithAmsgradV2, P, A, B, A, arguments=(*SIX, G), times=2),
    "ApplyAddSign": lambda: apply_writing(ops.ApplyAddSign, P, A, arguments=(0.01, 1.0, 0.9, 0.9, G), times=2),
    "ApplyPowerSign": lambda: apply_writing(ops.ApplyPowerSign, P, A, arguments=(0.01, 1.0, 0.9, 0.9, G), times=2),
    "ApplyRMSProp": lambda: apply_writing(ops.ApplyRMSProp, P, A, B, arguments=(0.01, G, 0.9, 0.5, 1e-6), times=2),
    "ApplyCenteredRMSProp": lambda: apply_writing(ops.ApplyCenteredRMSProp, P, A, B, A, arguments=(G, 0.01, 0.9, 0.5, 1e-6), times=2),
    "ApplyFtrl": lambda: apply_writing(ops.ApplyFtrl, -np.abs(P), A, B, arguments=(np.abs(G) * 3, 0.01, 0.05, 0.1, -0.5), times=2),
    "ApplyGradientDescent": lambda: apply_writing(ops.ApplyGradientDescent, P, arguments=(0.1, G), times=2),
    "ApplyMomentum": lambda: apply_writing(ops.ApplyMomentum, P, A, arguments=(0.1, G, 0.9), times=2),
    "ApplyProximalAdagrad": lambda: apply_writing(ops.ApplyProximalAdagrad, P, A, arguments=(0.01, 0.05, 0.1, G), times=2),
    "ApplyProximalGradientDescent": lambda: apply_writing(ops.ApplyProximalGradientDescent, P, arguments=(0.1, 0.05, 0.1, G), times=2),
    "SGD": lambda: apply_writing(shuffled(ops.SGD, 0, 3, 4, 1, 5, 2), P, A, B, arguments=(G, t(0.1), t(0.9)), times=2),
    "SGD_decay": lambda: apply_writing(
        shuffled(lambda: ops.SGD(0.1, 0.05), 0, 3, 4, 1, 5, 2), P, A, B * 0, arguments=(G, t(0.1), t(0.9)), times=2,
    ),
    "SGD_nesterov": lambda: apply_writing(
        shuffled(lambda: ops.SGD(nesterov=True), 0, 3, 4, 1, 5, 2), P, A, B, arguments=(G, t(0.1), t(0.9)), times=2,
    ),
    "FusedSparseAdam": lambda: apply_writing(ops.FusedSparseAdam, P, A, B, arguments=(*TENSORS, G, ROWS), times=2),
    "FusedSparseLazyAdam": lambda: apply_writing(ops.FusedSparseLazyAdam, P, A, B, arguments=(*TENSORS, G, ROWS), times=2),
    "FusedSparseFtrl": lambda: apply_writing(lambda: ops.FusedSparseFtrl(0.01, 0.05, 0.1, -0.5), P, A, B, arguments=(G, ROWS), times=2),
    "FusedSparseProximalAdagrad": lambda: apply_writing(
        ops.FusedSparseProximalAdagrad, P, A, arguments=(t(0.01), t(0.05), t(0.1), G, ROWS), times=2,
    ),
    "SparseApplyFtrl": lambda: apply_writing(lambda: ops.SparseApplyFtrl(0.01, 0.05, 0.1, -0.5), P, A, B, arguments=(G, ONCE), times=2),
    "SparseApplyAdagradV2": lambda: apply_writing(lambda: ops.SparseApplyAdagradV2(0.01, 1e-3), P, A, arguments=(G, ONCE), times=2),
    "SparseApplyAdagrad": lambda: apply_writing(lambda: ops.SparseApplyAdagrad(0.01), P, A, arguments=(G, ONCE), times=2),
    "SparseApplyRMSProp": lambda: apply_writing(
        lambda: ops.SparseApplyRMSProp(0.9, 0.5, 1e-6), P, A, B, arguments=(0.01, G + 0.125, ONCE), times=2,
    ),
}


@case(over=STEPS, rtol=2e-5, atol=1e-6, graph=True)
def step(ask):
    return ask()


@case(rtol=1e-5)
def given_back():
    """What they give: the first variable, or all."""
    p, m = ms.Parameter(ms.Tensor(P), name="p"), ms.Parameter(ms.Tensor(A), name="m")
    momentum = ops.ApplyMomentum()(p, m, 0.1, ms.Tensor(G), 0.9)
    two = ops.ApplyAdagrad()(p, m, 0.1, ms.Tensor(G))
    return {"momentum": momentum.asnumpy(), "adagrad": [len(two), [list(x.shape) for x in two]]}
