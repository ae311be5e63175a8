"""Messages between the processes of a parameter server: a metadata header, then the bytes of tensors, in chunks.

The header is a MessagePack map of strings, numbers and lists; `arrays` lists the dtype and shape of each tensor. Nothing is unpickled. A
receiver passes the largest size that it accepts, and checks the header against it before it allocates memory.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack
import torch

CHUNK = 1 << 21
"""The largest chunk in bytes."""
HEADER = 1 << 20
"""The largest header in bytes."""
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8,
                  torch.uint8, torch.bool)
}


class MalformedMessage(ValueError):
    """Bytes that are not a message, or are larger than the receiver accepts."""


@dataclass
class Message:
    """The facts of a message and its tensors, which are contiguous and in host memory."""

    facts: dict[str, Any]
    tensors: list[torch.Tensor] = field(default_factory=list)


def encode(message: Message) -> Iterator[bytes]:
    """Yield the chunks of a message: the header, then the bytes of each tensor."""
    arrays = [(str(t.dtype).removeprefix("torch."), list(t.shape)) for t in message.tensors]
    yield msgpack.packb({**message.facts, "arrays": arrays})
    for tensor in message.tensors:
        data: Any = tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().data if tensor.numel() else b""
        for start in range(0, len(data), CHUNK):
            yield bytes(data[start:start + CHUNK])


def decode(chunks: Iterable[bytes], limit: int) -> Message:
    """Read a message whose tensors have at most `limit` bytes. Raises MalformedMessage."""
    iterator = iter(chunks)
    facts = unpack(next(iterator, b""))
    arrays = facts.pop("arrays", None)
    if not isinstance(arrays, list):
        raise MalformedMessage("the header has no list 'arrays'")
    shapes = [_array(item) for item in arrays]
    sizes = [dtype.itemsize * math.prod(shape) for dtype, shape in shapes]
    if sum(sizes) > limit:
        raise MalformedMessage(f"tensors take {sum(sizes):,} bytes; the limit is {limit:,}")
    reader = _Reader(iterator)
    tensors = []
    for (dtype, shape), size in zip(shapes, sizes):
        buffer = reader.read(size)
        tensors.append(torch.frombuffer(buffer, dtype=dtype).view(shape) if size else torch.empty(shape, dtype=dtype))
    reader.expect_end()
    return Message(facts, tensors)


def unpack(data: bytes) -> dict[str, Any]:
    """Return the map in a header. Raises MalformedMessage."""
    if len(data) > HEADER:
        raise MalformedMessage(f"the header takes {len(data):,} bytes; the limit is {HEADER:,}")
    try:
        facts = msgpack.unpackb(data, strict_map_key=True, max_array_len=1 << 16, max_map_len=1 << 16)
    except (ValueError, TypeError, msgpack.exceptions.UnpackException, RecursionError) as error:
        raise MalformedMessage(f"cannot decode the header: {type(error).__name__}") from None
    if not isinstance(facts, dict):
        raise MalformedMessage(f"a header of {type(facts).__name__}")
    return facts


def _array(item: Any) -> tuple[torch.dtype, tuple[int, ...]]:
    """Return the dtype and shape of a tensor in a header."""
    if not isinstance(item, list) or len(item) != 2 or item[0] not in _DTYPES or not isinstance(item[1], list) or len(item[1]) > 16:
        raise MalformedMessage("a tensor without dtype and shape")
    if not all(type(length) is int and 0 <= length < 1 << 48 for length in item[1]):
        raise MalformedMessage("a tensor whose shape is not a list of lengths")
    return _DTYPES[item[0]], tuple(item[1])


class _Reader:
    """Cuts a stream of chunks into buffers of known sizes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, memoryview(b"")

    def read(self, size: int) -> bytearray:
        """Return the next `size` bytes."""
        buffer = bytearray(size)
        view, filled = memoryview(buffer), 0
        while filled < size:
            if not len(self._rest):
                chunk = next(self._chunks, b"")
                if not chunk:
                    raise MalformedMessage(f"the message ended after {filled:,} of a tensor's {size:,} bytes")
                self._rest = memoryview(chunk)
            count = min(len(self._rest), size - filled)
            view[filled:filled + count] = self._rest[:count]
            self._rest, filled = self._rest[count:], filled + count
        return buffer

    def expect_end(self) -> None:
        """Raise MalformedMessage if bytes remain."""
        if len(self._rest) or next(self._chunks, b""):
            raise MalformedMessage("bytes after the last tensor")


def size_of(tensors: Sequence[torch.Tensor]) -> int:
    """Return the number of bytes of tensors."""
    return sum(t.numel() * t.element_size() for t in tensors)
