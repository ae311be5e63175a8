"""Programs with a fault, each beside a correct one: prints as JSON what the stand-in reports of each."""
from __future__ import annotations

import gc
import json
from collections.abc import Callable
from typing import Any

import torchspore

torchspore.install()

# ruff: noqa: E402
import mindspore as ms
import numpy as np
import stand_in
import torch
from mindspore import Tensor, hal, nn, ops

from torchspore.engine.devices import streams

stand_in.begin()
gc.freeze()                                   # collections skip the 400,000 objects of the imports, and take a third of the time
ms.set_context(device_target="GPU", mode=ms.PYNATIVE_MODE)
HERE = torch.device("spore", 0)
MODULE = torch.get_device_module("spore")


def error_of(act: Callable[[], Any]) -> str:
    """Return the text of the RuntimeError that a call raises, or an empty text."""
    try:
        act()
    except RuntimeError as error:
        return str(error)
    return ""


def count_of(act: Callable[[], Any]) -> dict[str, int]:
    """Return what the second call does to the device, without its operators."""
    act()
    with stand_in.counted() as count:
        act()
    return {name: number for name, number in count.items() if name != "operators"}


def faults_of(act: Callable[[], Any]) -> list[str]:
    """Return the faults of a program that runs in the late mode."""
    stand_in.faults.clear()
    with stand_in.late_execution():
        act()
        gc.collect()
        hal.synchronize()
    return list(stand_in.faults)


def operands(is_faulty: bool) -> str:
    x, y = torch.ones(3, device=HERE), torch.ones(3, device="cpu" if is_faulty else HERE)
    return error_of(lambda: x + y)


def operands_of_two_accelerators(is_faulty: bool) -> str:
    x, y = torch.ones(3, device=HERE), torch.ones(3, device=torch.device("spore", 1) if is_faulty else HERE)
    return error_of(lambda: torch.cat([x, y]))


def make_step(extra: Callable[[Any, Any], Any]) -> Callable[[], Any]:
    """Return a training step that also does something with its input and loss."""
    net = nn.Dense(4, 2)
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
    x = Tensor(np.ones((3, 4), np.float32))

    def step() -> Any:
        loss, gradients = gradient(x)
        optimizer(gradients)
        return extra(x, loss)

    return step


def synchronization(is_faulty: bool) -> dict[str, int]:
    return count_of(make_step(lambda x, loss: loss if is_faulty and loss > 0 else loss * 2))


def shape_that_depends_on_values(is_faulty: bool) -> dict[str, int]:
    return count_of(make_step(lambda x, loss: x[x > 0] if is_faulty else ops.where(x > 0, x, loss)))


def values_that_a_mask_writes(is_faulty: bool) -> dict[str, int]:
    def write(x: Any, loss: Any) -> Any:
        copy = x.copy()
        if is_faulty:
            copy[x > 0] = loss.expand(copy.size)
        copy[x > 0] = loss
        copy[x[:, 0] > 0] = loss * 2
        return copy.masked_fill(x > 0, loss)

    return count_of(make_step(write))


def hidden_waits(is_faulty: bool) -> dict[str, int]:
    """Count the waits of calls of torch that have no name of a read, beside those of similar calls."""
    x, numbers = torch.rand(4, 4, device=HERE), torch.arange(4, device=HERE) + 0
    mask, square = x > 0.5, x @ x.T + torch.eye(4, device=HERE)
    waiting: dict[str, Callable[[], Any]] = {
        "index": lambda: x[mask], "index_put": lambda: x.index_put((mask,), x[0, :1]), "unique": lambda: numbers.unique(),
        "repeat_interleave": lambda: x.repeat_interleave(numbers, 0), "one_hot": lambda: torch.nn.functional.one_hot(numbers),
        "allclose": lambda: torch.allclose(x, x), "inv": lambda: torch.linalg.inv(square), "eigh": lambda: torch.linalg.eigh(square),
        "svd": lambda: torch.linalg.svd(x), "multinomial": lambda: torch.multinomial(x, 2), "histc": lambda: torch.histc(x),
        "length of a slice": lambda: x[: numbers[2]], "in": lambda: 2 in numbers, "format": lambda: f"{x[0, 0]:.1f}",
    }
    others: dict[str, Callable[[], Any]] = {
        "index": lambda: x[numbers], "index_put": lambda: x.index_put((mask,), torch.tensor(0.0)), "unique": lambda: numbers.sort(),
        "repeat_interleave": lambda: x.repeat_interleave(numbers, 0, output_size=6),
        "one_hot": lambda: torch.nn.functional.one_hot(numbers, 4), "allclose": lambda: torch.isclose(x, x).all(),
        "inv": lambda: torch.linalg.inv_ex(square), "eigh": lambda: torch.linalg.qr(x), "svd": lambda: torch.linalg.vector_norm(x),
        "multinomial": lambda: torch.multinomial(x, 2, True), "histc": lambda: torch.histc(x, 4, 0.0, 1.0),
        "length of a slice": lambda: x[: 2], "in": lambda: (numbers == 2).any(), "format": lambda: f"{x.shape}",
    }
    counts = {}
    for name, call in (waiting if is_faulty else others).items():
        with stand_in.counted() as count:
            call()
        if count["waits"]:
            counts[name] = count["waits"]
    return counts


