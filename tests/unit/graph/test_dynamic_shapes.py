"""One graph for all lengths of an axis that `set_inputs` leaves open."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.graph import dispatch


class Mlp(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.LayerNorm((8,)), nn.Dense(8, 3))

    def construct(self, x):
        return ops.softmax(self.net(x), -1)


class Conv(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        first = (nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2))
        self.net = nn.SequentialCell(*first, nn.Flatten(), nn.Dense(4 * 3 * 3, 5))

    def construct(self, x):
        return self.net(x)


class Attention(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Dense(8, 8) for _ in range(4))
        self.embedding = nn.Embedding(11, 8)

    def construct(self, ids):
        x = self.embedding(ids)
        batch, length, width = x.shape
        q, k, v = (layer(x).reshape(batch, length, 2, width // 2).transpose(0, 2, 1, 3) for layer in (self.q, self.k, self.v))
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) / (width // 2) ** 0.5
        mask = ops.triu(ops.ones((length, length), ms.float32), 1) * -1e4
        y = ops.matmul(ops.softmax(scores + mask, -1), v).transpose(0, 2, 1, 3).reshape(batch, length, width)
        return self.out(y).mean(1)


class Sums(nn.Cell):
    def construct(self, x):
        total = ops.cumsum(x, 0) * x.shape[0] + ops.arange(x.shape[0]).astype(ms.float32).expand_dims(1)
        return ops.concat((total, x[1:]), 0).sum() / x.shape[0], total[::2], ops.zeros_like(x) - 1, x.reshape(-1)


class Branches(nn.Cell):
    """A branch on the length: two graphs, one for each side."""

    def construct(self, x):
        if x.shape[0] > 5:
            return x * 2
        return x - 1


class TellsLength(nn.Cell):
    """Gives the length as a Python number, which no graph for all lengths can."""

    def construct(self, x):
        return x * 2, x.shape[0]


CASES: dict[type[nn.Cell], Any] = {
    Mlp: ([None, 6], lambda n: np.random.RandomState(n).randn(n, 6).astype(np.float32)),
    Conv: ([None, 3, 6, 6], lambda n: np.random.RandomState(n).randn(n, 3, 6, 6).astype(np.float32)),
    Attention: ([None, None], lambda n: np.random.RandomState(n).randint(0, 11, (3, n)).astype(np.int32)),
    Sums: ([None, 2], lambda n: np.random.RandomState(n).randn(n, 2).astype(np.float32)),
    Branches: ([None, 2], lambda n: np.random.RandomState(n).randn(n, 2).astype(np.float32)),
    TellsLength: ([None, 2], lambda n: np.random.RandomState(n).randn(n, 2).astype(np.float32)),
}
GRAPHS = {Branches: 2, Sums: 2, TellsLength: 7}       # Sums: the length 2 leaves one row, which torch knows by itself
LENGTHS = (4, 7, 2, 9, 12, 3, 5)


@pytest.fixture(autouse=True)
def pynative_after():
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("kind", CASES)
def test_one_graph_serves_every_length(kind: type[nn.Cell]) -> None:
    shape, make = CASES[kind]
    ms.set_seed(2)
    net = kind()
    net.set_inputs(Tensor(shape=shape, dtype=Tensor(make(2)).dtype))
    for length in LENGTHS:
        x = Tensor(make(length))
        results = []
        for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
            ms.set_context(mode=mode)
            result = net(x)
            results.append(result if isinstance(result, tuple) else (result,))
        for a, b in zip(*results):
            np.testing.assert_allclose(*(v.asnumpy() if isinstance(v, Tensor) else v for v in (a, b)), rtol=1e-5, atol=1e-6)
            assert type(a) is type(b)
    assert len(dispatch.graphs(net)) == GRAPHS.get(kind, 1)


def test_a_length_of_one_has_a_separate_graph() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Mlp()
    net.set_inputs(Tensor(shape=[None, 6], dtype=ms.float32))
    for length in (1, 5, 1, 6):
        assert net(ops.ones((length, 6))).shape == (length, 3)
    assert len(dispatch.graphs(net)) == 2


def test_mutable_numbers_are_inputs_from_the_first_call() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)

    @ms.jit
    def scaled(x, pair):
        return x * pair[0] + pair[1]

    for i in range(5):
        assert scaled(Tensor([1.0]), ms.mutable((i, 0.5))).asnumpy() == [i + 0.5]
    assert len(dispatch.graphs(scaled)) == 1


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: ms.mutable("a"), TypeError, "For 'mutable', the 'input_data' should be one of (bool, int, float, Tensor, tuple, list, dict) "
     "or their nested structures with no self-reference, but got str: 'a'."),
    (lambda: ms.mutable(1, True), TypeError, "For 'mutable', when the variable_len is True, the first input should be list or tuple, but "
     "got: int\n\nhint: write mutable([int], True)."),
    (lambda: ms.mutable([1, 2.5], True), ValueError, "mutable(dynamic_len=True): expected elements of one type, got float, int. In graph "
     "mode, the element type of dynamic length array must be the same. The element type do not match."),
    (lambda: Sums().set_inputs(None, None), ValueError, "Sums.set_inputs: expected at most 1 inputs, the number of construct, got 2."),
    (lambda: Sums().set_inputs(y=None), TypeError, "Sums.set_inputs(y=...): expected one of x."),
])
def test_wrong_calls_say_what_was_expected(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == text


class Cached(nn.Cell):
    """A layer of attention that appends to a cache of keys and values, as programs that generate text do."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Dense(8, 8) for _ in range(3))

    def construct(self, x, cache, scale=None):
        keys, values = (cache["keys"], cache["values"]) if isinstance(cache, dict) else cache
        query, keys, values = self.q(x), ops.concat((keys, self.k(x)), 1), ops.concat((values, self.v(x)), 1)
        mixed = ops.matmul(ops.softmax(ops.matmul(query, keys.swapaxes(1, 2)), -1), values)
        mixed = mixed if scale is None else mixed * scale[0].sum()
        return mixed, {"keys": keys, "values": values} if isinstance(cache, dict) else (keys, values)


