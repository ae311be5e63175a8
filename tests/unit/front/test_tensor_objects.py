"""A Tensor as a Python object: attributes, weak references, subclasses, comparison with other things, hash."""
from __future__ import annotations

import weakref

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor


def test_a_tensor_takes_attributes_and_weak_references() -> None:
    x = Tensor([1.0])
    x.label = "mine"
    seen = weakref.ref(x)
    assert x.label == "mine" and seen() is x
    del x
    assert seen() is None


class Named(Tensor):
    """A subclass with an argument of its own."""

    def __init__(self, data, name):
        super().__init__(data)
        self.name = name

    def doubled(self):
        return self * 2


def test_a_tensor_can_be_subclassed() -> None:
    x = Named([1.0, 2.0], "x")
    assert isinstance(x, Tensor) and x.name == "x" and x.doubled().asnumpy().tolist() == [2, 4]


def test_comparison_with_what_is_no_number() -> None:
    x = Tensor([1.0, 2.0])
    assert (x == None) is False and (x == "a") is False  # noqa: E711
    assert (x != None) is True and (x != "a") is True  # noqa: E711


def test_hash_is_by_identity() -> None:
    x, y = Tensor([1.0]), Tensor([1.0])
    assert hash(x) == hash(x) and len({x, y}) == 2 and {x: 1}[x] == 1


def test_size_is_a_number_and_shape_a_tuple() -> None:
    x = Tensor(np.zeros((2, 3), np.float32))
    assert x.size == 6 and x.shape == (2, 3) and x.ndim == 2 and x.nbytes == 24 and x.itemsize == 4 and x.strides == (12, 4)
    assert len(x) == 2 and [row.shape for row in x] == [(3,), (3,)]


def test_what_python_asks_of_one_element() -> None:
    x = Tensor(3)
    assert int(x) == 3 and float(x) == 3.0 and bool(x) and complex(x) == 3 and [1, 2, 3, 4][x] == 4
    assert x.item() == 3 and f"{Tensor(1.5):.2f}" == "1.50"


def test_text() -> None:
    assert repr(Tensor(2)) == "Tensor(shape=[], dtype=Int64, value= 2)"
    assert repr(Tensor([1, 2])) == "Tensor(shape=[2], dtype=Int64, value= [1, 2])"
    assert repr(Tensor(2.0)) == "Tensor(shape=[], dtype=Float32, value= 2)"
    assert repr(Tensor(0.123456789)) == "Tensor(shape=[], dtype=Float32, value= 0.123457)"
    assert str(Tensor([1, 2])) == "[1 2]"
    assert repr(ms.Parameter(Tensor([1.0]), name="w")) == "Parameter (name=w, shape=(1,), dtype=Float32, requires_grad=True)"


def test_a_tensor_from_torch_shares_memory_and_torchs_record() -> None:
    torch = pytest.importorskip("torch")
    t = torch.ones(2, requires_grad=True)
    x = Tensor.from_torch(t)
    assert x.torch().requires_grad and x.torch().data_ptr() == t.data_ptr()
    with torch.no_grad():
        assert not Tensor.from_torch(t).torch().requires_grad


def test_what_is_no_number_is_in_no_tensor() -> None:
    tensor = Tensor([1.0, 2.0])
    assert 2 in tensor and 3 not in tensor
    assert not any(value in tensor for value in ("a", None, {}, object()))
