"""mindquantum 0.12.0: its modules import, and a layer with a simulated circuit trains in PyNative mode, which it requires."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from imported_packages import MATPLOTLIB
from module_imports import import_all, train_three_steps

PACKAGE = "mindquantum==0.12.0"
NEEDS = (*MATPLOTLIB, "psutil")
Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options
    yield "every module", "imports", lambda: import_all("mindquantum")
    yield "MQLayer", "training", lambda: {"told": f"losses in PyNative mode: {', '.join(f'{loss:.6f}' for loss in _circuit_losses())}"}


def _circuit_losses() -> list[float]:
    import mindspore as ms
    import numpy as np
    from mindquantum.core.circuit import Circuit  # type: ignore[import-not-found]
    from mindquantum.core.operators import Hamiltonian, QubitOperator  # type: ignore[import-not-found]
    from mindquantum.framework import MQLayer  # type: ignore[import-not-found]
    from mindquantum.simulator import Simulator  # type: ignore[import-not-found]
    from mindspore import nn

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_seed(42)
    circuit = Circuit().ry("a", 0).ry("b", 1).as_encoder() + Circuit().h(0).rx("c", 0).x(1, 0).rx("d", 1).as_ansatz()
    operator = Simulator("mqvector", 2).get_expectation_with_grad(Hamiltonian(QubitOperator("Z0 Z1")), circuit)
    net = MQLayer(operator)
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), learning_rate=0.1))
    return train_three_steps(step, ms.Tensor(np.array([[0.1, 0.4]], np.float32)))
