"""What `auto_parallel` finds: never dearer than data parallel, the best of all where that can be counted, and equal numbers."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn, ops
from support import split_functions, split_nets

from torchspore.distributed.shard import partitioner
from torchspore.distributed.shard.machine_model import Machine
from torchspore.distributed.shard.partitioner import Policy
from torchspore.distributed.shard.search import costs, elimination, operator_parts, relaxed_rules, strategy_search
from torchspore.distributed.shard.strategy_validation import TensorLayout
from torchspore.engine.split_layouts.device_layout import Layout, unsplit
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.torch_internals.torch_private import make_fx
from torchspore.graph import dispatch, passes

MODES = ("recursive_programming", "dynamic_programming")


class Wide(nn.Cell):
    """Much more weight than batch."""

    def __init__(self, data: int, model: int) -> None:
        super().__init__()
        self.up, self.down = nn.Dense(64, 4096), nn.Dense(4096, 16)

    def construct(self, x: Any) -> Any:
        return self.down(ops.relu(self.up(x)))


class Images(nn.Cell):
    """Much more batch than weight."""

    def __init__(self, data: int, model: int) -> None:
        super().__init__()
        self.one, self.other, self.head = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Dense(8, 10)

    def construct(self, x: Any) -> Any:
        return self.head(ops.relu(self.other(ops.relu(self.one(x)))).mean((2, 3)))


class Words(nn.Cell):
    """A table that is most of the net, whose width no grid of eight cuts."""

    def __init__(self, data: int, model: int, rows: int = 1 << 19) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(rows, 7), nn.Dense(7, 10)

    def construct(self, x: Any) -> Any:
        return self.head(self.table(x).sum(1))


class Twice(nn.Cell):
    """One weight that is used twice, transposed once."""

    def __init__(self, data: int, model: int) -> None:
        super().__init__()
        self.weight = ms.Parameter(ms.common.initializer.initializer("normal", (512, 64)), name="weight")

    def construct(self, x: Any) -> Any:
        return ops.matmul(ops.gelu(ops.matmul(x, self.weight)), self.weight.T)


NETS: dict[str, tuple[Any, Callable[[Any], Any], int]] = {
    "wide": (Wide, lambda source: source.standard_normal((16, 64)).astype(np.float32), 16),
    "images": (Images, lambda source: source.standard_normal((16, 3, 32, 32)).astype(np.float32), 16),
    "few words": (lambda data, model: Words(data, model, 1 << 16), lambda source: source.integers(0, 1 << 16, (16, 4)).astype("i4"), 16),
    "words": (Words, lambda source: source.integers(0, 1 << 19, (16, 4)).astype(np.int32), 16),
    "twice": (Twice, lambda source: source.standard_normal((12, 512)).astype(np.float32), 12),
}


@pytest.fixture(autouse=True)
def _nets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, net in NETS.items():
        monkeypatch.setitem(split_nets.NETS, name, net)


def chosen_split(monkeypatch: pytest.MonkeyPatch, name: str, mode: str, devices: int = 8, **context: Any) -> Any:
    """The split of a net's training step, after its losses were compared with one device's."""
    monkeypatch.delenv("TORCHSPORE_SIMULATE", raising=False)
    alone, step = split_nets.trained(name, steps=3)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", str(devices))
    context = {"dataset_strategy": "full_batch", **context}
    ms.set_auto_parallel_context(parallel_mode="auto_parallel", search_mode=mode, **context)
    without_rule: list[str] = []
    monkeypatch.setattr(operator_parts, "wide", lambda call: relaxed_rules.wide(call) or without_rule.append(str(call.target)))
    together, other = split_nets.trained(name, 2, devices // 2, steps=3)
    np.testing.assert_allclose(together, alone, rtol=1e-6)
    for parameter, weight in zip(step.get_parameters(), other.get_parameters(), strict=True):
        scale = max(float(np.abs(parameter.asnumpy()).max()), 1e-3)
        np.testing.assert_allclose(weight.asnumpy() / scale, parameter.asnumpy() / scale, atol=2e-5, err_msg=parameter.name)
    split = dispatch.graphs(other)[0].split
    searched = split.sharded_capture.searched
    assert not without_rule                       # an operator without a rule runs unsplit on each device
    assert searched.search_cost.order() <= searched.plain.order()
    return split


def cuts(split: Any, name: str) -> tuple[int, ...]:
    matrix, placements, _, _ = split.sharded_capture.parameters[name]
    return TensorLayout(matrix, placements).cuts()


@pytest.mark.parametrize("mode", MODES)
def test_much_weight_is_cut(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    split = chosen_split(monkeypatch, "wide", mode)
    assert (cuts(split, "up.weight"), cuts(split, "down.weight")) == ((8, 1), (1, 8))
    assert cuts(split, "moments.up.weight") == (8, 1)
    assert split.sharded_capture.searched.search_cost.received * 100 < split.sharded_capture.searched.plain.received
    assert split.sharded_capture.strategies_by_operator()["MatMul_up.weight"] == [[1, 1], [8, 1]]


def test_sixteen_devices_train_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    split = chosen_split(monkeypatch, "wide", "recursive_programming", devices=16)
    assert (cuts(split, "up.weight"), cuts(split, "down.weight")) == ((16, 1), (1, 16))


@pytest.mark.parametrize("mode", MODES[:1])
def test_much_batch_is_cut(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    split = chosen_split(monkeypatch, "images", mode)
    assert cuts(split, "one.weight") == cuts(split, "other.weight") == (1, 1, 1, 1)
    convolutions = [placed for placed in split.local.split_operators if "convolution" in str(placed.node.target)]
    assert len(convolutions) == 4
    for placed in convolutions:
        images = [layout for source, layout in placed.used.items() if tuple(source.meta["val"].shape[:1]) == (16,)]
        assert images and all(layout.counts(split.local.mesh)[0] == 8 for layout in images)


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_table_is_cut_by_rows(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    split = chosen_split(monkeypatch, "words", mode)
    assert cuts(split, "table.embedding_table") == (8, 1)
    assert split.sharded_capture.strategies_by_operator()["Gather_table.embedding_table"][0] == [8, 1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "devices", "strategy"), [
    ("twice", 6, "full_batch"), ("wide", 8, "data_parallel"), *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        ("twice", 8, "full_batch"), ("twice", 4, "data_parallel"), ("towers", 8, "full_batch"), ("residual", 4, "full_batch"),
    )),
])
def test_numbers(name: str, devices: int, strategy: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen_split(monkeypatch, name, mode, devices, dataset_strategy=strategy)


def test_strategies_of_the_program_persist(monkeypatch: pytest.MonkeyPatch) -> None:
    split = chosen_split(monkeypatch, "towers", "dynamic_programming")
    assert split.sharded_capture.strategies_by_operator()["Gather_users"] == [[4, 1], [2]] and cuts(split, "users") == (4, 1)


def test_propagation_spreads_what_the_program_says(monkeypatch: pytest.MonkeyPatch) -> None:
    split = chosen_split(monkeypatch, "towers", "sharding_propagation")
    assert (
        set(split.sharded_capture.strategies_by_operator()) == {"Gather_users", "Gather_items"}
        and not split.sharded_capture.searched.is_better
    )


def test_what_does_not_fit_a_device_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindspore.parallel import _cost_model_context

    kept = chosen_split(monkeypatch, "few words", "dynamic_programming")
    assert cuts(kept, "table.embedding_table") == (1, 1)          # an exchange takes longer than to update it all
    ms.reset_auto_parallel_context()
    _cost_model_context.set_cost_model_context(device_memory_capacity=kept.sharded_capture.searched.search_cost.peak_bytes * 0.5)
    try:
        small = chosen_split(monkeypatch, "few words", "dynamic_programming")
    finally:
        _cost_model_context.reset_cost_model_context()
    assert small.sharded_capture.searched.plain.excess > 0 and small.sharded_capture.searched.search_cost.excess == 0
    assert cuts(small, "table.embedding_table") != (1, 1)


def test_a_search_result_is_saved_and_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest,
) -> None:
    import json

    from torchspore.distributed.shard import strategy_io

    path = tmp_path / "found.json"
    request.addfinalizer(strategy_io.op_strategies.clear)
    ms.parallel.set_op_strategy_config("SAVE", str(path))
    first = chosen_split(monkeypatch, "wide", "dynamic_programming")
    ms.reset_auto_parallel_context()
    record = json.loads(path.read_text())
    assert record["parallel_strategy_item"]["MatMul_up.weight"]["parallel_strategy"] == [[1, 1], [8, 1]]
    layout = record["parallel_layout_item"]["up.weight"]
    assert (layout["dev_matrix"], layout["tensor_map"]) == ([8], [0, -1])
    record["parallel_layout_item"]["up.weight"].update(dev_matrix=[2, 4], tensor_map=[0, -1])      # the file may choose another layout
    path.write_text(json.dumps(record))
    strategy_io.op_strategies.clear()
    ms.parallel.set_op_strategy_config("LOAD", str(path))
    second_split = chosen_split(monkeypatch, "wide", "recursive_programming")
    assert cuts(first, "up.weight") == (8, 1) and cuts(second_split, "up.weight") == (4, 1) and cuts(second_split, "down.weight") == (1, 8)


def test_an_axis_that_several_axes_of_the_grid_cut_is_read_as_it_was_written() -> None:
    from torchspore.distributed.shard import strategy_file, strategy_io

    for axes, shape in (((-1, (2, 0)), (6, 8)), (((2, 1, 0), -1), (16, 5)), (((1, 0), 2), (4, 2)), ((-1, -1, 2), (1, 1, 2)), ((2,), (8,)),
                          ((-1, -1, (1, 0)), (1, 1, 4))):
        stored = strategy_file.stored(TensorLayout((2, 2, 2), axes), shape)
        assert (
            strategy_io.tensor_map_of(stored, shape) == axes and strategy_io.tensor_map_of(stored._replace(nested=None), shape) == axes
        )
    assert strategy_io.tensor_map_of(stored, (8, 8)) is None


def test_the_strategy_file_of_the_context(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = {"save_file": str(tmp_path / "found.ckpt")}
    chosen_split(monkeypatch, "wide", "dynamic_programming", strategy_ckpt_config=config)
    layouts = ms.build_searched_strategy(str(tmp_path / "found.ckpt"))
    assert layouts["up.weight"].dev_matrix[0].dim == [8] and layouts["up.weight"].tensor_map[0].dim == [0, -1]


# ---- against counting all


def trained(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """A step of a net of two products: the loss, and gradients of both weights."""
    x, *weights = tensors
    leaves = [weight.requires_grad_() for weight in weights]
    loss = ((x @ leaves[0]).relu() @ leaves[1]).square().sum()
    return [loss.detach(), *torch.autograd.grad(loss, leaves)]


@pytest.mark.parametrize("sizes", [(64, 8, 8, 8), (8, 16, 256, 16), (8, 512, 16, 16), (16, 24, 40, 6)])
def test_nothing_that_can_be_counted_is_cheaper(sizes: tuple[int, ...]) -> None:
    rows, before, inner, after = sizes
    inputs = [torch.randn(rows, before), torch.randn(before, inner), torch.randn(inner, after)]
    module = passes.run(passes.CLEAN, make_fx(trained, tracing_mode="fake")(*inputs), keep=None)
    holders = [node for node in module.graph.nodes if node.op == "placeholder"]
    machine = Machine(latency=1e-9)

    def cost(mesh: Mesh, layouts: list[Layout], plan: Any = None) -> tuple[float, float]:
        # results lie as they do; exchanges before a result are those of terms
        local = partitioner.partition(module, mesh, layouts, lambda at, node, layout, shape: layout, Policy(), plan=plan)
        return costs.of(local, machine).order()

    every = [
        cost(mesh, list(layouts))
        for mesh, layouts in split_functions.grid([tuple(t.shape) for t in inputs], 20)
    ]
    problem = strategy_search.Problem(module, Mesh((8,)), lambda mesh: {holders[0]: unsplit(2)}, lambda mesh: {}, True, False, False)
    tally = strategy_search.Tally()
    search = strategy_search.Search(problem, machine, "dynamic_programming", tally)
    candidates = search.candidates()[:strategy_search.COMPARED]
    least = min(cost(c.mesh, [unsplit(2), *(c.plan.inputs[node] for node in holders[1:])], c.plan) for c in candidates)
    assert least <= min(every) and tally.guessed == 0


def test_elimination_finds_the_least_sum() -> None:
    source = np.random.default_rng(0)
    for _ in range(20):
        sizes = source.integers(1, 4, 7)
        unary = [source.random(size) for size in sizes]
        edges = [(int(node), int(other), source.random((sizes[node], sizes[other])))
                 for node, other in source.integers(0, 7, (12, 2))]
        least = min(elimination.total_of(unary, edges, values) for values in itertools.product(*map(range, sizes)))
        start = [0] * 7
        solved = elimination.solve(unary, edges, start)
        assert solved.total == pytest.approx(least) and solved.guessed == 0
        narrow = elimination.solve(unary, edges, start, limit=3)
        assert narrow.guessed and least - 1e-12 <= narrow.total <= elimination.total_of(unary, edges, start) + 1e-12


@pytest.mark.parametrize("mode", MODES)
def test_a_sum_over_all_axes_that_keeps_them(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.matmul, self.total = ms.Parameter(np.ones((16, 3), np.float32)), ops.MatMul(), ops.ReduceSum(keep_dims=True)

        def construct(self, x: Any) -> Any:
            return self.total(self.matmul(x, self.weight), (0, 1))

    net, x = Net(), ms.Tensor(np.ones((32, 16), np.float32))
    alone = net(x).asnumpy()
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="auto_parallel", search_mode=mode, dataset_strategy="full_batch")
    np.testing.assert_array_equal(net(x).asnumpy(), alone)
