"""What Python frees by itself while a trace runs is nothing that the call does: it happens, once, and ends no trace."""
from __future__ import annotations

import gc
from collections.abc import Iterator

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

import torchspore

X = Tensor(np.ones((2, 2), np.float32))


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Python looks for what can be freed so often that it does during a trace, and seldom enough not to before."""
    gc.collect()
    before = gc.get_threshold()
    gc.set_threshold(1000)
    yield
    gc.set_threshold(*before)
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("does", ["append", "print", "draw"])
def test_a_destructor_is_no_act_of_the_call(does: str, capsys: pytest.CaptureFixture[str]) -> None:
    freed: list[float] = []

    class Cyclic:
        def __init__(self) -> None:
            self.own = self

        def __del__(self) -> None:
            if does == "print":
                print("freed")
            freed.append(np.random.rand() if does == "draw" else 1.0)

    @ms.jit
    def call(x):
        for _ in range(40):
            x = ops.tanh(x) + 1
        return x

    for _ in range(2):
        Cyclic()
    assert freed == []
    first = call(X).asnumpy()
    assert len(torchspore.graphs(call)) == 1
    gc.collect()
    assert len(freed) == 2 and (does == "draw" or freed == [1.0, 1.0])
    assert capsys.readouterr().out == "freed\n" * 2 * (does == "print")
    np.testing.assert_array_equal(call(X).asnumpy(), first)
