"""Training scripts that are ported: their head, a training, the comparison."""
from __future__ import annotations

from pathlib import Path

from torchspore.port import complete_port

HEAD = """import numpy as np
import mindspore as ms
from mindspore import Model, Tensor, nn, ops
from mindspore import dataset as ds
from mindspore.train import Accuracy, Callback, CheckpointConfig, LearningRateScheduler, LossMonitor, ModelCheckpoint, TimeMonitor


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Dense(6, 3)

    def construct(self, x):
        return self.head(ops.tanh(self.norm(self.dense(x))))


def rows():
    random = np.random.RandomState(1)
    for _ in range(24):
        yield random.randn(4).astype(np.float32), random.randint(0, 3)


net = Net()
loss_fn = nn.CrossEntropyLoss()
random = np.random.RandomState(2)
pictures, labels = random.randn(24, 4).astype(np.float32), random.randint(0, 3, 24).astype(np.int32)
"""
MODEL = """optimizer = {optimizer}
dataset = ds.NumpySlicesDataset((pictures, labels), ["picture", "label"]).batch(8)
model = Model(net, loss_fn, optimizer, metrics={{"accuracy"}})
model.train(2, dataset, callbacks={callbacks})
"""


def ported(tmp_path: Path, text: str) -> complete_port.Outcome:
    """Return the port of a script."""
    path = tmp_path / "train.py"
    path.write_text(HEAD + text, encoding="utf-8")
    return complete_port.port_file(str(path), with_script=True)


def assert_verified(outcome: complete_port.Outcome) -> None:
    assert not outcome.ported.problems and not outcome.ported.by_hand, (outcome.ported.problems, outcome.ported.by_hand)
    assert outcome.verdicts and all(verdict.is_equal and verdict.steps == 3 for verdict in outcome.verdicts), outcome.verdicts
