"""Branches and loops that write Parameters, in graphs that are split: each device runs them whole and keeps its part."""
from __future__ import annotations

import inspect
import traceback
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.ops import operations as P

from torchspore.context import effects


class Net(nn.Cell):
    """A branch that writes a Parameter, a loop that writes the one that is cut."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(np.random.default_rng(0).standard_normal((32, 8)).astype(np.float32)), name="weight")
        self.count = Parameter(Tensor(np.zeros(8, np.float32)), name="count", requires_grad=False)
        self.product = P.MatMul().shard(((2, 1), (1, 4)))

    def construct(self, x: Any) -> Any:
        y = self.product(x, self.weight)
        if y.sum() > 0:
            ops.assign(self.count, self.count + 1.0)
            y = y * 2
        else:
            ops.assign(self.count, self.count - 3.0)
        i = Tensor(0)
        while i < 3:
            ops.assign(self.weight, self.weight * 0.9)
            i = i + 1
        return (y * y).mean()


class Step(nn.Cell):
    """An optimizer's step under a condition."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net, self.optimizer = net, nn.Adam(net.trainable_params(), 1e-2)
        self.gradients = ops.value_and_grad(net, None, self.optimizer.parameters)

    def construct(self, x: Any) -> Any:
        loss, result = self.gradients(x)
        if loss < 1e6:
            self.optimizer(result)
        return loss


def by_hand() -> list[np.ndarray]:
    """Three steps: losses and Parameters."""
    net = Net()
    step = Step(net)
    losses = [step(Tensor(np.random.default_rng(at).standard_normal((16, 32)).astype(np.float32))).asnumpy() for at in range(3)]
    return [np.array(losses), net.count.asnumpy(), net.weight.asnumpy()]


def scaled() -> list[np.ndarray]:
    """Four steps with a loss scale, the third of which overflows."""
    ms.set_seed(1)
    net = nn.Dense(32, 8)
    net.matmul.shard(((2, 1), (4, 1)))
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.01, 0.9), nn.DynamicLossScaleUpdateCell(1024.0, 2, 2),
    )
    y, losses = Tensor(np.ones((16, 8), np.float32)), []
    for at in range(4):
        x = np.full((16, 32), 1e30 if at == 2 else 0.1, np.float32)
        losses.append(np.array([float(tensor.asnumpy()) for tensor in step(Tensor(x), y)]))
    return [np.nan_to_num(np.stack(losses)), net.weight.asnumpy()]


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("program", [by_hand, scaled])
def test_writes_under_conditions(program: Any, shares: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = program()
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    config = {"enable_parallel_optimizer": shares, "parallel_optimizer_config": {"parallel_optimizer_threshold": 0}}
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", **config)
    for expected, other in zip(alone, program()):
        np.testing.assert_allclose(other, expected, rtol=2e-5, atol=1e-6)


def error_line(caught: Any) -> str:
    """The line at which an error ends."""
    return traceback.extract_tb(caught.value.__traceback__)[-1].line or ""


class Mixed(nn.Cell):
    """A branch and a loop whose rows need those of other devices."""

    def construct(self, x: Any) -> Any:
        if x.sum() > 0:
            x = x - x.mean(0)
        i = Tensor(0)
        while i < 3:
            x = ops.softmax(x, 0)
            i = i + 1
        return x


class Alone(nn.Cell):
    """A branch that needs nothing of other devices."""

    def construct(self, x: Any) -> Any:
        if x.sum() > 0:
            x = x * 2
        return x


def test_explain_says_what_runs_unsplit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="data_parallel")
    x = Tensor(np.arange(512, dtype=np.float32).reshape(16, 32))
    Mixed()(x)
    Alone()(x)
    text = "\n".join(effects.notes()["distribution"])
    for word, what in (("if", "an if"), ("while", "a loop")):
        assert f"{statement_line(Mixed, word)} {what} on a Tensor: no rule splits it, so each device runs it on full values; " in text, text
    assert statement_line(Alone, "if") not in text


def statement_line(net: type[nn.Cell], word: str) -> str:
    """The file and line of the statement of `construct` that begins with a word."""
    lines, first = inspect.getsourcelines(net.construct)
    at = next(at for at, line in enumerate(lines) if line.split()[:1] == [word])
    return f"{__file__}:{first + at}"


class Checked(nn.Cell):
    """An assert on a Tensor, a branch that raises, numbers of Tensors."""

    def construct(self, x: Any) -> Any:
        y = ops.relu(x)
        assert y.sum() < 100, "more than a hundred"
        if y.sum() > 50:
            raise KeyError("more than fifty")
        return y * float(x.sum()) + int(x.sum()) + x.sum().item()


@pytest.mark.parametrize("devices", [2, 4])
def test_a_check_runs_and_raises_as_written(devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", str(devices))
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    net = Checked()
    x = np.ones((4, 4), np.float32)
    np.testing.assert_allclose(net(Tensor(x)).asnumpy(), x * 16 + 32)
    with pytest.raises(AssertionError, match=r"^more than a hundred$") as caught:
        net(Tensor(x * 7))
    assert error_line(caught) == 'assert y.sum() < 100, "more than a hundred"'
    with pytest.raises(KeyError, match="more than fifty") as caught:
        net(Tensor(x * 4))
    assert error_line(caught) == 'raise KeyError("more than fifty")'
    np.testing.assert_allclose(net(Tensor(x * 2)).asnumpy(), x * 2 * 32 + 64)
