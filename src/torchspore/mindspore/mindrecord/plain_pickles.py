"""Reading of pickles of plain containers and NumPy arrays, such as CIFAR's; all other operations of a pickle are refused."""
from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.errors import DataDamaged, DataMissing

_LARGEST = 1 << 30
"""Maximum bytes of a file; CIFAR's largest has 155 million."""


def _text_as_bytes(text: str, encoding: str) -> bytes:
    """Python 3's representation of bytes in a pickle for Python 2."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in {encoding!r}")
    return text.encode("latin-1")


def _empty_array(kind: type, shape: tuple[int, ...], _: Any) -> np.ndarray[Any, Any]:
    """Return an empty array, which NumPy fills afterwards, so that a pickle can't request memory."""
    if kind is not np.ndarray or shape != (0,):
        raise pickle.UnpicklingError(f"an array of {kind!r} that begins with shape {shape!r:.40}")
    return np.ndarray(0, np.int8)


def _plain_type(name: Any, *_: Any) -> np.dtype[Any]:
    dtype = np.dtype(name.decode("latin-1") if isinstance(name, bytes) else name)
    if dtype.kind not in "biufc":
        raise pickle.UnpicklingError(f"an array of {dtype}")
    return dtype


def _from_bytes(content: Any, kind: np.dtype[Any], shape: tuple[int, ...], order: str) -> np.ndarray[Any, Any]:
    """Rebuild an array pickled by Python 3.8 or later."""
    return np.frombuffer(bytes(content), kind).reshape(shape, order="F" if order == "F" else "C")


_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): np.ndarray, ("numpy", "dtype"): _plain_type, ("_codecs", "encode"): _text_as_bytes,
    **{(f"numpy.{home}.multiarray", "_reconstruct"): _empty_array for home in ("core", "_core")},
    **{(f"numpy.{home}.numeric", "_frombuffer"): _from_bytes for home in ("core", "_core")},
}


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError(f"it asks for {pid!r:.40}")


def load(path: Path, *names: str) -> list[Any]:
    """Return the members of a pickled dict, by their names as str or bytes. Raises DataMissing, DataDamaged, which name the file."""
    if not path.is_file():
        raise DataMissing(message(str(path), "this file of the data set"))
    if path.stat().st_size > _LARGEST:
        raise DataDamaged(message(f"{path}: {path.stat().st_size} bytes", "a pickle of a gigabyte at most"))
    try:
        with path.open("rb") as file:
            content = _Plain(file, encoding="bytes").load()
        members = {key.decode("latin-1") if isinstance(key, bytes) else key: value for key, value in content.items()}
        return [members[name] for name in names]
    except MemoryError:
        raise
    except Exception as error:  # a damaged pickle raises any error
        expected = f"a pickle of {', '.join(names)}, of plain values and arrays alone"
        raise DataDamaged(message(f"{path}: {type(error).__name__}: {error!s:.100}", expected)) from None
