"""`precompile_only`: a call compiles, runs nothing, gives None and keeps no memory."""
from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support.processes import Run

import torchspore
from torchspore.cli import explain
from torchspore.context import effects

Program = Callable[..., Run]

PROGRAM = """
import mindspore as ms
from mindspore import Tensor, nn
net = nn.Dense(2, 2)
print(net(Tensor([[1.0, 2.0]])) is None)
"""


@pytest.fixture(autouse=True)
def only_compiled() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE, precompile_only=True)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, precompile_only=False)


class Trains(nn.Cell):
    """A step with dropout, batch norm and an optimizer: all that a run would leave marks on."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.body = nn.SequentialCell(nn.Dense(width, width), nn.BatchNorm1d(width), nn.Dropout(p=0.5))
        self.step = nn.TrainOneStepCell(nn.WithLossCell(self.body, nn.MSELoss()), nn.Adam(self.body.trainable_params()))
        self.step.set_train()

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return self.step(x, y)


def data(width: int = 8) -> tuple[Tensor, Tensor]:
    return Tensor(np.ones((4, width), np.float32)), Tensor(np.zeros((4, width), np.float32))


def state(net: nn.Cell) -> list[bytes]:
    return [p.asnumpy().tobytes() for p in net.get_parameters()] + [
        torch.get_rng_state().numpy().tobytes(), repr(random.getstate()).encode(), repr(np.random.get_state()).encode(),
    ]


def test_a_call_compiles_and_changes_nothing() -> None:
    net = Trains()
    before = state(net)
    assert net(*data()) is None
    assert state(net) == before
    assert len(torchspore.graphs(net)) == 1


def test_the_compiled_graph_serves_the_runs_that_follow() -> None:
    net = Trains()
    net(*data())
    graph = torchspore.graphs(net)[0]
    ms.set_context(precompile_only=False)
    first = [p.asnumpy().copy() for p in net.trainable_params()]
    assert net(*data()).shape == ()
    assert torchspore.graphs(net) == [graph] and graph.runs == 1
    assert any((a != p.asnumpy()).any() for a, p in zip(first, net.trainable_params()))


def test_functions_and_gradients_give_none_too() -> None:
    net = nn.Dense(3, 3)
    assert ms.jit(lambda x: x * 2)(Tensor([1.0])) is None
    assert ops.value_and_grad(net, None, net.trainable_params())(Tensor(np.ones((2, 3), np.float32))) is None


def test_what_can_not_be_captured_does_not_run_either() -> None:
    ran = []

    class Prints(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            print("runs")
            ran.append(1)
            return x

    assert Prints()(Tensor([1.0])) is None
    assert not ran
    assert any("Prints" in line for line in effects.notes()["calls that run in parts"])


def test_no_memory_of_the_size_of_parameters_or_activations_stays() -> None:
    net, arguments = Trains(256), data(256)
    net(*data(256))                                     # what torch keeps for itself on a first trace
    gc.collect()
    before = tensor_bytes()
    other = Trains(256)
    bytes_added = tensor_bytes() - before
    assert other(*arguments) is None
    gc.collect()
    assert tensor_bytes() - before <= bytes_added


def tensor_bytes() -> int:
    """Bytes of all tensors that Python can reach and that have memory."""
    seen = {}
    for thing in gc.get_objects():
        if type(thing) in (torch.Tensor, torch.nn.Parameter) and thing.device.type == "cpu":
            storage = thing.untyped_storage()
            seen[storage.data_ptr()] = storage.nbytes()
    return sum(seen.values())


TESTS = Path(__file__).parents[2]

MEMORY = """
from support.memory_use import rise
import mindspore as ms
from mindspore import Tensor, nn, ops
ms.set_context(mode=ms.GRAPH_MODE, precompile_only={only})
class Net(nn.Cell):
    def construct(self, x):
        return ops.relu(ops.exp(x.broadcast_to((64, 1 << 20))) + 1).sum()
nn.ReLU()(Tensor([[1.0]]))
x = ops.ones((1, 1 << 20))
with rise() as peak:
    Net()(x)
print(peak.kib // 1024)
"""


@pytest.mark.parametrize(("only", "least", "most"), [(True, 0, 64), (False, 72, 2048)])
def test_no_activation_is_ever_computed(run: Program, tmp_path: Path, only: bool, least: int, most: int) -> None:
    (tmp_path / "one.py").write_text(MEMORY.format(only=only))
    ran = run("run", "one.py", extra={"PYTHONPATH": str(TESTS)})
    assert least <= int(ran.out) <= most, "MiB that the peak rose by; an activation has 256"


def test_pynative_runs_and_explain_says_that_it_has_no_effect() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE, precompile_only=False)
    ms.set_context(precompile_only=True)
    assert nn.ReLU()(Tensor([1.0])) is not None
    assert [row[3] for row in explain.rows() if row[0] == "precompile_only"] == ["no effect here: PYNATIVE_MODE compiles no graph"]


@pytest.mark.parametrize(("mode", "message", "outcome"), [
    ("GRAPH_MODE", "True\n", "applied: calls in GRAPH_MODE compile, run nothing and return None"),
    ("PYNATIVE_MODE", "False\n", "no effect here: PYNATIVE_MODE compiles no graph"),
])
def test_the_environment_switches_it_on(run: Program, tmp_path: Path, mode: str, message: str, outcome: str) -> None:
    (tmp_path / "one.py").write_text(PROGRAM)
    ran = run("explain", "one.py", extra={"MS_DEV_PRECOMPILE_ONLY": "1", "TORCHSPORE_FORCE_MODE": mode})
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(message) and outcome in ran.out


def test_strict_mode_refuses_it_in_pynative(run: Program, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(PROGRAM)
    extra = {"MS_DEV_PRECOMPILE_ONLY": "1", "TORCHSPORE_STRICT": "1"}
    refused = run("run", "one.py", extra=extra)
    assert refused.code == 1 and refused.err.endswith(
        "precompile_only: no effect here: PYNATIVE_MODE compiles no graph, and TORCHSPORE_STRICT=1 makes that an error.\n\n"
        "hint: leave precompile_only at its default here, or unset TORCHSPORE_STRICT.\n"
    )
    assert run("run", "one.py", extra={**extra, "TORCHSPORE_FORCE_MODE": "GRAPH_MODE"}).out == "True\n"
