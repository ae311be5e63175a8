"""Worker processes of a DataLoader: each reads the batches of its tasks, and has a WorkerInfo."""
from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.generator import manual_seed
from torchspore.mindspore.common.seed import set_seed
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.dataset.dataloader.collate import mapped
from torchspore.mindspore.dataset.dataloader.fetcher import Fetcher
from torchspore.mindspore.dataset.engine.processes import Processes
from torchspore.mindspore.dataset.engine.workers import Workers

END = object()
"""Placeholder for a batch when a worker has no more."""


class WorkerInfo:
    """A worker process's `id`, `num_workers`, `seed` and `dataset`; immutable."""

    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError(message(f"WorkerInfo.{name} = {value!r:.40}", "what is only read", hint="keep it in a variable of the data set"))

    def __repr__(self) -> str:
        return "WorkerInfo: {" + ", ".join(f"{name}: {value}" for name, value in vars(self).items()) + "}"


class _Worker:
    """The worker that this process is."""

    def __init__(self) -> None:
        self.info: WorkerInfo | None = None


_WORKER = _Worker()


def get_worker_info() -> WorkerInfo | None:
    """Return the WorkerInfo of this worker process of a DataLoader; None in the main process."""
    return _WORKER.info


class _Server:
    """The main loop of a worker process: a task (epoch, indices) yields ("batch", data), ("end", None) or ("error", text)."""

    def __init__(self, fetcher: Fetcher, number: int, count: int, seed: int, prepare: Callable[[int], None] | None) -> None:
        self._fetcher, self._number, self._count, self._seed, self._prepare = fetcher, number, count, seed, prepare
        self._epoch: int | None = None

    def __call__(self, task: tuple[int, Any]) -> tuple[str, Any]:
        try:
            if self._epoch is None:
                self._begin()
            if self._epoch != task[0]:
                self._epoch = task[0]
                self._fetcher.reset()
            return "batch", mapped_tensors(_sent, self._fetcher.fetch(task[1]))
        except StopIteration:
            return "end", None
        except Exception as error:
            return "error", f"DataLoader worker {self._number} caught {type(error).__name__} with message:\n{traceback.format_exc()}"

    def _begin(self) -> None:
        seed = self._seed + self._number
        random.seed(seed)
        set_seed(seed & 0xFFFFFFFF)
        manual_seed(seed)
        np.random.seed(seed & 0xFFFFFFFF)
        _WORKER.info = WorkerInfo(id=self._number, num_workers=self._count, seed=seed, dataset=self._fetcher.dataset)
        if self._prepare is not None:
            self._prepare(self._number)


class _Sent:
    """A Tensor for transfer between processes: its array goes through shared memory."""

    def __init__(self, tensor: Tensor) -> None:
        self.is_bfloat16 = tensor.dtype == mstype.bfloat16
        self.array = (tensor.astype(mstype.float32) if self.is_bfloat16 else tensor).asnumpy()

    def tensor(self) -> Tensor:
        """Return the Tensor."""
        tensor = Tensor.from_numpy(self.array) if self.array.ndim else Tensor(self.array)
        return tensor.astype(mstype.bfloat16) if self.is_bfloat16 else tensor


def _sent(leaf: Any) -> Any:
    return _Sent(leaf) if type(leaf) is Tensor else leaf


def _received(leaf: Any) -> Any:
    return leaf.tensor() if isinstance(leaf, _Sent) else leaf


def mapped_tensors(function: Callable[[Any], Any], data: Any) -> Any:
    """Apply `function` to each leaf of `data`; plain tuples stay tuples."""
    if type(data) is tuple:
        return tuple(mapped_tensors(function, value) for value in data)
    if type(data) is list:
        return [mapped_tensors(function, value) for value in data]
    return mapped(function, data)


class Pool:
    """`count` worker processes, each with a thread that sends its tasks in order; answers arrive in any order."""

    def __init__(self, fetcher: Fetcher, count: int, method: str | None, seed: int, prepare: Callable[[int], None] | None) -> None:
        self._processes = [
            Processes(1, _Server(fetcher, number, count, seed, prepare), f"DataLoader worker {number}", _described, method=method)
            for number in range(count)
        ]
        self._threads = [Workers(1, "torchspore-loader") for _ in range(count)]
        self._answers: SimpleQueue[tuple[int, int, Any]] = SimpleQueue()

    def ask(self, worker: int, epoch: int, order: int, indices: Any) -> None:
        """Send the indices of one batch to a worker."""
        self._threads[worker].submit(self._run, worker, epoch, order, indices)

    def _run(self, worker: int, epoch: int, order: int, indices: Any) -> None:
        try:
            answer = self._processes[worker].call((epoch, indices))
        except Exception as error:           # the process has ended
            answer = "ended", error
        self._answers.put((epoch, order, answer))

    def answer(self, epoch: int, timeout: float) -> tuple[int, Any]:
        """Return the next answer of this epoch: (order, batch or END). Raises RuntimeError for a worker's error and after `timeout` s."""
        while True:
            try:
                answered_epoch, order, (kind, value) = self._answers.get(timeout=timeout or None)
            except Empty:
                hint = "a sample takes longer than that; write a larger timeout, or 0 to wait for ever"
                raise RuntimeError(message(f"DataLoader(timeout={timeout})", "a batch within that time", hint=hint)) from None
            if answered_epoch != epoch:               # of an epoch that ended early
                continue
            if kind == "error":
                raise RuntimeError(value)
            if kind == "ended":
                raise value
            return order, END if kind == "end" else mapped_tensors(_received, value)

    def close(self) -> None:
        """End the processes and threads."""
        for processes in self._processes:
            processes.close()
        for threads in self._threads:
            threads.close()


def _described(task: tuple[int, Any]) -> str:
    return f"samples {task[1]}"
