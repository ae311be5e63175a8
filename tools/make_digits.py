#!/usr/bin/env python3
"""Makes the digits of the quick-start: scikit-learn's 1,797 scanned UCI digits, 28x28, as IDX files.

    .venv/bin/python tools/make_digits.py [FOLDER]       FOLDER is examples/quickstart/data by default

Every fifth digit of each class, in the order of the set, belongs to the test set. The files are the same on every machine.
"""
from __future__ import annotations

import argparse
import struct
from pathlib import Path

import numpy

SIZE = 28
BRIGHTEST = 16.0
FOLDER = Path(__file__).resolve().parent.parent / "examples" / "quickstart" / "data"


def cubic_rows(source: int, target: int) -> numpy.ndarray:
    """Return the (target, source) matrix that resamples `source` pixels to `target` pixels with Catmull-Rom splines."""
    rows = numpy.zeros((target, source))
    for row in range(target):
        position = (row + 0.5) * source / target - 0.5
        first = int(numpy.floor(position)) - 1
        for pixel in range(first, first + 4):
            distance = abs(position - pixel)
            near = 1.5 * distance**3 - 2.5 * distance**2 + 1
            far = -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2
            rows[row, min(max(pixel, 0), source - 1)] += near if distance <= 1 else far
    return rows


def enlarge(images: numpy.ndarray) -> numpy.ndarray:
    """Scale images (N, 8, 8) of 0..16 to (N, 28, 28) of 0..255."""
    rows = cubic_rows(images.shape[1], SIZE)
    smooth = rows @ images @ rows.T * (255.0 / BRIGHTEST)
    return numpy.clip(numpy.rint(smooth), 0, 255).astype(numpy.uint8)


def test_mask(labels: numpy.ndarray) -> numpy.ndarray:
    """Return a mask of the digits of the test set: every fifth of each class."""
    chosen = numpy.zeros(len(labels), bool)
    for label in numpy.unique(labels):
        chosen[numpy.flatnonzero(labels == label)[4::5]] = True
    return chosen


def write_idx(path: Path, array: numpy.ndarray) -> None:
    """Write bytes in the IDX format: a magic number with the type (8: unsigned byte) and rank, the sizes, the data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.astype(numpy.uint8).tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    from sklearn.datasets import load_digits

    digits = load_digits()
    images, labels = enlarge(digits.images), digits.target
    test = test_mask(labels)
    for part, prefix, chosen in (("train", "train", ~test), ("test", "t10k", test)):
        write_idx(folder / part / f"{prefix}-images-idx3-ubyte", images[chosen])
        write_idx(folder / part / f"{prefix}-labels-idx1-ubyte", labels[chosen])
        print(f"{part}: {chosen.sum()} digits")


if __name__ == "__main__":
    main()
