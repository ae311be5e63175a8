"""Streams and events of an accelerator, by a recorded stand-in of `torch.cuda` whose calls must fit torch's own signatures."""
from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from mindspore import hal, runtime

from torchspore.context import effects
from torchspore.context.public import scope
from torchspore.engine.devices import device


class Recorded:
    """An object of torch's class `of`; each call is noted and bound to the signature that torch's method has."""

    calls: list[str] = []
    numbers = iter(range(1, 1000))

    def __init__(self, of: type, name: str, **attributes: Any) -> None:
        self._of, self._name = of, name
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._of, name)

        def call(*arguments: Any, **keywords: Any) -> Any:
            try:
                inspect.signature(method).bind(self, *arguments, **keywords)
            except ValueError:                       # of C++ there is no signature
                pass
            self.calls.append(f"{self._name}.{name}({', '.join(getattr(a, '_name', repr(a)) for a in arguments)})")
            return {"query": False, "elapsed_time": 2.5}.get(name)

        return call


class Cuda:
    """What torchspore uses of `torch.cuda`, or of `torch.npu`, which has the same names."""

    def __init__(self) -> None:
        self.now = self.first = Recorded(torch.cuda.Stream, "default", stream_id=0)

    def Stream(self, *arguments: Any, **keywords: Any) -> Recorded:
        bound = inspect.signature(torch.cuda.Stream.__new__).bind(None, *arguments, **keywords)
        Recorded.calls.append(f"Stream({bound.arguments['device']}, {bound.arguments['priority']})")
        return Recorded(torch.cuda.Stream, "own", stream_id=next(Recorded.numbers))

    def Event(self, *arguments: Any, **keywords: Any) -> Recorded:
        bound = inspect.signature(torch.cuda.Event.__new__).bind(None, *arguments, **keywords)
        Recorded.calls.append(f"Event({bound.arguments['enable_timing']}, {bound.arguments['blocking']})")
        return Recorded(torch.cuda.Event, "event")

    def current_stream(self, *arguments: Any) -> Recorded:
        assert inspect.signature(torch.cuda.current_stream).bind(*arguments).arguments == {"device": torch.device("cuda", 1)}
        return self.now

    def default_stream(self, *arguments: Any) -> Recorded:
        assert inspect.signature(torch.cuda.default_stream).bind(*arguments).arguments == {"device": torch.device("cuda", 1)}
        return self.first

    def set_stream(self, *arguments: Any) -> None:
        self.now = inspect.signature(torch.cuda.set_stream).bind(*arguments).arguments["stream"]


@pytest.fixture
def cuda() -> Iterator[Cuda]:
    cuda = Cuda()
    Recorded.calls.clear()
    machine = device.Machine(lambda target: 2, lambda target: torch.device("cuda", 1), backend=lambda target: cuda)
    with effects.fresh(), device.on(machine), scope(device_target="GPU"):
        yield cuda


def test_work_of_two_streams(cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.accelerator, "synchronize", waited.append)
    stream, event = hal.Stream(priority=-1), runtime.Event(enable_timing=True, blocking=True)
    assert (stream.device_name, stream.device_id, stream.query(), stream.id > 0) == ("GPU", 1, False, True)
    with hal.StreamCtx(stream):
        assert hal.current_stream() == stream and hal.current_stream() != hal.default_stream()
        event.record()
    assert hal.current_stream() == hal.default_stream() == hal.communication_stream()
    event.wait()
    stream.wait_event(event)
    stream.wait_stream(hal.default_stream())
    end = stream.record_event(hal.Event(enable_timing=True))
    stream.synchronize()
    event.synchronize()
    assert event.elapsed_time(end) == 2.5 and not event.query()
    hal.synchronize()
    assert waited == [torch.device("cuda", 1)]
    assert Recorded.calls == [
        "Stream(cuda:1, -1)", "Event(True, True)", "own.query()", "event.record(own)", "event.wait(default)", "event.wait(own)",
        "own.wait_stream(default)", "Event(True, False)", "event.record(own)", "own.synchronize()", "event.synchronize()",
        "event.synchronize()", "event.elapsed_time(event)", "event.query()",
    ]


def test_an_ascend_device_s_streams_come_from_torch_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    npu = object()
    monkeypatch.setattr(torch, "npu", npu, raising=False)
    with effects.fresh(), device.on(device.Machine(lambda target: 1)), scope(device_target="Ascend"):
        assert device.backend() is npu
