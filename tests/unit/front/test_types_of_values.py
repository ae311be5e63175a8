"""`ops.typeof` and the types of MindSpore that are no dtypes: texts, classes and equality as real 2.10 has them."""
from __future__ import annotations

import pickle
from copy import deepcopy
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common import dtype as mstype

X = Tensor(np.ones(2, np.float32))


@pytest.mark.parametrize(("value", "text"), [
    (X, "Tensor[Float32]"), (Parameter(X, name="p"), "Ref[Tensor[Float32]]"), ((X, X), "Tuple[Tensor[Float32]*2]"),
    ([X], "List[Tensor[Float32]]"), ((1, 2.0, "a"), "Tuple[Int64,Float32,String]"), ([], "List[]"), ((), "Tuple[]"),
    ({"a": X}, "Dictionary[[a,],[Tensor[Float32]]]"), ({}, "Dictionary[[],[]]"), (None, "None"), ("a", "String"), (1, "Int64"),
    (1.0, "Float32"), (True, "Bool"), (slice(0, 1), "Slice[Int64 : Int64 : None]"),
    ((X, (X, 1)), "Tuple[Tensor[Float32],Tuple[Tensor[Float32],Int64]]"), ((None,), "Tuple[None]"), (ms.float32, "TypeType"),
    (nn.ReLU(), "Func"), (ops.ReLU(), "Func"), (len, "External"), (1j, "External"), (..., "Ellipsis"), (np.ones(2), "External"),
    (np.float32(1), "Float32"), (np.bool_(1), "Bool"), (np.int32(1), "External"), (range(3), "External"),
    (ms.COOTensor(Tensor([[0, 1]]), X[:1], (2, 2)), "COOTensor[Int64,Float32,Int64,Int64,]"),
])
def test_text(value: Any, text: str) -> None:
    assert str(ops.typeof(value)) == text


def test_classes_as_copied_recurrent_layers_ask_for_them(mode: int) -> None:
    class Net(nn.Cell):
        def construct(self, a: Any, b: Any) -> Any:
            pair, single, items = ops.typeof((a, b)), ops.typeof(a), ops.typeof([a])
            return (
                isinstance(pair, mstype.Tuple), isinstance(single, mstype.TensorType), isinstance(items, mstype.List),
                isinstance(single, mstype.tensor_type), isinstance(pair, mstype.tensor_type), isinstance(pair, mstype.Type),
            )

    assert Net()(X, X) == (True, True, True, True, False, True)


def test_types_can_be_built_compared_and_copied() -> None:
    assert ops.typeof(X) == mstype.TensorType(mstype.float32) != mstype.TensorType(mstype.int32)
    assert ops.typeof(X) != mstype.tensor_type == mstype.TensorType()
    assert mstype.TensorType(mstype.int32).element_type() == mstype.int32
    assert str(mstype.List((mstype.int32, mstype.float32))) == "List[Int32,Float32]"
    pair = ops.typeof((X, 1))
    for copy in (deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        assert copy == pair and hash(copy) == hash(pair)
    assert {repr(t) for t in (mstype.type_type, mstype.function, mstype.index_slices, mstype.env_type, ops.typeof(X), pair)} == {
        "mindspore.type_type", "mindspore.function", "mindspore.RowTensor", "mindspore.env_type", "mindspore.tensor[float32]",
        "mindspore.tuple_",
    }
