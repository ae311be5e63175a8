"""`Cell.recompute`: less memory, the same numbers bit for bit, in both modes."""
from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support.memory_use import most

import torchspore
from torchspore.context import effects
from torchspore.engine.autograd.recompute import later, random_state, swap_state

WIDTH = 16


class Block(nn.Cell):
    def __init__(self, width: int = WIDTH, drops: bool = True) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        self.norm, self.drop = nn.BatchNorm1d(4 * width), nn.Dropout(p=0.3 if drops else 0.0)

    def construct(self, x, scale=1.0):
        return x + self.second(self.drop(ops.gelu(self.norm(self.first(x))))) * scale


class Net(nn.Cell):
    def __init__(self, recompute: Any = (), blocks: int = 4, **options: Any) -> None:
        super().__init__()
        self.blocks = nn.CellList([Block(**options) for _ in range(blocks)])
        for number in recompute:
            self.blocks[number].recompute()

    def construct(self, x):
        for block in self.blocks:
            x = block(x)
        return (x * x).mean()


def batch(number: int = 0, rows: int = 8, width: int = WIDTH) -> Tensor:
    return Tensor(np.random.RandomState(number).randn(rows, width).astype(np.float32))


def trained(make: Callable[[], nn.Cell], steps: int = 3) -> tuple[list[bytes], nn.Cell]:
    """The bits of the losses, of the Parameters and of the random state after some steps, and the step."""
    ms.set_seed(3)
    net = make()
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 0.01)).set_train()
    losses = [step(batch(number)).asnumpy().tobytes() for number in range(steps)]
    return losses + [p.asnumpy().tobytes() for p in net.get_parameters()] + [torch.get_rng_state().numpy().tobytes()], step


@pytest.mark.parametrize("recompute", [(0, 1, 2, 3), (1, 3), (0,)])
def test_the_numbers_are_the_same_bit_for_bit(mode: int, recompute: tuple[int, ...]) -> None:
    losses, _ = trained(Net)
    computed, step = trained(lambda: Net(recompute))
    assert computed == losses
    assert len(torchspore.graphs(step)) == (mode == ms.GRAPH_MODE)


def test_inside_one_another(mode: int) -> None:
    def make() -> nn.Cell:
        net = Net((0, 1, 2, 3))
        net.recompute()
        return net

    assert trained(make)[0] == trained(Net)[0]


def test_memory_falls(mode: int, tmp_path: Path) -> None:
    peaks = []
    for recompute in ((), range(8)):
        net = Net(recompute, 8, width=64)
        step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.01)).set_train()
        x = batch(0, 1024, 64)
        step(x)
        peaks.append(most(lambda step=step, x=x: step(x), tmp_path))
    assert peaks[1] < 0.5 * peaks[0], peaks
    assert "Block: 12 values of each call are not stored; the backward pass computes them again" in effects.notes()["recomputation"]


def test_a_graph_recomputes_after_the_backward_pass_has_begun() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net((0, 1), 2, drops=False).set_train()
    ms.grad(net, None, net.trainable_params())
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.01)).set_train()
    step(batch())
    ms.set_context(mode=ms.PYNATIVE_MODE)
    names = [getattr(node.target, "__name__", "") for node in torchspore.graphs(step)[0].module.graph.nodes]
    first, second = [number for number, name in enumerate(names) if name == later.__name__]
    gelus = [number for number, name in enumerate(names) if name == "gelu.default"]
    backward = [number for number, name in enumerate(names) if name == "gelu_backward.default"]
    assert gelus[1] < first < gelus[2] < backward[0] < second < gelus[3] < backward[1]
    assert not {random_state.__name__, swap_state.__name__} & set(names), "nothing is drawn, so no state is kept"


def test_without_a_gradient_it_is_an_ordinary_call(mode: int) -> None:
    ms.set_seed(1)
    net = Net()
    plain = net(batch()).asnumpy()
    for block in net.blocks:
        block.recompute()
    assert (net(batch()).asnumpy() == plain).all()


