"""No operator shows torch's own words, whatever it is given; the user's line comes first and a Python kind of error out."""
from __future__ import annotations

import re

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

from torchspore.errors import WrongAxes
from torchspore.mindspore.ops.declaration.declare import OPERATORS

FOREIGN = re.compile(r"\baten|mat1 and mat2|\btorch|\bc10\b|at::|\b0x|tensor a\b|Traceback|TORCH_CHECK", re.I)
X, Y = Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((4, 5), np.float32))
ARGUMENTS = {
    "nothing": (), "a text": ("a",), "None": (None,), "a list": ([1.0, 2.0],), "an object": (object(),), "an array": (np.ones(2),),
    "two shapes": (X, Y), "text and number": (X, "a"), "too many": (X,) * 12, "truth": (Tensor([True]),), "integers": (
        Tensor([1, 2]), Tensor([7, 9]),
    ),
    "mixed": (X, X.astype(ms.float16)), "far axis": (X, 9), "negative": (X, -9), "three": (X, Y, X), "vector": (Tensor([1.0]), 0, 0, 0),
}
KINDS = (TypeError, ValueError, IndexError, ZeroDivisionError, NotImplementedError, WrongAxes)


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_bad_arguments(arguments: str) -> None:
    strange = []
    for name, operator in OPERATORS.items():
        try:
            operator.function(*ARGUMENTS[arguments])
        except Exception as error:
            text = str(error).replace(__file__, "this file")       # a folder may be called torch
            if not isinstance(error, KINDS) or FOREIGN.search(text) or len(text.splitlines()) > 12:
                strange.append(f"{name}: {type(error).__name__}: {text}")
    assert not strange, "\n".join(strange)
