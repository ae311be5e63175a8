"""One compiled form for many lengths: graphs of open lengths at O1."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from support import kernel_compilers

from torchspore.context import effects
from torchspore.graph import dispatch
from torchspore.graph.backend import inductor
from torchspore.graph.tiers import open_forms

LENGTHS = (2, 3, 4, 5, 6, 7, 8, 9, 20, 31)


class Attention(nn.Cell):
    """Attention to a growing cache, with an embedding and a normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(11, 16), nn.LayerNorm((16,))
        self.joined, self.out = nn.Dense(16, 48), nn.Dense(16, 16)

    def construct(self, token, keys, values):
        x = self.words(token)
        query, key, value = (
            part.reshape(1, 1, 2, 8).transpose(0, 2, 1, 3) for part in ops.split(self.joined(self.norm(x)), 16, 2))
        keys, values = ops.concat((keys, key), 2), ops.concat((values, value), 2)
        scores = ops.softmax(ops.matmul(query, keys.swapaxes(2, 3)) * 8 ** -0.5, -1)
        return x + ops.gelu(self.out(ops.matmul(scores, values).transpose(0, 2, 1, 3).reshape(1, 1, 16))), (keys, values)


@pytest.fixture(autouse=True)
def reset_options() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_config={"jit_level": "O0"}, deterministic="OFF")


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One item for each kernel that is compiled."""
    counted: list[int] = []
    single = inductor.compile_single_kernel

    def compile_single_kernel(*arguments: Any) -> Any:
        counted.append(1)
        return single(*arguments)

    monkeypatch.setattr(inductor, "compile_single_kernel", compile_single_kernel)
    return counted


@pytest.fixture
def stand_in() -> Iterator[None]:
    """Kernels are the operators one by one, which saves the time of the C++ compiler."""
    with inductor.compiled_by(kernel_compilers.OneByOne()):
        yield


@pytest.fixture
def always_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A form that gives O0's numbers is used, however long it takes."""
    monkeypatch.setattr(open_forms.Race, "best", lambda race: _measured(race))


def _measured(race: Any) -> str:
    race.seconds = dict.fromkeys(race.codes, 1e-3)
    return list(race.codes)[-1]


def inputs_of(length: int, token: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    random = np.random.RandomState(length)
    keys, values = (Tensor(random.randn(1, 2, length, 8).astype(np.float32)) for _ in range(2))
    return Tensor([[token]], ms.int32), keys, values


def values_of(result: Any) -> list[np.ndarray]:
    return [result[0].asnumpy(), *(t.asnumpy() for t in result[1])]


def compare(net: nn.Cell, lengths: Any, level: str) -> None:
    """Compare calls with PyNative: equal bits at O0, float32's rounding at O1."""
    for length in lengths:
        ms.set_context(mode=ms.PYNATIVE_MODE)
        expected = values_of(net(*inputs_of(length)))
        ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": level})
        for _ in range(2):
            for value, number in zip(values_of(net(*inputs_of(length))), expected, strict=True):
                if level == "O0":
                    np.testing.assert_array_equal(value, number)
                else:
                    np.testing.assert_allclose(value, number, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("always_wins")
def test_one_form_serves_many_lengths(compilations: list[int]) -> None:
    with effects.fresh():
        net = Attention()
        compare(net, LENGTHS, "O1")
        lines = [line for lines in effects.notes().values() for line in lines]
    assert len(compilations) == 1
    (graph,) = [graph for graph in dispatch.graphs(net) if graph.has_open_lengths]
    assert graph.runs > 8
    assert any("a graph of open lengths has a form for lengths 2..112, compiled in" in line for line in lines), lines


def test_o0_keeps_its_bits_and_compiles_nothing(compilations: list[int]) -> None:
    compare(Attention(), LENGTHS, "O0")
    assert not compilations


@pytest.mark.usefixtures("always_wins", "stand_in")
def test_lengths_far_from_the_first_ones_get_a_form_of_their_own(compilations: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_forms, "SPAN", 2)
    monkeypatch.setattr(open_forms, "MOST", 2)
    net = Attention()
    compare(net, (2, 3, 4, 5, 6, 7, 12), "O1")
    assert len(compilations) == 1
    compare(net, (13, 40, 26, 14), "O1")
    assert len(compilations) == 2
    compare(net, (500, 600), "O1")                     # at most MOST forms; the rest runs as at O0
    assert len(compilations) == 2


@pytest.mark.usefixtures("always_wins", "stand_in")
def test_errors_name_the_operator_as_at_o0() -> None:
    net = Attention()
    compare(net, LENGTHS[:7], "O1")
    texts = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        with pytest.raises(Exception) as raised:
            net(*inputs_of(9, token=12))
        texts.append(f"{type(raised.value).__name__} {raised.value}".splitlines()[0])
    assert texts[0] == texts[1]


def test_deterministic_keeps_the_operators(compilations: list[int]) -> None:
    net = Attention()
    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O1"}, deterministic="ON")
    for length in LENGTHS:
        net(*inputs_of(length))
    assert not compilations


def test_a_graph_that_writes_stays_as_it_is(compilations: list[int]) -> None:
    class Counter(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = ms.Parameter(Tensor(0.0), name="count")

        def construct(self, x):
            self.count += 1.0
            return ops.exp(ops.tanh(x * 2) + ops.sigmoid(x)) * self.count

    net = Counter()
    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O1"})
    for call, length in enumerate(LENGTHS, 1):
        x = np.linspace(-1, 1, length).astype(np.float32)
        expected = np.exp(np.tanh(x * 2) + 1 / (1 + np.exp(-x))) * call
        np.testing.assert_allclose(net(Tensor(x)).asnumpy(), expected, rtol=1e-5)
    assert not compilations


@pytest.mark.usefixtures("always_wins", "stand_in")
def test_new_weights_and_gradients_around_a_form() -> None:
    """A form reads the weights of its call; a gradient of the Cell has another graph."""
    net = Attention()
    compare(net, LENGTHS[:7], "O1")
    net.out.weight.set_data(Tensor(np.full((16, 16), 0.5, np.float32)))
    compare(net, (7, 9), "O1")
    gradients = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        gradient = ms.grad(lambda token, keys, values: net(token, keys, values)[0].sum(), 1)
        gradients.append([gradient(*inputs_of(length)).asnumpy() for length in LENGTHS])
    for first, second in zip(*gradients, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-6)


def test_a_short_program_compiles_nothing(compilations: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHSPORE_WAIT")
    with effects.fresh():
        compare(Attention(), LENGTHS, "O1")
        lines = [line for lines in effects.notes().values() for line in lines]
    assert not compilations
    assert any("a graph of open lengths ran as at O0" in line for line in lines), lines
