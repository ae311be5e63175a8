"""A call that no graph holds runs in parts: the prints, exceptions, numbers and gradients of PyNative, and graphs between."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.context import effects


class Base(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        ms.set_seed(3)
        self.first, self.second, self.norm = nn.Dense(4, 4), nn.Dense(4, 4), nn.LayerNorm((4,))
        self.calls, self.seen = 0, []

    def scaled(self, x):
        return x * 2


class Prints(Base):
    def construct(self, x):
        h = ops.relu(self.first(x) * 2 + 1)
        h = self.norm(h) + x
        print("sum", round(float(h.sum().asnumpy()), 3))
        y = ops.tanh(self.second(h))
        z = y * y + ops.sigmoid(h) - x
        return self.norm(z) * 3 + y


class NumpyInTheMiddle(Base):
    def construct(self, x):
        h = self.norm(ops.relu(self.first(x)))
        scale = float(np.abs(h.asnumpy()).max())
        y = self.norm(self.second(h) / scale)
        return y * y + ops.sin(h)


class Counts(Base):
    def construct(self, x):
        self.calls += 1
        h = self.norm(ops.relu(self.first(x) + 1)) * 2
        return ops.sigmoid(self.second(h)) * self.calls


class LoopWithPrint(Base):
    def construct(self, x):
        total = x * 0
        for i, layer in enumerate((self.first, self.second, self.first)):
            x = ops.tanh(self.norm(layer(x)) * 2 + total)
            total = total + x * (i + 1)
            if i == 1:
                print("layer", i)
                continue
            total = ops.relu(total) + self.norm(x)
        return total


class Collects(Base):
    def construct(self, x):
        outputs = []
        for layer in (self.first, self.second):
            x = ops.relu(self.norm(layer(x)) + 1)
            outputs.append(x)
        self.seen.append(len(outputs))
        return ops.stack(outputs).sum(0) * outputs[0] + ops.exp(-x) * 3


class Tries(Base):
    def construct(self, x):
        try:
            h = self.norm(self.first(x)) * 2 + ops.sin(x)
            print("before")
            raise KeyError("inside")
        except KeyError as error:
            print("caught", error)
            h = self.norm(self.second(x)) + 1
        finally:
            print("done")
        return ops.relu(h) * ops.sigmoid(h) + x


def noisy(x, factor=1.5):
    y = ops.tanh(x) * factor + ops.sigmoid(x) * 2
    print("noisy")
    return y * y + ops.exp(-y) - x


class CallsAFunction(Base):
    def construct(self, x):
        h = self.norm(ops.relu(self.first(x)))
        h = noisy(h, factor=2.0)
        return self.scaled(h) + ops.relu(self.second(h))


class Inherits(Prints):
    def construct(self, x):
        print("below")
        y = super().construct(x)
        return ops.relu(y) * self.__class__.__name__.count("h")


class ReturnsEarly(Base):
    def construct(self, x):
        h = self.norm(ops.relu(self.first(x) + 1))
        print("shape", h.shape)
        if self.training:
            return h * 2 + ops.sin(h)
        with_bias = ops.tanh(h) + ops.sigmoid(h) * 2 - x
        return with_bias * self.norm(with_bias)


class Closes(Base):
    def construct(self, x):
        h = self.norm(ops.relu(self.first(x)))

        def inner(v):
            return v * 2 + h

        print("closure")
        y = inner(ops.tanh(h) + x)
        return self.norm(y) + ops.sigmoid(self.second(y)) * 3


class InnerPrints(Base):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Prints()

    def construct(self, x):
        h = ops.tanh(self.first(x)) * 2 + self.norm(x)
        h = self.inner(h)
        return self.norm(h) + ops.sigmoid(self.second(h)) * 2


class SometimesUnbound(Base):
    def construct(self, x, late=False):
        if late:
            extra = ops.sin(x)
        h = self.norm(ops.relu(self.first(x)))
        print("late", late)
        if late:
            h = h + extra * 2 + ops.cos(extra)
        return self.norm(h) * 2 + ops.exp(-h)


class Normalises(Base):
    """Batch norm writes its running statistics inside a gradient: the second use reads what the first has written."""

    def __init__(self) -> None:
        super().__init__()
        self.batch = nn.BatchNorm1d(4)
        self.set_train()

    def construct(self, x):
        h = self.batch(ops.relu(self.first(x)) * 2 + ops.sin(x))
        print("mean", round(float(self.batch.moving_mean.asnumpy().sum()), 4))
        return self.batch(self.second(h) + ops.tanh(h)) * 2 + ops.exp(-h)


KINDS = [
    Normalises,
    Prints, NumpyInTheMiddle, Counts, LoopWithPrint, Collects, Tries, CallsAFunction, Inherits, ReturnsEarly, Closes, InnerPrints,
    SometimesUnbound,
]


def values(kind: type[Base], mode: int, gradient: bool) -> tuple[list[Any], Base]:
    ms.set_context(mode=mode)
    net, out = kind(), []
    for call in range(6):
        x = Tensor(np.random.RandomState(call).randn(2, 4).astype(np.float32))
        if gradient:
            value, (dx, dw) = ms.value_and_grad(net, 0, net.trainable_params())(x)
            out.append([t.asnumpy() for t in (value, dx, *dw)])
        else:
            out.append([net(x).asnumpy()])
    return out, net


@pytest.fixture(autouse=True)
def pynative_after():
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("gradient", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("kind", KINDS)
def test_parts_do_what_pynative_does(kind: type[Base], gradient: bool, capsys: pytest.CaptureFixture[str]) -> None:
    eager, in_graph = values(kind, ms.PYNATIVE_MODE, gradient)
    output = capsys.readouterr().out
    graphed, other = values(kind, ms.GRAPH_MODE, gradient)
    assert capsys.readouterr().out == output
    for a, b in zip(eager, graphed):
        for left, right in zip(a, b):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)  # gradients are added up in another order
    assert (in_graph.calls, in_graph.seen) == (other.calls, other.seen)
    pieces = [line for line in effects.notes()["graphs"] if f" {kind.__name__}.construct line" in line]
    assert pieces or kind is Counts, "something was captured"  # Counts: a counter is an input of the whole graph


class Swallows:
    def __enter__(self):
        return 5

    def __exit__(self, *_error):
        return True


def with_with(x, k):
    y = x
    with Swallows() as c:
        print("in")
        y = x * c
        if k == 1:
            raise KeyError
        z = y + 1
        y = z / k if k else {}[k]
    return y


def with_try(x, k):
    y = x
    try:
        print("in")
        y = x * 2
        z = y + 1
        if k == 1:
            raise KeyError
        y = z * 3
        w = [z, y][k]
        y = w + z
    except (KeyError, IndexError):
        y = y + 100
        v = {0: 1, 1: 2}.get(k) * y
        y = y + v
    return y


def with_finally(x, k):
    seen, y = [], 0
    try:
        print("in")
        y = x * 2
        z = y + k
        if k == 1:
            raise KeyError
        return z + 1, seen
    except KeyError:
        return y, seen
    finally:
        seen.append(y)


def with_names(x, k):
    for i in range(3):
        try:
            print("in")
            y = x * i
            q = y / (i - k) if i != k else {}[k]
            y = y + 1
            a, (b, _) = y, (q, q) if i < 2 else 3
        except (KeyError, TypeError):
            continue
        finally:
            x = x + y
    try:
        return y, q, a, b
    except NameError as error:
        return str(error), y


@pytest.mark.parametrize("function", [with_with, with_try, with_finally, with_names])
def test_an_error_that_is_caught_keeps_what_was_stored_before_it(function: Any) -> None:
    """Also where the statements before it have become one graph with it."""
    def plain(value):
        if isinstance(value, (tuple, list)):
            return [plain(item) for item in value]
        return value.asnumpy().tolist() if isinstance(value, Tensor) else value

    def tried(call, k):
        try:
            return plain(call(Tensor([1.0, 2.0]), k))
        except Exception as error:
            return type(error)

    compiled = ms.jit(function)
    for k in (1, 0, 2, 1, 0, 0, 2, 1, 2, 0):
        assert tried(compiled, k) == tried(function, k), k


def test_a_function_whose_defaults_or_code_are_replaced_runs_as_it_is_now() -> None:
    seen: list[int] = []

    def scaled(x, k=1, *, more=0):
        seen.append(k)                  # no graph holds this
        return x * k + more

    def otherwise(x, k=1, *, more=0):
        seen.append(-k)
        return x - k * 100

    call, results = ms.jit(scaled), []
    for change in (None, ("__defaults__", (3,)), ("__kwdefaults__", {"more": 7}), ("__code__", otherwise.__code__)):
        if change is not None:
            setattr(scaled, *change)
        results += [call(Tensor([1.0])).asnumpy().tolist() for _ in range(4)]
    assert results == [[1.0]] * 4 + [[3.0]] * 4 + [[10.0]] * 4 + [[-299.0]] * 4
    assert seen == [1] * 4 + [3] * 8 + [-3] * 4
