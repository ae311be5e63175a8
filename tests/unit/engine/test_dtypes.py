"""dtypes are objects of their own: text, equality, hash, copies, and the ways to NumPy and Python."""
from __future__ import annotations

import copy
import pickle

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

TEXTS = {
    "float32": ("mindspore.float32", "Float32"),
    "float16": ("mindspore.float16", "Float16"),
    "bfloat16": ("mindspore.bfloat16", "BFloat16"),
    "int8": ("mindspore.int8", "Int8"),
    "uint64": ("mindspore.uint64", "UInt64"),
    "bool_": ("mindspore.bool", "Bool"),
    "complex64": ("mindspore.complex64", "Complex64"),
    "float_": ("mindspore.float", "Float"),
    "int_": ("mindspore.int", "Int"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text(name: str) -> None:
    dtype = getattr(ms, name)
    assert (repr(dtype), str(dtype)) == TEXTS[name]


def test_names_that_stand_for_others() -> None:
    assert ms.double is ms.float64 and ms.half is ms.float16 and ms.single is ms.float32 and ms.long == ms.int64
    assert ms.float_ != ms.float32 and ms.bool_ == ms.bool


def test_classes() -> None:
    from mindspore.common.dtype import Float, Int, Number, Type

    assert isinstance(ms.float32, Float) and issubclass(Float, Number) and issubclass(Number, Type)
    assert isinstance(ms.int8, Int) and not isinstance(ms.int8, Float)
    assert isinstance(ms.complex64, ms.Complex) and not isinstance(ms.float32, ms.Complex)


@pytest.mark.parametrize("dtype", ms.common.dtype.all_types, ids=repr)
def test_equality_hash_and_copies(dtype: object) -> None:
    copied = pickle.loads(pickle.dumps(dtype))
    assert copied == dtype and hash(copied) == hash(dtype) and copy.deepcopy(dtype) is dtype and copy.copy(dtype) is dtype
    assert {dtype: 1}[copied] == 1 and sum(other == dtype for other in ms.common.dtype.all_types) == 1
    assert dtype != str(dtype) and dtype != np.float32


def test_a_tensor_refuses_the_generic_float() -> None:
    with pytest.raises(TypeError):
        Tensor([1.0], ms.float_)
    with pytest.raises(TypeError):
        Tensor([1.0], np.float32)


def test_no_torch_dtype_is_ever_shown() -> None:
    import torch

    x = Tensor([1.0])
    assert not isinstance(x.dtype, torch.dtype) and not isinstance(ms.ops.dtype(x), torch.dtype)


def test_to_and_from_numpy_and_python() -> None:
    assert ms.dtype_to_nptype(ms.int16) is np.int16
    assert ms.pytype_to_dtype(float) == ms.float64 and ms.pytype_to_dtype(int) == ms.int64 and ms.pytype_to_dtype(np.float32) == ms.float32
    assert ms.dtype_to_pytype(ms.float16) is float and ms.dtype_to_pytype(ms.uint8) is int and ms.dtype_to_pytype(ms.bool_) is bool
