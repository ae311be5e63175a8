"""`curves.html`: the recorded values of a training, step by step, as one page; works without TensorBoard."""
from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.files import write_atomically
from torchspore.html_pages.page import html

MOST_POINTS, MOST_TAGS, MOST_HISTOGRAMS, MOST_IMAGES, BINS, LARGEST_IMAGE, MOST_TEXT = 2_000, 200, 40, 4, 30, 128, 20_000


class Curves:
    """Stores recorded values in bounded memory, and writes their page.

    If a curve has more points than the page draws, every second one is dropped, then every second one of the rest, and so on; of
    histograms and images only the last ones are stored.
    """

    def __init__(self, title: str = "Curves", about: str = "") -> None:
        self._title, self._about = title, about
        self._scalars: dict[str, _Curve] = {}
        self._histograms: dict[str, list[dict[str, Any]]] = {}
        self._images: dict[str, list[dict[str, Any]]] = {}
        self._texts: dict[str, str] = {}
        self._graph: list[dict[str, Any]] = []
        self._graph_about = ""
        self._left_out: set[str] = set()

    def scalar(self, name: str, step: int, value: float) -> None:
        """Add a number at a step."""
        if self._has_room(self._scalars, name):
            self._scalars.setdefault(name, _Curve()).add(step, value)

    def histogram(self, name: str, step: int, values: np.ndarray) -> None:
        """Add the distribution of values at a step, in columns between the smallest and the largest value."""
        if not self._has_room(self._histograms, name):
            return
        finite = values[np.isfinite(values)].astype(np.float64) if values.dtype.kind in "fc" else values.astype(np.float64).reshape(-1)
        row: dict[str, Any] = {"step": step, "bad": int(values.size - finite.size)}
        if finite.size:
            counts, edges = np.histogram(finite, BINS)
            row |= {"edges": edges.tolist(), "counts": counts.tolist(), "mean": float(finite.mean()), "deviation": float(finite.std())}
        self._histograms.setdefault(name, []).append(row)
        del self._histograms[name][:-MOST_HISTOGRAMS]

    def image(self, name: str, step: int, image: np.ndarray) -> None:
        """Add an image (C, H, W) of one or three channels with values from 0 to 1; a large one is shown with every n-th pixel."""
        if self._has_room(self._images, name):
            stride = -(-max(image.shape[1:]) // LARGEST_IMAGE)
            self._images.setdefault(name, []).append({"step": step, "png": _png(image[:, ::stride, ::stride])})
            del self._images[name][:-MOST_IMAGES]

    def text(self, name: str, text: str) -> None:
        """Add a text, such as the configuration of a training."""
        if self._has_room(self._texts, name):
            self._texts[name] = text[:MOST_TEXT]

    def graph(self, nodes: Sequence[tuple[str, str, Sequence[str], str]], about: str) -> None:
        """Add the network: (name, type, names of inputs, shape) of its nodes."""
        self._graph = [{"name": name, "kind": kind, "reads": list(reads)[:8], "about": text} for name, kind, reads, text in nodes]
        self._graph_about = about

    def data(self) -> dict[str, Any]:
        """Return the data of the page."""
        notes = [f"{len(self._left_out)} names beyond the first {MOST_TAGS} are left out."] if self._left_out else []
        return {
            "about": self._about, "notes": notes, "scalars": {name: curve.points() for name, curve in self._scalars.items()},
            "histograms": self._histograms, "images": self._images, "texts": self._texts, "graph": self._graph,
            "graphAbout": self._graph_about,
        }

    def write(self, path: Path) -> None:
        """Write the page, completely or not at all. Raise OSError."""
        write_atomically(path, html(self._title, self.data(), "charts", "curves"))

    def _has_room(self, collection: dict[str, Any], name: str) -> bool:
        if name in collection or len(collection) < MOST_TAGS:
            return True
        if len(self._left_out) < 100_000:
            self._left_out.add(name)
        return False


class _Curve:
    """The points of one curve, thinned as they arrive."""

    def __init__(self) -> None:
        self._points: list[tuple[int, float]] = []
        self._every, self._count = 1, 0
        self._last: tuple[int, float] | None = None

    def add(self, step: int, value: float) -> None:
        self._last = (step, value)
        if self._count % self._every == 0:
            self._points.append(self._last)
            if len(self._points) > MOST_POINTS:
                self._points = self._points[::2]
                self._every *= 2
        self._count += 1

    def points(self) -> list[tuple[int, float]]:
        if self._last is not None and (not self._points or self._points[-1] != self._last):
            return [*self._points, self._last]
        return self._points


def _png(image: np.ndarray) -> str:
    """Return the image as a PNG data URL (RFC 2083): a page in one file embeds its images."""
    pixels = (np.clip(np.nan_to_num(image), 0, 1) * 255).astype(np.uint8).transpose(1, 2, 0)
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + pixels[row].tobytes() for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    return "data:image/png;base64," + base64.b64encode(png).decode()
