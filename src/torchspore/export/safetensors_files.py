"""Safetensors files through their library, as NumPy arrays: bfloat16 is represented by its bits in uint16, which NumPy has."""
from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

from torchspore.base.text import message
from torchspore.engine import safetensors_writer
from torchspore.errors import FileFormatError

TYPES = {
    "Bool": "BOOL", "Int8": "I8", "Int16": "I16", "Int32": "I32", "Int64": "I64", "UInt8": "U8", "UInt16": "U16", "UInt32": "U32",
    "UInt64": "U64", "Float16": "F16", "Float32": "F32", "Float64": "F64", "BFloat16": "BF16", "Complex64": "C64",
}
"""MindSpore's name of each type that the format has, and the format's."""
_NAMES = {short: name for name, short in TYPES.items()}
_BITS = "BFloat16"
_SUM = "crc_num"
_MOST_AXES = 32
"""The number of axes that every NumPy supports."""


class Stored(NamedTuple):
    """One tensor of a file: its name, MindSpore's type name, its shape, and its values, which are read when they are looked at."""

    name: str
    type_name: str
    shape: tuple[int, ...]
    values: np.ndarray


def write(path: str, tensors: Iterable[Stored]) -> None:
    """Writes the file. Raises TypeError for text and for types that the format has not."""
    contents: dict[str, torch.Tensor] = {}
    addresses: set[int] = set()
    for name, type_name, shape, values in tensors:
        if type_name not in TYPES:
            raise TypeError(message(f"save_checkpoint(format='safetensors'): {name!r} is {type_name}", "a type of safetensors"))
        tensor = torch.from_numpy(np.require(values, requirements=["C", "W"])).reshape(shape)
        if tensor.data_ptr() in addresses:       # the library refuses two names of one memory; MindSpore writes both
            tensor = tensor.clone()
        addresses.add(tensor.data_ptr())
        contents[name] = tensor.view(torch.bfloat16) if type_name == _BITS else tensor
    total = _checksum((name, contents[name].reshape(-1).view(torch.uint8).numpy()) for name in contents)
    safetensors_writer.write(contents, path, {"format": "ms", _SUM: str(total)})


def check(path: Path, stored: list[Stored]) -> bool:
    """Return whether the file has MindSpore's checksum, and its contents match it. Raises FileFormatError for another checksum."""
    with safe_open(str(path), framework="pt") as file:
        checksum = (file.metadata() or {}).get(_SUM, "")
    if not checksum.isdecimal():
        return False
    if _checksum((name, np.ascontiguousarray(values).reshape(-1).view(np.uint8)) for name, _, _, values in stored) != int(checksum):
        raise FileFormatError(message(f"{path}: the checksum of its values is another one than was written", "a complete file"))
    return True


def _checksum(values: Iterable[tuple[str, np.ndarray]]) -> int:
    """Return MindSpore's checksum: CRC-32 of each name and its bytes, in the order of the names."""
    total = 0
    for name, array in sorted(values, key=lambda item: item[0]):
        total = zlib.crc32(array.data, zlib.crc32(name.encode(), total))
    return total


def read(path: Path) -> list[Stored]:
    """Return the tensors of a file, by name. The file is mapped into memory: only tensors that are used are read.

    Raises FileFormatError, which names the file, for a truncated file or one of another format.
    """
    try:
        with safe_open(str(path), framework="pt") as file:
            return list(_tensors(file))
    except (SafetensorError, ValueError, TypeError, RuntimeError, OverflowError, OSError) as error:
        raise FileFormatError(message(f"{path}: {error}", "a complete safetensors file")) from None


def _tensors(file: safe_open) -> Iterator[Stored]:
    for name in list(file.keys()):
        described = file.get_slice(name)
        type_name, shape = _NAMES.get(described.get_dtype()), tuple(described.get_shape())
        if type_name is None:
            raise ValueError(f"{name!r:.80} has the type {described.get_dtype()!r:.40}")
        if len(shape) > _MOST_AXES:
            raise ValueError(f"{name!r:.80} has {len(shape)} axes, more than an array can have")
        tensor = file.get_tensor(name)
        values = (tensor.view(torch.uint16) if type_name == _BITS else tensor).numpy()
        values.flags.writeable = False           # callers copy what they keep: a change of the file would change it, or end the program
        yield Stored(name, type_name, shape, values)


