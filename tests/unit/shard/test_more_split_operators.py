"""Split graphs: lookups by numbers of several axes, operators of inference, constants that operators read, one device."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor
from mindspore.ops import operations as P
from mindspore.ops.auto_generate import ApplyRotaryPosEmb, IndexSelect, WeightQuantBatchMatmul
from mindspore.ops.operations._infer_ops import KVCacheScatterUpdate, MoeGatingTopKSoftmax

from torchspore.errors import StrategyRefused

_RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def reset() -> Iterator[None]:
    yield
    ms.reset_auto_parallel_context()


def _random(*shape: int) -> Tensor:
    return Tensor(_RANDOM.normal(size=shape).astype(np.float32))


def _split(devices: int = 8) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=devices, dataset_strategy="full_batch")


class _Call(nn.Cell):
    def __init__(self, primitive: Any, *rest: Any) -> None:
        super().__init__()
        self.primitive, self.rest = primitive, rest

    def construct(self, *tensors: Tensor) -> Any:
        return self.primitive(*tensors, *self.rest)


class _Gradient(nn.Cell):
    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net = net

    def construct(self, x: Tensor, index: Tensor) -> Any:
        return ops.grad(self.net)(x, index)


class _Lookup(nn.Cell):
    def __init__(self, axis: int, batch_dims: int, strategy: Any, out_strategy: Any = None) -> None:
        super().__init__()
        self.gather, self.axis = P.Gather(batch_dims), axis
        if strategy is not None:
            self.gather.shard(strategy, out_strategy)
        self.relu = P.ReLU()

    def construct(self, x: Tensor, index: Tensor) -> Tensor:
        return self.relu(self.gather(x, index, self.axis))


_LOOKUPS: list[tuple[tuple[int, ...], tuple[int, ...], int, int, Any, Any]] = [
    ((16, 8), (4, 8), 0, 0, ((1, 2), (1, 4)), None), ((16, 8), (4, 8), 0, 0, ((2, 1), (2, 2)), None),
    ((16, 8), (4, 8), 0, 0, ((2, 1), (2, 2)), ((4, 2, 1),)), ((4, 16, 8), (4, 2), 1, 0, ((2, 1, 2), (1, 2)), None),
    ((4, 16), (4, 8), 1, 1, ((2, 1), (2, 4)), None), ((4, 16, 6), (4, 8, 2), 1, 1, ((2, 1, 2), (2, 2, 1)), None),
    ((2, 4, 16, 2), (2, 4, 8), 2, 2, ((2, 1, 1, 2), (2, 1, 2)), None),
]


@pytest.mark.parametrize("shape,index_shape,axis,batch_dims,strategy,out_strategy", _LOOKUPS)
def test_lookups_and_their_gradients(
    shape: Any, index_shape: Any, axis: int, batch_dims: int, strategy: Any, out_strategy: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, index = _random(*shape), Tensor(_RANDOM.integers(0, shape[axis], index_shape).astype(np.int32))
    plain = _Lookup(axis, batch_dims, None)
    expected = plain(x, index).asnumpy(), _Gradient(plain)(x, index).asnumpy()
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    _split()
    net = _Lookup(axis, batch_dims, strategy, out_strategy)
    assert np.array_equal(net(x, index).asnumpy(), expected[0])
    assert np.allclose(_Gradient(net)(x, index).asnumpy(), expected[1], atol=1e-6)


def test_a_lookup_by_two_axes_exchanges_nothing() -> None:
    _split()
    net = _Lookup(0, 0, ((1, 2), (1, 4)))
    net.relu.shard(((1, 4, 2),))
    phase, _ = _cell_graph_executor.compile(net, _random(16, 8), Tensor(np.ones((4, 8), np.int32)))
    (operators,) = _cell_graph_executor._graph_executor.get_parallel_graph_info(phase).values()
    assert operators["ReLU-0"]["inputs"] == ["Gather-0"]


def test_group_norm_over_a_batch_that_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = nn.GroupNorm(2, 4), _random(8, 4, 3, 3)

    class Gradient(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.weights = net, ms.ParameterTuple(net.trainable_params())

        def construct(self, x: Tensor) -> Any:
            return ops.GradOperation(get_all=True, get_by_list=True)(lambda t: (self.net(t) ** 3).sum(), self.weights)(x)

    ms.set_context(mode=ms.GRAPH_MODE)
    expected = Gradient()(x)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    _split()
    for ours, plain in zip((Gradient()(x)[0][0], *Gradient()(x)[1]), (expected[0][0], *expected[1])):
        assert np.allclose(ours.asnumpy(), plain.asnumpy(), atol=1e-4)


def _weight_product() -> tuple[Any, list[Any]]:
    weight = Tensor(_RANDOM.integers(-9, 9, (8, 4)).astype(np.int8))
    return WeightQuantBatchMatmul().shard(((1, 2), (2, 2), (2,))), [_random(4, 8), weight, _random(4)]


def _rotation() -> tuple[Any, list[Any]]:
    strategy = ((2, 1, 2, 1), (2, 1, 2, 1), (1, 1, 1, 1), (1, 1, 1, 1), (1,))
    tensors: list[Any] = [_random(2, 3, 2, 4), _random(2, 3, 2, 4), _random(2, 3, 1, 4), _random(2, 3, 1, 4)]
    return ApplyRotaryPosEmb(1).shard(strategy), [*tensors, Tensor([3, 3], ms.int32)]


def _selection() -> tuple[Any, list[Any]]:
    return IndexSelect().shard(((4, 1), (1,))), [_random(8, 4), 0, Tensor([1, 7, 3, 3], ms.int32)]


@pytest.mark.parametrize("make", [_weight_product, _rotation, _selection])
def test_split_operators_compute_the_same(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    primitive, tensors = make()
    expected = _Call(primitive)(*tensors)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    _split(4)
    got = _Call(primitive)(*tensors)
    for ours, plain in zip(got if isinstance(got, tuple) else (got,), expected if isinstance(expected, tuple) else (expected,)):
        assert np.allclose(ours.asnumpy(), plain.asnumpy(), atol=1e-5)


def test_a_cache_is_written_in_its_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    _split(2)
    cache = Parameter(Tensor(np.zeros((1, 2, 4, 3), np.float32)), name="cache")

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.cache, self.update = cache, KVCacheScatterUpdate().shard(((1, 2, 1, 1), (1,), (1, 2, 1, 1)))

        def construct(self, new: Tensor) -> Tensor:
            return self.update(self.cache, Tensor([2]), new, -2, "update")

    net, new = Net(), _random(1, 2, 1, 3)
    net(new)
    assert np.array_equal(cache.asnumpy()[:, :, 2], new.asnumpy()[:, :, 0]) and net.parameter_layout_dict["cache"][2] == [1, 1, 4, 3]


@pytest.mark.parametrize("operator,strategy,shapes,expected", [
    ("MoeInitRouting", ((2, 1), (1, 1), (1, 1)), [(4, 8), (4, 2), (4, 2)], "1 at axis 0 of input 0, which can't be cut"),
    ("PagedAttention", ((1, 1, 8), (1, 1, 4, 1), (1, 1, 4, 1), (1, 1), (1,)), [(1, 1, 64), *[(4, 2, 8, 8)] * 2, (1, 4), (1,)],
     "8 at axis 2"),
    ("IncreFlashAttention", ((2, 1, 2),) * 3 + ((4, 1, 1),), [(4, 1, 64), *[(4, 8, 64)] * 2, (4, 1, 8)], "2 at axis 0 of input 3"),
    ("LinSpace", ((4,),), [(), ()], "a number that divides 10"),
])
def test_refused_strategies(operator: str, strategy: Any, shapes: Any, expected: str) -> None:
    from torchspore.distributed.shard.strategy_validation import layouts_of

    attributes = {"num": 10, "num_heads": 8, "input_layout": "BSH"}
    with pytest.raises(ValueError, match=expected):
        layouts_of(operator, attributes, shapes, strategy, None, 8)


class _Filled(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fill, self.pad, self.mul = P.FillV2(), P.PadV3(), P.Mul().shard(((2, 1), (2, 1)))
        self.paddings = Tensor([1, 1], ms.int32)

    def construct(self, x: Tensor) -> Tensor:
        return self.pad(self.mul(x, self.fill(Tensor([4, 2], ms.int32), Tensor(3, ms.float32))), self.paddings, 0)


def test_operators_read_constant_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    _split(2)
    net, x = _Filled(), _random(4, 2)
    assert np.array_equal(net(x).asnumpy(), np.pad(x.asnumpy() * 3, ((0, 0), (1, 1))))
    net.paddings.assign_value(Tensor([0, 2], ms.int32))
    assert np.array_equal(net(x).asnumpy(), np.pad(x.asnumpy() * 3, ((0, 0), (0, 2))))


def test_one_device_checks_strategies_and_describes_parameters() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    _split(1)
    x = Parameter(_random(4, 8), name="x")
    net = _Call(MoeGatingTopKSoftmax().shard(((1, 1),)), None, 2)
    net.compile(x)
    assert net.parameter_layout_dict["x"][:3] == ([1], [-1, -1], [4, 8])
    with pytest.raises(StrategyRefused, match="MoeGatingTopKSoftmax of shapes"):
        _Call(MoeGatingTopKSoftmax().shard(((2, 1),)), None, 2).compile(x)


def test_an_elementwise_operator_has_a_strategy_for_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    _split(2)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.add = P.Add().shard(((2, 1), (2, 1)))

        def construct(self, x: Tensor) -> Tensor:
            return self.add(5, x)

    x = _random(4, 2)
    assert np.allclose(Net()(x).asnumpy(), x.asnumpy() + 5)


def test_the_attribute_layout_replaces_the_strategy() -> None:
    _split(8)
    relu = P.ReLU().shard(((2, 2, 2),))
    relu.add_prim_attr("layout", {"dev_matrix": (2, 2, 2), "input_tensor_map": ((2, 0, 1),)})
    net = _Call(relu)
    phase, _ = _cell_graph_executor.compile(net, _random(4, 4, 4))
    (operators,) = _cell_graph_executor._graph_executor.get_parallel_graph_info(phase).values()
    assert operators["ReLU-0"]["attrs"]["inputs_tensor_map"] == "((2, 0, 1))"


def test_a_split_graph_dumps_full_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.product, self.dump = ops.MatMul().shard(((2, 1), (1, 1))), ops.TensorDump()

        def construct(self, x: Tensor, y: Tensor) -> Tensor:
            z = self.product(x, y)
            self.dump(str(tmp_path / "z"), z)
            return z.sum()

    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    assert float(Net()(Tensor(x), Tensor(x))) == (x @ x).sum()
    paths = list(tmp_path.iterdir())
    assert paths and all((np.load(path) == x @ x).all() for path in paths)
