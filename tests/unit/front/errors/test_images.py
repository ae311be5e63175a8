"""What bad calls say: convolution, pooling, normalisation."""
from __future__ import annotations

import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops
from support.error_messages import Bad, check


def z(*shape, d=np.float32):
    """Zeros."""
    return Tensor(np.zeros(shape, d))


def h(*shape):
    """Zeros in half precision."""
    return z(*shape, d=np.float16)


BAD = {
    "fold": Bad(
        lambda: ops.fold(z(1, 4, 9), Tensor([4, 4]), [2, 2], 1, 2**40, 1), ValueError,
        f"fold(input: Float32[1, 4, 9], output_size: Int64[2], kernel_size: [2, 2], padding: {2**40})",
        f"expected {(2**41 + 3) ** 2} columns for output_size=[4, 4], kernel_size=[2, 2], dilation=1, padding={2**40} and stride=1, got 9.",
    ),
    "group_norm": Bad(
        lambda: ops.group_norm(z(1, 4, 2, 2), 0), ValueError, "group_norm(input: Float32[1, 4, 2, 2], num_groups: 0)",
        "num_groups=0: expected an int from 1 on.",
    ),
    "mint_group_norm": Bad(
        lambda: mint.nn.functional.group_norm(z(1, 4, 2, 2), 0), ValueError, "group_norm(input: Float32[1, 4, 2, 2], num_groups: 0)",
        "num_groups=0: expected an int from 1 on.",
    ),
    "unfold_strides": Bad(
        lambda: nn.Unfold([1, 2, 2, 1], [1, 0, 0, 1], [1, 1, 1, 1])(z(1, 1, 4, 4)), ValueError,
        "ExtractImagePatches(input_x: Float32[1, 1, 4, 4], ksizes: [1, 2, 2, 1], strides: [1, 0, 0, 1], rates: [1, 1, 1, 1], "
        "padding: 'valid')",
        "strides=(0, 0): expected ints from 1 on.",
    ),
    "fractional": Bad(
        lambda: ops.fractional_max_pool2d(z(1, 1, 4, 4), 2, output_size=0), ValueError,
        "fractional_max_pool2d(input: Float32[1, 1, 4, 4], kernel_size: 2, output_size: 0)",
        "output_size=0: expected ints from 1 on.",
    ),
    "block_shape": Bad(
        lambda: ops.batch_to_space_nd(z(4, 1, 2, 2), [0, 0], [[0, 0], [0, 0]]), ValueError,
        "batch_to_space_nd(input_x: Float32[4, 1, 2, 2], block_shape: [0, 0], crops: [[0, 0], [0, 0]])",
        "block_shape=[0, 0]: expected ints from 1 on.",
    ),
    "conv": Bad(
        lambda: nn.Conv2d(3, 4, 3)(z(1, 4, 8, 8)), ValueError,
        "conv2d(input: Float32[1, 4, 8, 8], weight: Float32[4, 3, 3, 3], stride: (1, 1), pad_mode: 'same', dilation: (1, 1))",
        "expected 3 channels on axis 1, got 4.",
        "in_channels of the layer is the length of axis 1 of its input.",
    ),
    "conv_nhwc": Bad(
        lambda: nn.Conv2d(3, 4, 3)(z(1, 8, 8, 3)), ValueError,
        "conv2d(input: Float32[1, 8, 8, 3], weight: Float32[4, 3, 3, 3], stride: (1, 1), pad_mode: 'same', dilation: (1, 1))",
        "expected 3 channels on axis 1, got 8.",
        "the input looks like (N, H, W, C); transpose it with x.transpose(0, 3, 1, 2).",
    ),
    "conv_dtype": Bad(
        lambda: nn.Conv2d(3, 4, 3)(h(1, 3, 8, 8)), TypeError,
        "conv2d(input: Float16[1, 3, 8, 8], weight: Float32[4, 3, 3, 3], stride: (1, 1), pad_mode: 'same', dilation: (1, 1))",
        "expected one dtype, got Float16 and Float32.",
        "cast one of them, for example with astype(mindspore.float32).",
    ),
    "conv_rank": Bad(
        lambda: nn.Conv2d(3, 4, 3)(z(8, 8)), ValueError,
        "conv2d(input: Float32[8, 8], weight: Float32[4, 3, 3, 3], stride: (1, 1), pad_mode: 'same', dilation: (1, 1))",
        "expected 4 axes, got shape (8, 8).",
        "put an axis of length 1 in front with x.expand_dims(0).",
    ),
    "conv_small": Bad(
        lambda: nn.Conv2d(3, 4, 5, pad_mode='valid')(z(1, 3, 2, 2)), ValueError,
        "conv2d(input: Float32[1, 3, 2, 2], weight: Float32[4, 3, 5, 5], stride: (1, 1), dilation: (1, 1))",
        "expected an input at least as large as the kernel: it is 2 x 2, the kernel 5 x 5.",
        "pad_mode='same' pads as much as it takes.",
    ),
    "conv_mode": Bad(
        lambda: ops.conv2d(z(1, 1, 3, 3), z(1, 1, 3, 3), pad_mode='sam'), ValueError,
        "conv2d(input: Float32[1, 1, 3, 3], weight: Float32[1, 1, 3, 3], pad_mode: 'sam')",
        "pad_mode='sam': expected 'same', 'valid' or 'pad'.",
    ),
    "conv1": Bad(
        lambda: nn.Conv1d(3, 4, 3)(z(1, 4, 8)), ValueError,
        "conv1d(input: Float32[1, 4, 8], weight: Float32[4, 3, 3], stride: (1,), pad_mode: 'same', dilation: (1,))",
        "expected 3 channels on axis 1, got 4.",
        "in_channels of the layer is the length of axis 1 of its input.",
    ),
    "convt": Bad(
        lambda: nn.Conv2dTranspose(3, 4, 3)(z(1, 4, 8, 8)), ValueError,
        "conv_transposed(input: Float32[1, 4, 8, 8], weight: Float32[3, 4, 3, 3], bias: None, stride: (1, 1), pad_mode: 'same',"
        " padding: 0, output_padding: 0, dilation: (1, 1), groups: 1)",
        "expected 3 channels on axis 1, got 4.",
        "in_channels of the layer is the length of axis 1 of its input.",
    ),
    "pool_small": Bad(
        lambda: nn.MaxPool2d(5)(z(1, 3, 2, 2)), ValueError,
        "pooling(input: Float32[1, 3, 2, 2], kind: 'max', kernel_size: 5, stride: 1, pad_mode: 'valid')",
        "expected an input at least as large as the kernel.",
        "a smaller kernel_size, or pad_mode='same'.",
    ),
    "pool_rank": Bad(
        lambda: nn.MaxPool2d(2)(z(4)), ValueError, "MaxPool2d", "expected an input of 3 or 4 axes, got shape (4,).",
    ),
    "avg": Bad(
        lambda: ops.avg_pool2d(z(1, 3, 2, 2), 5), ValueError,
        "avg_pool2d(input_x: Float32[1, 3, 2, 2], kernel_size: 5)",
        "expected an input at least as large as the kernel.",
        "a smaller kernel_size, or pad_mode='same'.",
    ),
    "adaptive": Bad(
        lambda: nn.AdaptiveAvgPool2d(2)(z(2)), ValueError,
        "adaptive_avg_pool2d(input: Float32[2], output_size: 2)",
        "expected 4 axes, got shape (2,).",
        "put an axis of length 1 in front with x.expand_dims(0).",
    ),
    "bn": Bad(
        lambda: nn.BatchNorm2d(3)(z(1, 4, 2, 2)), ValueError,
        "batch_norm(input_x: Float32[1, 4, 2, 2], running_mean: Float32[3], running_var: Float32[3], weight: Float32[3], bias: "
        "Float32[3], momentum: 0.09999999999999998)",
        "expected 3 channels on axis 1, got 4.",
        "num_features of the layer is the length of axis 1 of its input.",
    ),
    "bn_rank": Bad(
        lambda: nn.BatchNorm2d(3)(z(1, 3)), ValueError,
        "BatchNorm2d",
        "expected an input of 4 axes, got shape (1, 3).",
    ),
    "bn1": Bad(
        lambda: nn.BatchNorm1d(3).set_train()(z(1, 3)), ValueError,
        "batch_norm(input_x: Float32[1, 3], running_mean: Float32[3], running_var: Float32[3], weight: Float32[3], bias: "
        "Float32[3], training: True, momentum: 0.09999999999999998)",
        "expected more than one value for each channel while training.",
        "a larger batch, or set_train(False).",
    ),
    "bn3": Bad(
        lambda: nn.BatchNorm3d(3)(z(1, 3)), ValueError,
        "BatchNorm3d",
        "expected an input of 5 axes, got shape (1, 3).",
    ),
    "ln": Bad(
        lambda: nn.LayerNorm((5,))(z(2, 3)), ValueError,
        "layer_norm(input: Float32[2, 3], normalized_shape: (3,), weight: Float32[5], bias: Float32[5], eps: 1e-07)",
        "expected an input that ends with the axes (5), got (3).",
    ),
    "gn": Bad(
        lambda: ops.group_norm(z(2, 3), 2), ValueError,
        "group_norm(input: Float32[2, 3], num_groups: 2)",
        "expected channels that 2 groups divide, got shape (2, 3).",
    ),
    "dropout": Bad(
        lambda: ops.dropout(z(2), 1.5), ValueError,
        "dropout(input: Float32[2], p: 1.5)",
        "expected a probability from 0 to 1, got 1.5.",
    ),
    "pad": Bad(
        lambda: ops.pad(z(2), (1,)), ValueError,
        "pad(input_x: Float32[2], padding: (1,))",
        "expected an even number of paddings, before and after for each axis.",
    ),
    "interp": Bad(
        lambda: ops.interpolate(z(1, 1, 2, 2), size=(2, 2), mode='foo'), ValueError,
        "interpolate(input: Float32[1, 1, 2, 2], size: (2, 2), mode: 'foo')",
        "expected a mode that fits the input's axes, got foo.",
    ),
    "prelu": Bad(
        lambda: nn.PReLU(4)(z(1, 3, 2, 2)), ValueError,
        "prelu(input: Float32[1, 3, 2, 2], weight: Float32[4])",
        "expected one weight or 3, one for each channel, got 4.",
    ),
    "glu": Bad(
        lambda: ops.glu(z(3)), ValueError,
        "glu(x: Float32[3])",
        "expected an even length on axis 0, got 3.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str) -> None:
    check(BAD[name], __file__)
