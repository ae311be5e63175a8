"""Runs benchmarks and writes docs/performance.md: `python benchmarks/report.py [--only graph,cache] [OPTIONS OF THE BENCHMARKS]`.

Each benchmark has a part of the page, with the command that made it; `--only` leaves the other parts as they are.
"""
from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import graph
import torch

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
BENCHMARKS = (
    "graph", "control", "parts", "cache", "lanes", "kernels", "tuning", "precision", "memory", "sparse", "recompute", "debug_level",
    "save_graphs", "mlp", "lenet", "resnet18", "gpt", "idiom", "beside", "dispatch", "imports", "first_step", "tiers", "context", "data",
    "waiting", "threads", "maintenance", "interop", "parallel", "zero", "server", "tensor_parallel", "planning", "searching", "predicted",
)
ASKED = ("beside",)
"""What runs only where `--only` names it: it needs another tree."""
ORDER = {f"graph-{net.name}": at for at, net in enumerate(graph.NETS)} | {"graph-overhead": len(graph.NETS)}
HEAD = """# Performance

Written by `benchmarks/report.py`; do not edit. Contenders alternate in one run; a ratio is computed within each round. *torch eager* is the
step as people write it by hand, in a process without torchspore. *Same malloc thresholds* is the same step in a process that keeps freed
memory, as torchspore's engine does (`TORCHSPORE_MALLOC=0` disables this). Real MindSpore 2.10, if a table contains it, runs in a separate
process on the same cores; its figures vary most.
"""


def main() -> None:
    """Runs the benchmarks that are asked for, each in a process of its own, and puts their tables into the page."""
    arguments = sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(f"{__doc__}\nBenchmarks: {', '.join(BENCHMARKS)}")
        return
    wanted = tuple(name for name in BENCHMARKS if name not in ASKED)
    if "--only" in arguments:
        at = arguments.index("--only")
        wanted = tuple(arguments[at + 1].split(","))
        del arguments[at:at + 2]
    for name in wanted:
        for part, given in _runs(name, _given(name, arguments)):
            ended = subprocess.run([sys.executable, str(HERE / f"{name}.py"), *given], capture_output=True, text=True)
            if ended.returncode:
                raise SystemExit(f"benchmarks/{name}.py: {ended.stderr.strip().splitlines()[-1]}")
            print(ended.stdout, flush=True)
            put(name, part, given, ended.stdout)


def _runs(name: str, given: list[str]) -> list[tuple[str, list[str]]]:
    """What a benchmark is run with, by the part of the page that it makes: one part for each net of graph.py."""
    if name != "graph":
        return [(name, given)]
    nets = [net.name for net in graph.NETS] + ["overhead"]
    if "--nets" in given:
        at = given.index("--nets")
        nets = given[at + 1].split(",")
        given = given[:at] + given[at + 2:]
    return [(f"graph-{net}", [*given, "--nets", net]) for net in nets]


def put(name: str, part: str, given: list[str], text: str) -> None:
    """Puts what a benchmark printed into its part of the page."""
    shown = " ".join("PYTHON" if before in ("--oracle", "--jax") else word for before, word in zip(["", *given], given))
    text = text.strip()
    tables = text.replace("###", "##") if "###" in text else f"## {part}\n\n```text\n{text}\n```"
    machine = f"{os.cpu_count()} cores ({platform.machine()}), torch {torch.__version__}, Python {platform.python_version()}"
    command = f"python benchmarks/{name}.py {shown}".strip()
    parts = _parts()
    parts[part] = f"<!-- {part} -->\nMade by `{command}` on {machine}.\n\n{tables}\n"
    ordered = sorted(parts, key=lambda key: (BENCHMARKS.index(key.partition("-")[0]), ORDER.get(key, 0)))
    PAGE.write_text("\n".join([HEAD, *(parts[key] for key in ordered)]), encoding="utf-8")


def _parts() -> dict[str, str]:
    """The parts that the page has, by their names."""
    found = re.split(r"^<!-- ([\w-]+) -->\n", PAGE.read_text(encoding="utf-8") if PAGE.exists() else "", flags=re.MULTILINE)[1:]
    return {name: f"<!-- {name} -->\n{text.rstrip()}\n" for name, text in zip(found[::2], found[1::2])}


def _given(name: str, arguments: list[str]) -> list[str]:
    """The arguments that a benchmark takes: `--jax`, `--nets` and `--quick` are for graph.py alone, context.py wants the oracle alone."""
    found: list[str] = []
    words = iter(arguments)
    for word in words:
        pair = [word] if word in ("--quick", "--no-compile") else [word, next(words, "")]
        is_taken = name == "graph" if word in ("--jax", "--nets", "--quick") else name != "context" or word == "--oracle"
        found += pair if is_taken else []
    return found


if __name__ == "__main__":
    main()
