"""TensorBoard's event files, written in the caller's thread by parts of tensorboardX.

tensorboardX's SummaryWriter passes events to a thread; if the disk is full, that thread ends, and the training waits for it endlessly.
"""
from __future__ import annotations

import functools
import importlib
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np


class EventFile:
    """One file, `PREFIX.out.tfevents. ...SUFFIX`. Raises ImportError without the library, OSError if the disk is full."""

    def __init__(self, folder: Path, prefix: str, suffix: str) -> None:
        library = importlib.import_module("tensorboardX")
        self._summary = library.summary
        self._event = importlib.import_module("tensorboardX.proto.event_pb2").Event
        self.path = folder / f"{prefix or 'events'}.out.tfevents.{int(time.time())}.{platform.node()}{suffix}"
        self._writer = library.record_writer.RecordWriter(str(self.path))
        self._add(None, file_version="brain.Event:2")

    def scalar(self, name: str, step: int, value: float) -> None:
        """Adds a number."""
        self._add(step, summary=self._summary.scalar(name, value))

    def images(self, name: str, step: int, images: np.ndarray) -> None:
        """Adds images (N, C, H, W) of values from 0 to 1."""
        self._add(step, summary=self._summary.image(name, images, dataformats="NCHW"))

    def histogram(self, name: str, step: int, values: np.ndarray) -> None:
        """Adds a histogram of the finite values."""
        self._add(step, summary=self._summary.histogram(name, values.astype(np.float64), _edges()))

    def text(self, name: str, text: str) -> None:
        """Adds a text, in Markdown."""
        self._add(0, summary=self._summary.text(name, text))

    def graph(self, nodes: list[tuple[str, str, list[str], str]]) -> None:
        """Adds a network: (name, type, input names, description) of each node."""
        graph = importlib.import_module("tensorboardX.proto.graph_pb2").GraphDef()
        for name, kind, reads, description in nodes:
            node = graph.node.add(name=name, op=kind, input=reads)
            if description:
                node.attr["shape"].s = description.encode()
        self._add(None, graph_def=graph.SerializeToString())

    def flush(self) -> None:
        """Flushes buffered events to the disk."""
        self._writer.flush()

    def close(self) -> None:
        """Closes the file, even if the buffered events can't be written."""
        self._writer.close()

    def _add(self, step: int | None, **content: Any) -> None:
        event = self._event(wall_time=time.time(), **content)
        if step is not None:
            event.step = step
        self._writer.write(event.SerializeToString())


@functools.cache
def _edges() -> list[float]:
    """Return TensorFlow's histogram edges: powers of 1.1 from 1e-12 to 1e20, on both sides of 0."""
    above = (1e-12 * 1.1 ** np.arange(np.ceil(np.log(1e32) / np.log(1.1)))).tolist()
    return [*(-edge for edge in reversed(above)), 0.0, *above]
