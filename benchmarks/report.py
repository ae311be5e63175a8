"""Runs all benchmarks and writes docs/performance.md.

`python benchmarks/report.py [--oracle PYTHON] [--jax PYTHON] [--quick] [--no-compile]`
"""
from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import torch

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
BENCHMARKS = ("graph", "mlp", "lenet", "resnet18", "gpt", "dispatch", "imports", "context")
HEAD = """# Performance

Made by `{command}` on {cores} cores ({machine}), torch {torch}, Python {python}. Do not edit.

Contenders take turns in one run; a ratio is taken within each round. *torch eager* is the step written by hand as people write it, in a
process that torchspore has not touched: it is the denominator. *Same malloc thresholds* is the same step in a process where freed memory
is kept, as torchspore's engine arranges it (`TORCHSPORE_MALLOC=0` turns that off), and says how much of the difference is that.
{oracle}"""

ORACLE = "Real MindSpore 2.10 runs in a process of its own on the same cores; the others rest meanwhile, but its figures vary most.\n"


def main() -> None:
    """Runs every benchmark in a process of its own and gathers the tables."""
    arguments = sys.argv[1:]
    oracle = ORACLE if "--oracle" in arguments else ""
    shown = " ".join("PYTHON" if before in ("--oracle", "--jax") else word for before, word in zip(["", *arguments], arguments))
    page = [HEAD.format(
        command=f"python benchmarks/report.py {shown}".strip(), cores=os.cpu_count(), machine=platform.machine(), torch=torch.__version__,
        python=platform.python_version(), oracle=oracle,
    )]  # fmt: skip
    for name in BENCHMARKS:
        given = _given(name, arguments)
        ended = subprocess.run([sys.executable, str(HERE / f"{name}.py"), *given], capture_output=True, text=True)
        if ended.returncode:
            raise SystemExit(f"benchmarks/{name}.py: {ended.stderr.strip().splitlines()[-1]}")
        print(ended.stdout, flush=True)
        text = ended.stdout.strip()
        page.append((text.replace("###", "##") if "###" in text else f"## {name}\n\n```text\n{text}\n```") + "\n")
    PAGE.write_text("\n".join(page), encoding="utf-8")


def _given(name: str, arguments: list[str]) -> list[str]:
    """The arguments that a benchmark takes: `--jax` and `--quick` are for graph.py alone, context.py wants the oracle alone."""
    found: list[str] = []
    words = iter(arguments)
    for word in words:
        pair = [word] if word in ("--quick", "--no-compile") else [word, next(words, "")]
        only = {"--jax": name == "graph", "--quick": name == "graph"}.get(word, name != "context" or word == "--oracle")
        found += pair if only else []
    return found


if __name__ == "__main__":
    main()
