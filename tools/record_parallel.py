#!/usr/bin/env python3
"""Runs the cases of tests/parallel_cases.py by two processes of real MindSpore and writes their weights into tests/parity/records.

    tools/record_parallel.py --python .oracle/bin/python

Beside the weights of each rank stands how many AllReduce the graph of the step has. MindSpore's msrun starts the processes.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "parity" / "records" / "parallel.npz"
sys.path.insert(0, str(ROOT / "tests"))


def work(folder: Path) -> None:
    """One rank: all cases, each in the modes that it has."""
    import mindspore as ms
    import numpy as np
    import parallel_cases
    from mindspore.communication import get_rank, init

    assert not hasattr(ms, "__torchspore__"), "this is torchspore; records come from real MindSpore"
    ms.set_context(device_target="CPU")
    init()
    rank, found = get_rank(), {}
    graphs = folder / f"graphs-{rank}"                        # MindSpore keeps the first path that it is given
    ms.set_context(mode=0, save_graphs=2, save_graphs_path=str(graphs))
    for name in parallel_cases.CASES:
        for mode in parallel_cases.IN_ONE_MODE.get(name, (0, 1)):
            before = set(graphs.glob("**/graph_build*.ir"))
            for key, value in parallel_cases.run(name, mode, rank).items():
                found[f"{name}/{mode}/{rank}/{key}"] = value
            counts = [file.read_text().count("AllReduce(") for file in set(graphs.glob("**/graph_build*.ir")) - before]
            if mode == 0 and counts:
                found[f"{name}/{mode}/{rank}/AllReduce"] = np.array(max(counts))
    np.savez(folder / f"rank_{rank}.npz", **found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, default=ROOT / ".oracle" / "bin" / "python", help="the Python that has mindspore 2.10")
    parser.add_argument("--port", type=int, default=18400)
    parser.add_argument("--into", type=Path, dest="work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.work)
        return 0
    import numpy as np

    programs = arguments.python.absolute().parent
    with tempfile.TemporaryDirectory() as temporary:
        command = [
            str(programs / "msrun"), "--worker_num", "2", "--local_worker_num", "2", "--master_port", str(arguments.port), "--join", "True",
            "--log_dir", f"{temporary}/logs", str(Path(__file__).resolve()), "--into", temporary,
        ]
        environment = {**os.environ, "GLOG_v": "3", "PATH": f"{programs}:{os.environ['PATH']}"}
        if subprocess.run(command, cwd=temporary, env=environment).returncode != 0:
            for log in Path(temporary, "logs").glob("worker_*.log"):
                print(log.read_text()[-3000:])
            return 1
        found: dict[str, np.ndarray] = {}
        for file in sorted(Path(temporary).glob("rank_*.npz")):
            found.update(np.load(file))
    np.savez_compressed(RECORD, **found)
    print(f"{RECORD.relative_to(ROOT)}: {len(found)} arrays")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
