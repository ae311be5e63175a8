"""`mindspore.run_check`, and the small computations by which it and `torchspore doctor` check the installation."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.public_names import mindspore_version
from torchspore.translations import translatable, translate


class WrongResult(Exception):
    """A computation returned a wrong result."""


def run_check() -> None:
    """Multiplies, convolves and trains a little on the device, and prints whether the results are right, in MindSpore's words.

    An error of the device, or a wrong result, is printed as a failure with its reason.
    """
    from torchspore.mindspore import context

    print(f"MindSpore version:  {mindspore_version()}")
    for job in JOBS.values():
        try:
            job()
        except Exception as error:
            print(f"MindSpore running check failed.\n{error}")
            return
    target = context.get_context("device_target")
    print(f"The result of multiplication calculation is correct, MindSpore has been installed on platform [{target}] successfully!")


def _expect(subject: str, actual: Any, expected: Any, tolerance: float = 0.0) -> None:
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape or not np.allclose(actual, expected, rtol=tolerance, atol=tolerance):
        text = translate("{subject} is {actual}, expected {expected}")
        raise WrongResult(text.format(subject=translate(subject), actual=actual.tolist(), expected=expected.tolist()))


def product() -> None:
    """Compute a product of two small integer matrices: exact."""
    from torchspore.mindspore import ops
    from torchspore.mindspore.common.tensor import Tensor

    first, second = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    _expect(translatable("a product"), ops.matmul(Tensor(first), Tensor(second)).asnumpy(), first @ second)


def convolution() -> None:
    """Compute a convolution of integers with ones: sums of neighbours."""
    from torchspore.mindspore import ops
    from torchspore.mindspore.common.tensor import Tensor

    data = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    expected = sum(data[:, :, row : row + 3, column : column + 3] for row in range(3) for column in range(3))
    _expect(translatable("a convolution"), ops.conv2d(Tensor(data), Tensor(np.ones((1, 1, 3, 3), np.float32))).asnumpy(), expected, 1e-4)


def gradient() -> None:
    """Compute the gradient of a sum of squares: twice the input."""
    from torchspore.mindspore import ops
    from torchspore.mindspore.common.tensor import Tensor

    x = np.arange(4, dtype=np.float32)
    _expect(translatable("a gradient"), ops.grad(lambda x: (x * x).sum())(Tensor(x)).asnumpy(), 2 * x)


def training(mode: int) -> None:
    """Compare one training step of a layer with the same step in NumPy."""
    from torchspore.mindspore import context, nn
    from torchspore.mindspore.common.tensor import Tensor

    before = context.get_context("mode")
    context.set_context(mode=mode)
    try:
        x, y = np.arange(12, dtype=np.float32).reshape(4, 3) / 10, np.ones((4, 2), np.float32)
        weight = np.full((2, 3), 0.5, np.float32)
        net = nn.Dense(3, 2, weight_init=Tensor(weight), has_bias=False)
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), learning_rate=0.1))
        step.set_train()
        loss = step(Tensor(x), Tensor(y)).asnumpy()
        away = x @ weight.T - y
        _expect(translatable("a loss"), loss, np.mean(away**2), 1e-5)
        _expect(translatable("a trained weight"), net.weight.asnumpy(), weight - 0.1 * (2 / away.size) * away.T @ x, 1e-5)
    finally:
        context.set_context(mode=before)


JOBS: dict[str, Callable[[], None]] = {
    translatable("a matrix product"): product, translatable("a convolution"): convolution, translatable("a gradient"): gradient,
    translatable("a training step in PyNative mode"): lambda: training(1),
    translatable("a training step in Graph mode"): lambda: training(0),
}
"""The checks of a device, by display name."""
