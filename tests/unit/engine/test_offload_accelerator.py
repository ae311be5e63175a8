"""How values of an accelerator move to the host: by a stream of its own, in the order that keeps them whole. Not run on a GPU."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from torchspore.engine.memory import backing_stores, saved_tensors

CPU = torch.device("cpu")


class Streams:
    """What torch's module for an accelerator has, with the CPU in its place; `log` has what was asked of it, in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.program = self._stream("program")

    def _stream(self, name: str) -> Any:
        return SimpleNamespace(
            name=name, wait_stream=lambda other: self.log.append(f"{name} waits for {other.name}"),
            wait_event=lambda event: self.log.append(f"{name} waits for {event.name}"),
        )

    def Stream(self, device: torch.device) -> Any:
        return self._stream("side")

    def Event(self) -> Any:
        event = SimpleNamespace(name=f"event {len(self.log)}", synchronize=lambda: self.log.append("the host waits"))
        event.record = lambda stream: self.log.append(f"{event.name} on {stream.name}")
        return event

    def current_stream(self, device: torch.device) -> Any:
        return self.program

    @contextlib.contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        self.log.append(f"on {stream.name}:")
        yield
        self.log.append("end")


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Streams:
    result = Streams()
    monkeypatch.setattr(torch, "get_device_module", lambda device: result)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda t, stream: result.log.append(f"kept for {stream.name}"))
    return result


def test_copies_wait_for_each_other_and_never_for_the_host(streams: Streams) -> None:
    host = backing_stores.Host(CPU, None, 1 << 20, pinned=False)
    value = torch.arange(50_000.0)
    piece = host.move(value.untyped_storage())
    assert piece is not None
    assert streams.log == ["side waits for program", "on side:", "end", "kept for side", "event 4 on side"]
    streams.log.clear()
    value.zero_()
    piece.fetch()
    assert streams.log == ["side waits for event 4", "on side:", "event 2 on side", "end"]
    streams.log.clear()
    assert torch.equal(torch.empty(0).set_(piece.get(), 0, (50_000,), (1,)), torch.arange(50_000.0))
    assert streams.log == ["program waits for event 2", "kept for program"]


def test_the_hosts_memory_has_a_limit_and_disk_takes_over(streams: Streams, tmp_path: Any) -> None:
    disk = backing_stores.Disk(str(tmp_path), None, 0, 1 << 20)
    value = torch.arange(50_000.0)
    full = backing_stores.Host(CPU, 250_000, 1 << 20, pinned=False)
    first = full.move(value.untyped_storage())
    assert first is not None
    assert full.move(value.untyped_storage()) is None
    del first                                       # what was given back serves the next piece
    assert full.move(value.untyped_storage()) is not None
    piece = backing_stores.Host(CPU, 0, 1 << 20, pinned=False, following=disk).move(value.untyped_storage())
    assert isinstance(piece, backing_stores.ThroughPiece)
    assert torch.equal(torch.empty(0).set_(piece.get(), 0, (50_000,), (1,)), value)


def test_a_backward_pass_fetches_ahead(streams: Streams) -> None:
    host = backing_stores.Host(CPU, None, 1 << 20, pinned=False)
    w = torch.ones(256, 256, requires_grad=True)

    def result() -> torch.Tensor:
        x = w
        for _ in range(8):
            x = torch.sin(torch.exp(x * 0.1))
        return x.sum()

    expected, = torch.autograd.grad(result(), w)
    moved = backing_stores.totals.pieces
    with saved_tensors.Tape(lambda device: host).recording():
        out = result()
    assert backing_stores.totals.pieces - moved >= 6
    streams.log.clear()
    output, = torch.autograd.grad(out, w)
    assert torch.equal(output, expected)
    copies = [line for line in streams.log if line == "on side:"]
    assert len(copies) == backing_stores.totals.pieces - moved                  # each came back once
    first_use = streams.log.index(next(line for line in streams.log if line.startswith("program waits")))
    assert "on side:" in streams.log[first_use + 1:first_use + 8]
