"""Pickles of plain containers and NumPy arrays, such as CIFAR's; nothing else that a pickle can ask for is done."""
from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.errors import DataDamaged, DataMissing

_LARGEST = 1 << 30
"""Bytes of a file; CIFAR's largest has 155 million."""


def _text_as_bytes(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes into a pickle that Python 2 can read."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in {encoding!r}")
    return text.encode("latin-1")


def _empty_array(kind: type, shape: tuple[int, ...], _: Any) -> np.ndarray[Any, Any]:
    """What NumPy fills afterwards; it begins without values, so that a pickle can't ask for memory."""
    if kind is not np.ndarray or shape != (0,):
        raise pickle.UnpicklingError(f"an array of {kind!r} that begins with shape {shape!r:.40}")
    return np.ndarray(0, np.int8)


def _plain_type(name: Any, *_: Any) -> np.dtype[Any]:
    found = np.dtype(name.decode("latin-1") if isinstance(name, bytes) else name)
    if found.kind not in "biufc":
        raise pickle.UnpicklingError(f"an array of {found}")
    return found


def _from_bytes(content: Any, kind: np.dtype[Any], shape: tuple[int, ...], order: str) -> np.ndarray[Any, Any]:
    """How Python 3.8 and later pickle an array."""
    return np.frombuffer(bytes(content), kind).reshape(shape, order="F" if order == "F" else "C")


_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): np.ndarray, ("numpy", "dtype"): _plain_type, ("_codecs", "encode"): _text_as_bytes,
    **{(f"numpy.{home}.multiarray", "_reconstruct"): _empty_array for home in ("core", "_core")},
    **{(f"numpy.{home}.numeric", "_frombuffer"): _from_bytes for home in ("core", "_core")},
}


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _KNOWN[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError(f"it asks for {pid!r:.40}")


def load(path: Path, *names: str) -> list[Any]:
    """The members of a pickled dict, by their names as str or bytes. Raises DataMissing, DataDamaged, which name the file."""
    if not path.is_file():
        raise DataMissing(message(str(path), "this file of the data set"))
    if path.stat().st_size > _LARGEST:
        raise DataDamaged(message(f"{path}: {path.stat().st_size} bytes", "a pickle of a gigabyte at most"))
    try:
        with path.open("rb") as file:
            found = _Plain(file, encoding="bytes").load()
        about = {key.decode("latin-1") if isinstance(key, bytes) else key: value for key, value in found.items()}
        return [about[name] for name in names]
    except MemoryError:
        raise
    except Exception as error:  # a damaged pickle raises what its opcodes run into
        expected = f"a pickle of {', '.join(names)}, of plain values and arrays alone"
        raise DataDamaged(message(f"{path}: {type(error).__name__}: {error!s:.100}", expected)) from None
