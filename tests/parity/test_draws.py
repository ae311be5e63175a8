"""After a seed, operators on the CPU draw the numbers of MindSpore 2.10, in both modes. `draws.py` records them from real MindSpore."""
from __future__ import annotations

import json
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from parity import draws

RECORD = json.loads(draws.RECORD.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", RECORD)
def test_numbers_are_those_of_mindspore(name: str) -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert draws.cases(ms)[name]() == RECORD[name]


FUNCTIONS = {**draws.functions(ms), **draws.stateless(ms)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_graphs_draw_the_numbers_of_pynative(name: str) -> None:
    draw = FUNCTIONS[name]

    class Net(nn.Cell):
        def construct(self) -> Any:
            return draw((4, 3), None if name in draws.functions(ms) else 3), draw((4, 3), 5), draw((2, 6), 5)

    seen = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(2)
        net = Net()
        seen.append([[draws.summary(value) for value in net()] for _ in range(3)])
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("name", draws.primitives(ms))
def test_primitives_in_graphs_draw_the_numbers_of_pynative(name: str) -> None:
    make, draw = draws.primitives(ms)[name]

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = make(3, 4), make(0, 6)

        def construct(self) -> Any:
            return draw(self.first, (4, 3)), draw(self.second, (4, 3)), draw(self.first, (4, 3)), draw(self.first, (5, 3))

    seen = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = Net()
        seen.append([[draws.summary(value) for value in net()] for _ in range(3)])
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert seen[0] == seen[1]
    assert name == "Multinomial" or seen[0][0] != seen[0][1]


class Noisy(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.normal, self.choice = ops.StandardNormal(3, 4), ops.RandomChoiceWithMask(5, 3, 4)
        self.layer = nn.Dense(6, 6)

    def construct(self, x: Any) -> Any:
        y = self.layer(x) * ops.rand(4, 6) + ops.randn_like(x) * x + self.normal((4, 6)) * ops.randint(0, 9, (6,)).astype(ms.float32)
        indices, _ = self.choice(x > 0)
        return ops.shuffle(y) * ops.tanh(y) + indices.sum() * x


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_recomputation_draws_the_numbers_of_the_first_run(mode: int) -> None:
    ms.set_context(mode=mode)

    def run(recompute: bool) -> list[bytes]:
        ms.set_seed(2)
        cell = nn.SequentialCell(Noisy(), Noisy())
        if recompute:
            cell.recompute()
        x = Tensor(np.ones((4, 6), np.float32))
        return [ms.grad(lambda x: cell(x).sum())(x).asnumpy().tobytes() for _ in range(3)] + [cell(x).asnumpy().tobytes()]

    with_recomputation, without = run(True), run(False)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert with_recomputation == without


@pytest.mark.parametrize("level", ["O0", pytest.param("O1", marks=pytest.mark.slow)])
def test_compiled_steps_draw_the_numbers_of_pynative(level: str) -> None:
    def losses(mode: int) -> list[float]:
        ms.set_context(mode=mode)
        ms.set_seed(4)
        net = nn.SequentialCell(Noisy(), Noisy())
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 1e-4)).set_train()
        x, y = (Tensor(np.random.normal(0, 1, (4, 6)).astype(np.float32)) for _ in range(2))
        return [float(step(x, y).asnumpy()) for _ in range(5)]

    expected = losses(ms.PYNATIVE_MODE)
    ms.set_context(jit_config={"jit_level": level})
    try:
        np.testing.assert_allclose(losses(ms.GRAPH_MODE), expected, rtol=1e-4)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE, jit_config={"jit_level": "O0"})


def test_a_program_without_a_seed_draws_other_numbers_each_time() -> None:
    from torchspore.engine.random import random_state

    random_state.SEED.value = None
    shape = (40, 3)
    for name, draw in draws.functions(ms).items():
        assert len({str(draws.summary(draw(shape, None))) for _ in range(3)}) > 1, name


def test_bernoulli_repeats_its_numbers() -> None:
    ones = ops.ones((3,), ms.float32)
    assert [ops.bernoulli(ones, 0.3, 1).asnumpy().tolist() for _ in range(2)] == [[0, 1, 0]] * 2


def test_multinomial_refuses_what_it_cannot_draw() -> None:
    with pytest.raises(ValueError, match="num_samples=3: expected at most 2, the number of weights, without replacement"):
        ops.multinomial(Tensor([1.0, 2.0]), 3, False)
    with pytest.raises(ValueError, match="weights: expected finite numbers from 0 on"):
        ops.multinomial(Tensor([1.0, -2.0]), 3)
    with pytest.raises(TypeError, match="seed='a': expected an int, got str"):
        ops.rand(3, seed="a")
    with pytest.raises(ValueError, match="seed=-1: expected an int from 0 on"):
        ops.rand(3, seed=-1)
