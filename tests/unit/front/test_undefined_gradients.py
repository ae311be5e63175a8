"""Operators without a gradient: a TypeError that names the user's line, the operator and what to write."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint, ops

X = Tensor([0.5, -2.0, 0.0, 0.5])
CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "heaviside": (lambda x: ops.heaviside(x, x), "heaviside"),
    "unique": (lambda x: ops.unique(x)[0], "unique"),
    "unique_consecutive": (lambda x: mint.unique_consecutive(x), "unique_consecutive"),
    "geqrf": (lambda x: ops.geqrf(x.reshape(2, 2))[0], "geqrf"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_message(name: str, mode: int) -> None:
    function, shown = CALLS[name]
    with pytest.raises(TypeError) as raised:
        ms.grad(function)(X)
    location, _, rest = str(raised.value).partition(": ")
    assert Path(location.partition(":")[0]).name == Path(__file__).name
    assert rest == (
        f"the gradient of {shown} is not defined.\n\n"
        "hint: write ops.stop_gradient(x) for its inputs, or differentiate with respect to other values."
    )


def test_the_message_of_a_complete_qr() -> None:
    with pytest.raises(TypeError, match=r"the gradient of qr with mode='complete' is not defined for a matrix of more rows than columns\."):
        ms.grad(lambda x: ops.qr(x, "complete")[1])(Tensor(np.arange(6.0).reshape(3, 2), ms.float32))


def test_a_norm_refuses_a_dtype_of_integers() -> None:
    expected = r"norm\(.*\): expected a dtype of real or complex numbers, got Int32\.\n\nhint: cast the norm itself\."
    with pytest.raises(TypeError, match=expected):
        ops.norm(Tensor([1.0, 2.0]), dtype=ms.int32)
    assert ops.norm(Tensor([3.0, 4.0]), dtype=ms.float16).dtype == ms.float16
