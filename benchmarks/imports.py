#!/usr/bin/env python3
"""The time of imports in fresh processes in turns, with compiled modules in the cache. `python benchmarks/imports.py`.

A header is the first lines of a typical program. It uses twenty names, because a module that loads a name at its first use would make the
import alone cheaper, and not the program. `TURNS_CLOCK=processor` counts the processor time of all threads.
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import turns

HEADER = "import torchspore; torchspore.install(); import mindspore as ms; from mindspore import nn, ops, Tensor, context"
NAMES = (
    "nn.Cell, nn.Dense, nn.Conv2d, nn.BatchNorm2d, nn.ReLU, nn.Dropout, nn.SequentialCell, nn.MSELoss, nn.CrossEntropyLoss, nn.Adam, "
    "ops.relu, ops.softmax, ops.matmul, ops.concat, ops.ReduceMean, ops.value_and_grad, ops.ones, ms.Parameter, ms.set_seed, ms.float32"
)
CODE = {
    "import torch": "import torch",
    "import torchspore": "import torchspore",
    "import mindspore through the alias (with torch)": "import torchspore; torchspore.install(); import mindspore",
    "a header with nn, ops and 20 names": f"{HEADER}; ({NAMES})",
    "the header, and mindspore.dataset": f"{HEADER}; ({NAMES}); import mindspore.dataset as ds",
}


def timed_import(code: str) -> turns.Seconds:
    """Return a function that times n imports, each in a separate process, without the start of Python."""
    clock = turns.CLOCK.__name__
    timed = f"import time; start = time.{clock}(); {code}; print(time.{clock}() - start)"

    def once() -> float:
        return float(subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout)

    once()                                                 # writes the compiled modules
    return lambda count: sum(once() for _ in range(count))


def main() -> None:
    """Print the table."""
    options = turns.arguments(__doc__ or "")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        contenders = {name: timed_import(code) for name, code in CODE.items()}
        turns.compare("imports", contenders, "import torch", 1e-6, options.rounds, "ms", "an import")


if __name__ == "__main__":
    main()
