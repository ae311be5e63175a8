"""Trains from a data pipeline on the stand-in, in the late mode, and prints as JSON the losses, what Python waited for, and the faults."""
from __future__ import annotations

import gc
import json
import sys
from typing import Any

import torchspore

torchspore.install()

# ruff: noqa: E402
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import stand_in
from mindspore import hal, nn

BATCHES, SIZE = 6, 16
ROWS = np.random.RandomState(0).randn(BATCHES * SIZE, 64).astype(np.float32)
TARGETS = np.random.RandomState(1).randn(BATCHES * SIZE, 10).astype(np.float32)


def rows() -> Any:
    """Return a pipeline of six batches."""
    return ds.NumpySlicesDataset((ROWS, TARGETS), ["x", "target"], shuffle=False).batch(SIZE)


def train(device: str, mode: int) -> dict[str, Any]:
    """Return the losses of two epochs, the waits and transfers of the last step, and the faults."""
    ms.set_context(device_target=device, mode=mode)
    ms.set_seed(1)
    stand_in.faults.clear()
    stand_in.events.clear()
    with stand_in.late_execution():
        net = nn.SequentialCell(nn.Dense(64, 32), nn.ReLU(), nn.Dense(32, 10))
        optimizer = nn.Adam(net.trainable_params(), 1e-2)
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
        losses = []
        for _ in range(2):
            iterator = iter(rows().create_tuple_iterator(num_epochs=1))
            losses.append(step(*next(iterator)))
            with stand_in.counted() as count:
                losses += [step(x, target) for x, target in iterator]
        values = [float(loss) for loss in losses]
        del net, step, losses, iterator, optimizer
        gc.collect()
        if device == "GPU":
            hal.synchronize()
    return {"losses": values, "waits": count["waits"], "to_device": count["to_device"], "faults": list(stand_in.faults),
            "events": list(stand_in.events)}


if __name__ == "__main__":
    stand_in.begin()
    print(json.dumps([train(sys.argv[1], mode) for mode in (0, 1)]))
