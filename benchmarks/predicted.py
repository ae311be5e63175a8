#!/usr/bin/env python3
"""Predicted and measured step times of strategies: 32 plans of an MLP on 2 and on 4 processes, with this machine's measured speeds.

    torchspore calibrate --processes 2 --out two.json && torchspore calibrate --processes 4 --out four.json
    python benchmarks/predicted.py --machine 2:two.json --machine 4:four.json [--picture docs/guides/images/predicted.svg]

Without --machine the speeds are measured first. Prints a row for each plan, and the rank correlation (Spearman).
"""
from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

PLANS = 12
"""Plans for each number of processes."""
STEPS = 9
_RESULT = "PREDICTED "


def strategies(count: int) -> dict[str, tuple[Any, Any]]:
    """Return the strategies of one product by name, for `count` processes."""
    single: dict[str, tuple[Any, Any]] = {
        "data": ((count, 1), (1, 1)), "columns": ((1, 1), (1, count)), "rows": ((1, count), (count, 1)), "whole": ((1, 1), (1, 1)),
    }
    if count % 2 == 0 and count > 2:
        half = count // 2
        single |= {"data, columns": ((half, 1), (1, 2)), "data, rows": ((half, 2), (2, 1)), "half data": ((half, 1), (1, 1))}
    return single


def plans(count: int) -> list[dict[str, Any]]:
    """Return random plans: batch, width, and the strategy of each of four products."""
    source = random.Random(count)
    names = list(strategies(count))
    plan_list = [{"batch": batch, "width": width, "layers": [name] * 4} for name, batch, width in (
        ("data", 1024, 256), ("data", 64, 1024), ("columns", 64, 1024), ("rows", 1024, 256), ("whole", 256, 512))]
    while len(plan_list) < PLANS:
        layers = [source.choice(names) for _ in range(4)]
        plan_list.append({"batch": source.choice((64, 256, 1024)), "width": source.choice((256, 512, 1024)), "layers": layers})
    return plan_list


def work(count: int, machine_file: str) -> None:
    """Run all plans in one process of `count`; process 0 prints predictions and medians."""
    import mindspore as ms
    import numpy as np
    from mindspore import nn, ops
    from mindspore.communication import get_rank, init

    import torchspore
    from torchspore.context import machines
    from torchspore.distributed.shard.search import costs

    machine = machines.machine_of(machine_file)
    ms.set_context(mode=ms.GRAPH_MODE)
    init()

    class Net(nn.Cell):
        def __init__(self, width: int, names: list[str]) -> None:
            super().__init__()
            table = strategies(count)
            data = np.random.default_rng(0).standard_normal((len(names), width, width)).astype(np.float32) * 0.02
            self.weights = ms.ParameterTuple([ms.Parameter(ms.Tensor(w), name=f"w{at}") for at, w in enumerate(data)])
            self.products = [ops.MatMul().shard(table[name]) for name in names]

        def construct(self, x: Any) -> Any:
            for product, weight in zip(self.products, self.weights):
                x = ops.relu(product(x, weight))
            return x.mean()

    for plan in plans(count):
        ms.reset_auto_parallel_context()
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", device_num=count)
        net = Net(plan["width"], plan["layers"])
        step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.01, 0.9)).set_train()
        x = ms.Tensor(np.ones((plan["batch"], plan["width"]), np.float32))
        times = []
        for _ in range(STEPS + 3):
            started = time.perf_counter()
            step(x).asnumpy()
            times.append(time.perf_counter() - started)
        cost = costs.of(torchspore.graphs(step)[0].split.local, machine)
        if get_rank() == 0:
            print(_RESULT + json.dumps({**plan, "count": count, "predicted": cost.seconds, "measured": statistics.median(times[3:]),
                                        "received": cost.received, "messages": cost.messages}), flush=True)


