"""Records the weights after the trainings of tests/support/parallel_cases.py in two processes of real MindSpore: parallel.npz.

    tools/record.py parallel --python .oracle/bin/python

The record also has the number of AllReduce in the graph of each rank's step.
"""
from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from recorders import oracle

RECORD = oracle.RECORDS / "parallel.npz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subject."""
    parser.add_argument("--port", type=int, default=18400)


def record_inside(arguments: argparse.Namespace) -> int:
    """Run all cases as one rank, each in the modes that it has."""
    ms = oracle.mindspore()
    from mindspore.communication import get_rank, init
    from support import parallel_cases

    ms.set_context(device_target="CPU")
    init()
    rank = get_rank()
    arrays: dict[str, Any] = {}
    folder = Path.cwd()
    graphs = folder / f"graphs-{rank}"                        # MindSpore keeps the first path that it receives
    ms.set_context(mode=0, save_graphs=2, save_graphs_path=str(graphs))
    for name in parallel_cases.CASES:
        for mode in parallel_cases.SAME_ONLY_IN_MODE.get(name, (0, 1)):
            before = set(graphs.glob("**/graph_build*.ir"))
            for key, value in parallel_cases.run(name, mode, rank).items():
                arrays[f"{name}/{mode}/{rank}/{key}"] = value
            counts = [file.read_text().count("AllReduce(") for file in set(graphs.glob("**/graph_build*.ir")) - before]
            if mode == 0 and counts:
                arrays[f"{name}/{mode}/{rank}/AllReduce"] = np.array(max(counts))
    np.savez(folder / f"rank_{rank}.npz", **arrays)
    return 0


def record(arguments: argparse.Namespace) -> int:
    """Start the two ranks and join their arrays."""
    arrays: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        if oracle.run_two_workers(arguments, folder, port=arguments.port, environment={"GLOG_v": "3"}) != 0:
            for log in oracle.worker_logs(folder).values():
                print(log[-3000:])
            return 1
        for file in sorted(Path(folder).glob("rank_*.npz")):
            arrays.update(np.load(file))
    np.savez_compressed(RECORD, **arrays)
    print(f"{RECORD.relative_to(oracle.ROOT)}: {len(arrays)} arrays")
    return 0
