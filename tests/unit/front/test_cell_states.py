"""Buffers, state dictionaries, other dtypes, and what a Cell says of itself to code made for MindSpore's compiler."""
from __future__ import annotations

import copy
import pickle

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore._extends import cell_attr_register


class Inner(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", Tensor([1.0]))
        self.register_buffer("scratch", Tensor([9.0]), persistent=False)
        self.register_buffer("empty", None)

    def construct(self, x):
        self.count = self.count + 1
        return x * self.count


class Outer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.dense = nn.Dense(2, 1, weight_init="ones")
        self.extra = "a"

    def construct(self, x):
        return self.inner(self.dense(x))

    def get_extra_state(self):
        return {"extra": self.extra}

    def set_extra_state(self, state) -> None:
        self.extra = state["extra"]


def test_buffers(mode: int) -> None:
    net = Outer()
    assert [name for name, _ in net.named_buffers()] == ["inner.count", "inner.scratch"]
    assert [name for name, _ in net.named_buffers("net", recurse=False)] == [] and len(list(net.buffers())) == 2
    assert net.get_buffer("inner.count") is net.inner.count
    assert [parameter.name for parameter in net.get_parameters()] == ["dense.weight", "dense.bias"]
    net(Tensor([[1.0, 1.0]]))
    net(Tensor([[1.0, 1.0]]))
    assert net.get_buffer("inner.count").asnumpy().tolist() == [3.0]
    assert pickle.loads(pickle.dumps(net.inner)).get_buffer("count").asnumpy().tolist() == [3.0]


def test_state_dictionaries() -> None:
    net, other = Outer(), Outer()
    net.extra = "b"
    net.inner.count = Tensor([5.0])
    state = net.state_dict()
    assert list(state) == ["_extra_state", "inner.count", "dense.weight", "dense.bias"]
    assert state["dense.weight"] is net.dense.weight and list(net.state_dict(prefix="p."))[1] == "p.inner.count"
    assert repr(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert other.extra == "b" and float(other.inner.count) == 5.0
    net.dense.weight.set_data(Tensor([[7.0, 7.0]]))
    assert other.dense.weight.asnumpy().tolist() == [[1.0, 1.0]]
    result = other.load_state_dict({"dense.bias": Tensor([2.0]), "more": Tensor(1.0)}, strict=False)
    assert result.unexpected_keys == ["more"] and result.missing_keys == ["_extra_state", "inner.count", "dense.weight"]
    assert float(other.dense.bias) == 2.0


@pytest.mark.parametrize(("state", "kind", "text"), [
    ({}, RuntimeError, "load_state_dict into Inner: 'count' is missing in it."),
    ({"count": Tensor([1.0, 2.0])}, RuntimeError, "load_state_dict into Inner: 'count' has shape (2,), and (1,) here."),
    ({"count": Tensor([1.0]), "x": 1}, RuntimeError, "load_state_dict into Inner: 'x' is unexpected."),
    ({"count": 1}, RuntimeError, "load_state_dict into Inner: 'count' is not a Tensor but int."),
    (3, TypeError, "load_state_dict(3): expected a dict, got int."),
])
def test_what_does_not_load(state, kind, text: str) -> None:
    with pytest.raises(kind) as caught:
        Inner().load_state_dict(state)
    assert str(caught.value) == text


def test_hooks_of_the_state() -> None:
    net, seen = Inner(), []
    handles = [
        net.register_state_dict_pre_hook(lambda cell, prefix, keep: seen.append(("pre", prefix, keep))),
        net.register_state_dict_post_hook(lambda cell, state, prefix, meta: state.update(more=1)),
        net.register_load_state_dict_pre_hook(lambda cell, state, *rest: state.pop("more", None)),
        net.register_load_state_dict_post_hook(lambda cell, keys: seen.append(tuple(keys))),
    ]
    state = net.state_dict(keep_vars=True)
    assert state["more"] == 1 and seen == [("pre", "", True)]
    net.load_state_dict(state)
    assert seen[1] == ([], [])
    for handle in handles:
        handle.remove()
    assert "more" not in net.state_dict() and len(seen) == 2


def test_to_another_dtype() -> None:
    net = Outer()
    assert net.to(ms.float16) is net and net.dense.weight.dtype == ms.float16 and net.inner.count.dtype == ms.float16
    assert net.to(Tensor(1.0)).dense.bias.dtype == ms.float32 and net.to("CPU", ms.float64).dense.bias.dtype == ms.float64
    assert net.to_empty().dense.weight.shape == (1, 2)
    with pytest.raises(TypeError, match=r"^Cell\.to\(Int32\): expected a dtype of floating or complex numbers\.$"):
        net.to(ms.int32)
    with pytest.raises(TypeError, match=r"^Cell\.to\(3\): expected a device, a dtype or a Tensor, got int\.$"):
        net.to(3)


@pytest.mark.parametrize(("name", "tensor", "kind"), [
    ("count", 3, TypeError), ("a.b", Tensor(1.0), KeyError), ("", Tensor(1.0), KeyError), ("construct", Tensor(1.0), KeyError),
])
def test_buffers_that_are_refused(name: str, tensor, kind) -> None:
    with pytest.raises(kind):
        Inner().register_buffer(name, tensor)
    with pytest.raises(AttributeError, match="has no attribute 'x' that is a buffer"):
        Inner().get_buffer("x")


def test_what_a_cell_says_of_itself(mode: int) -> None:
    net = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())
    assert (net.phase, net.compile_cache, net.is_top_cell, net.parallel_parameter_name_list) == ("train", set(), False, ())
    assert net.parallel_parameter_merge_net_dict == {} and net.parameter_layout_dict == {} and not net.compiled
    net.phase, net.parameter_layout_dict = "export", {"w": [1]}
    assert (net.phase, net.parameter_layout_dict) == ("export", {"w": [1]})
    net.pipeline_stage = 1
    net.pipeline_segment = 2
    assert (net.pipeline_stage, net.pipeline_segment, hasattr(nn.ReLU(), "pipeline_stage")) == (1, 2, False)
    assert net.shard(((1, 1),)) is net and net.set_broadcast_flag() is net and net[0].get_flags()["broadcast_flag"] is True
    net.set_data_parallel()
    net.remove_redundant_parameters()
    net.update_cell_type("quant")
    net.generate_scope()
    assert net.cell_type == "quant" and net[0].get_scope() == f"Default/0-{type(net[0]).__name__}" and net.get_scope() is None
    (half, (inner,)) = net.cast_inputs((Tensor(1.0), (Tensor(2.0),)), ms.float16)
    assert half.dtype == inner.dtype == ms.float16
    x = Tensor(np.ones((1, 2), np.float32))
    np.testing.assert_array_equal(net.run_construct((x,), {}).asnumpy(), net(x).asnumpy())
    with pytest.raises(ValueError, match=r"^SequentialCell\.pipeline_stage = -1: expected an int from 0 on\. For "):
        net.pipeline_stage = -1
    with pytest.raises(TypeError, match="expected a tuple"):
        net.shard(1)


def test_cell_attr_register() -> None:
    class Mine(nn.Cell):
        @cell_attr_register
        def __init__(self, a, b=2) -> None:
            super().__init__()
            self.total = a + b

    class Named(nn.Cell):
        @cell_attr_register(attrs=["b"])
        def __init__(self, a, b=2) -> None:
            super().__init__()
            self.total = a + b

    assert Mine(1).total == 3 and Mine(1).cell_init_args == "Mine{'a': 1, 'b': 2}" and Named(1).cell_init_args == "Named{'b': 2}"
    assert copy.deepcopy(Mine(1)).cell_init_args == Mine(1).cell_init_args


def test_recomputed_cells_are_marked_in_their_scopes() -> None:
    net = nn.SequentialCell(nn.ReLU(), nn.SequentialCell(nn.ReLU()))
    net[1].recompute()
    assert [cell.get_scope() for _, cell in net.cells_and_names()] == [None, None, "recompute_", "recompute_"]
    net.generate_scope()
    inner = "recompute_Default/1-SequentialCell"
    assert [cell.get_scope() for _, cell in net.cells_and_names()] == [None, "Default/0-ReLU", inner, f"{inner}/0-ReLU"]
