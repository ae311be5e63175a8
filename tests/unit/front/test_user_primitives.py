"""Primitives of the program that infer shapes and dtypes, and that nothing computes."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor
from mindspore.ops import PrimitiveWithInfer, prim_attr_register

X = Tensor(np.ones((4, 4), np.float32))


class _LossGradient(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self) -> None:
        pass

    def __call__(self, x: Tensor, out: Tensor, dout: Tensor) -> Tensor:
        raise NotImplementedError

    def infer_shape(self, x: Any, out: Any, dout: Any) -> Any:
        return x

    def infer_dtype(self, x: Any, out: Any, dout: Any) -> Any:
        return x


class _Loss(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self) -> None:
        pass

    def __call__(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def get_bprop(self) -> Any:
        gradient = _LossGradient()
        return lambda x, out, dout: (gradient(x, out, dout),)

    def infer_shape(self, x: Any) -> Any:
        return [1]

    def infer_dtype(self, x: Any) -> Any:
        return x


class _Halves(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self) -> None:
        pass

    def __call__(self, x: Tensor) -> Any:
        raise NotImplementedError

    def __infer__(self, x: Any) -> Any:
        half = [x["shape"][0] // 2, *x["shape"][1:]]
        return {"shape": (half, half), "dtype": (x["dtype"], ms.int32), "value": None}


class _Net(nn.Cell):
    def __init__(self, last: Any) -> None:
        super().__init__()
        self.weight = Parameter(X, name="weight")
        self.product, self.last = ops.MatMul().shard(((2, 1), (1, 4))), last

    def construct(self, x: Tensor) -> Any:
        return self.last(self.product(x, self.weight))


class _Gradient(nn.Cell):
    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net = net

    def construct(self, x: Tensor) -> Any:
        return ops.GradOperation(get_all=True)(self.net)(x)


@pytest.fixture(autouse=True)
def graph_mode() -> Any:
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.reset_auto_parallel_context()
    ms.set_context(mode=before)


def test_a_gradient_through_it_compiles_and_does_not_run() -> None:
    net = _Gradient(_Net(_Loss()))
    _cell_graph_executor.compile(net, X)
    assert len(net._graphs_) == 1
    with pytest.raises((NotImplementedError, RuntimeError)):
        net(X)


def test_a_split_graph_with_it_has_layouts() -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    net = _Gradient(_Net(_Loss()))
    phase, _ = _cell_graph_executor.compile(net, X)
    assert net.parameter_layout_dict["net.weight"][2] == [4, 1]
    executor = _cell_graph_executor._graph_executor
    names = executor.get_parallel_graph_info(phase)["@graph_0"]
    assert any(name.startswith("MatMul-") for name in names) and executor.get_num_parallel_ops(phase) == 1


def test_two_results_by_infer() -> None:
    class Shapes(nn.Cell):
        def construct(self, x: Tensor) -> Any:
            first, second = _Halves()(x)
            assert first.shape == second.shape == (2, 4) and (first.dtype, second.dtype) == (ms.float32, ms.int32)
            return first + second

    net = Shapes()
    _cell_graph_executor.compile(net, X)
    assert len(net._graphs_) == 1


def test_a_call_in_pynative_mode_and_the_kernel_raise() -> None:
    from torchspore.mindspore.ops.declaration import user_primitives

    ms.set_context(mode=ms.PYNATIVE_MODE)
    with pytest.raises(NotImplementedError):
        _Loss()(X)
    with pytest.raises(RuntimeError) as raised:
        user_primitives._without_kernel([X._t], "_Loss", [1], X._t.dtype)
    assert str(raised.value) == (
        "_Loss: a primitive whose __call__ computes nothing: expected a primitive that computes its result.\n\n"
        "hint: define __call__(self, *inputs) on _Loss; the graph compiles without it."
    )


def test_a_primitive_that_computes_keeps_its_gradient() -> None:
    class Square(PrimitiveWithInfer):
        @prim_attr_register
        def __init__(self) -> None:
            pass

        def __call__(self, x: Tensor) -> Tensor:
            return x * x

        def get_bprop(self) -> Any:
            return lambda x, out, dout: (dout * 10,)

    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):                   # MindSpore 2.10 gives 2 too: it does not ask get_bprop
        ms.set_context(mode=mode)
        assert ms.grad(lambda x: Square()(x).sum())(X).asnumpy()[0, 0] == 2.0
