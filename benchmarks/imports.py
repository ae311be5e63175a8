#!/usr/bin/env python3
"""The time of imports in fresh processes in turns, with compiled modules in the cache. `python benchmarks/imports.py`."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import turns

CODE = {
    "import torch": "import torch",
    "import torchspore": "import torchspore",
    "import mindspore through the alias (with torch)": "import torchspore; torchspore.install(); import mindspore",
}


def timed_import(code: str) -> turns.Seconds:
    """Return a function that times n imports, each in a separate process, without the start of Python."""
    timed = f"import time; start = time.perf_counter(); {code}; print(time.perf_counter() - start)"

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
