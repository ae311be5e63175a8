#!/usr/bin/env python3
"""Reads one epoch of a pipeline of `programs/data.py` or `programs/data_torch.py` for each request on standard input."""
from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import turns


def main() -> None:
    """Serve epochs: `data_worker.py torchspore|mindspore|torch PIPELINE WORKERS FOLDER`."""
    who, pipeline, workers, folder = sys.argv[1:]
    if who == "torchspore":
        import torchspore

        torchspore.install()
    if who == "torch":
        import torch

        torch.set_num_threads(1)
    pipelines = importlib.import_module("programs.data_torch" if who == "torch" else "programs.data")
    count = min(int(workers), os.cpu_count() or 1) if who == "mindspore" else int(workers)     # MindSpore refuses more
    dataset, _ = getattr(pipelines, pipeline)(Path(folder), count)
    rows = dataset if who == "torch" else dataset.create_tuple_iterator(output_numpy=True)

    def epoch() -> None:
        for _ in rows:
            pass

    turns.serve(epoch, lambda out: out)


if __name__ == "__main__":
    main()
