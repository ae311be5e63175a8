"""What the constructors of layers and losses say."""
from __future__ import annotations

import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn
from support.error_messages import Bad, check

from torchspore.errors import WrongKind


def z(*shape, d=np.float32):
    return Tensor(np.zeros(shape, d))


def p(name="w"):
    return Parameter(z(2), name=name)


BAD = {
    "dense_type": Bad(lambda: nn.Dense("a", 2), TypeError, "Dense(in_channels='a')", "expected an int, got str."),
    "dense_value": Bad(lambda: nn.Dense(0, 2), ValueError, "Dense(in_channels=0)", "expected an int from 1 on."),
    "dropout_type": Bad(lambda: nn.Dropout("a"), TypeError, "Dropout(keep_prob='a')", "expected a float, got str."),
    "dropout_value": Bad(lambda: nn.Dropout(0.0), ValueError, "Dropout(keep_prob=0.0)", "expected a number above 0 and up to 1."),
    "dropout_p": Bad(lambda: nn.Dropout(p=True), TypeError, "Dropout(p=True)", "expected a float, got bool."),
    "dropout_p_value": Bad(lambda: nn.Dropout(p=1.0), ValueError, "Dropout(p=1.0)", "expected a number from 0 to below 1."),
    "embedding": Bad(lambda: nn.Embedding(3, 2, padding_idx=5), ValueError, "Embedding(padding_idx=5)", "expected a row from 0 to 2."),
    "pad_mode": Bad(lambda: nn.Pad(((1, 1),), "x"), ValueError, "Pad(mode='x')", "expected 'CONSTANT', 'REFLECT' or 'SYMMETRIC'."),
    "pad_type": Bad(lambda: nn.Pad([1]), TypeError, "Pad(paddings=[1])", "expected a tuple of (before, after) for each axis, got list."),
    "pad_rows": Bad(lambda: nn.Pad(((1,),)), ValueError, "Pad(paddings=((1,),))", "expected (before, after) for each axis."),
    "conv_type": Bad(lambda: nn.Conv2d("a", 2, 3), TypeError, "Conv2d(in_channels='a')", "expected an int, got str."),
    "conv_value": Bad(lambda: nn.Conv2d(0, 2, 3), ValueError, "Conv2d(in_channels=0)", "expected an int from 1 on."),
    "conv_group": Bad(
        lambda: nn.Conv2d(3, 4, 3, group=2), ValueError,
        "Conv2d(group=2)",
        "expected a divisor of in_channels=3 and out_channels=4.",
    ),
    "conv_pad_mode": Bad(
        lambda: nn.Conv2d(3, 4, 3, pad_mode="x"), ValueError,
        "Conv2d(pad_mode='x')",
        "expected 'same', 'valid' or 'pad'.",
    ),
    "conv_padding": Bad(lambda: nn.Conv2d(3, 4, 3, padding=1), ValueError, "Conv2d(padding=1)", "it needs pad_mode='pad', not 'same'."),
    "pool_mode": Bad(lambda: nn.MaxPool2d(2, pad_mode="x"), ValueError, "MaxPool2d(pad_mode='x')", "expected 'same', 'valid' or 'pad'."),
    "pool_type": Bad(lambda: nn.MaxPool2d("a"), WrongKind, "MaxPool2d(kernel_size='a')", "expected an int or a tuple of ints, got str."),
    "pool_value": Bad(lambda: nn.AvgPool2d(0), ValueError, "AvgPool2d(kernel_size=0)", "expected ints from 1 on."),
    "leaky": Bad(lambda: nn.LeakyReLU("a"), TypeError, "LeakyReLU(alpha='a')", "expected a number, got str."),
    "gelu": Bad(lambda: nn.GELU("tanh"), TypeError, "GELU(approximate='tanh')", "expected a bool, got str."),
    "prelu": Bad(lambda: nn.PReLU(0), ValueError, "PReLU(channel=0)", "expected an int from 1 on."),
    "norm_type": Bad(lambda: nn.BatchNorm2d("a"), TypeError, "BatchNorm2d(num_features='a')", "expected an int, got str."),
    "norm_value": Bad(lambda: nn.BatchNorm2d(0), ValueError, "BatchNorm2d(num_features=0)", "expected an int from 1 on."),
    "norm_momentum": Bad(
        lambda: nn.BatchNorm2d(2, momentum=2.0), ValueError,
        "BatchNorm2d(momentum=2.0)",
        "expected a number from 0 to 1.",
    ),
    "layer_norm": Bad(
        lambda: nn.LayerNorm(3), TypeError,
        "LayerNorm(normalized_shape=3)",
        "expected a tuple or a list, got int.",
        "write (3,).",
    ),
    "group_norm": Bad(lambda: nn.GroupNorm(2, 3), ValueError, "GroupNorm(num_groups=2)", "expected a divisor of num_channels=3."),
    "loss": Bad(lambda: nn.MSELoss("avg"), ValueError, "MSELoss(reduction='avg')", "expected 'mean', 'sum' or 'none'."),
    "sparse": Bad(
        lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=1), TypeError,
        "SoftmaxCrossEntropyWithLogits(sparse=1)",
        "expected a bool, got int.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str) -> None:
    check(BAD[name])
