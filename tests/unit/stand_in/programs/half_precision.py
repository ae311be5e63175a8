"""Prints as JSON what normalization layers of each dtype give, forward and backward: `half_precision.py DEVICE MODE`; the device executes late."""
from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from typing import Any

import torchspore

torchspore.install()

# ruff: noqa: E402
import mindspore as ms
import numpy as np
import stand_in
from mindspore import Tensor, nn

LAYERS = {
    "LayerNorm": lambda dtype: nn.LayerNorm((3,), dtype=dtype),
    "LayerNorm with float32 parameters": lambda dtype: nn.LayerNorm((3,)).to_float(dtype),
    "GroupNorm": lambda dtype: nn.GroupNorm(2, 16, dtype=dtype),
    "BatchNorm": lambda dtype: nn.BatchNorm2d(16, dtype=dtype),
    "BatchNorm with float32 parameters": lambda dtype: nn.BatchNorm2d(16),
    "InstanceNorm": lambda dtype: nn.InstanceNorm2d(16),
}
VALUES = np.random.RandomState(0).randn(4, 16, 3, 3).astype(np.float32)


def row(layer: nn.Cell, dtype: Any) -> list[Any]:
    """Return the loss, the gradients and the statistics that training moves."""
    layer.set_train()
    gradient = ms.value_and_grad(lambda x: (layer(x).astype(ms.float32) ** 3).sum(), 0, layer.trainable_params())
    loss, (of_input, of_parameters) = gradient(Tensor(VALUES).astype(dtype))
    statistics = [parameter for parameter in layer.get_parameters() if parameter.name.startswith("moving")]
    tensors = [loss, of_input, *of_parameters, *statistics]
    return [[str(t.dtype), t.astype(ms.float32).asnumpy().reshape(-1)[:32].tolist()] for t in tensors]


def main(device: str, mode: str) -> None:
    if device == "GPU":
        stand_in.begin()
    ms.set_context(device_target=device, mode=int(mode))
    with stand_in.late_execution() if device == "GPU" else nullcontext():
        rows = {f"{name}, {dtype}": row(make(dtype), dtype) for name, make in LAYERS.items() for dtype in (ms.float16, ms.bfloat16, ms.float32)}
    print(json.dumps({"rows": rows, "faults": stand_in.faults}))


if __name__ == "__main__":
    main(*sys.argv[1:])
