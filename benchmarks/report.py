#!/usr/bin/env python3
"""Run benchmarks and write a page: `python benchmarks/report.py [--page measurements] [--only graph,cache] [OPTIONS OF THE BENCHMARKS]`.

docs/performance.md compares torchspore with other frameworks, docs/measurements.md shows the costs and gains of its features. A benchmark
has a part of one page, with the command that wrote it; `--only` does not change the other parts. Without `--only` all parts of the page are
written again, and the head of the page states the command and the time. A part whose benchmark fails stays as it is.
"""
from __future__ import annotations

import argparse
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
DOCS = HERE.parent / "docs"
PAGES = {
    "performance": (
        "graph", "generation", "whole", "whole_zoo", "mlp", "lenet", "resnet18", "gpt", "memory", "dispatch", "imports", "first_step",
        "tiers", "data", "interop", "parallel", "zero", "tensor_parallel",
    ),
    "measurements": (
        "control", "parts", "idiom", "cache", "lanes", "kernels", "tuning", "precision", "sparse", "recompute", "debug_level",
        "save_graphs", "maintenance", "context", "waiting", "threads", "beside", "server", "planning", "searching", "predicted",
    ),
}
"""The benchmarks of each page in docs."""
ON_REQUEST = ("beside", "threads", "whole_zoo")
"""Benchmarks that run only if `--only` names them: they need a second tree or the model zoo, or concern defaults of torchspore alone."""
NETS_ON_REQUEST = ("resnet18-64",)
"""Nets of graph.py that run only if `--nets` names them: ResNet-50 has the same operators, and resnet18.py measures PyNative mode."""
MOST_ROUNDS = {"data": 2, "whole": 2, "whole_zoo": 2, "first_step": 2, "waiting": 2}
"""The maximum of `--rounds` for benchmarks of which a round takes minutes."""
FIXED_OPTIONS = {
    **{name: ["--no-compile"] for name in ("mlp", "lenet", "resnet18", "gpt")},        # graph.py compares these nets with torch.compile
    "cache": ["branches"], "kernels": ["--nets", "elementwise"], "tuning": ["--nets", "elementwise", "--budget", "8"],
    "searching": ["--only", "GPT, 12 layers"], "zero": ["--ranks", "2"], "predicted": ["--picture", "docs/guides/images/predicted.svg"],
}
"""Options that a benchmark always has, mostly because its other cases would take longer than the page allows: an hour for all parts."""
WITHOUT_ORACLE = ("waiting",)
"""Benchmarks that report.py runs without MindSpore, because its epochs take minutes."""
ORDER = {f"graph-{net.name}": at for at, net in enumerate(graph.NETS)} | {"graph-overhead": len(graph.NETS)}
PERFORMANCE = """# Performance

Written by `benchmarks/report.py`; do not edit. Contenders alternate in one run; a ratio is computed within each round. *torch eager* is the
step as people write it by hand, in a process without torchspore. *Same malloc thresholds* is the same step in a process that keeps freed
memory, as torchspore's engine does (`TORCHSPORE_MALLOC=0` disables this). Real MindSpore 2.10, if a table contains it, runs in a separate
process on the same cores; its figures vary most. torchspore has its C++ short paths (`torchspore doctor --build`), which every installation
has after its first program of more than 10 seconds, if a C++ compiler is there. [Measurements](measurements.md) shows the costs and gains
of single features.
"""
MEASUREMENTS = """# Measurements of features

Written by `benchmarks/report.py --page measurements`; do not edit. Each table shows the cost or the gain of a feature. Cases alternate in
one run; a ratio is computed within each round. [Performance](performance.md) compares torchspore with other frameworks.
"""
HEADS = {"performance": PERFORMANCE, "measurements": MEASUREMENTS}
TITLES = {
    "cache": "compile cache", "context": "calls of the context", "server": "parameter server", "planning": "plans",
    "searching": "search for strategies", "predicted": "predicted and measured steps",
}
"""Titles of parts whose output has none, by the name of the benchmark."""


