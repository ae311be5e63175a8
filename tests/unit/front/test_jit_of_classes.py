"""`jit` of a class: the construct of its Cells runs as a graph; `jit` of a Cell takes the same options."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import pytest
from mindspore import Tensor, nn

from torchspore.graph import dispatch


def cell_class() -> Any:
    class Net(nn.Cell):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

        def construct(self, x: Any) -> Any:
            return x * self.factor

    return Net


@pytest.mark.parametrize("decorate", [ms.jit, ms.jit(capture_mode="bytecode"), ms.jit(jit_level="O1")])
def test_cells_of_a_decorated_class_run_as_graphs(decorate: Any) -> None:
    net_class = decorate(cell_class())
    assert isinstance(net_class, type) and issubclass(net_class, nn.Cell)
    for factor in (2.0, 3.0):                                            # each Cell has its attributes
        net = net_class(factor)
        assert float(net(Tensor(1.5))) == 1.5 * factor
        assert dispatch.graphs(net)


def test_a_cell_keeps_the_options() -> None:
    net = ms.jit(cell_class()(2.0), fullgraph=True)
    assert float(net(Tensor(1.5))) == 3.0
    assert net.construct._jit_config_ == ms.jit(lambda x: x, fullgraph=True)._jit_config_


def test_another_class_is_unchanged() -> None:
    class Plain:
        pass

    assert ms.jit(Plain) is Plain
