"""The file of ops.Print: consecutive protobuf messages, each written at once, so that the file is intact however the program ends.

`Print { repeated Value value = 1 }`, `Value { desc = 1 (a text) or tensor = 2 }`, `TensorProto { dims, tensor_type, tensor_content }`:
consecutive messages form one message, so the file is one `Print`. `read` parses it value by value.
"""
from __future__ import annotations

import atexit
import functools
import math
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torchspore.base import bfloat16
from torchspore.base.files import BINARY, READ_ONLY, unused_names
from torchspore.base.messages import messages
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import creation
from torchspore.engine.tensors.dtypes import FROM_TORCH

MOST = 2**31
"""Bytes that one call may write: protobuf has no larger messages."""
TYPES: dict[str, Any] = {
    "Int8": np.int8, "UInt8": np.uint8, "Int16": np.int16, "UInt16": np.uint16, "Int32": np.int32, "UInt32": np.uint32, "Int64": np.int64,
    "UInt64": np.uint64, "Float16": np.float16, "Float32": np.float32, "Float64": np.float64, "Bool": np.bool_, "BFloat16": np.uint16,
    "Complex64": np.complex64, "Complex128": np.complex128,
}
"""The names of dtypes in the file, with what holds their bytes."""


@functools.cache
def _messages() -> dict[str, Any]:
    return messages("prntpb", {
        "TensorProto": "1 dims int64*, 2 tensor_type string, 3 tensor_content bytes",
        "Value": "1 desc string, 2 tensor TensorProto",
        "Print": "1 value Value*",
    })


class PrintFile:
    """A file that prints go to; it is made, with its folder, when the first one comes."""

    def __init__(self, path: str, most: int = MOST) -> None:
        self.path, self._most = Path(path), most
        self._handle: int | None = None
        self._process = 0
        self._size = 0
        self._is_full = self._is_lost = False
        self._lock = threading.Lock()

    def write(self, pieces: Sequence[tuple[str, Any]], line: str | None) -> None:
        """Write the values that the call of ops.Print at `line` prints. Raises ValueError for 2 GB or more.

        If the disk is full, it warns once and writes nothing more; earlier output stays intact. Call it if the file `is_ready`.
        """
        size = sum(_bytes_of(value) for _, value in pieces)
        if size >= self._most:
            raise ValueError(f"expected less than 2 GB in one call, got {size / 2**30:.1f} GB.\n\nhint: print a part of it.")
        message_ = _messages()["Print"]()
        for kind, value in pieces:
            _put(message_.value.add(), kind, value)
        with self._lock:
            if not self._is_full:
                self._append(message_.SerializeToString(), line)

    def is_ready(self, line: str | None) -> bool:
        """Return whether the file is there, made now if need be. Where it can't be made a warning says so once, for the call at `line`."""
        with self._lock:
            if self._is_lost:
                return False
            if self._handle is None or self._process != os.getpid():   # a forked process has a separate file
                try:
                    self._open()
                except OSError as error:
                    self._is_lost = True
                    _warn(line, f"{self.path} can't be created ({error.strerror or error}); ops.Print writes to the screen.")
            return not self._is_lost

    def _append(self, contents: bytes, line: str | None) -> None:
        assert self._handle is not None
        try:
            view = memoryview(contents)
            while view:
                view = view[os.write(self._handle, view):]
            self._size += len(contents)
        except OSError as error:
            self._is_full = True
            os.ftruncate(self._handle, self._size)
            _warn(line, f"{self.path} can't be written any more ({error.strerror}); the program continues without it, and what is in it "
                  "stays readable.")

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for path in unused_names(self.path):
            try:
                self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
                break
            except FileExistsError:
                continue
        else:
            raise FileExistsError(17, "File exists", str(self.path))
        self.path, self._process, self._size = path, os.getpid(), 0
        atexit.register(self.close)

    def close(self) -> None:
        """Close the file after its last write."""
        with self._lock:
            if self._handle is not None and self._process == os.getpid():
                if hasattr(os, "fchmod"):                               # Windows before Python 3.13 lacks it
                    os.fchmod(self._handle, READ_ONLY)
                os.close(self._handle)
            self._handle = None


