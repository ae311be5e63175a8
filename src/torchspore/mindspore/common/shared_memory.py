"""Tensors in foreign memory: Python buffers and DLPack capsules."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore.common.tensor import Tensor


def frombuffer(buffer: Any, dtype: Any, count: int = -1, offset: int = 0) -> Tensor:
    """A Tensor of one axis on `count` numbers (-1: all) of `buffer`, from byte `offset` on; a writable buffer is shared.

    Raises TypeError for a value that is not a buffer and for another dtype, ValueError for numbers outside the buffer.
    """
    try:
        view = memoryview(buffer)
        width = np.dtype(dtypes.to_numpy(dtype)).itemsize
    except (TypeError, ValueError, KeyError):
        expected = "a buffer of bytes, and a dtype such as mindspore.float32"
        raise TypeError(message(f"frombuffer({short(buffer)}, dtype={short(dtype)})", expected)) from None
    size = view.nbytes
    call = f"frombuffer(count={count}, offset={offset}) of {size} bytes in elements of {width}"
    if size == 0 or count == 0 or count < -1:
        raise ValueError(message(call, "bytes, and -1 or a count from 1 on"))
    if not 0 <= offset < size:
        raise ValueError(message(call, f"an offset from 0 to {size - 1}"))
    if (size - offset) % width if count == -1 else size - offset < count * width:
        raise ValueError(message(call, "complete elements after the offset, and enough of them"))
    array = np.frombuffer(view, dtypes.to_numpy(dtype), count, offset)
    return Tensor.from_numpy(array if array.flags.writeable else array.copy())


def to_dlpack(tensor: Tensor) -> Any:
    """Return a capsule with the memory of `tensor` for another library, for one use. Raises TypeError for a value that is not a Tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(message(f"to_dlpack({short(tensor)})", f"a Tensor, got {type(tensor).__name__}"))
    return tensor.__dlpack__()


def from_dlpack(dlpack: Any) -> Tensor:
    """Return a Tensor in the memory of a capsule, or of an array of another library that has `__dlpack__`.

    A torch tensor and a Tensor keep their gradient.

    Raises:
        TypeError: `dlpack` is neither, or its numbers have no dtype in MindSpore.
        RuntimeError: its memory is read-only, or a gradient that a capsule cannot carry would be lost.
    """
    from torchspore.engine.tensors import creation, torch_interop

    if isinstance(dlpack, Tensor):
        return engine.wrap(raw(dlpack))  # type: ignore[no-any-return]
    if creation.is_torch_tensor(dlpack):
        return engine.wrap(torch_interop.enter(dlpack))  # type: ignore[no-any-return]
    if type(dlpack).__name__ != "PyCapsule" and not hasattr(dlpack, "__dlpack__"):
        expected = "a capsule from to_dlpack, which can be used once, or an array with __dlpack__"
        raise TypeError(message(f"from_dlpack({short(dlpack)})", expected))
    return creation.from_capsule(dlpack)  # type: ignore[no-any-return]