def host_copy(is_faulty: bool) -> dict[str, int]:
    return count_of(make_step(lambda x, loss: x.asnumpy().sum() if is_faulty else x.sum()))


CONSTANT = Tensor(np.arange(4, dtype=np.float32))


def transfer(is_faulty: bool) -> dict[str, int]:
    return count_of(make_step(lambda x, loss: x * (Tensor(np.arange(4, dtype=np.float32)) if is_faulty else CONSTANT)))


def early_read(is_faulty: bool) -> list[str]:
    def act() -> None:
        stream = hal.Stream()
        x = ops.ones((64,)) * 3
        if not is_faulty:
            stream.wait_stream(hal.current_stream())
        with hal.StreamCtx(stream):
            y = x + 1
        stream.synchronize()
        assert is_faulty or (y.asnumpy() == 4).all()

    return faults_of(act)


def early_read_behind_an_event(is_faulty: bool) -> list[str]:
    def act() -> None:
        stream, event = hal.Stream(), hal.Event()
        x = ops.ones((64,))
        if is_faulty:
            event.record()                            # before the work that it should mark
        x = x * 3
        if not is_faulty:
            event.record()
        stream.wait_event(event)
        with hal.StreamCtx(stream):
            y = x + 1
        stream.synchronize()
        del y

    return faults_of(act)


def early_write(is_faulty: bool) -> list[str]:
    def act() -> None:
        stream = hal.Stream()
        x = ops.ones((64,))
        stream.wait_stream(hal.current_stream())
        with hal.StreamCtx(stream):
            y = x + 1
        if not is_faulty:
            hal.current_stream().wait_stream(stream)
        x.add_(1)
        hal.synchronize()
        del y

    return faults_of(act)


def pinned_memory_is_overwritten(is_faulty: bool) -> list[str]:
    def act() -> None:
        values = torch.ones(64).pin_memory()
        copy = values.to(HERE, non_blocking=True)
        if not is_faulty:
            hal.synchronize()
        values.fill_(7.0)
        hal.synchronize()
        assert is_faulty or float(copy.sum()) == 64

    return faults_of(act)


def host_reads_too_early(is_faulty: bool) -> float:
    with stand_in.late_execution():
        copy = (torch.ones(4, device=HERE) * 2).to("cpu", non_blocking=True)
        if not is_faulty:
            hal.synchronize()
        return float(copy.nan_to_num(-1.0).sum())


def use_on_another_stream(x: Any, stream: Any, context: Any) -> Any:
    """Return a value that is computed of `x` on a stream, which waits for `x`."""
    stream.wait_stream(hal.current_stream()) if isinstance(stream, hal.Stream) else stream.wait_stream(MODULE.current_stream())
    with context(stream):
        return x + 1


def memory_of_another_stream(is_faulty: bool) -> list[str]:
    def act() -> None:
        stream = MODULE.Stream()
        x = torch.ones(64, device=HERE) * 2
        y = use_on_another_stream(x, stream, MODULE.stream)
        if not is_faulty:
            x.record_stream(stream)
        del x
        gc.collect()
        hal.synchronize()
        del y

    return faults_of(act)


def result_of_another_stream(is_faulty: bool) -> list[str]:
    def act() -> None:
        stream = MODULE.Stream()
        x = torch.ones(64, device=HERE)
        y = use_on_another_stream(x, stream, MODULE.stream)
        MODULE.current_stream().wait_stream(stream)
        z = y * 2
        if not is_faulty:
            y.record_stream(MODULE.current_stream())
        del y
        gc.collect()
        hal.synchronize()
        del x, z

    return [fault for fault in faults_of(act) if fault.startswith("memory of stream")]


def memory_in_programs_of_mindspore(is_faulty: bool) -> list[str]:
    """No program of MindSpore's names streams to the allocator, so torchspore does it; the first one hides its operators from it."""
    def act() -> None:
        stream = hal.Stream()
        x = ops.ones((64,)) * 2
        if is_faulty:
            use_on_another_stream(x, stream._handle, MODULE.stream)
        else:
            use_on_another_stream(x, stream, hal.StreamCtx)
        del x
        gc.collect()
        hal.synchronize()

    return faults_of(act)


def gradients_on_their_stream(is_faulty: bool) -> list[str]:
    def act() -> None:
        stream, step = hal.Stream(), make_step(lambda x, loss: loss)
        if not is_faulty:
            stream.wait_stream(hal.current_stream())
        with hal.StreamCtx(stream):
            loss = step()
        stream.synchronize()
        del loss, step

    return faults_of(act)


CASES = (
    operands, operands_of_two_accelerators, synchronization, shape_that_depends_on_values,
    values_that_a_mask_writes, hidden_waits, host_copy, transfer, early_read,
    early_read_behind_an_event, early_write, pinned_memory_is_overwritten, host_reads_too_early, memory_of_another_stream,
    result_of_another_stream, memory_in_programs_of_mindspore, gradients_on_their_stream,
)

if __name__ == "__main__":
    assert streams.device_name() == "GPU"
    print(json.dumps({case.__name__: [case(True), case(False)] for case in CASES}))
