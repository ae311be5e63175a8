#!/usr/bin/env python3
"""Tuning: gain and cost of a search over back end, layout, threads, blocking and limits of fusion.

    python benchmarks/tuning.py [--nets elementwise,mlp,gpt] [--budget 60] [--rounds 9]

Each kind of search has a separate process and tuning folder. Then a second process uses the stored result without a search, in turns with
the untuned program.
"""
from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import turns

NETS = {
    "elementwise": ("elementwise operators on 1024 x 1024, a softmax and a layer norm among them", "elementwise", {}),
    "mlp": ("MLP 784-512-512-10, batch 128, training step", "mlp", {}),
    "gpt": ("GPT of four layers, width 256, batch 8 x 128, training step", "gpt", {}),
}
WAYS = {
    "untuned": {}, "RL, whole graph": {"auto_tune_mode": "RL", "aoe_config": {"job_type": "1"}},
    "GA, whole graph": {"auto_tune_mode": "GA", "aoe_config": {"job_type": "1"}},
    "RL,GA, whole graph": {"auto_tune_mode": "RL,GA", "aoe_config": {"job_type": "1"}},
    "RL,GA, operators": {"auto_tune_mode": "RL,GA", "aoe_config": {"job_type": "2"}},
}
HEAD = """| net | search | ms a step | faster than untuned (median, min .. max) | ways tried | s of search | s, first step of the next run |
|---|---|---:|---|---:|---:|---:|"""


def serve(program: str, sizes: dict[str, int], how: str, report: Path) -> None:
    """Write the seconds of the first call to a file, then serve steps."""
    import mindspore as ms

    ms.set_context(mode=ms.GRAPH_MODE, **WAYS[how])
    ms.set_seed(1)
    step = importlib.import_module(f"programs.{program}").step(**sizes)
    started = time.perf_counter()
    step().asnumpy()
    report.write_text(json.dumps({"first": time.perf_counter() - started}))
    turns.serve(step, lambda out: out.asnumpy())


def table(title: str, program: str, sizes: dict[str, int], options: argparse.Namespace) -> None:
    """Print the rows of one net."""
    with tempfile.TemporaryDirectory() as folder:

        def worker(index: int, how: str) -> turns.Worker:
            return turns.Worker(
                sys.executable, "tuning.py", "serve", program, json.dumps(sizes), how, f"{folder}/{index}.json", environment={
                    "TORCHSPORE_TUNING": f"{folder}/tuning{index}", "TORCHSPORE_TUNE_SECONDS": str(options.budget),
                    "TORCHINDUCTOR_CACHE_DIR": f"{folder}/kernels{index}",
                })

        for index, how in enumerate(WAYS):
            worker(index, how).close()
        workers = {how: worker(index, how) for index, how in enumerate(WAYS)}
        firsts = {how: json.loads(Path(f"{folder}/{index}.json").read_text())["first"] for index, how in enumerate(WAYS)}
        times = turns.measure({how: worker.seconds for how, worker in workers.items()}, options.seconds, options.rounds)
        for process in workers.values():
            process.close()
        for index, how in enumerate(WAYS):
            tried, seconds, has_plan = _read_searches(Path(f"{folder}/tuning{index}/tuning.json"))
            gain = turns.ratio(times["untuned"], times[how]) if has_plan or how == "untuned" else "nothing better found"
            print(f"| {title} | {how} | {statistics.median(times[how]) * 1e3:.3f} | {gain} | {tried} | {seconds:.0f} | {firsts[how]:.1f} |",
                  flush=True)


def _read_searches(path: Path) -> tuple[int, float, bool]:
    """Return the number of candidates of the searches in a tuning file, their seconds, and whether a search was successful."""
    if not path.exists():
        return 0, 0.0, False
    entries = json.loads(path.read_text())["graphs"].values()
    return sum(e["tried"] for e in entries), sum(e["seconds"] for e in entries), any(e["plan"] is not None for e in entries)


def main() -> None:
    """Measure the selected nets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--budget", type=float, default=60.0, help="seconds that a search may take")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.4, help="how long one turn takes")
    options, _ = parser.parse_known_args()
    print(f"### Tuning: gain of `auto_tune_mode` and `aoe_config`, {options.budget:.0f} s a search\n\n{HEAD}", flush=True)
    for name in options.nets.split(","):
        table(*NETS[name], options)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        import torchspore

        torchspore.install()
        serve(sys.argv[2], json.loads(sys.argv[3]), sys.argv[4], Path(sys.argv[5]))
    else:
        main()