def run(count: int, machine_file: str) -> list[dict[str, Any]]:
    """Start the processes and return the results of process 0."""
    command = [str(Path(sys.executable).parent / "torchspore"), "workers", "-n", str(count), __file__, "--worker", str(count),
               machine_file]
    output = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if output.returncode:
        raise SystemExit(output.stdout[-3000:] + output.stderr[-3000:])
    lines = [line[line.index(_RESULT) + len(_RESULT):] for line in output.stdout.splitlines() if _RESULT in line]
    return [json.loads(line) for line in lines]


def correlation(results: list[dict[str, Any]]) -> float:
    """Return Spearman's rank correlation of predicted and measured times."""
    return float(spearmanr([result["predicted"] for result in results], [result["measured"] for result in results]).statistic)


def picture(results: list[dict[str, Any]], path: Path) -> None:
    """Write the scatter plot: predicted milliseconds from left to right, measured ones from bottom to top, both on a logarithmic scale."""
    size, margin = 480, 56
    values = [result[key] * 1e3 for result in results for key in ("predicted", "measured")]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def at(value: float) -> float:
        return margin + (math.log10(value) - low) / (high - low) * (size - 2 * margin)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" font-family="sans-serif" font-size="12">',
             f'<rect width="{size}" height="{size}" fill="white"/>',
             f'<line x1="{margin}" y1="{size - margin}" x2="{size - margin}" y2="{margin}" stroke="#999" stroke-dasharray="4"/>']
    for power in range(low, high + 1):
        mark = at(10.0**power)
        parts += [f'<text x="{mark}" y="{size - margin + 18}" text-anchor="middle">{10.0**power:g}</text>',
                  f'<text x="{margin - 8}" y="{size - mark + 4}" text-anchor="end">{10.0**power:g}</text>']
    parts += [f'<text x="{size / 2}" y="{size - 12}" text-anchor="middle">predicted, ms</text>',
              f'<text x="16" y="{size / 2}" transform="rotate(-90 16 {size / 2})" text-anchor="middle">measured, ms</text>']
    colours = {2: "#1f77b4", 4: "#d62728"}
    parts += [f'<circle cx="{at(r["predicted"] * 1e3):.1f}" cy="{size - at(r["measured"] * 1e3):.1f}" r="4" fill="{colours[r["count"]]}"/>'
              for r in results]
    for row, count in enumerate(sorted({result["count"] for result in results})):
        parts += [f'<circle cx="{margin + 12}" cy="{margin + 18 * row}" r="4" fill="{colours[count]}"/>',
                  f'<text x="{margin + 22}" y="{margin + 4 + 18 * row}">{count} processes</text>']
    path.write_text("\n".join((*parts, "</svg>", "")), "utf-8")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", action="append", default=[], metavar="N:FILE", help="the measured speeds with N processes")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    files = dict(item.split(":", 1) for item in options.machine)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (2, 4):
            machine_file = files.get(str(count)) or f"{folder}/{count}.json"
            if str(count) not in files:
                command = [str(Path(sys.executable).parent / "torchspore"), "calibrate", "--processes", str(count), "--out", machine_file]
                print(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0])
            results += run(count, machine_file)
    print(f"{'processes':>9} {'batch':>6} {'width':>6} {'predicted ms':>13} {'measured ms':>12}  strategies of four products")
    for result in sorted(results, key=lambda result: result["predicted"]):
        print(f"{result['count']:>9} {result['batch']:>6} {result['width']:>6} {result['predicted'] * 1e3:>13.2f} "
              f"{result['measured'] * 1e3:>12.2f}  {'; '.join(result['layers'])}")
    for count in (2, 4):
        chosen = [result for result in results if result["count"] == count]
        print(f"rank correlation of {len(chosen)} plans on {count} processes: {correlation(chosen):.3f}")
    print(f"rank correlation of all {len(results)} plans: {correlation(results):.3f}")
    if options.picture is not None:
        picture(results, options.picture)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(int(sys.argv[2]), sys.argv[3])
    else:
        main()
