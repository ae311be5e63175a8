"""Strategies of operators with axes that stay uncut, of operators whose shard a program defines, and of Custom."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Layout, Parameter, Tensor, nn, ops

from torchspore.distributed.shard import strategy_validation
from torchspore.errors import StrategyRefused

BOXES, IMAGES = (32, 4), (8, 16, 16, 3)


@pytest.mark.parametrize("name,attributes,shapes,good,bad,reason", [
    ("FFT", {"dim": 0}, [(4, 4, 4)], ((1, 2, 2),), ((2, 2, 1),), "axis 0 is transformed"),
    ("FFT2", {}, [(4, 4, 4)], ((4, 1, 1),), ((1, 2, 2),), "axis 1 is transformed"),
    ("FFTN", {}, [(4, 4, 4)], ((1, 1, 1),), ((2, 1, 1),), "axis 0 is transformed"),
    ("FFTShift", {"axes": (1, 2)}, [(4, 4, 4)], ((4, 1, 1),), ((2, 2, 1),), "axis 1 is transformed"),
    ("DCT", {"axis": -1}, [(4, 4, 4)], ((2, 2, 1),), ((1, 2, 2),), "axis 2 is transformed"),
    ("Cholesky", {}, [(4, 4, 4)], ((4, 1, 1),), ((2, 2, 1),), "axis 1 belongs to a matrix"),
    ("BoundingBoxEncode", {}, [BOXES, BOXES], ((4, 1), (4, 1)), ((4, 1), (2, 1)), "as where the same axis stands before"),
    ("CheckValid", {}, [BOXES, (3,)], ((4, 1), (1,)), ((2, 2), (1,)), "can't be cut"),
    ("IOU", {}, [BOXES, BOXES], ((2, 1), (2, 1)), ((2, 2), (1, 1)), "can't be cut"),
    ("CropAndResize", {}, [IMAGES, BOXES, (32,)], ((2, 1, 1, 1), (2, 1), (2,)), ((2, 1, 1, 1), (2, 1), (1,)), "as where the same axis"),
    ("ROIAlign", {}, [(8, 4, 8, 8), (32, 5)], ((2, 1, 1, 1), (2, 1)), ((2, 1, 2, 1), (1, 1)), "can't be cut"),
    ("Cdist", {}, [(4, 8, 2), (4, 6, 2)], ((2, 2, 1), (2, 1, 1)), ((2, 2, 1), (1, 2, 1)), "as where the same axis"),
    ("Outer", {}, [(8,), (8,)], ((2,), (2,)), ((3,), (1,)), "a power of 2"),
    ("GridSampler2D", {}, [(8, 4, 8, 8), (8, 2, 2, 2)], ((2, 2, 1, 1), (2, 1, 1, 1)), ((2, 1, 2, 1), (2, 1, 1, 1)), "can't be cut"),
    ("RandomChoiceWithMask", {}, [BOXES], ((1, 1),), ((4, 1),), "can't be cut"),
    ("SoftplusExt", {}, [BOXES], ((4, 1),), ((1, 4), (1,)), "1 tuple"),
    ("LeftShift", {}, [BOXES, BOXES], ((4, 1), (4, 1)), ((4, 1), (2, 1)), "as where the same axis"),
    ("Conv3D", {"stride": 2, "pad_mode": "pad"}, [(4, 4, 8, 8, 8), (4, 4, 3, 3, 3)], ((1, 1, 2, 2, 1), (1, 1, 1, 1, 1)),
     ((1, 2, 1, 1, 1), (1, 1, 1, 1, 1)), "as where the same axis"),
    ("Conv3D", {"stride": 4, "pad_mode": "valid"}, [(4, 4, 8, 8, 8), (4, 4, 2, 2, 2)], ((4, 1, 1, 1, 1), (1, 1, 1, 1, 1)),
     ((1, 1, 1, 4, 1), (1, 1, 1, 1, 1)), "parts of h that the stride 4 divides"),
    ("BatchNorm", {"group_size": 2}, [(8, 8), (8,), (8,), (8,), (8,)], ((4, 1), (1,), (1,), (1,), (1,)),
     ((2, 2), (2,), (2,), (2,), (2,)), "only one of n and c cut, as group_size is 2"),
    ("BatchNorm", {"group_size": 4}, [(8, 8), (8,), (8,), (8,), (8,)], ((4, 1), (1,), (1,), (1,), (1,)), None, ""),
])
def test_rules(name: str, attributes: dict[str, Any], shapes: Any, good: Any, bad: Any, reason: str) -> None:
    strategy_validation.layouts_of(name, attributes, shapes, good, None, 4)
    if bad is not None:
        with pytest.raises(ValueError, match=reason):
            strategy_validation.layouts_of(name, attributes, shapes, bad, None, 4)


def test_a_group_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="group_size a power of two up to 4, got 3"):
        strategy_validation.layouts_of("BatchNorm", {"group_size": 3}, [(8, 8), (8,)], ((4, 1), (1,)), None, 4)


def _set(count: int) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=count, dataset_strategy="full_batch")


class _Add(nn.Cell):
    def __init__(self, flag: Any, in_strategy: Any, out_strategy: Any = None) -> None:
        super().__init__()
        self.add = ops.Add().add_prim_attr("self_define_shard", flag)
        self.add.shard(in_strategy, out_strategy)

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return self.add(x, y)


@pytest.mark.filterwarnings("ignore:device_num=")
def test_a_program_defines_the_layouts() -> None:
    _set(4)
    layout, x = Layout((2, 2), ("a", "b")), Tensor(np.ones((4, 4), np.float32))
    rows, columns = layout("a", "None"), layout("None", "b")
    assert (_Add(True, (rows, columns), (layout("a", "b"),))(x, x).asnumpy() == 2).all()           # no rule of Add allows it
    for flag, strategy in ((1, ((rows, rows), (rows,))), (True, (((2, 1), (2, 1)), None))):
        with pytest.raises(StrategyRefused, match=r"Add with self_define_shard=.*: expected True, and Layouts as in_strategy"):
            _Add(flag, *strategy)(x, x)
    with pytest.raises(StrategyRefused, match="expected a Layout of 4 devices for each of 2 Tensors"):
        _Add(True, (rows,), (rows,))(x, x)


@pytest.mark.filterwarnings("ignore:device_num=")
@pytest.mark.parametrize("of", ["layouts", "numbers"])
def test_a_tuple_of_tensors_may_have_a_tuple_of_strategies(of: str) -> None:
    _set(2)
    layout = Layout((2, 1), ("a", "b"))
    part = layout("a", "b") if of == "layouts" else (2, 1)

    class Joined(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.concat = ops.Concat(axis=1).shard(((part, part),))

        def construct(self, x: Tensor) -> Tensor:
            return self.concat([x, x])

    x = np.random.default_rng(0).random((2, 2)).astype(np.float32)
    assert (Joined()(Tensor(x)).asnumpy() == np.concatenate([x, x], 1)).all()


class _Scaled(nn.Cell):
    """A product, then a Python function on NumPy arrays with a gradient of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(np.full((8, 8), 2, np.float32)), name="weight")
        self.bias = Parameter(Tensor(np.ones((8, 8), np.float32)), name="bias")
        self.product = ops.MatMul().shard(((2, 1), (1, 2)))
        self.scale = ops.Custom(
            lambda x, both: x * both[0] + both[1], lambda x, both: x, lambda x, both: x, "pyfunc",
            bprop=lambda x, both, out, dout: (dout * 2, (dout * 3, dout * 4)),
        )
        part = Layout((2, 2), ("a", "b"))("a", "b")
        self.scale.shard((part, (part, part)), (part,))

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(self.scale(self.product(x, self.weight), (self.weight, self.bias)))


@pytest.mark.filterwarnings("ignore:device_num=")
def test_custom_is_a_node_of_a_split_graph() -> None:
    _set(4)
    net, x = _Scaled(), Tensor(np.ones((8, 8), np.float32))
    assert (net(x).asnumpy() == 33).all()
    _, gradients = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())(x)
    assert [gradient.asnumpy()[0, 0] for gradient in gradients] == [19, 4]


@pytest.mark.filterwarnings("ignore:device_num=")
def test_custom_checks_the_declared_shape() -> None:
    _set(2)

    class Wrong(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.double = ops.Custom(lambda x: x[:1], lambda x: x, lambda x: x, "pyfunc")

        def construct(self, x: Tensor) -> Tensor:
            return self.double(x)

    with pytest.raises(ValueError, match=r"a function with results of shapes \[\(1, 4\)\]: expected the declared shapes \[\(4, 4\)\]"):
        Wrong()(Tensor(np.ones((4, 4), np.float32)))
