"""mindflow 0.3.0, published as mindflow-ascend: its modules import, and a network of it trains in both modes."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from imported_packages import MATPLOTLIB
from module_imports import compare_modes, import_all, train_three_steps

PACKAGE = "mindflow-ascend==0.3.0"
NEEDS = (*MATPLOTLIB, "easydict")
Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options
    yield "every module", "imports", lambda: import_all("mindflow")
    yield "FCSequential", "training", lambda: compare_modes(_network_losses)


def _network_losses(mode: int) -> list[float]:
    import mindspore as ms
    import numpy as np
    from mindflow.cell import FCSequential  # type: ignore[import-not-found]
    from mindspore import Tensor, nn

    ms.set_context(mode=mode)
    ms.set_seed(1)
    net = FCSequential(in_channels=2, out_channels=1, layers=4, neurons=16, residual=True, act="tanh")
    draw = np.random.RandomState(0)
    points, values = (Tensor(draw.rand(32, columns).astype(np.float32)) for columns in (2, 1))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-2)).set_train()
    return train_three_steps(step, points, values)
