"""Operators in class form: their constructors' arguments, attributes, and those that a program defines itself."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.ops import Primitive, PrimitiveWithInfer, prim_attr_register
from mindspore.ops import operations as P


def test_constructor_arguments_belong_to_the_primitive(mode: int) -> None:
    x = Tensor([[1.0, 2.0]])
    assert P.ReduceSum(keep_dims=True)(x, 1).asnumpy().tolist() == [[3]]
    assert P.ReduceSum()(x, 1).asnumpy().tolist() == [3]
    assert P.MatMul(transpose_b=True)(x, x).asnumpy().tolist() == [[5]]
    assert P.ReduceSum(True).keep_dims is True


class Affine(Primitive):
    @prim_attr_register
    def __init__(self, a, b=2):
        self.add_prim_attr("c", 3)

    def __call__(self, x):
        return x * self.a + self.b + self.c


class Inferred(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self, k):
        pass

    def infer_shape(self, x):
        return x

    def __call__(self, x):
        return x * self.k


def test_a_primitive_of_the_program() -> None:
    affine = Affine(5)
    assert affine(Tensor([1.0])).asnumpy().tolist() == [10]
    assert affine.name == "Affine" and affine.attrs == {"a": 5, "b": 2, "c": 3} and affine.init_attrs == {"a": 5, "b": 2}
    assert str(affine) == "Prim[Affine]<a=5, b=2, c=3>"
    assert Inferred(3).k == 3 and Inferred(3)(Tensor([2.0])).asnumpy().tolist() == [6]


def test_attributes_can_be_added_and_taken_away() -> None:
    affine = Affine(1)
    assert affine.add_prim_attr("tag", "x") is affine and affine.tag == "x"
    assert affine.del_prim_attr("tag") is affine and "tag" not in affine.attrs
    assert affine.set_device("CPU") is affine and affine.set_prim_instance_name("mine").instance_name == "mine"
    affine.init_prim_io_names(["x"], ["y"])
    assert affine.input_names == ["x"] and "input_names" not in str(affine)


def test_shard_keeps_the_strategy_and_changes_no_number() -> None:
    add = P.Add()
    assert add.shard(((1,), (1,))) is add and add.attrs["in_strategy"] == ((1,), (1,))
    assert add(Tensor([1.0]), Tensor([2.0])).asnumpy().tolist() == [3]
    assert add.recompute() is add and add.attrs["recompute"] is True


class Uses(nn.Cell):
    def __init__(self):
        super().__init__()
        self.own, self.sum = Affine(2), P.ReduceSum(keep_dims=True)

    def construct(self, x):
        return self.sum(self.own(x), 0)


def test_primitives_inside_cells(mode: int) -> None:
    net = Uses()
    for _ in range(2):
        assert net(Tensor(np.array([1.0, 2.0], np.float32))).asnumpy().tolist() == [16]
    assert ms.grad(net)(Tensor([1.0])).asnumpy().tolist() == [2] and ops.Primitive is Primitive


def test_a_wrong_number_of_inputs() -> None:
    x = ms.Tensor([1.0])
    for call, text in (
        (lambda: ms.ops.Abs()(x, x), "For Operator[Abs], the number of inputs should be less than or equal to 1, but got 2."),
        (lambda: ms.ops.Add()(x, x, x), "For Operator[Add], the number of inputs should be less than or equal to 2, but got 3."),
        (lambda: ms.ops.Mod()(x), "For 'S_Prim_Mod', the size of input should be 2, but got 1."),
    ):
        with pytest.raises(TypeError, match=re.escape(text)):
            call()


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("call, text", [
    (lambda x: ms.ops.ReLU()(x, True), "ReLU with 2 inputs: expected ReLU()(input)."),
    (lambda x: ms.ops.ReLU()(x, inplace=True), "ReLU with 2 inputs: expected ReLU()(input)."),
    (lambda x: ms.ops.Div()(x, x, "floor"), "Div with 3 inputs: expected Div()(input, other)."),
    (lambda x: ms.ops.auto_generate.MedianExt()(x, 0), "MedianExt with 2 inputs: expected MedianExt()(input)."),
])
def test_primitives_refuse_parameters_of_their_functions(call: Callable[[Tensor], Any], text: str, mode: int) -> None:
    class Net(ms.nn.Cell):
        def construct(self, x: Tensor) -> Any:
            return call(x)

    ms.set_context(mode=mode)
    with pytest.raises(TypeError, match=re.escape(text)):
        Net()(Tensor([1.0]))
