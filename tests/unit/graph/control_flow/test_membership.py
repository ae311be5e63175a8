"""`in` and `not in` a list or tuple of Tensors: in a graph a Tensor is a part if shapes and all elements are equal, as in MindSpore."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

ONES, OTHER_ONES, ZEROS = Tensor(np.ones((2, 2))), Tensor(np.ones((2, 2))), Tensor(np.zeros((2, 2)))
ONE, OTHER_ONE = Tensor(1), Tensor(1)


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Has(nn.Cell):
    def __init__(self, item: Any, container: Any) -> None:
        super().__init__()
        self.item, self.container = item, container

    def construct(self, x):
        return self.item in self.container, self.item not in self.container, x


@pytest.mark.parametrize(("item", "container", "is_part"), [         # measured on 2.10
    (ONES, [ZEROS], False), (ONES, [OTHER_ONES], True), (ONES, [ZEROS, "a"], False), (ONES, (ZEROS, ONES), True),
    (ONES, [ZEROS, OTHER_ONES], True), (ONES, ["a", "b"], False), (Tensor([1, 2]), [Tensor([1, 3])], False),
    (ONE, [Tensor(0), OTHER_ONE], True), (ONE, [Tensor(0), Tensor(2)], False), ("a", [ZEROS, "a"], True), (3, [1, 2], False),
])
def test_parts_of_lists_and_tuples(item: Any, container: Any, is_part: bool) -> None:
    has, has_not, _ = Has(item, container)(ZEROS)
    assert (bool(has), bool(has_not)) == (is_part, not is_part)


def test_the_values_of_a_call_decide() -> None:
    class Among(nn.Cell):
        def construct(self, x, y):
            return x * 2 if x in [y, y + 1] else x * 0

    net = Among()
    assert [float(net(Tensor([1.0]), Tensor([float(y)]))[0]) for y in (0, 1, 2)] == [2, 2, 0]


def test_the_truth_of_a_tensor_is_still_refused() -> None:
    class Tests(nn.Cell):
        def construct(self, x):
            return x if x > 0 else -x

    with pytest.raises(ValueError, match="expected a Tensor of one element"):
        Tests()(ONES)
