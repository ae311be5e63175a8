#!/usr/bin/env python3
"""Compares this tree of torchspore with another one, such as an earlier commit, in turns within one run.

    git worktree add /tmp/before HEAD~1
    python benchmarks/beside.py --other /tmp/before/src [--nets mlp,lenet,resnet18,gpt,add] [--how PyNative,O0,O1]

On a machine with other work, set TURNS_CLOCK=processor to count processor time.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import turns

THIS_TREE = Path(__file__).resolve().parent.parent / "src"
SIZES = {"resnet18": {"size": 64}}


def main() -> None:
    """Print a table for each net and mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", required=True, type=Path, help="the `src` of the other tree")
    parser.add_argument("--nets", default="mlp,lenet,resnet18,gpt")
    parser.add_argument("--how", default="PyNative,O0,O1")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.4, help="how long one turn takes")
    options = parser.parse_args()
    trees = {"other": options.other.resolve(), "this": THIS_TREE}
    for net in options.nets.split(","):
        for how in options.how.split(","):
            with tempfile.TemporaryDirectory() as folder:
                processes = {name: worker(net, how, tree, f"{folder}/{name}") for name, tree in trees.items()}
                try:
                    turns.compare(f"{net}, {how}", {name: process.seconds for name, process in processes.items()}, "other",
                                  options.seconds, options.rounds)
                finally:
                    for process in processes.values():
                        process.close()


def worker(net: str, how: str, tree: Path, kernels: str) -> turns.Worker:
    """Start a process that runs steps of a net with the torchspore of a tree and an empty cache of compiled kernels."""
    path = os.pathsep.join(filter(None, (str(tree), os.environ.get("PYTHONPATH"))))
    return turns.Worker(sys.executable, "spore_worker.py", net, "step", json.dumps(SIZES.get(net, {})), how, environment={
        "PYTHONPATH": path, "TORCHINDUCTOR_CACHE_DIR": kernels,
    })


if __name__ == "__main__":
    main()
