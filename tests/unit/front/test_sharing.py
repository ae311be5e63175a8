"""Tensors in the memory of buffers and of DLPack's capsules; errors are RuntimeErrors, as in 2.10."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor
from mindspore.utils.dlpack import from_dlpack, to_dlpack

BYTES = np.array([1.0, 2.0, 3.0], np.float32).tobytes()


def test_a_tensor_of_a_buffer() -> None:
    assert ms.frombuffer(BYTES, ms.float32).asnumpy().tolist() == [1.0, 2.0, 3.0]
    assert ms.frombuffer(BYTES, dtype=ms.float32, count=1, offset=4).asnumpy().tolist() == [2.0]
    memory = bytearray(BYTES)
    shared = ms.frombuffer(memory, dtype=ms.float32)
    memory[:4] = np.float32(9).tobytes()
    assert shared.asnumpy().tolist() == [9.0, 2.0, 3.0]


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: ms.frombuffer("abc", dtype=ms.int8), "expected a buffer of bytes, and a dtype"),
    (lambda: ms.frombuffer(BYTES, dtype=3), "expected a buffer of bytes, and a dtype"),
    (lambda: ms.frombuffer(BYTES, dtype=ms.float32, count=9), "expected complete elements after the offset"),
    (lambda: ms.frombuffer(BYTES[:5], dtype=ms.float32), "expected complete elements after the offset"),
    (lambda: ms.frombuffer(BYTES, dtype=ms.float32, offset=12), "expected an offset from 0 to 11"),
    (lambda: ms.frombuffer(b"", dtype=ms.float32), "expected bytes, and -1 or a count from 1 on"),
    (lambda: from_dlpack(3), "expected a capsule from to_dlpack, which can be used once, or an array with __dlpack__"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_what_is_none(call: Callable[[], Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        call()


def test_a_capsule_carries_the_memory() -> None:
    x = Tensor([1.0, 2.0])
    y = from_dlpack(to_dlpack(x))
    y[0] = 5.0
    assert x.asnumpy().tolist() == [5.0, 2.0] and Tensor.from_dlpack(Tensor.to_dlpack(x)).shape == (2,)
    with pytest.raises(TypeError, match=r"to_dlpack\(3\): expected a Tensor, got int"):
        to_dlpack(3)
