"""`mindspore._extends.parse.compile_config`: variables of MindSpore's compiler that a program sets."""
from __future__ import annotations

from collections.abc import Iterator

import mindspore as ms
import pytest
from mindspore import Tensor
from mindspore._extends.parse import compile_config


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    yield
    compile_config.GRAD_FOR_SCALAR = compile_config.CHECK_BPROP = ""


def test_grad_for_scalar_acts(mode: int) -> None:
    def product(x, y):
        return x * y

    assert ms.grad(product, 1)(Tensor(2.0), 3.0) == ()
    compile_config.GRAD_FOR_SCALAR = 1
    assert float(ms.grad(product, 1)(Tensor(2.0), 3.0)) == 2 and ms.get_context("grad_for_scalar")
    compile_config.GRAD_FOR_SCALAR = ""
    assert ms.grad(product, 1)(Tensor(2.0), 3.0) == () and not ms.get_context("grad_for_scalar")


def test_check_bprop_is_the_option() -> None:
    compile_config.CHECK_BPROP = "1"
    assert ms.get_context("check_bprop")


def test_other_variables_keep_their_values() -> None:
    assert compile_config.GRAD_JIT_FILTER == "1" and compile_config.BOOST_PARSE == ""
    compile_config.BOOST_PARSE = 1
    assert compile_config.BOOST_PARSE == 1
    compile_config.BOOST_PARSE = ""
