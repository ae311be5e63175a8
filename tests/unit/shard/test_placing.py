"""Strategies of functions and Cells, `reshard` and what `Primitive.shard` takes; 8 simulated ranks beside one device."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Layout, Parameter, Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor
from mindspore.ops import operations as P

from torchspore.context import effects
from torchspore.errors import StrategyRefused
from torchspore.graph import dispatch

GRID = Layout((2, 4), ("a", "b"))
WIDE = ((2, 4),)
HOWS: dict[str, tuple[Callable[[], Any], list[int]]] = {
    "plain": (lambda: ops.relu, [8]),
    "function": (lambda: ms.shard(ops.relu, WIDE), [2, 4]),
    "function of Layouts": (lambda: ms.ops.shard(ops.relu, (GRID("a", "b"),)), [2, 4]),
    "results": (lambda: ms.shard(ops.relu, (None,), ((4, 1),)), [4, 2]),
    "Cell": (lambda: nn.ReLU().shard(WIDE), [2, 4]),
    "results of a Cell": (lambda: nn.ReLU().shard((None,), ((4, 1),)), [4, 2]),
    "reshard": (lambda: lambda x: ms.reshard(ops.relu(x), GRID("a", "b")), [2, 4]),
}


@pytest.fixture(autouse=True)
def _eight_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")


class Net(nn.Cell):
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(np.arange(512, dtype=np.float32).reshape(16, 32) - 100), "weight")
        self.inner = inner

    def construct(self, x: Tensor) -> Tensor:
        return (self.inner(self.weight + 1) * x).sum()


X = Tensor(np.linspace(0, 1, 512, dtype=np.float32).reshape(16, 32))


@pytest.mark.parametrize("how", HOWS)
def test_a_strategy_lays_out_and_changes_no_number(how: str) -> None:
    make, grid = HOWS[how]
    alone = Net(ops.relu)(X)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    net = Net(make())
    _cell_graph_executor.compile(net, X)
    assert net.parameter_layout_dict["weight"][0] == grid
    np.testing.assert_allclose(net(X).asnumpy(), alone.asnumpy(), rtol=1e-6)


@pytest.mark.parametrize(("strategy", "expected"), [
    (((3, 1),), "a number for each axis, whose product divides 8"), (((2,),), "a number for each axis, whose product divides 8"),
    (((16, 1),), "a number for each axis, whose product divides 8"), ((Layout((2, 2), ("a", "b"))("a", "b"),), "a Layout of 8 devices"),
    ((Layout((8,), ("a",))("a"),), "a shape of 1 axes that"),
])
def test_what_does_not_fit_is_refused_where_the_graph_is_compiled(strategy: Any, expected: str) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    with pytest.raises(StrategyRefused, match=expected) as result:
        _cell_graph_executor.compile(Net(nn.ReLU().shard(strategy)), X)
    assert isinstance(result.value, RuntimeError) and "test_placing.py" in str(result.value)


def test_a_second_strategy_of_a_cell_replaces_the_first() -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    net = Net(nn.ReLU().shard(((3, 1),)).shard(WIDE))
    _cell_graph_executor.compile(net, X)
    assert net.parameter_layout_dict["weight"][0] == [2, 4]


def test_elsewhere_everything_runs_unsplit() -> None:
    assert ms.reshard(X, GRID("a", "b")) is X
    np.testing.assert_array_equal(ms.shard(ops.relu, WIDE)(X).asnumpy(), X.asnumpy())


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: P.MatMul().shard([(2, 4), (4, 1)]), TypeError, "a tuple with a tuple of numbers, or a Layout, for each input, got list"),
    (lambda: P.MatMul().shard((2, 4)), TypeError, "tuples of numbers, or Layouts, in it, got int"),
    (lambda: P.MatMul().shard(([2, 4], [4, 1])), TypeError, "tuples of numbers, or Layouts, in it, got list"),
    (lambda: P.MatMul().shard(((2, "4"), (4, 1))), TypeError, "ints, got '4'"),
    (lambda: P.MatMul().shard(((2, 4.0), (4, 1))), TypeError, "ints, got 4.0"),
    (lambda: P.MatMul().shard(None, ((2, 1),)), ValueError, "an in_strategy, too"),
    (lambda: P.MatMul().shard(((2, 4), (4, 1)), [(2, 1)]), TypeError, "got list"),
    (lambda: P.MatMul().shard(GRID("a", "b")), TypeError, "got Layout"),
    (lambda: P.MatMul().shard((GRID("a", "b"), (4, 1))), TypeError, "only Layouts, or only tuples of numbers"),
    (lambda: P.MatMul().shard((GRID("a", "b"), GRID("b", "None")), ((2, 1),)), ValueError, "both as tuples of numbers, or both as Layouts"),
    (lambda: P.MatMul().shard(((2, 4), (4, 1)), (GRID("a", "b"),)), ValueError, "both as tuples of numbers, or both as Layouts"),
    (lambda: P.ReLU().shard((GRID,)), ValueError, "a call with names first"),
    (lambda: ms.shard(ops.relu, ((2, "1"),)), TypeError, "tuples of ints, Layouts or None"),
    (lambda: nn.ReLU().shard(([2, 1],)), TypeError, "tuples of ints, Layouts or None"),
    (lambda: nn.Dense(2, 2).shard(((1, 1),), None, {"self.nope": (1, 1)}), KeyError, "names of Parameters of the Cell"),
    (lambda: nn.Dense(2, 2).shard(((1, 1),), None, {"self.weight": [1, 1]}), TypeError, "a tuple of numbers or a Layout"),
    (lambda: ms.reshard(3, GRID("a", "b")), TypeError, "a Tensor, got int"),
    (lambda: ms.reshard(X, (2, 4)), TypeError, "a Layout, got tuple"),
    (lambda: Layout((2, 2), ("interleaved_parallel", "a")), ValueError, "'interleaved_parallel' as the last name"),
    (lambda: Layout((0, 2), ("a", "b")), ValueError, "numbers from 1 on"),
    (lambda: ms.parallel.set_op_strategy_config("X", "/tmp/a.json"), KeyError, "'SAVE' or 'LOAD'"),
    (lambda: ms.parallel.set_op_strategy_config("SAVE", "a.json"), KeyError, "an absolute path that ends with .json"),
    (lambda: ms.parallel.set_op_strategy_config("SAVE", 3), TypeError, "a str as path"),
])
def test_a_value_that_is_not_a_strategy_is_refused_where_it_is_given(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text.replace("(", r"\(")):
        call()


def test_layouts_stand_in_the_attributes_as_mindspore_has_them() -> None:
    primitive = P.MatMul().shard((GRID("a", "b"), GRID("b", "None")), (GRID("a", "None"),))
    assert primitive.attrs["in_layout"][1] == {
        "device_matrix": (2, 4), "tensor_map": (0, -1), "interleaved_parallel": False, "alias_name": ("a", "b"),
    }
    assert primitive.attrs["out_layout"][0]["tensor_map"] == (1, -1)


class Planned(nn.Cell):
    """A layer whose weight lies as a plan says."""

    def __init__(self, plan: Any) -> None:
        super().__init__()
        self.block = nn.Dense(16, 8, weight_init="ones", bias_init="zeros")
        self.block.shard(((1, 1),), parameter_plan=plan)

    def construct(self, x: Any) -> Any:
        return ops.relu(self.block(x))


@pytest.mark.parametrize("mode", ["semi_auto_parallel", "auto_parallel"])
@pytest.mark.parametrize("key", ["weight", "self.block.weight"])
def test_a_plan_lays_parameters_out(mode: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = Tensor(np.linspace(-1, 2, 64, dtype=np.float32).reshape(4, 16))
    alone = Planned(None)(x).asnumpy()
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode=mode, dataset_strategy="full_batch")
    net = Planned({key: (2, 4)})
    net.set_train()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.0))
    step(x)
    np.testing.assert_allclose(net(x).asnumpy(), alone, rtol=1e-6)
    for owner in (net, step):
        parameters = dispatch.graphs(owner)[0].split.sharded_capture.parameters
        assert parameters["block.weight"][:2] == ((2, 4), (1, 0))


def test_a_plan_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    with pytest.raises(StrategyRefused, match=r"parameter_plan of block\.weight: a Tensor of shape") as caught:
        Planned({"weight": (8, 16)})(Tensor(np.ones((4, 16), np.float32)))
    assert "a number for each axis, whose product divides 8" in str(caught.value)
    with pytest.raises(KeyError, match="expected names of Parameters of the Cell, got 'x'"):
        Planned({"x": (3, 1)})


@pytest.mark.parametrize("plan, kind, text", [
    ((3, 1), ValueError, "expected a number that divides 8 at axis 0. For 'block.weight', the param_shape is (8, 16) and the setting "
     "param_strategy is (3, 1). The param_shape[0]: 8 cannot be divisible by param_strategy[0]: 3."),
    ((0, 1), ValueError, "expected a number that divides 8 at axis 0."),
    ((1, 1, 1), ValueError, "expected 2 numbers, got 3. the length of param_strategy: 3, is not equal to param_shape len: 2."),
    (None, TypeError, "got NoneType. For 'Shard', the type of each key and value in 'parameter_plan' must be str and tuple."),
])
def test_a_plan_is_checked_where_it_is_set(plan: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        Planned({"weight": plan})
    assert text in str(caught.value)


def test_a_list_is_no_strategy_of_a_cell() -> None:
    with pytest.raises(TypeError, match=r"tuple\(tuple\(int\)\) or tuple\(mindspore\.parallel\.Layout\), but got list\.$"):
        nn.Dense(16, 8).shard(([8, 1],))


class Table(nn.Cell):
    """Rows of a table whose parts have unequal rows."""

    def __init__(self, parts: Any) -> None:
        super().__init__()
        self.table = Parameter(Tensor(np.arange(40, dtype=np.float32).reshape(10, 4)), name="table")
        self.gather = P.Gather().shard(((4, 1), (1, 4)))
        self.gather.add_prim_attr("manual_split", parts)

    def construct(self, x: Any) -> Any:
        return self.gather(self.table, x, 0)


def test_a_table_of_unequal_rows_stays_unsplit(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = ((1, 0), (4, 1), (3, 5), (2, 8))
    x = Tensor(np.array([[0, 1, 5, 9], [0, 4, 7, 8]], np.int32))
    alone = Table(parts)(x).asnumpy()
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    net = Table(parts)
    np.testing.assert_array_equal(net(x).asnumpy(), alone)
    split = dispatch.graphs(net)[0].split
    assert split.sharded_capture.strategies_by_operator()["Gather_table"] == [[1, 1], [1, 4]]
    assert any("each device stores the full table" in str(note) for note in effects.notes()["distribution"])


def test_rows_without_offsets_and_another_name_of_the_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    x = Tensor(np.array([[0, 1, 5, 9], [0, 4, 7, 8]], np.int32))
    alone = Table(())(x).asnumpy()
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    for name, parts in (("manual_split", (1, 4, 3, 2)), ("manual_split_with_offset", ((1, 0), (4, 1), (3, 5), (2, 8)))):
        net = Table(())
        del net.gather.attrs["manual_split"]
        net.gather.add_prim_attr(name, parts)
        np.testing.assert_array_equal(net(x).asnumpy(), alone)


def test_unequal_rows_on_more_devices_than_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    with pytest.raises(StrategyRefused, match="expected cuts of the table that use all 8 devices"):
        Table((1, 4, 3, 2))(Tensor(np.zeros((2, 4), np.int32)))


@pytest.mark.parametrize(("parts", "expected"), [
    (((5, 0), (5, 5)), "a strategy that cuts the table into 2 parts"),
    (((1, 0), (4, 1), (3, 5), (1, 8)), "parts of 10 rows together, got 9"),
    (((1, 0), (4, 0), (3, 5), (2, 8)), "the first row of each part as its offset"), (3, "a tuple of (rows, offset) for each part"),
])
def test_unequal_rows_that_do_not_fit(parts: Any, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    with pytest.raises(StrategyRefused) as caught:
        Table(parts)(Tensor(np.zeros((2, 4), np.int32)))
    assert expected in str(caught.value) and "test_placing.py" in str(caught.value)
