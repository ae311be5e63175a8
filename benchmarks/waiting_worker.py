#!/usr/bin/env python3
"""Trains an epoch of ResNet-18 when requested on standard input: `waiting_worker.py torchspore|mindspore|torch memory|files FOLDER`.

For benchmarks/threads.py two words may follow: the workers of the pipeline and the threads of operators, a number or `default` each.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import turns

BATCH, SIZE, WORKERS, PICTURES = 16, 64, 2, 512


def main() -> None:
    """Serve the epochs."""
    who, source, folder, *counts = sys.argv[1:]
    run = _torch(who, source, Path(folder)) if who == "torch" else _mindspore(who, source, Path(folder), *counts)
    turns.serve(run, lambda out: out)


def _mindspore(who: str, source: str, folder: Path, workers: str = str(WORKERS), threads: str = "default") -> Callable[[], Any]:
    if who == "torchspore":
        import torchspore

        torchspore.install()
    import mindspore as ms
    import mindspore.dataset as ds
    from mindspore import nn
    from programs import data
    from programs.resnet18 import ResNet18

    ms.set_context(mode=ms.GRAPH_MODE)
    if threads != "default":
        ms.set_context(runtime_num_threads=int(threads))
    if source == "files":
        worker_count = ds.config.get_num_parallel_workers() if workers == "default" else int(workers)
        dataset, _ = data.jpeg(folder, worker_count, SIZE, BATCH)
    else:
        images, labels = _in_memory()
        dataset = ds.NumpySlicesDataset({"image": images, "label": labels}, shuffle=False).batch(BATCH)
    net = ResNet18()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ms.train.Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    return lambda: model.train(1, dataset, dataset_sink_mode=False)


def _in_memory() -> tuple[np.ndarray, np.ndarray]:
    """Return random pictures and classes: a repeated fit of one batch would lead to very small numbers, which are slow."""
    random = np.random.RandomState(0)
    return random.randn(PICTURES, 3, SIZE, SIZE).astype(np.float32), random.randint(0, 4, PICTURES).astype(np.int32)


def _torch(_who: str, source: str, folder: Path) -> Callable[[], Any]:
    import resnet18
    import torch
    from handwritten import torch_step
    from programs import data_torch

    net, loss, optimizer, _ = resnet18.make(False, SIZE, BATCH)
    images, labels = map(torch.from_numpy, _in_memory())
    batches: Iterable[Any] = list(zip(images.split(BATCH), labels.long().split(BATCH)))
    if source == "files":
        torch.multiprocessing.set_sharing_strategy("file_system")
        batches, _ = data_torch.jpeg(folder, WORKERS, SIZE, BATCH)

    def epoch() -> None:
        for images, labels in batches:
            torch_step(net, loss, optimizer, (images, labels))()

    return epoch


if __name__ == "__main__":
    main()