def _warn(line: str | None, text: str) -> None:
    if FRONT.warn is not None:
        FRONT.warn(f"{line or 'Print'}: {text}")


def _bytes_of(value: Any) -> int:
    return value.numel() * value.element_size() if isinstance(value, torch.Tensor) else len(str(value))


def _put(message_: Any, kind: str, value: Any) -> None:
    if kind == "text" or (isinstance(value, int) and not -(2**63) <= value < 2**63):     # no dtype contains such a number
        message_.desc = str(value).encode(errors="backslashreplace").decode()                 # nor UTF-8 half a pair
        return
    if kind == "number":
        dtype = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else torch.float32
        value = torch.tensor(value, dtype=dtype)
    message_.tensor.dims.extend(value.shape)
    message_.tensor.tensor_type = str(FROM_TORCH[value.dtype])
    value = value.detach().cpu().contiguous()
    array = value.view(torch.int16).numpy() if value.dtype is torch.bfloat16 else creation.array_of(value)
    message_.tensor.tensor_content = array.tobytes()


# ---- reading

class Damaged(ValueError):
    """The damage of a file, and the byte at which it begins; `is_frame` says that the rest cannot be read either."""

    def __init__(self, reason: str, is_frame: bool) -> None:
        super().__init__(reason)
        self.is_frame = is_frame


Parsed = str | tuple[np.ndarray[Any, Any], str]


def read(path: str) -> Iterator[Parsed | Damaged]:
    """Yield the texts and (values, dtype) in the file, in order, and a Damaged for each that cannot be read. Raises OSError.

    Bfloat16 values are returned as float32 with their dtype's name. Allocated memory never exceeds the size of the file.
    """
    with open(path, "rb", opener=_plain) as file:
        size = os.fstat(file.fileno()).st_size
        while (at := file.tell()) < size:
            head = file.read(1)
            length = _number(file)
            if head != b"\x0a" or length is None:
                yield Damaged(f"at byte {at} no value begins", True)
                return
            if length > size - file.tell():
                yield Damaged(f"the value at byte {at} has {length} bytes, of which {size - file.tell()} are there", True)
                return
            yield _value(file.read(length), at)


def _plain(path: str, flags: int) -> int:
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | BINARY)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path}: expected a plain file.")
    return handle


def _number(file: Any) -> int | None:
    """Return the number at this position of the file, seven bits in each byte."""
    number = 0
    for shift in range(0, 64, 7):
        byte = file.read(1)
        if not byte:
            return None
        number |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return number
    return None


def _value(contents: bytes, at: int) -> Parsed | Damaged:
    from google.protobuf.message import DecodeError

    message_ = _messages()["Value"]()
    try:
        message_.ParseFromString(contents)
    except DecodeError:
        return Damaged(f"the value at byte {at} is neither a text nor a tensor", False)
    if message_.HasField("desc"):
        return str(message_.desc)
    kind, dims, content = message_.tensor.tensor_type, list(message_.tensor.dims), message_.tensor.tensor_content
    if kind not in TYPES:
        return Damaged(f"the tensor at byte {at} has the unknown type {kind!r:.40}", False)
    if dims == [0] and len(content) == np.dtype(TYPES[kind]).itemsize:
        dims = []                                   # an older form of a scalar
    if any(length < 0 for length in dims) or math.prod(dims) * np.dtype(TYPES[kind]).itemsize != len(content):
        return Damaged(f"the tensor at byte {at} of shape {dims} in {kind} has {len(content)} bytes", False)
    values = np.frombuffer(content, TYPES[kind]).reshape(dims)
    if kind == "BFloat16":
        values = bfloat16.to_float32(values)
    return values.copy(), kind
