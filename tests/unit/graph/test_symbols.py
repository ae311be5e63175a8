"""Open axes with a Symbol in their place, and those that `enable_dynamic` names."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Symbol, Tensor, enable_dynamic, nn


class Double(nn.Cell):
    """Twice its input."""

    def construct(self, x: Tensor) -> Tensor:
        return x * 2


def _ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


@pytest.fixture
def graphs():
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.usefixtures("graphs")
def test_lengths_are_compared_with_symbols() -> None:
    net, side = Double(), Symbol(divisor=2, max=16, unique=True)
    net.set_inputs(Tensor(shape=[side, side, None], dtype=ms.float32))
    assert net(_ones(4, 4, 3)).shape == (4, 4, 3) and net(_ones(8, 8, 5)).shape == (8, 8, 5)
    for shape, text in (((3, 3, 2), "axis 0 of 3 elements: expected a length that fits"), ((18, 18, 2), "axis 0 of 18 elements"),
                        ((4, 6, 2), "axis 1 of 6 elements: expected 4, as of the other axes of this unique Symbol")):
        with pytest.raises(ValueError, match=text):
            net(_ones(*shape))


def test_what_a_symbol_says() -> None:
    assert str(Symbol(max=16, divisor=2)) == "{'max': 16, 'divisor': 2}" and Symbol().to_dict() == {}
    assert Symbol(divisor=4, remainder=1).fits(5) and not Symbol(divisor=4, remainder=1).fits(1)
    wrong = (({"max": "a"}, TypeError), ({"unique": 1}, TypeError), ({"min": 0}, ValueError), ({"remainder": 1}, ValueError))
    for arguments, kind in wrong:
        with pytest.raises(kind, match="Symbol"):
            Symbol(**arguments)  # type: ignore[arg-type]


def test_a_function_with_open_axes_has_one_graph() -> None:
    @enable_dynamic(x=Tensor(shape=[None, 3], dtype=ms.float32))
    @ms.jit
    def double(x: Tensor, y: int) -> Tensor:
        return x * y

    assert [double(_ones(rows, 3), 2).shape for rows in (2, 4, 7)] == [(2, 3), (4, 3), (7, 3)]
    assert [len(entry.graphs) for entry in double._graphs_.values()] == [1]
    for arguments, kind, text in (
        ({}, ValueError, "expected arguments by name"), ({"x": 3}, TypeError, "a Tensor, or a tuple or list of them"),
        ({"x": _ones(2)}, TypeError, "a Tensor with an axis that is None"),
    ):
        with pytest.raises(kind, match=text):
            enable_dynamic(**arguments)
    with pytest.raises(ValueError, match=r"enable_dynamic\(z=\.\.\.\)"):
        enable_dynamic(z=Tensor(shape=None, dtype=ms.float32))(lambda x: x)
