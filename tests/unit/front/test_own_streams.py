"""MindSpore's random numbers and torch's do not touch each other."""
from __future__ import annotations

import gc
import threading
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, mint, nn, ops

ONES = np.ones((4, 6), np.float32)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=0.5)

    def construct(self, x: Any) -> Any:
        return self.dropout(x) + ops.rand(6) + ops.dropout(x, 0.3)


DRAWS = {
    "standard_normal": lambda: ops.standard_normal((3,)), "rand": lambda: ops.rand(3), "randn": lambda: ops.randn(3),
    "randint": lambda: ops.randint(0, 1000, (5,)), "randperm": lambda: ops.randperm(50), "dropout": lambda: ops.dropout(Tensor(ONES), 0.5),
    "dropout2d": lambda: ops.dropout2d(Tensor(np.ones((4, 9, 2, 2), np.float32)), 0.5),
    "bernoulli": lambda: ops.bernoulli(Tensor(ONES), 0.5), "gamma": lambda: ops.gamma((3,), Tensor([1.5]), Tensor([2.0])),
    "multinomial": lambda: ops.multinomial(Tensor(ONES), 4), "mint": lambda: mint.rand(4),
    "mint_dropout": lambda: mint.nn.functional.dropout(Tensor(ONES)),
    "uniform_": lambda: Tensor(ONES).uniform_(0, 1),
    "net": lambda: Net().set_train()(Tensor(ONES)), "poisson": lambda: ops.poisson((50,), Tensor(3.0)),
    "shuffle": lambda: ops.shuffle(Tensor(np.arange(60.0))), "laplace": lambda: ops.standard_laplace((4,)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_torch_does_not_move_the_stream(name: str, mode: int) -> None:
    seen = []
    for between in (lambda: None, lambda: torch.manual_seed(9), lambda: torch.rand(5)):
        ms.set_seed(3)
        first = DRAWS[name]().asnumpy()
        between()
        seen.append((first.tobytes(), DRAWS[name]().asnumpy().tobytes()))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("name", DRAWS)
def test_mindspore_does_not_move_torchs_stream(name: str, mode: int) -> None:
    torch.manual_seed(4)
    expected = torch.rand(3)
    torch.manual_seed(4)
    ms.set_seed(11)
    ms.manual_seed(12)
    DRAWS[name]()
    assert torch.equal(torch.rand(3), expected)


def test_two_threads_share_the_stream_and_leave_torch_alone() -> None:
    torch.manual_seed(4)
    expected = torch.rand(3)
    torch.manual_seed(4)
    ms.set_seed(3)
    drawn: list[float] = []

    def draw() -> None:
        for _ in range(200):
            drawn.extend(ops.rand(2).asnumpy().tolist())

    threads = [threading.Thread(target=draw) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    both = sorted(drawn)
    ms.set_seed(3)
    assert both == sorted(value for _ in range(400) for value in ops.rand(2).asnumpy().tolist())
    assert torch.equal(torch.rand(3), expected)


def test_a_failing_operator_gives_torchs_stream_back() -> None:
    torch.manual_seed(4)
    expected = torch.rand(3)
    torch.manual_seed(4)
    with pytest.raises(Exception):  # noqa: B017  whatever the operator raises
        ops.multinomial(Tensor([-1.0, 2.0]), 3)
    assert torch.equal(torch.rand(3), expected)


def test_the_state_can_be_saved_and_restored(mode: int) -> None:
    """As in MindSpore, `set_rng_state` acts on functions that take a `generator`."""
    ms.set_seed(3)
    mint.rand(5)
    state = ms.get_rng_state()
    first = [mint.rand(3).asnumpy().tolist() for _ in range(2)]
    torch.rand(7)
    ms.set_rng_state(state)
    assert [mint.rand(3).asnumpy().tolist() for _ in range(2)] == first


class Draws(nn.Cell):
    """Draws from a primitive that each call creates, in a branch too."""

    def construct(self, x: Any) -> Any:
        first = ops.StandardNormal(seed=4)((3,))
        if x.sum() > 0:
            return first, ops.StandardNormal(seed=4)((3,)), ops.Dropout(keep_prob=0.5, Seed0=3)(x)[0]
        return first, first * 0, x


EACH_CALL = {
    ms.PYNATIVE_MODE: [[0.4189167, 0.4506937, 0.2853228]] * 3,
    ms.GRAPH_MODE: [[0.4189167, 0.4506937, 0.2853228], [-1.365967, -0.1334739, 0.4161967], [-0.5054983, 1.4405202, -0.3999483]],
}
MASKS = ([2, 0, 0, 2, 0, 0, 2, 2, 0, 0, 2, 2], [2, 2, 0, 0, 2, 0, 2, 2, 0, 0, 2, 2])


def test_a_primitive_that_a_call_creates_starts_anew_in_pynative_and_continues_in_a_graph(mode: int) -> None:
    """The numbers are those of MindSpore 2.10 in the same mode."""
    net, x, masks = Draws(), Tensor(np.ones(12, np.float32)), []
    for expected in EACH_CALL[mode]:
        gc.collect()                                   # only the graph keeps the primitive's generator alive
        first, second, dropped = net(x)
        np.testing.assert_allclose([first.asnumpy(), second.asnumpy()], [expected, expected], rtol=1e-6)
        masks.append(dropped.asnumpy().tolist())
    assert masks[0] == MASKS[0] and masks[1] == MASKS[mode == ms.GRAPH_MODE]


class DrawsByTorch(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x + Tensor.from_torch(torch.rand(4)) + Tensor.from_torch(torch.nn.functional.dropout(x.torch(), 0.5))
        return ops.rand_like(x)


def test_torchs_functions_in_a_cell_draw_from_torchs_generator_in_both_modes() -> None:
    """Graphs drew from MindSpore's generator, so that `torch.manual_seed` was ignored."""
    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = DrawsByTorch()
        for _ in range(2):
            torch.manual_seed(3)
            results.append([net(Tensor(np.ones(4, np.float32))).asnumpy() for _ in range(2)])
    ms.set_context(mode=ms.PYNATIVE_MODE)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    ms.set_context(jit_syntax_level=ms.STRICT)
    try:
        with pytest.raises(RuntimeError, match="draws random numbers by a torch function, which jit_syntax_level STRICT does not allow"):
            ms.jit(lambda x: x + Tensor.from_torch(torch.rand(4)))(Tensor(np.ones(4, np.float32)))
    finally:
        ms.set_context(jit_syntax_level=ms.LAX)
