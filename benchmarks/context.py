#!/usr/bin/env python3
"""The time of reading and writing the context, compared with real MindSpore if `--oracle PYTHON` names a Python that has it.

    benchmarks/context.py --oracle /path/to/python
"""
from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import timeit
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = {
    "get_context('mode')": ("context.get_context('mode')", 1.0),
    "set_context(mode=0)": ("context.set_context(mode=0)", 20.0),
    "set_context(mode=0, save_graphs=0)": ("context.set_context(mode=0, save_graphs=0)", None),
    "get_auto_parallel_context('parallel_mode')": ("context.get_auto_parallel_context('parallel_mode')", None),
    "STORE.graph_mode": ("store.graph_mode", None),
}
ROUNDS = 9


def measure(is_ours: bool) -> dict[str, list[float]]:
    """Return the microseconds of a call for each case and round; runs in the process that has the package."""
    if is_ours:
        sys.path.insert(0, str(ROOT / "src"))
        import torchspore
        import torchspore.engine
        from torchspore.context.store import STORE

        torchspore.install()
        space = {"store": STORE}
    else:
        space = {}
    import mindspore

    assert hasattr(mindspore, "__torchspore__") == is_ours, "the other MindSpore was imported"
    space["context"] = mindspore.context
    times = {}
    for name, (code, _) in CASES.items():
        if "store" in code and not is_ours:
            continue
        timer = timeit.Timer(code, globals=space)
        count = max(timer.autorange()[0] // 4, 1)
        times[name] = [seconds / count * 1e6 for seconds in timer.repeat(ROUNDS, count)]
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--oracle", help="the Python that has real MindSpore")
    parser.add_argument("--inside", choices=("ours", "oracle"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        print("RESULT" + json.dumps(measure(arguments.inside == "ours")))
        return 0
    ours = _run(sys.executable, "ours")
    theirs = _run(arguments.oracle, "oracle") if arguments.oracle else {}
    print(f"microseconds a call: median (min .. max) of {ROUNDS} rounds\n")
    print(f"{'':44}{'torchspore':>24}{'MindSpore':>24}   reach")
    slow = 0
    for name, (_, reach) in CASES.items():
        median = statistics.median(ours[name])
        slow += reach is not None and median >= reach
        verdict = f"< {reach:g} us: {'yes' if median < reach else 'NO'}" if reach else ""
        print(f"{name:44}{_shown(ours[name]):>24}{_shown(theirs.get(name)):>24}   {verdict}".rstrip())
    return 1 if slow else 0


def _run(python: str, which: str) -> dict[str, list[float]]:
    process = subprocess.run([python, __file__, "--inside", which], capture_output=True, text=True)
    if "RESULT" not in process.stdout:
        raise SystemExit(process.stderr)
    times: dict[str, list[float]] = json.loads(process.stdout.partition("RESULT")[2])
    return times


def _shown(rounds: list[float] | None) -> str:
    return "-" if not rounds else f"{statistics.median(rounds):.2f} ({min(rounds):.2f} .. {max(rounds):.2f})"


if __name__ == "__main__":
    raise SystemExit(main())
