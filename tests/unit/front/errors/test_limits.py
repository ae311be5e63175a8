"""What constructors say of lengths of windows, numbers without limits, and words; the kinds of error are 2.10's (parity: limits)."""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from mindspore import Parameter, Tensor, nn, ops

from torchspore.mindspore.ops.declaration.primitive_limits import LIMITS

POOLS = {
    lambda: nn.MaxPool2d(2, ()): "MaxPool2d(stride=()): expected an int or 1 or 2 or 4 of them, got 0.",
    lambda: nn.MaxPool3d((2, 2)): "MaxPool3d(kernel_size=(2, 2)): expected an int or 3 of them, got 2.",
    lambda: nn.MaxPool1d((2,)): "MaxPool1d(kernel_size=(2,)): expected an int, got tuple.",
    lambda: nn.AvgPool1d((2, 2)): "AvgPool1d(kernel_size=(2, 2)): expected an int or 1 of them, got 2.",
    lambda: nn.AvgPool2d(2, divisor_override=0): "AvgPool2d(divisor_override=0): expected ints from 1 on.",
    lambda: nn.AvgPool2d(2, padding=-1, pad_mode="pad"): "AvgPool2d(padding=-1): expected ints from 0 on.",
    lambda: nn.MaxUnpool2d(2, (1, 1, 1)): "MaxUnpool2d(stride=(1, 1, 1)): expected an int or 2 of them, got 3.",
    lambda: nn.FractionalMaxPool3d(0, 2): "FractionalMaxPool3d(kernel_size=0): expected ints from 1 on.",
}
CONVOLUTIONS = {
    lambda: nn.Conv2d(2, 4, (3,)): "Conv2d(kernel_size=(3,)): expected an int or 2 of them, got 1.",
    lambda: nn.Conv2d(2, 4, [3, 3]): "Conv2d(kernel_size=[3, 3]): expected an int or a tuple of ints, got list.",
    lambda: nn.Conv2d(2, 4, 3, pad_mode="pad", padding=(1, 1)): "Conv2d(padding=(1, 1)): expected an int or 4 of them, got 2.",
    lambda: nn.Conv1d(2, 4, (3,)): "Conv1d(kernel_size=(3,)): expected an int, got tuple.",
    lambda: nn.Conv3d(2, 4, 3, (1,)): "Conv3d(stride=(1,)): expected an int or 3 of them, got 1.",
    lambda: nn.Conv2d(2, 4, 3, has_bias=1): "Conv2d(has_bias=1): expected a bool, got int.",
    lambda: nn.Conv2d(2, 4, 3, data_format="NHCW"): "Conv2d(data_format='NHCW'): expected 'NCHW' or 'NHWC'.",
    lambda: nn.Conv2dTranspose(2, 4, 3, 2, "pad", output_padding=2):
        "Conv2dTranspose(output_padding=2): expected at most 1, below the stride or dilation.",
    lambda: nn.Dense(2, 4, has_bias=None): "Dense(has_bias=None): expected a bool, got NoneType.",
}
NUMBERS = {
    lambda: nn.BatchNorm2d(3, eps=0.0): "BatchNorm2d(eps=0.0): expected a number above 0 up to 1.",
    lambda: nn.BatchNorm2d(3, data_format="bad"): "BatchNorm2d(data_format='bad'): expected 'NCHW' or 'NHWC'.",
    lambda: nn.GroupNorm(0, 3): "GroupNorm(num_groups=0): expected ints from 1 on.",
    lambda: nn.GroupNorm(1, 3, eps=1): "GroupNorm(eps=1): expected a float, got int.",
    lambda: nn.Adam(weights(), float("inf")): "Adam(learning_rate=inf): expected a finite number.",
    lambda: nn.Adam(weights(), eps=float("nan")): "Adam(eps=nan): expected a finite number.",
    lambda: nn.Adam(weights(), eps=1): "Adam(eps=1): expected a float, got int.",
    lambda: nn.Momentum(weights(), 0.1, -0.9): "Momentum(momentum=-0.9): expected a number from 0 on.",
    lambda: nn.FTRL(weights(), learning_rate=0.0): "FTRL(learning_rate=0.0): expected a number above 0.",
    lambda: nn.CosineDecayLR(0.0, 1, 4): "CosineDecayLR(max_lr=1): expected a float, got int.",
    lambda: nn.ExponentialDecayLR(0.1, 0.9, 4, 1): "ExponentialDecayLR(is_stair=1): expected a bool, got int.",
    lambda: nn.CrossEntropyLoss(label_smoothing=1.5): "CrossEntropyLoss(label_smoothing=1.5): expected a number from 0 up to 1.",
    lambda: nn.DiceLoss(0.0): "DiceLoss(smooth=0.0): expected a number above 0.",
    lambda: nn.MarginRankingLoss(1): "MarginRankingLoss(margin=1): expected a float, got int.",
    lambda: nn.CTCLoss(zero_infinity=1): "CTCLoss(zero_infinity=1): expected a bool, got int.",
}
PRIMITIVES = {
    lambda: ops.MaxPool(2, [2, 2]): "MaxPool(strides=[2, 2]): expected an int or a tuple of ints, got list.",
    lambda: ops.Conv2D(4, (3, 3, 3)): "Conv2D(kernel_size=(3, 3, 3)): expected an int or 2 of them, got 3.",
    lambda: ops.Conv2D(4, 3, stride=(1,)): "Conv2D(stride=(1,)): expected an int or 2 or 4 of them, got 1.",
    lambda: ops.Conv2DTranspose(4, 3, pad_mode="x"): "Conv2DTranspose(pad_mode='x'): expected 'same', 'valid' or 'pad'.",
    lambda: ops.ROIAlign(2, 2, 0.5, 2, 3): "ROIAlign(roi_end_mode=3): expected an int from 0 to 1.",
    lambda: ops.Renorm(1, 0, 1): "Renorm(maxnorm=1): expected a float, got int.",
    lambda: ops.SparseApplyFtrl(0.1, 0.0, 0.0, 0.5): "SparseApplyFtrl(lr_power=0.5): expected a number up to 0.",
    lambda: ops.StridedSlice(-1): "StridedSlice(begin_mask=-1): expected ints from 0 on.",
}
CALLS = {
    lambda: ops.conv2d(picture(), kernels(), padding=2): "padding=2: it needs pad_mode='pad', not 'valid'.",
    lambda: ops.conv2d(picture(), kernels(), stride=(1, 1, 1)): "stride: (1, 1, 1)): expected an int or 2 of them, got 3.",
    lambda: ops.conv2d(picture(), kernels(), pad_mode="pad", padding=(1, 1, 1)):
        "padding=(1, 1, 1): expected an int, or 2 or 4 of them, got 3.",
}


