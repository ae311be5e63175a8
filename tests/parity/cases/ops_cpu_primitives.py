"""Primitives with a kernel for the CPU that only MindSpore's own modules name: steps of optimizers on rows, eigenvalues, images."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter
from mindspore.ops.operations import array_ops, image_ops, linalg_ops, math_ops, nn_ops
from parity.case import case
from parity.waves import numbered, of, t

VAR = [[1.0, 2], [3, 4], [5, 6]]
GRADIENT, ROWS = [[0.1, 0.2], [0.3, 0.4]], [0, 2]


def stepped(primitive, states, *arguments):
    parameters = [Parameter(t(state), name=f"p{at}") for at, state in enumerate((VAR, *states))]
    primitive(*parameters, *[t(argument, np.int32) if argument is ROWS else t(argument) for argument in arguments])
    return numbered(*[parameter.value() for parameter in parameters])


ONES, ZEROS = np.ones((3, 2)), np.zeros((3, 2))


def adagrad_da():
    parameters = [Parameter(t(state), name=f"p{at}") for at, state in enumerate((VAR, ZEROS, ONES))]
    nn_ops.SparseApplyAdagradDA()(*parameters, t(GRADIENT), t(ROWS, np.int32), t(0.1), t(0.01), t(0.02), t(2, np.int64))
    return numbered(*[parameter.value() for parameter in parameters])


STEPS = {
    "adagrad_da": adagrad_da,
    "centered": lambda: stepped(nn_ops.SparseApplyCenteredRMSProp(), (ZEROS, ONES, ZEROS), 0.1, 0.9, 0.5, 1e-3, GRADIENT, ROWS),
    "momentum": lambda: stepped(nn_ops.SparseApplyMomentum(), (ONES,), 0.1, GRADIENT, ROWS, 0.9),
    "proximal": lambda: stepped(nn_ops.SparseApplyProximalGradientDescent(), (), 0.1, 0.01, 0.02, GRADIENT, ROWS),
}


@case(over={name: name for name in STEPS}, rtol=1e-5)
def step_on_rows(name):
    return STEPS[name]()


@case(rtol=1e-5)
def eigenvalues():
    matrix = t([[2, 1], [1, 3]])
    values, vectors = math_ops.SelfAdjointEig(True)(matrix)
    also, others = linalg_ops.Eigh()(matrix)
    return {"values": values.asnumpy(), "vectors": np.abs(vectors.asnumpy()), "also": also.asnumpy(), "others": np.abs(others.asnumpy()),
            "alone": linalg_ops.Eigh(False)(matrix).asnumpy()}


@case(rtol=1e-5)
def tridiagonal():
    return numbered(math_ops.TridiagonalSolve()(t([[1, 2, 0], [4, 5, 6], [0, 1, 2]]), t([[1, 2], [3, 4], [5, 6]])))


@case(rtol=1e-5, atol=1e-5)
def images():
    box, which = t([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]]), t([0, 0], np.int32)
    back = image_ops.CropAndResizeGradImage
    return {
        "contrast": image_ops.AdjustContrastv2()(of(2, 2, 3), t(2)).asnumpy(),
        "boxes": image_ops.CropAndResizeGradBoxes()(of(2, 3, 3, 1), of(1, 5, 5, 1), box, which).asnumpy(),
        "image": back(ms.float32)(of(2, 3, 3, 1), box, which, t([1, 5, 5, 1], np.int32)).asnumpy(),
        "image_nearest": back(ms.float32, "nearest")(of(2, 3, 3, 1), box, which, t([1, 5, 5, 1], np.int32)).asnumpy(),
    }


@case(rtol=1e-5, atol=1e-5)
def others():
    return {
        "range": array_ops.RangeV2()(*[t(length, np.int32) for length in (1, 7, 2)]).asnumpy(), "relu": nn_ops.ReLUV3()(of(4)).asnumpy(),
        "conv": nn_ops.Conv3DBackpropInput(2, 2)(of(2, 3, 2, 2, 2), of(1, 2, 3, 3, 3), (1, 3, 4, 4, 4)).asnumpy(),
    }
