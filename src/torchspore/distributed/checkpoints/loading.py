"""Loading of a sharded checkpoint: a process reads the files that have elements of its parts, whatever processes wrote them."""
from __future__ import annotations

import contextlib
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from torchspore.base.text import message
from torchspore.distributed.checkpoints import index as index_file
from torchspore.distributed.checkpoints.index import Part, StoredValue
from torchspore.engine.devices import device
from torchspore.engine.torch_internals.torch_private import without_modes
from torchspore.errors import FileFormatError

_MOST_OPEN = 16


class Checkpoint:
    """A complete checkpoint. Raises FileFormatError, which names a file, if it is damaged, incomplete or foreign."""

    def __init__(self, path: Path, checks_all: bool = False) -> None:
        self._path, self._checks_all = path, checks_all
        self._index = index_file.read(path)
        self._open: OrderedDict[int, Any] = OrderedDict()
        self._lock = threading.Lock()
        self.values = self._index.values
        """The values by name, a str for a text."""

    def read(self, name: str, part: Sequence[slice] | None = None) -> torch.Tensor:
        """Return a value, or a part of it, in the memory of the host. The checksum of each stored part that is read completely is verified;
        with `checks_all` stored parts are always read completely."""
        value = self.values[name]
        assert isinstance(value, StoredValue)
        bounds = [(0, size) for size in value.shape] if part is None else [(item.start, item.stop) for item in part]
        with without_modes(), torch.no_grad():
            result = torch.empty([stop - start for start, stop in bounds], dtype=index_file.TORCH_TYPES[value.type_name], device="cpu")
            for stored in value.parts:
                common = [
                    (max(start, first), min(stop, first + size))
                    for (start, stop), first, size in zip(bounds, stored.offsets, stored.sizes)
                ]
                if all(start < stop for start, stop in common):
                    source = tuple(slice(start - first, stop - first) for (start, stop), first in zip(common, stored.offsets))
                    target = tuple(slice(start - first, stop - first) for (start, stop), (first, _) in zip(common, bounds))
                    result[target].copy_(self._elements(name, value, stored, source))
        return result

    def _elements(self, name: str, value: StoredValue, stored: Part, slices: tuple[slice, ...]) -> torch.Tensor:
        file_name, size = self._index.files[stored.file]
        path = self._path / self._index.folder / file_name
        is_complete = all((item.start, item.stop) == (0, length) for item, length in zip(slices, stored.sizes))
        with self._lock, _naming(path):
            file = self._opened(stored.file, path, size)
            described = file.get_slice(name)
            if tuple(described.get_shape()) != stored.sizes:
                raise ValueError(f"{name!r:.80} has the shape {described.get_shape()}, the index says {list(stored.sizes)}")
            if is_complete or self._checks_all or not slices:
                t = file.get_tensor(name)
                _check_type(name, value, t)
                if zlib.crc32(t.reshape(-1).view(torch.uint8).numpy().data) != stored.checksum:
                    raise ValueError(f"the checksum of {name!r:.80} does not fit its values")
                return t[slices]
            t = described[slices]
            _check_type(name, value, t)
            return t

    def _opened(self, number: int, path: Path, size: int) -> Any:
        """Return the open file; of several, the ones that were used last stay open."""
        if number not in self._open:
            if not path.is_file():
                raise ValueError("it is missing; a later save to the same name has replaced it, or it was not copied")
            if path.stat().st_size != size:
                raise ValueError(f"{path.stat().st_size} bytes, the index says {size}")
            self._open[number] = safe_open(str(path), framework="pt")
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(number)
        return self._open[number]


def _check_type(name: str, value: StoredValue, t: torch.Tensor) -> None:
    if t.dtype != index_file.TORCH_TYPES[value.type_name]:
        raise ValueError(f"{name!r:.80} has the type {t.dtype}, the index says {value.type_name}")


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, ValueError, TypeError, RuntimeError, OverflowError, OSError, KeyError) as error:
        raise FileFormatError(message(f"{path}: {error!s:.300}", "a complete file of a sharded checkpoint")) from None


@dataclass(frozen=True)
class StoredElements:
    """The values of a Tensor that are read when they are needed, as a process then needs them: all, or its part."""

    checkpoint: Checkpoint
    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    def draw(self, part: Sequence[slice] | None = None) -> torch.Tensor:
        """Return the values, or a part of them, on the device of the program."""
        return self.checkpoint.read(self.name, part).to(device.current())
