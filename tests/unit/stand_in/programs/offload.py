"""Trains with values and optimizer state in the host's memory, in the late mode, and prints as JSON what moved and what went wrong."""
from __future__ import annotations

import gc
import json
import tempfile
from typing import Any

import torchspore

torchspore.install()

# ruff: noqa: E402
import mindspore as ms
import numpy as np
import stand_in
from mindspore import Tensor, hal, nn, ops

from torchspore.context.public import scope, set_offload_context
from torchspore.engine.memory import backing_stores

stand_in.begin()
ms.set_context(device_target="GPU")
ROWS = np.random.RandomState(0).randn(1024, 32).astype(np.float32)


class Block(nn.Cell):
    """One of a transformer's MLPs, with a way around."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm((32,)), nn.Dense(32, 64), nn.Dense(64, 32)

    def construct(self, x: Any) -> Any:
        return x + self.down(ops.gelu(self.up(self.norm(x))))


class Net(nn.Cell):
    """Five blocks and a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.SequentialCell(*[Block() for _ in range(5)])

    def construct(self, x: Any) -> Any:
        return (self.blocks(x) ** 2).mean()


def train(members: dict[str, Any] | None, mode: int) -> dict[str, Any]:
    """Return the losses of three steps, the faults, the waits of the last step and the bytes that moved out."""
    ms.set_seed(1)
    moved = backing_stores.totals.out
    stand_in.faults.clear()
    with scope(mode=mode, memory_offload="OFF" if members is None else "ON"), stand_in.late_execution():
        if members is not None:
            set_offload_context({"offload_path": tempfile.gettempdir(), **members})
        net = Net().set_train()
        step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-2)).set_train()
        x = Tensor(ROWS)
        losses = []
        for _ in range(3):
            with stand_in.counted() as count:
                losses.append(step(x))
        events = [event for event in stand_in.events if not event.startswith("to_")]
        values = [float(loss) for loss in losses]
        del net, step, losses
        gc.collect()
        hal.synchronize()
    moved = backing_stores.totals.out - moved
    return {"losses": values, "faults": list(stand_in.faults), "waits": count["waits"], "events": events, "moved": moved}


OPTIONS: dict[str, dict[str, Any] | None] = {
    "nothing": None,
    "values in pinned memory": {"offload_checkpoint": "cpu", "enable_pinned_mem": True},
    "values in other memory": {"offload_checkpoint": "cpu", "enable_pinned_mem": False},
    "values on disk": {"offload_checkpoint": "disk"},
    "little memory of the host, then disk": {"offload_checkpoint": "cpu", "offload_cpu_size": "0.0005GB"},
    "state of the optimizer": {"offload_param": "cpu"},
}

if __name__ == "__main__":
    print(json.dumps({f"{name}, mode {mode}": train(members, mode) for name, members in OPTIONS.items() for mode in (1, 0)}))