def main() -> None:
    """Run the requested benchmarks, each in a separate process, and put their tables into the page."""
    lists = "\n".join(f"Benchmarks of {page}: {', '.join(names)}" for page, names in PAGES.items())
    parser = argparse.ArgumentParser(
        usage="%(prog)s [--page PAGE] [--only NAME,NAME] [OPTIONS OF THE BENCHMARKS]", description=__doc__, epilog=lists,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )
    parser.add_argument("--page", choices=PAGES, default="performance")
    parser.add_argument("--only", metavar="NAME,NAME", help="benchmarks of any page")
    options, arguments = parser.parse_known_args()
    page, only = options.page, options.only
    names = tuple(only.split(",")) if only else tuple(name for name in PAGES[page] if name not in ON_REQUEST)
    subprocess.run([sys.executable, "-m", "torchspore", "doctor", "--build"], check=True, stdout=subprocess.DEVNULL)
    started = time.monotonic()
    results = {part: _run(name, part, options) for name in names for part, options in _runs(name, _options_of(name, arguments))}
    failed = [part for part, succeeded in results.items() if not succeeded]
    if not only:
        parts = {name: text for name, text in _parts(page).items() if name in {*results, *ON_REQUEST}}
        write_page(page, parts, _describe_run(page, arguments, time.monotonic() - started, failed))
    subprocess.run([sys.executable, str(HERE.parent / "tools/generate.py"), "performance"], check=True)      # the Chinese pages
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def page_of(name: str) -> str:
    """Return the page that has the part of a benchmark."""
    return next(page for page, names in PAGES.items() if name in names)


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


def _describe_run(page: str, arguments: list[str], seconds: float, failed: list[str]) -> str:
    options = arguments if page == "performance" else ["--page", page, *arguments]
    command = f"python benchmarks/report.py {_hide_paths(options)}".strip()
    text = f"`{command}` wrote the complete page on {_date()} in {seconds / 60:.0f} minutes."
    return f"{text} Parts that failed and are older: {', '.join(failed)}." if failed else text


def _date() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def _runs(name: str, options: list[str]) -> list[tuple[str, list[str]]]:
    """Return the runs of a benchmark, each as the part of the page that it makes and its options: one part for each net of graph.py."""
    if name != "graph":
        return [(name, options)]
    nets = [net.name for net in graph.NETS if net.name not in NETS_ON_REQUEST] + ["overhead"]
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
    page = page_of(name)
    parts = _parts(page)
    parts[part] = f"<!-- {part} -->\nMade by `{command}` on {machine}, on {_date()} in {seconds:.0f} s.\n\n{tables}\n"
    write_page(page, parts, _last_complete_run(page))


def _hide_paths(options: list[str]) -> str:
    hidden = {"--oracle": "PYTHON", "--jax": "PYTHON", "--zoo": "DIR"}
    return shlex.join(hidden.get(before, word) for before, word in zip(["", *options], options))


def write_page(page: str, parts: dict[str, str], complete_run: str) -> None:
    """Write a page from its parts, with the sentence about its last complete run; docs/performance.md has a summary."""
    ordered = sorted(parts, key=lambda key: (PAGES[page].index(key.partition("-")[0]), ORDER.get(key, 0)))
    head = f"{HEADS[page]}\n{complete_run}\n" if complete_run else HEADS[page]
    _path(page).write_text("\n".join([head, *(parts[key] for key in ordered)]), encoding="utf-8")
    if page == "performance":
        summary.main()


def _path(page: str) -> Path:
    return DOCS / f"{page}.md"


def _last_complete_run(page: str) -> str:
    """Return the sentence of a page about the run that wrote all of it; an empty string if there is none."""
    match = re.search(r"^`python benchmarks/report\.py.*$", _text_of(page), flags=re.MULTILINE)
    return match[0] if match else ""


def _parts(page: str) -> dict[str, str]:
    """Return the parts of a page by their names."""
    pieces = re.split(r"^<!-- ([\w-]+) -->\n", _text_of(page), flags=re.MULTILINE)[1:]
    return {name: f"<!-- {name} -->\n{piece.rstrip()}\n" for name, piece in zip(pieces[::2], pieces[1::2])}


def _text_of(page: str) -> str:
    return _path(page).read_text(encoding="utf-8") if _path(page).exists() else ""


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
