"""Which Tensors share memory with which: names, parts, views, NumPy arrays."""
from __future__ import annotations

import copy
import pickle

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn


def test_adding_in_place_rebinds_the_name() -> None:
    x = y = Tensor([1.0, 2.0])
    x += 1
    x *= 2
    assert y.asnumpy().tolist() == [1, 2] and x.asnumpy().tolist() == [4, 6]
    assert x is not y


def test_writing_a_part_is_seen_under_every_name() -> None:
    x = y = Tensor([1.0, 2.0, 3.0])
    x[1] = 9
    x[-1:] = Tensor([7.0])
    assert y.asnumpy().tolist() == [1, 9, 7]


VIEWS = {
    "index": (lambda x: x[0], lambda x: x[0, 0]),
    "slice": (lambda x: x[0:1, 0:1], lambda x: x[0, 0]),
    "reshape": (lambda x: x.reshape(4), lambda x: x[0, 0]),
    "view": (lambda x: x.view(4), lambda x: x[0, 0]),
    "transpose": (lambda x: x.transpose(1, 0), lambda x: x[0, 0]),
    "T": (lambda x: x.T, lambda x: x[0, 0]),
    "swapaxes": (lambda x: x.swapaxes(0, 1), lambda x: x[0, 0]),
    "expand_dims": (lambda x: x.expand_dims(0), lambda x: x[0, 0]),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_a_view_writes_into_what_it_was_created_from(kind: str) -> None:
    make, first = VIEWS[kind]
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    make(x)[(0,) * make(x).ndim] = 9
    assert float(first(x)) == 9


class WritesView(nn.Cell):
    def construct(self, x):
        part = x[0]
        part[0] = 5.0
        return x + 0


def test_a_view_written_inside_a_cell_reaches_the_caller(mode: int) -> None:
    net = WritesView()
    for _ in range(2):
        x = Tensor(np.zeros((2, 2), np.float32))
        assert net(x).asnumpy().tolist() == [[5, 0], [0, 0]]
        assert x.asnumpy().tolist() == [[5, 0], [0, 0]]


def test_a_tensor_copies_an_array_and_from_numpy_shares_it() -> None:
    array = np.array([1.0, 2.0], np.float32)
    copied, shared = Tensor(array), Tensor.from_numpy(array)
    array[0] = 9
    assert copied.asnumpy().tolist() == [1, 2]
    assert shared.asnumpy().tolist() == [9, 2]
    shared[1] = 7
    assert array.tolist() == [9, 7]


def test_asnumpy_shares_memory_with_the_tensor() -> None:
    x = Tensor([1.0, 2.0])
    array = x.asnumpy()
    array[0] = 5
    assert float(x[0]) == 5
    x[1] = 6
    assert array.tolist() == [5, 6]


def test_a_parameter_copies_its_tensor() -> None:
    x = Tensor([1.0, 2.0])
    parameter = ms.Parameter(x, name="w")
    x[0] = 9
    assert parameter.asnumpy().tolist() == [1, 2]


def test_copies_and_pickles_stand_alone() -> None:
    x = Tensor([1.0, 2.0])
    x.note = "kept"
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert copied.asnumpy().tolist() == [1, 2] and copied.dtype == ms.float32 and copied.note == "kept"
        copied[0] = 7
        assert float(x[0]) == 1