class Counts(nn.Cell):
    """Keeps a Tensor and counts: both runs must begin with what was there, and only the first may leave a mark."""

    def __init__(self) -> None:
        super().__init__()
        self.total, self.calls = Tensor([0.0]), 0
        self.scale = ms.Parameter(Tensor([2.0]), name="scale")
        self.seen = ms.Parameter(Tensor([0.0]), name="seen", requires_grad=False)

    def construct(self, x):
        self.total = self.total + x
        self.seen += 1
        return ops.exp(x * self.scale * self.seen) * self.total


def test_what_the_second_run_writes_is_not_seen(mode: int) -> None:
    results = []
    for recompute in (False, True):
        net = Counts()
        if recompute:
            net.recompute()
        gradient = ms.grad(net, 0, [net.scale])
        outputs = [gradient(Tensor([0.5 * number])) for number in (1, 2)]
        results.append([[float(a), float(b[0])] for a, b in outputs] + [float(net.total), float(net.seen), float(net.scale)])
    assert results[0] == results[1] and results[0][2:] == [1.5, 2.0, 2.0]


def test_second_order(mode: int) -> None:
    results = []
    for recompute in (False, True):
        net = nn.SequentialCell(nn.Tanh(), nn.Sigmoid())
        if recompute:
            net.recompute()
        results.append(float(ms.grad(ms.grad(net))(Tensor([0.3]))))
    assert results[0] == results[1] != 0


def test_the_function(mode: int) -> None:
    net = Block(drops=False)
    plain = ms.grad(lambda x: net(x, 2.0).sum())(batch())
    recomputed = ms.grad(lambda x: ms.recompute(net, x, 2.0).sum())(batch())
    assert (plain.asnumpy() == recomputed.asnumpy()).all()
    function = ms.grad(lambda x: ms.recompute(lambda y: ops.exp(y) * y, x, use_reentrant=False).sum())(Tensor([1.0]))
    assert float(function) == pytest.approx(2 * np.e, rel=1e-6)


def test_contexts_are_entered_in_each_run() -> None:
    entered = []

    @contextmanager
    def note(name: str) -> Any:
        entered.append(name)
        yield

    net = nn.Sigmoid()
    net.recompute(context_fn=lambda: (note("first"), note("second")))
    ms.grad(net)(Tensor([1.0]))
    assert entered == ["first", "second"]


def test_what_changes_from_run_to_run_is_reported() -> None:
    class Fickle(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.__dict__["runs"] = []

        def construct(self, x):
            self.runs.append(1)
            return ops.sigmoid(x) if len(self.runs) > 1 else ops.sigmoid(ops.exp(x))

    net = Fickle()
    net.recompute()
    with pytest.raises(RuntimeError) as caught:
        ms.grad(net)(Tensor([1.0]))
    assert str(caught.value) == (
        "recompute: Fickle computed 1 values for the backward pass when it ran again, 2 before."
        "\n\nhint: its results may depend on its inputs and Parameters only."
    )


@pytest.mark.parametrize(("options", "kind", "message"), [
    ({"mp": True}, ValueError, "recompute(mp=True): this option does not exist.\n\nhint: there are mp_comm_recompute, "
     "parallel_optimizer_comm_recompute, recompute_slice_activation."),
    ({"mp_comm_recompute": 3}, TypeError, "recompute(mp_comm_recompute=3): expected a bool, got int."),
    ({"use_reentrant": 3}, TypeError, "recompute(use_reentrant=3): expected a bool, got int."),
    ({"context_fn": 3}, TypeError, "recompute(context_fn=3): expected a function that returns two contexts."),
])
def test_wrong_options(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        nn.ReLU().recompute(**options)
    assert str(caught.value) == message


def test_options_for_several_devices_are_taken() -> None:
    assert nn.ReLU().recompute(mp_comm_recompute=False, parallel_optimizer_comm_recompute=True) is None
    with pytest.raises(TypeError, match="expected a Cell"):
        ms.recompute(lambda x: x, Tensor(1.0))
