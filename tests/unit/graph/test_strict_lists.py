"""Lists at the level STRICT: a graph changes copies of its arguments, and returns lists of the program's state."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import pytest
from mindspore import Tensor, nn

COUNTS = [1, 2, 3]


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=ms.LAX)


@ms.jit
def _append(x: Tensor, values: list[Any]) -> Any:
    values.append(x)
    return values


@ms.jit
def _pop(x: Tensor, values: list[Any]) -> Any:
    return values.pop(0), values, x


@ms.jit
def _insert_nested(x: Tensor, values: dict[str, list[Any]]) -> Any:
    values["a"].insert(0, 7)
    return values["a"], x


@ms.jit
def _append_global(x: Tensor) -> Any:
    COUNTS.append(4)
    return x


class _Returns(nn.Cell):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.values = name, [1, [2]]

    def construct(self, x: Tensor) -> Any:
        if self.name == "list":
            return self.values
        return x.dtype if self.name == "dtype" else self.construct


def test_lists_of_arguments_are_copied() -> None:
    x, values = Tensor([1.0]), [1, 2]
    for _ in range(2):
        assert _append(x, values)[:2] == [1, 2] and values == [1, 2]
    assert _pop(x, values)[:2] == (1, [2]) and values == [1, 2]
    nested = {"a": [1]}
    assert _insert_nested(x, nested)[0] == [7, 1] and nested == {"a": [1]}


def test_other_lists_are_not_changed() -> None:
    with pytest.raises(TypeError, match="changes a list, a dict or an object in place"):
        _append_global(Tensor([1.0]))
    assert COUNTS == [1, 2, 3]


def test_lists_of_the_state_and_dtypes_are_results() -> None:
    for _ in range(2):
        assert _Returns("list")(Tensor([1.0])) == [1, [2]]
        assert _Returns("dtype")(Tensor([1.0])) == ms.float32
    with pytest.raises(RuntimeError, match=r"Function in output is not supported\."):
        _Returns("function")(Tensor([1.0]))