def picture() -> Any:
    return ops.ones((1, 2, 5, 6))


def kernels() -> Any:
    return ops.ones((3, 2, 3, 3))


def weights() -> list[Any]:
    return [Parameter(Tensor([1.0, 2.0]), name="w")]


TABLE = {**POOLS, **CONVOLUTIONS, **NUMBERS, **PRIMITIVES}


@pytest.mark.parametrize(("call", "message"), TABLE.items(), ids=TABLE.values())
def test_the_message(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(("call", "message"), CALLS.items(), ids=CALLS.values())
def test_the_message_of_a_call(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message) + "$") as caught:
        call()
    assert str(caught.value).startswith(f"{__file__}:")


def test_each_limit_belongs_to_an_argument_and_takes_its_default() -> None:
    for name, rules in LIMITS.items():
        parameters = inspect.signature(getattr(ops, name, None) or getattr(ops.operations, name)).parameters
        for key, rule in rules.items():
            if parameters[key].default is not inspect.Parameter.empty:
                rule(name, key, parameters[key].default)


def test_what_2_10_takes_is_taken() -> None:
    for layer in (
        nn.MaxPool2d((2,)), nn.AvgPool2d(2, pad_mode="pad", padding=[1, 1]), nn.AvgPool1d((2,)), nn.Conv3d(2, 4, 3, pad_mode="SAME"),
        nn.Conv2d(2, 4, 3, pad_mode="pad", padding=(1, 1, 2, 2)), nn.AvgPool3d((1, 2, 2), divisor_override=3),
    ):
        assert isinstance(layer, nn.Cell)
