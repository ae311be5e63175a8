#!/usr/bin/env python3
"""Run benchmarks and write docs/performance.md: `python benchmarks/report.py [--only graph,cache] [OPTIONS OF THE BENCHMARKS]`.

Each benchmark has a part of the page, with the command that wrote it; `--only` does not change the other parts.
"""
from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import graph
import summary
import torch

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
BENCHMARKS = (
    "graph", "generation", "control", "parts", "cache", "lanes", "kernels", "tuning", "precision", "memory", "sparse", "recompute",
    "debug_level", "save_graphs", "whole", "mlp", "lenet", "resnet18", "gpt", "idiom", "beside", "dispatch", "imports", "first_step",
    "tiers", "context", "data", "waiting", "threads", "maintenance", "interop", "parallel", "zero", "server", "tensor_parallel",
    "planning", "searching", "predicted",
)
ON_REQUEST = ("beside",)
"""Benchmarks that run only if `--only` names them: they need a second tree."""
ORDER = {f"graph-{net.name}": at for at, net in enumerate(graph.NETS)} | {"graph-overhead": len(graph.NETS)}
HEAD = """# Performance

Written by `benchmarks/report.py`; do not edit. Contenders alternate in one run; a ratio is computed within each round. *torch eager* is the
step as people write it by hand, in a process without torchspore. *Same malloc thresholds* is the same step in a process that keeps freed
memory, as torchspore's engine does (`TORCHSPORE_MALLOC=0` disables this). Real MindSpore 2.10, if a table contains it, runs in a separate
process on the same cores; its figures vary most. torchspore has its C++ short paths (`torchspore doctor --build`), which every installation
has after its first program of more than 10 seconds, if a C++ compiler is there.
"""
TITLES = {
    "cache": "compile cache", "context": "calls of the context", "server": "parameter server", "planning": "plans",
    "searching": "search for strategies", "predicted": "predicted and measured steps",
}
"""Titles of parts whose output has none, by the name of the benchmark."""


def main() -> None:
    """Run the requested benchmarks, each in a separate process, and put their tables into the page."""
    arguments = sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(f"{__doc__}\nBenchmarks: {', '.join(BENCHMARKS)}")
        return
    names = tuple(name for name in BENCHMARKS if name not in ON_REQUEST)
    if "--only" in arguments:
        position = arguments.index("--only")
        names = tuple(arguments[position + 1].split(","))
        del arguments[position:position + 2]
    subprocess.run([sys.executable, "-m", "torchspore", "doctor", "--build"], check=True, stdout=subprocess.DEVNULL)
    for name in names:
        for part, options in _runs(name, _options_of(name, arguments)):
            process = subprocess.run([sys.executable, str(HERE / f"{name}.py"), *options], capture_output=True, text=True)
            if process.returncode:
                raise SystemExit(f"benchmarks/{name}.py: {process.stderr.strip().splitlines()[-1]}")
            print(process.stdout, flush=True)
            put(name, part, options, process.stdout)
    subprocess.run([sys.executable, str(HERE.parent / "tools/generate.py"), "performance"], check=True)      # the Chinese page


def _runs(name: str, options: list[str]) -> list[tuple[str, list[str]]]:
    """Return the runs of a benchmark, each as the part of the page that it makes and its options: one part for each net of graph.py."""
    if name != "graph":
        return [(name, options)]
    nets = [net.name for net in graph.NETS] + ["overhead"]
    if "--nets" in options:
        position = options.index("--nets")
        nets = options[position + 1].split(",")
        options = options[:position] + options[position + 2:]
    return [(f"graph-{net}", [*options, "--nets", net]) for net in nets]


def put(name: str, part: str, options: list[str], text: str) -> None:
    """Put the output of a benchmark into its part of the page, and write the summary again."""
    shown = " ".join("PYTHON" if before in ("--oracle", "--jax") else word for before, word in zip(["", *options], options))
    text = text.strip()
    tables = text.replace("###", "##") if "###" in text else f"## {TITLES.get(part, part)}\n\n```text\n{text}\n```"
    machine = f"{os.cpu_count()} cores ({platform.machine()}), torch {torch.__version__}, Python {platform.python_version()}"
    command = f"python benchmarks/{name}.py {shown}".strip()
    parts = _parts()
    parts[part] = f"<!-- {part} -->\nMade by `{command}` on {machine}.\n\n{tables}\n"
    ordered = sorted(parts, key=lambda key: (BENCHMARKS.index(key.partition("-")[0]), ORDER.get(key, 0)))
    PAGE.write_text("\n".join([HEAD, *(parts[key] for key in ordered)]), encoding="utf-8")
    summary.main()


def _parts() -> dict[str, str]:
    """Return the parts of the page by their names."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    pieces = re.split(r"^<!-- ([\w-]+) -->\n", text, flags=re.MULTILINE)[1:]
    return {name: f"<!-- {name} -->\n{piece.rstrip()}\n" for name, piece in zip(pieces[::2], pieces[1::2])}


def _options_of(name: str, arguments: list[str]) -> list[str]:
    """Return the options that a benchmark declares: `--oracle PYTHON` goes only to those that compare with real MindSpore."""
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    declared = source + (HERE / "turns.py").read_text(encoding="utf-8") if "turns.arguments(" in source else source
    options: list[str] = []
    words = iter(arguments)
    for word in words:
        option = [word] if word in ("--quick", "--no-compile") else [word, next(words, "")]
        options += option if f'"{word}"' in declared else []
    return options


if __name__ == "__main__":
    main()
