"""Prints as JSON what operators give that must not depend on a kernel's refusal, and their waits: `late_kernels.py DEVICE MODE`.

An accelerator's kernel refuses an index after the operator has returned, and then all work of the process on the device is lost.
"""
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
from mindspore import Tensor, mint, nn, ops


def main(device: str, mode: str) -> None:
    if device == "GPU":
        stand_in.begin()
    ms.set_context(device_target=device, mode=int(mode))
    x, numbers, rows = Tensor(np.arange(6, dtype=np.float32).reshape(3, 2)), Tensor([-1, 0], ms.int32), Tensor([[-1, 0]], ms.int64)
    y, variance = x * 0.5, Tensor(np.linspace(0.0, 2.0, 6, dtype=np.float32).reshape(3, 2))
    embedding = nn.Embedding(3, 2, embedding_table=x)
    calls: dict[str, Any] = {
        "gather": lambda x: ops.gather(x, numbers, 0), "gather of columns": lambda x: ops.gather(x, numbers, 1),
        "gather_elements": lambda x: ops.gather_elements(x, 0, rows), "gather_d": lambda x: ops.gather_d(x, 0, rows),
        "index_select": lambda x: x.index_select(0, numbers), "mint.gather": lambda x: mint.gather(x, 0, rows),
        "Embedding": lambda x: embedding(numbers) * x[0, 1], "take": lambda x: x.take(numbers, 0), "x[...]": lambda x: x[numbers],
        "gaussian_nll_loss": lambda x: ops.gaussian_nll_loss(x, y, variance),
        "gaussian_nll_loss with one variance for each row": lambda x: ops.gaussian_nll_loss(x, y, variance[:, 0], full=True, reduction="none"),
    }
    results = {}
    with stand_in.late_execution() if device == "GPU" else nullcontext():
        for name, call in calls.items():
            function = ms.jit(call) if mode == "0" else call
            function(x)
            with stand_in.counted() as count:
                value = function(x)
            gradient = ms.grad(lambda x: call(x).sum())(x)
            results[name] = [value.asnumpy().tolist(), gradient.asnumpy().tolist(), count["waits"]]
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
