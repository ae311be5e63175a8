"""Tuning: what a search over back end, layout, threads, blocking and limits of fusion gains, and what it takes.

    python benchmarks/tuning.py [--nets elementwise,mlp,gpt] [--budget 60] [--rounds 9]

Each way to search has a process and a tuning folder of its own; then a second process uses what was kept without a search, and takes
turns with the untuned program.
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


def serve(program: str, sizes: dict[str, int], how: str, told: Path) -> None:
    """Writes the seconds of the first call to a file, then does steps when it is asked to."""
    import mindspore as ms

    ms.set_context(mode=ms.GRAPH_MODE, **WAYS[how])
    ms.set_seed(1)
    step = importlib.import_module(f"programs.{program}").step(**sizes)
    started = time.perf_counter()
    step().asnumpy()
    told.write_text(json.dumps({"first": time.perf_counter() - started}))
    turns.serve(step, lambda out: out.asnumpy())


def table(title: str, program: str, sizes: dict[str, int], options: argparse.Namespace) -> None:
    """Prints the rows of one net."""
    with tempfile.TemporaryDirectory() as folder:

        def worker(place: int, how: str) -> turns.Elsewhere:
            return turns.Elsewhere(
                sys.executable, "tuning.py", "serve", program, json.dumps(sizes), how, f"{folder}/{place}.json", environment={
                    "TORCHSPORE_TUNING": f"{folder}/tuning{place}", "TORCHSPORE_TUNE_SECONDS": str(options.budget),
                    "TORCHINDUCTOR_CACHE_DIR": f"{folder}/kernels{place}",
                })

        for place, how in enumerate(WAYS):
            worker(place, how).close()
        workers = {how: worker(place, how) for place, how in enumerate(WAYS)}
        firsts = {how: json.loads(Path(f"{folder}/{place}.json").read_text())["first"] for place, how in enumerate(WAYS)}
        times = turns.taken({how: worker.seconds for how, worker in workers.items()}, options.seconds, options.rounds)
        for one in workers.values():
            one.close()
        for place, how in enumerate(WAYS):
            tried, seconds, found = _kept(Path(f"{folder}/tuning{place}/tuning.json"))
            gain = turns.ratio(times["untuned"], times[how]) if found or how == "untuned" else "nothing better found"
            print(f"| {title} | {how} | {statistics.median(times[how]) * 1e3:.3f} | {gain} | {tried} | {seconds:.0f} | {firsts[how]:.1f} |",
                  flush=True)


def _kept(path: Path) -> tuple[int, float, bool]:
    """How many ways the searches of a tuning file tried, their seconds, and whether one found something."""
    if not path.exists():
        return 0, 0.0, False
    entries = json.loads(path.read_text())["graphs"].values()
    return sum(e["tried"] for e in entries), sum(e["seconds"] for e in entries), any(e["plan"] is not None for e in entries)


def main() -> None:
    """Measures the nets that are asked for."""
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
