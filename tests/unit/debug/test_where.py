"""Which operator runs now is known alike in both modes, forward and backward, with numbers that are the same in each run."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from torchspore.engine.execution import current_operator


class PositionRecorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.follower = current_operator.Follower()
        self.found: list[current_operator.Position] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        position = self.follower.now(function._opname)
        if position is not None and (not self.found or self.found[-1] is not position):
            self.found.append(position)
        return function(*args, **(kwargs or {}))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc, self.relu = nn.Conv2d(1, 2, 3, weight_init="ones"), nn.Dense(32, 3, weight_init="ones"), nn.ReLU()

    def construct(self, x: Any) -> Any:
        x = self.relu(self.conv(x))
        return self.fc(x.reshape(2, -1)) + x.sum()


@pytest.fixture(autouse=True)
def followed() -> Iterator[None]:
    current_operator.follow(True)
    yield
    current_operator.follow(False)
    ms.set_context(mode=ms.PYNATIVE_MODE)


def positions_of_steps(mode: int, in_single_cell: bool) -> list[current_operator.Position]:
    ms.set_context(mode=mode)
    net, loss = Net(), nn.MSELoss()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    x, y = Tensor(np.ones((2, 1, 4, 4), np.float32)), Tensor(np.ones((2, 3), np.float32))
    if in_single_cell:
        step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    else:
        gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

        def step(x: Any, y: Any) -> Any:
            value, gradients = gradient(x, y)
            optimizer(gradients)
            return value

    with PositionRecorder() as recorder:
        for _ in range(2):
            step(x, y)
    return recorder.found


@pytest.mark.parametrize("in_single_cell", [True, False])
def test_names_lines_and_iterations_are_the_same_in_both_modes(in_single_cell: bool) -> None:
    eager, graph = (positions_of_steps(mode, in_single_cell) for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE))
    names = [(position.iteration, position.name) for position in eager]
    assert names == [(position.iteration, position.name) for position in graph]
    assert len(set(names)) == len(names)
    assert {iteration for iteration, _ in names} == {0, 1}
    before = "network-WithLossCell/_backbone-Net/" if in_single_cell else ""
    assert names[0] == (0, f"Default/{before}conv-Conv2d/Conv2D-op0")
    assert (1, f"Gradients/Default/{before}fc-Dense/Grad_Dense/DenseGrad-op0") in names
    assert (1, f"Default/{'optimizer-Momentum/' * in_single_cell}Momentum-op0") in names
    mine = [position for position in eager if position.operator in ("Conv2D", "Conv2DGrad")]
    assert all(position.line.partition(":")[0] == __file__ for position in mine) and len({position.line for position in mine}) == 1
    assert all(p.in_graph for p in graph if p.operator == "Conv2DGrad") and not any(p.in_graph for p in eager)
    assert all(position.is_gradient == position.operator.endswith("Grad") for position in eager if position.operator != "AddN")


def test_scopes_without_classes_are_the_same_in_both_modes_too() -> None:
    with ms.context.scope(reserve_class_name_in_scope=False, exec_order="bfs", memory_optimize_level="O1"):
        eager, graph = (positions_of_steps(mode, True) for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE))
    assert [position.name for position in eager] == [position.name for position in graph]
    assert eager[0].name == "Default/network/_backbone/conv/Conv2D-op0"


def test_rounds_of_a_loop_in_a_graph_are_separate_calls() -> None:
    class Halves(nn.Cell):
        def construct(self, x: Any) -> Any:
            while x.sum() > 1:
                x = x / 2
            return x

    ms.set_context(mode=ms.GRAPH_MODE)
    with PositionRecorder() as recorder:
        Halves()(Tensor(np.ones(4, np.float32)))
    assert [position.name for position in recorder.found if position.operator in ("Div", "RealDiv")] == [
        f"Default/{p.operator}-op{number}" for number, p in enumerate(p for p in recorder.found if p.operator in ("Div", "RealDiv"))]
    assert sum(position.operator in ("Div", "RealDiv") for position in recorder.found) == 2