_TORCH_TYPES = {
    torch.bool: "Bool", torch.int8: "Int8", torch.int16: "Int16", torch.int32: "Int32", torch.int64: "Int64", torch.uint8: "UInt8",
    torch.uint16: "UInt16", torch.uint32: "UInt32", torch.uint64: "UInt64", torch.float16: "Float16", torch.float32: "Float32",
    torch.float64: "Float64", torch.bfloat16: _BITS, torch.complex64: "Complex64", torch.complex128: "Complex128",
}
_LARGE, _MOST_REPEATED = 256 * 2**20, 16
"""Values may be read from a file of which views repeat them: up to so many bytes, or so many times the file's size."""
_KEYS_OF_STATE = ("state_dict", "model_state_dict", "model", "params")
"""The keys under which programs store the state_dict of a net beside other values."""


def write_torch(path: str, tensors: Iterable[Stored]) -> None:
    """Writes a state_dict, as `torch.load` reads it. Raises TypeError for text."""
    state = {}
    for name, type_name, shape, values in tensors:
        if type_name not in _TORCH_TYPES.values():
            raise TypeError(message(f"{name!r} is {type_name}", "a Tensor, as all that a state_dict holds"))
        tensor = torch.from_numpy(np.array(values)).reshape(shape)
        state[name] = tensor.view(torch.bfloat16) if type_name == _BITS else tensor
    torch.save(state, path)


def read_torch(path: Path) -> list[Stored]:
    """The tensors of a file that `torch.save` has written of a state_dict, alone or under a usual key of a dict.

    Nothing in the file runs: it is read as weights only. Raises FileFormatError, which names the file, for one that is damaged or holds
    other objects.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:                   # torch raises UnpicklingError, RuntimeError, EOFError, KeyError and others
        raise FileFormatError(message(f"{path}: {_reason(path, error)}", "a file of torch.save(net.state_dict())")) from None
    for key in _KEYS_OF_STATE:
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict) or not state:
        raise FileFormatError(message(f"{path}: a {type(state).__name__}", "a state_dict: names with tensors"))
    _check_size(path, state)
    return [_of_torch(path, name, tensor) for name, tensor in state.items()]


def _check_size(path: Path, state: dict[Any, Any]) -> None:
    """Raises FileFormatError for a small file whose tensors need much memory: views that repeat the stored values."""
    total = sum(t.numel() * t.element_size() for t in state.values() if isinstance(t, torch.Tensor) and t.layout == torch.strided)
    if total > max(_LARGE, _MOST_REPEATED * path.stat().st_size):
        what = f"{path}: tensors of {total:,} bytes in a file of {path.stat().st_size:,} bytes"
        raise FileFormatError(message(what, "a file of torch.save(net.state_dict())"))


def _reason(path: Path, error: Exception) -> str:
    """Return why a file is not read, in one line; torch's message advises to execute its contents."""
    if isinstance(error, pickle.UnpicklingError) and "eights only" in str(error):
        return "other objects than tensors, or damage"
    first = str(error).strip().split("\n")[0][:200]
    return first or ("an empty file" if path.stat().st_size == 0 else type(error).__name__)


def _of_torch(path: Path, name: object, tensor: object) -> Stored:
    is_dense = isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.device.type == "cpu"
    if not isinstance(name, str) or not isinstance(tensor, torch.Tensor) or not is_dense or tensor.dtype not in _TORCH_TYPES:
        kind = f"{tensor.dtype} ({tensor.device}, {tensor.layout})" if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        what = f"{path}: {name!r:.80} is {kind.replace('torch.', '')}"
        raise FileFormatError(message(what, "a state_dict: names with tensors of MindSpore's types"))
    type_name = _TORCH_TYPES[tensor.dtype]
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return Stored(name, type_name, tuple(plain.shape), (plain.view(torch.uint16) if type_name == _BITS else plain).numpy())
