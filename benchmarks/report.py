#!/usr/bin/env python3
"""Run benchmarks and write docs/performance.md: `python benchmarks/report.py [--only graph,cache] [OPTIONS OF THE BENCHMARKS]`.

Each benchmark has a part of the page, with the command that wrote it; `--only` does not change the other parts. Without `--only` all parts
are written again, and the head of the page states the command and the time. A part whose benchmark fails stays as it is.
"""
from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import graph
import summary
import torch

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
BENCHMARKS = (
    "graph", "generation", "control", "parts", "cache", "lanes", "kernels", "tuning", "precision", "memory", "sparse", "recompute",
    "debug_level", "save_graphs", "whole", "whole_zoo", "mlp", "lenet", "resnet18", "gpt", "idiom", "beside", "dispatch", "imports",
    "first_step", "tiers", "context", "data", "waiting", "threads", "maintenance", "interop", "parallel", "zero", "server",
    "tensor_parallel", "planning", "searching", "predicted",
)
ON_REQUEST = ("beside", "threads", "whole_zoo")
"""Benchmarks that run only if `--only` names them: they need a second tree or the model zoo, or concern defaults of torchspore alone."""
MOST_ROUNDS = {"tiers": 2, "whole": 2, "whole_zoo": 2, "first_step": 2, "waiting": 2}
"""The maximum of `--rounds` for benchmarks of which a round takes minutes."""
FIXED_OPTIONS = {
    **{name: ["--no-compile"] for name in ("mlp", "lenet", "resnet18", "gpt")},        # graph.py compares these nets with torch.compile
    "cache": ["branches"], "kernels": ["--nets", "elementwise"], "tuning": ["--nets", "elementwise", "--budget", "8"],
    "searching": ["--only", "GPT, 12 layers"], "predicted": ["--picture", "docs/guides/images/predicted.svg"],
}
"""Options that a benchmark always has, mostly because its other cases would take longer than the page allows: an hour for all parts."""
WITHOUT_ORACLE = ("waiting",)
"""Benchmarks that report.py runs without MindSpore, because its epochs take minutes."""
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
    is_complete = "--only" not in arguments
    if not is_complete:
        position = arguments.index("--only")
        names = tuple(arguments[position + 1].split(","))
        del arguments[position:position + 2]
    subprocess.run([sys.executable, "-m", "torchspore", "doctor", "--build"], check=True, stdout=subprocess.DEVNULL)
    started = time.monotonic()
    results = {part: _run(name, part, options) for name in names for part, options in _runs(name, _options_of(name, arguments))}
    failed = [part for part, succeeded in results.items() if not succeeded]
    if is_complete:
        drop_parts_except(set(results) | set(ON_REQUEST))
        write_page(_parts(), _describe_run(arguments, time.monotonic() - started, failed))
    subprocess.run([sys.executable, str(HERE.parent / "tools/generate.py"), "performance"], check=True)      # the Chinese page
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _run(name: str, part: str, options: list[str]) -> bool:
    """Run a benchmark and put its output into the page. Return whether it succeeded."""
    started = time.monotonic()
    process = subprocess.run([sys.executable, str(HERE / f"{name}.py"), *options], capture_output=True, text=True)
    seconds = time.monotonic() - started
    if process.returncode:
        print(f"{part}: failed after {seconds:.0f} s: {process.stderr.strip().splitlines()[-1:]}", file=sys.stderr, flush=True)
        return False
    print(f"{process.stdout}\n{part}: {seconds:.0f} s", flush=True)
    put(name, part, options, process.stdout, seconds)
    return True


def _describe_run(arguments: list[str], seconds: float, failed: list[str]) -> str:
    command = f"python benchmarks/report.py {_hide_paths(arguments)}".strip()
    text = f"`{command}` wrote the complete page on {_date()} in {seconds / 60:.0f} minutes."
    return f"{text} Parts that failed and are older: {', '.join(failed)}." if failed else text


def _date() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


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


def put(name: str, part: str, options: list[str], text: str, seconds: float) -> None:
    """Put the output of a benchmark into its part of the page, and write the summary again."""
    text = text.strip()
    tables = text.replace("###", "##") if "###" in text else f"## {TITLES.get(part, part)}\n\n```text\n{text}\n```"
    machine = f"{os.cpu_count()} cores ({platform.machine()}), torch {torch.__version__}, Python {platform.python_version()}"
    command = f"python benchmarks/{name}.py {_hide_paths(options)}".strip()
    parts = _parts()
    parts[part] = f"<!-- {part} -->\nMade by `{command}` on {machine}, on {_date()} in {seconds:.0f} s.\n\n{tables}\n"
    write_page(parts, _last_complete_run())


def _hide_paths(options: list[str]) -> str:
    hidden = {"--oracle": "PYTHON", "--jax": "PYTHON", "--zoo": "DIR"}
    return shlex.join(hidden.get(before, word) for before, word in zip(["", *options], options))


def write_page(parts: dict[str, str], complete_run: str) -> None:
    """Write the page from its parts, with the sentence about its last complete run, and its summary."""
    ordered = sorted(parts, key=lambda key: (BENCHMARKS.index(key.partition("-")[0]), ORDER.get(key, 0)))
    head = f"{HEAD}\n{complete_run}\n" if complete_run else HEAD
    PAGE.write_text("\n".join([head, *(parts[key] for key in ordered)]), encoding="utf-8")
    summary.main()


def _last_complete_run() -> str:
    """Return the sentence of the page about the run that wrote all of it; an empty string if there is none."""
    match = re.search(r"^`python benchmarks/report\.py.*$", PAGE.read_text(encoding="utf-8") if PAGE.exists() else "", flags=re.MULTILINE)
    return match[0] if match else ""


def drop_parts_except(names: set[str]) -> None:
    """Remove parts of benchmarks that no longer exist."""
    write_page({name: text for name, text in _parts().items() if name in names}, _last_complete_run())


def _parts() -> dict[str, str]:
    """Return the parts of the page by their names."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    pieces = re.split(r"^<!-- ([\w-]+) -->\n", text, flags=re.MULTILINE)[1:]
    return {name: f"<!-- {name} -->\n{piece.rstrip()}\n" for name, piece in zip(pieces[::2], pieces[1::2])}


def _options_of(name: str, arguments: list[str]) -> list[str]:
    """Return the options that a benchmark declares: `--oracle PYTHON` goes only to those that compare with real MindSpore."""
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    takes_all = "turns.arguments(" in source or "training.run(" in source
    declared = source + (HERE / "turns.py").read_text(encoding="utf-8") if takes_all else source
    options: list[str] = []
    words = iter(arguments)
    for word in words:
        option = [word] if word in ("--quick", "--no-compile") else [word, next(words, "")]
        if word == "--oracle" and name in WITHOUT_ORACLE:
            continue
        if word == "--rounds":
            option[1] = str(min(int(option[1]), MOST_ROUNDS.get(name, sys.maxsize)))
        options += option if f'"{word}"' in declared else []
    return options + FIXED_OPTIONS.get(name, [])


if __name__ == "__main__":
    main()
