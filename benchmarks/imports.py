"""What importing costs, in fresh processes by turns. `python benchmarks/imports.py`."""
from __future__ import annotations

import subprocess
import sys

import turns

CODE = {
    "import torch": "import torch",
    "import torchspore": "import torchspore",
    "import mindspore through the alias (with torch)": "import torchspore; torchspore.install(); import mindspore",
}


def importing(code: str) -> turns.Seconds:
    """Times n imports, each in a process of its own, without the start of Python."""
    timed = f"import time; start = time.perf_counter(); {code}; print(time.perf_counter() - start)"

    def seconds(count: int) -> float:
        return sum(
            float(subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout) for _ in range(count)
        )

    return seconds


def main() -> None:
    """Prints the table."""
    options = turns.arguments(__doc__ or "")
    turns.compare(
        "imports", {name: importing(code) for name, code in CODE.items()}, "import torch", 1e-6, options.rounds, "ms", "an import",
    )


if __name__ == "__main__":
    main()
