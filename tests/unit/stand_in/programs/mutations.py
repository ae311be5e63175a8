"""Faults in torchspore's own code: prints as JSON what the stand-in reports of a step whose code has one line of the table below changed."""
from __future__ import annotations

import torchspore

torchspore.install()

# ruff: noqa: E402
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mindspore as ms
import numpy as np
import offload
import rows
import stand_in
import torch
from mindspore import Tensor, hal, nn, ops

from torchspore.engine.devices import row_transfer, streams
from torchspore.engine.formulas import optimizers
from torchspore.engine.memory import backing_stores
from torchspore.mindspore.ops.program import composite

Report = Callable[[], Any]


@contextmanager
def changed(function: Any, old: str, new: str) -> Iterator[None]:
    """A block in which one piece of a function's source is another one."""
    function = inspect.unwrap(function)
    source = textwrap.dedent(inspect.getsource(function))
    lines_before = function.__code__.co_firstlineno - 1 + source[:source.index("def ")].count("\n")
    source = "\n" * lines_before + source[source.index("def "):]             # without decorators
    assert source.count(old) == 1, (function, source.count(old), old)
    names = dict(function.__globals__)
    exec(compile(source.replace(old, new), function.__code__.co_filename, "exec"), names)
    code, function.__code__ = function.__code__, names[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = code


def training_step() -> dict[str, Any]:
    """Return what the third step of a training does apart from computing, or its error."""
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 10))
    optimizer, loss_of = nn.Momentum(net.trainable_params(), 0.1, 0.9), nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    x, y = Tensor(np.ones((4, 8), np.float32)), Tensor(np.zeros(4, np.int32))
    try:
        for _ in range(3):
            with stand_in.counted() as count:
                _, gradients = gradient(x, y)
                optimizer(ops.clip_by_global_norm(gradients, 1.0))
    except RuntimeError as error:
        return {"error": str(error)}
    return {name: number for name, number in count.items() if name != "operators"}


def values_in_the_memory_of_the_host() -> list[str]:
    return offload.train({"offload_checkpoint": "cpu", "enable_pinned_mem": True}, 1)["faults"]  # type: ignore[no-any-return]


def rows_of_a_pipeline() -> list[str]:
    return rows.train("GPU", 1)["faults"]  # type: ignore[no-any-return]


def work_on_a_stream_of_the_program() -> list[str]:
    stand_in.faults.clear()
    with stand_in.late_execution():
        stream = hal.Stream()
        x = ops.ones((64,)) * 2
        stream.wait_stream(hal.current_stream())
        with hal.StreamCtx(stream):
            y = x + 1
        del x
        hal.synchronize()
        del y
    return list(stand_in.faults)


MUTATIONS: dict[str, tuple[Report, Any, str, str]] = {
    "a read of a value": (
        training_step, optimizers.momentum, "    _check_states(", "    float(gradients[0].sum())\n    _check_states("),
    "a copy to the host": (
        training_step, composite.clip_by_global_norm, "torch.clamp(norm, ", "torch.clamp(norm.cpu(), "),
    "a tensor of the host that is moved": (
        training_step, composite.clip_by_global_norm, "scale = clip_norm /", "scale = torch.tensor([clip_norm]).to(norm.device) /"),
    "an operand of the host": (
        training_step, composite.clip_by_global_norm, "scale = clip_norm /", "scale = torch.ones(1) /"),
    "a copy out that does not wait for the values": (
        values_in_the_memory_of_the_host, backing_stores.Host.move,
        "self.stream.wait_stream(self._module.current_stream(self.device))", "pass"),
    "a copy out on the stream of the program, whose end is marked on another one": (
        values_in_the_memory_of_the_host, backing_stores.Host.move, "with self._module.stream(self.stream):", "if True:"),
    "a copy back that does not wait for the copy out": (
        values_in_the_memory_of_the_host, backing_stores.Host.copied, "with self._module.stream(self.stream):", "if True:"),
    "values that are used before they are back": (
        values_in_the_memory_of_the_host, backing_stores.Host.wait, "current.wait_event(event)", "pass"),
    "memory that moves out is released": (
        values_in_the_memory_of_the_host, backing_stores.Host.move, "here.record_stream(self.stream)", "pass"),
    "memory that came back is released": (
        values_in_the_memory_of_the_host, backing_stores.Host.wait, "memory.record_stream(current)", "pass"),
    "rows that are used before they arrive": (
        rows_of_a_pipeline, row_transfer.RowTransfer.receive, "current.wait_event(sent.arrival)", "pass"),
    "memory of a row is released": (
        rows_of_a_pipeline, row_transfer.RowTransfer.receive, "value.record_stream(current)", "pass"),
    "memory on a stream of the program": (
        work_on_a_stream_of_the_program, streams._record, "value.record_stream(stream)", "pass"),
}

if __name__ == "__main__":
    ms.set_context(mode=ms.PYNATIVE_MODE)
    reports = (training_step, values_in_the_memory_of_the_host, rows_of_a_pipeline, work_on_a_stream_of_the_program)
    results = {report.__name__: report() for report in reports}
    for name, (report, function, old, new) in MUTATIONS.items():
        with changed(function, old, new):
            results[name] = report()
    print(json.dumps(results))