def generated(net: nn.Cell, cache: Any, steps: int, **keywords: Any) -> list[Any]:
    """The results of `steps` calls, each with the cache that the one before has returned."""
    results = []
    for step in range(steps):
        x = Tensor(np.random.RandomState(step).randn(1, 1, 8).astype(np.float32))
        out, cache = net(x, cache, **keywords)
        results.append(out.asnumpy())
    return results


def empty_cache() -> tuple[Tensor, Tensor]:
    return Tensor(np.zeros((1, 1, 8), np.float32)), Tensor(np.ones((1, 1, 8), np.float32))


@pytest.mark.parametrize("kind", ["tuple", "list", "dict", "keyword"])
def test_a_growing_cache_has_few_graphs(kind: str) -> None:
    keys, values = empty_cache()
    cache = {"tuple": (keys, values), "list": [keys, values], "dict": {"keys": keys, "values": values}, "keyword": (keys, values)}[kind]
    keywords = {"scale": (Tensor(np.ones(3, np.float32)),)} if kind == "keyword" else {}
    net = Cached()
    expected = generated(net, cache, 20, **keywords)
    ms.set_context(mode=ms.GRAPH_MODE)
    for out, number in zip(generated(net, cache, 20, **keywords), expected, strict=True):
        np.testing.assert_allclose(out, number, rtol=1e-5, atol=1e-6)
    # one for the length 1, one for each of four lengths, one for all others
    assert len(dispatch.graphs(net)) == 6


def test_items_of_one_argument_may_have_different_lengths() -> None:
    class Sum(nn.Cell):
        def construct(self, pair):
            return pair[0].sum() * 2 + pair[1][0].sum() * pair[0].shape[0]

    ms.set_context(mode=ms.GRAPH_MODE)
    net = Sum()
    for first, second in [(2, 9), (3, 8), (4, 7), (5, 6), (6, 6), (7, 5), (8, 12), (9, 9), (30, 2), (2, 30)]:
        pair = (ops.ones((first, 2)), [ops.ones(second)])
        for _ in range(2):
            assert float(net(pair)) == 4 * first + second * first
    assert len(dispatch.graphs(net)) <= 8


def test_a_nest_that_gets_more_items_is_captured_again() -> None:
    class Total(nn.Cell):
        def construct(self, items):
            return sum(item.sum() for item in items)

    ms.set_context(mode=ms.GRAPH_MODE)
    net = Total()
    for length in (2, 3, 4, 5, 6, 7, 8):
        for count in (1, 2, 1, 2):
            assert float(net(tuple(ops.ones(length) for _ in range(count)))) == length * count


def test_the_reason_names_the_item(capfd: pytest.CaptureFixture[str]) -> None:
    from torchspore.context import effects

    class Last(nn.Cell):
        def construct(self, cache):
            return cache[1]["keys"] * 2

    ms.set_context(mode=ms.GRAPH_MODE)
    with effects.fresh():
        net = Last()
        for length in (2, 3):
            net((ops.ones(2), {"keys": ops.ones((length, 2))}))
        lines = effects.notes()["graphs"]
    assert any("again because argument 1[1]['keys'] changed from Float32[2, 2] to Float32[3, 2]" in line for line in lines)
