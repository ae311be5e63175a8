"""`Tensor.to`: each of its three forms acts, and what is none of them is refused."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

from torchspore.context.plan import Setting
from torchspore.context.store import STORE

X = Tensor(np.ones((2, 3), np.float32))


@pytest.mark.parametrize(("args", "keywords", "dtype"), [
    ((ms.float16,), {}, ms.float16), (("CPU",), {}, ms.float32), ((), {}, ms.float32), ((None,), {}, ms.float32),
    ((Tensor([1], ms.int8),), {}, ms.int8), ((), {"other": Tensor([1], ms.int8)}, ms.int8), ((ms.int8, True, True), {}, ms.int8),
    (("CPU", ms.int8), {}, ms.int8), ((None, ms.int8), {}, ms.int8), (("CPU:0",), {"dtype": ms.float64}, ms.float64),
])
def test_the_dtype_that_is_requested(args: Any, keywords: Any, dtype: Any) -> None:
    for call in (lambda: X.to(*args, **keywords), ms.jit(lambda: X.to(*args, **keywords))):
        assert call().dtype == dtype


def test_a_device_that_is_not_there() -> None:
    for call in (lambda: X.to("Ascend"), lambda: X.move_to("Ascend"), lambda: X.to("GPU", ms.float16)):
        with pytest.raises(RuntimeError, match=r"is requested, and (this machine has none|can't be used)|operators run on CPU"):
            call()
    with scope_forced():
        assert X.to("Ascend:3", ms.float16).dtype == ms.float16 and (X.move_to("Ascend") == X).all()


@contextmanager
def scope_forced() -> Iterator[None]:
    """As under TORCHSPORE_DEVICE=CPU."""
    STORE._forced["device_target"] = Setting("CPU", "CPU", "TORCHSPORE_DEVICE")
    try:
        yield
    finally:
        del STORE._forced["device_target"]


def test_a_copy_is_a_copy() -> None:
    copied = X.to(copy=True)
    copied[0, 0] = 5.0
    assert float(X[0, 0]) == 1.0


@pytest.mark.parametrize(("args", "keywords", "error"), [
    ((5,), {}, TypeError), ((np.float16,), {}, TypeError), ((float,), {}, TypeError), ((ms.int8, 5), {}, TypeError),
    (("float16",), {}, ValueError), ((ms.int8,), {"dtype": ms.int8}, TypeError), ((), {"kind": ms.int8}, TypeError),
    ((ms.int8, True, True, True), {}, TypeError),
])
def test_what_is_refused(args: Any, keywords: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"Tensor\.to\("):
        X.to(*args, **keywords)
