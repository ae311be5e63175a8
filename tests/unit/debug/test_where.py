"""Which operator runs now is known alike in both modes, forward and backward, with numbers that are the same in each run."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from torchspore.engine.core import current_operator


class Places(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.follower = current_operator.Follower()
        self.found: list[current_operator.Position] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        place = self.follower.now(function._opname)
        if place is not None and (not self.found or self.found[-1] is not place):
            self.found.append(place)
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


def places_of_steps(mode: int, one_cell: bool) -> list[current_operator.Position]:
    ms.set_context(mode=mode)
    net, loss = Net(), nn.MSELoss()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    x, y = Tensor(np.ones((2, 1, 4, 4), np.float32)), Tensor(np.ones((2, 3), np.float32))
    if one_cell:
        step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    else:
        gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

        def step(x: Any, y: Any) -> Any:
            value, gradients = gradient(x, y)
            optimizer(gradients)
            return value

    with Places() as places:
        for _ in range(2):
            step(x, y)
    return places.found


@pytest.mark.parametrize("one_cell", [True, False])
def test_names_lines_and_iterations_are_the_same_in_both_modes(one_cell: bool) -> None:
    eager, graph = (places_of_steps(mode, one_cell) for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE))
    names = [(place.iteration, place.name) for place in eager]
    assert names == [(place.iteration, place.name) for place in graph]
    assert len(set(names)) == len(names)
    assert {iteration for iteration, _ in names} == {0, 1}
    before = "network-WithLossCell/_backbone-Net/" if one_cell else ""
    assert names[0] == (0, f"Default/{before}conv-Conv2d/Conv2D-op0")
    assert (1, f"Gradients/Default/{before}fc-Dense/Grad_Dense/DenseGrad-op0") in names
    assert (1, f"Default/{'optimizer-Momentum/' * one_cell}Momentum-op0") in names
    mine = [place for place in eager if place.operator in ("Conv2D", "Conv2DGrad")]
    assert all(place.line.partition(":")[0] == __file__ for place in mine) and len({place.line for place in mine}) == 1
    assert all(place.in_graph for place in graph if place.operator == "Conv2DGrad") and not any(place.in_graph for place in eager)
    assert all(place.is_gradient == place.operator.endswith("Grad") for place in eager if place.operator != "AddN")


def test_scopes_without_classes_are_the_same_in_both_modes_too() -> None:
    with ms.context.scope(reserve_class_name_in_scope=False, exec_order="bfs", memory_optimize_level="O1"):
        eager, graph = (places_of_steps(mode, True) for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE))
    assert [place.name for place in eager] == [place.name for place in graph]
    assert eager[0].name == "Default/network/_backbone/conv/Conv2D-op0"


def test_rounds_of_a_loop_in_a_graph_are_calls_of_their_own() -> None:
    class Halves(nn.Cell):
        def construct(self, x: Any) -> Any:
            while x.sum() > 1:
                x = x / 2
            return x

    ms.set_context(mode=ms.GRAPH_MODE)
    with Places() as places:
        Halves()(Tensor(np.ones(4, np.float32)))
    assert [place.name for place in places.found if place.operator in ("Div", "RealDiv")] == [
        f"Default/{place.operator}-op{number}" for number, place in enumerate(p for p in places.found if p.operator in ("Div", "RealDiv"))]
    assert sum(place.operator in ("Div", "RealDiv") for place in places.found) == 2
