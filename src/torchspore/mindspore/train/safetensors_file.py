"""The safetensors file: 8 bytes of length, a JSON head of names, types, shapes and places, then all values, little-endian in C order.

The library's NumPy functions have no bfloat16, which checkpoints hold, and its lower ones change from version to version; the format is
fixed.
"""
from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np

from torchspore.base.files import READ_ONLY, whole_file
from torchspore.base.text import message
from torchspore.errors import FileFormatError
from torchspore.mindspore.train.checkpoint_file import NUMPY_TYPES, Entry

TYPES = {
    "Bool": "BOOL", "Int8": "I8", "Int16": "I16", "Int32": "I32", "Int64": "I64", "UInt8": "U8", "UInt16": "U16", "UInt32": "U32",
    "UInt64": "U64", "Float16": "F16", "Float32": "F32", "Float64": "F64", "BFloat16": "BF16", "Complex64": "C64",
}
_NAMES = {short: name for name, short in TYPES.items()}


def write(path: Path, entries: list[Entry]) -> None:
    """Writes a safetensors file. Raises TypeError for text and types that the format has not."""
    head: dict[str, object] = {"__metadata__": {"format": "ms"}}
    place = 0
    ordered = sorted(entries, key=lambda entry: -np.dtype(NUMPY_TYPES.get(entry.type_name, np.uint8)).itemsize)
    for entry in ordered:
        if entry.type_name not in TYPES:
            raise TypeError(message(f"save_checkpoint(format='safetensors'): {entry.name!r} is {entry.type_name}", "a type of safetensors"))
        end = place + int(np.asarray(entry.values).nbytes)
        head[entry.name] = {"dtype": TYPES[entry.type_name], "shape": list(entry.shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with whole_file(path, READ_ONLY, durable=True) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for entry in ordered:
            file.write(np.ascontiguousarray(entry.values).tobytes())


def read(path: Path) -> list[Entry]:
    """All tensors of a safetensors file. Raises FileFormatError, which names the file, for one that is cut short or foreign."""
    try:
        return _entries(path.read_bytes())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise FileFormatError(message(f"{path}: {error}", "a whole file of safetensors")) from None


_LONGEST_HEAD = 100_000_000
"""Bytes, as the library has it."""
_MOST_AXES = 32


def _entries(content: bytes) -> list[Entry]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or len(content) < 8 + length:
        raise ValueError("it is cut short within its head")
    if length > _LONGEST_HEAD:
        raise ValueError(f"its head of {length} bytes is longer than any")
    head = json.loads(content[8 : 8 + length])
    if not isinstance(head, dict):
        raise ValueError("its head holds no tensors")
    values = memoryview(content)[8 + length :]
    entries, spans = [], []
    for name, about in head.items():
        if name == "__metadata__":
            continue
        type_name, shape, (start, end) = _NAMES.get(about["dtype"]), about["shape"], about["data_offsets"]
        if type_name is None:
            raise ValueError(f"{name!r:.80} has the type {about['dtype']!r:.40}")
        if len(shape) > _MOST_AXES or not all(type(one) is int and one >= 0 for one in (*shape, start, end)):
            raise ValueError(f"{name!r:.80} has a shape or a place that is none")
        dtype = np.dtype(NUMPY_TYPES[type_name])
        if end > len(values):
            raise ValueError(f"it is cut short: {name!r:.80} ends at byte {end} of {len(values)}")
        if end - start != dtype.itemsize * math.prod(shape):
            raise ValueError(f"{name!r:.80} has {end - start} bytes, not as many as its shape")
        spans.append((start, end, name))
        entries.append(Entry(name, type_name, tuple(shape), np.frombuffer(values[start:end], dtype).reshape(shape)))
    _check_spans(spans)
    return [entry._replace(values=entry.values.copy()) for entry in entries]


def _check_spans(spans: list[tuple[int, int, str]]) -> None:
    """Raises ValueError where two tensors share bytes: a small file would fill the memory."""
    spans.sort()
    for (_, end, name), (start, _, other) in itertools.pairwise(spans):
        if start < end:
            raise ValueError(f"{name!r:.80} and {other!r:.80} share bytes")
