"""mindaudio 0.3.0: its modules import, and a small speaker network trains in both modes."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from imported_packages import MATPLOTLIB
from module_imports import compare_modes, import_all, train_three_steps

PACKAGE = "mindaudio==0.3.0"
NEEDS = (*MATPLOTLIB, "easydict", "tqdm", "wget", "mir_eval", "decorator", "Levenshtein", "rapidfuzz")
Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options
    yield "every module", "imports", lambda: import_all("mindaudio")
    yield "EcapaTDNN", "training", lambda: compare_modes(_speaker_losses)


def _speaker_losses(mode: int) -> list[float]:
    import mindspore as ms
    import numpy as np
    from mindaudio.models.ecapatdnn import EcapaTDNN  # type: ignore[import-not-found]
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=mode)
    ms.set_seed(1)
    net = EcapaTDNN(
        8, lin_neurons=4, channels=(16, 16, 16, 16, 48), attention_channels=8, res2net_scale=4, se_channels=8, global_context=False,
    )

    class Loss(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def construct(self, features: Any, speakers: Any) -> Any:
            return ops.cross_entropy(self.net(features).reshape(2, 4), speakers)

    draw = np.random.RandomState(0)
    features = Tensor(draw.rand(2, 24, 8).astype(np.float32))
    step = nn.TrainOneStepCell(Loss(), nn.Adam(net.trainable_params(), 1e-3)).set_train()
    return train_three_steps(step, features, Tensor([1, 3], ms.int32))
