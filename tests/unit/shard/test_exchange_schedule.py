"""The order of exchanges with `enable_parallel_optimizer`: a full gradient is free before the next one is computed."""
from __future__ import annotations

import itertools
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
import torch.distributed._functional_collectives  # how the operators of exchanges act on fake tensors
from mindspore import nn, ops
from torch.fx.node import Node

from torchspore.context.plan_request import Machine
from torchspore.distributed.shard import collective_nodes, cost_estimate, exchange_schedule, memory_model, sharded_capture
from torchspore.distributed.shard.rank_binding import bound
from torchspore.engine.memory import reserved_zeros
from torchspore.graph import dispatch
from torchspore.graph.passes.communication import overlap_exchanges
from torchspore.graph.passes.regather import regather_weights

WIDTH, LAYERS, DEVICES = 64, 6, 4
WEIGHT = WIDTH * WIDTH * 4


class Blocks(nn.Cell):
    """Residual blocks: each has weights of several sizes, a bias and a LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.CellList([nn.LayerNorm((WIDTH,)) for _ in range(2)])
        self.wide = nn.CellList([nn.Dense(WIDTH, 2 * WIDTH) for _ in range(2)])
        self.narrow = nn.CellList([nn.Dense(2 * WIDTH, WIDTH) for _ in range(2)])

    def construct(self, x: Any) -> Any:
        for norm, wide, narrow in zip(self.norms, self.wide, self.narrow):
            x = x + narrow(ops.gelu(wide(norm(x))))
        return x


class Tied(nn.Cell):
    """One weight that two products use, between weights that one product uses."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.shared, self.last = (nn.Dense(WIDTH, WIDTH, has_bias=False) for _ in range(3))

    def construct(self, x: Any) -> Any:
        return self.last(ops.tanh(self.shared(ops.relu(self.first(ops.tanh(self.shared(x)))))))


def dense_layers() -> nn.Cell:
    return nn.SequentialCell([nn.SequentialCell([nn.Dense(WIDTH, WIDTH, has_bias=False), nn.ReLU()]) for _ in range(LAYERS)])


def recomputed() -> nn.Cell:
    net = nn.SequentialCell([nn.SequentialCell([nn.Dense(WIDTH, WIDTH, has_bias=False), nn.Tanh()]) for _ in range(LAYERS)])
    for layer in net:
        layer.recompute()
    return net


class Clipped(nn.TrainOneStepCell):
    """A step whose gradients are clipped by their norm over all Parameters."""

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        gradients = ops.clip_by_global_norm(self.grad(self.network, self.weights)(*inputs, self.sens), 0.01)
        self.optimizer(gradients)
        return loss


class Summed(nn.Cell):
    """A step of which every second one updates, by the sum of two gradients."""

    def __init__(self, network: Any, optimizer: Any) -> None:
        super().__init__()
        self.network, self.optimizer = network, optimizer
        self.sums = optimizer.parameters.clone("sums", "zeros")
        self.gradient = ops.value_and_grad(network, None, optimizer.parameters)

    def construct(self, *inputs: Any) -> Any:
        loss, gradients = self.gradient(*inputs)
        for total, gradient in zip(self.sums, gradients):
            loss = ops.depend(loss, ops.assign_add(total, gradient))
        self.optimizer(self.sums)
        return loss


def scaled(network: Any, optimizer: Any) -> nn.Cell:
    return nn.TrainOneStepWithLossScaleCell(network, optimizer, nn.DynamicLossScaleUpdateCell(1024.0, 2, 1000))


CASES: dict[str, tuple[Any, Any]] = {
    "dense": (dense_layers, nn.TrainOneStepCell), "blocks": (Blocks, nn.TrainOneStepCell), "tied": (Tied, nn.TrainOneStepCell),
    "recompute": (recomputed, nn.TrainOneStepCell), "clipped": (dense_layers, Clipped), "summed": (dense_layers, Summed),
    "scaled": (dense_layers, scaled),
}


def trained(name: str, level: str, threshold: int = 0, means: bool = True) -> tuple[list[Any], Any]:
    """The losses of four steps, the weights, and the split graph."""
    make, wrap = CASES[name]
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", gradients_mean=means, enable_parallel_optimizer=True,
        parallel_optimizer_config={"optimizer_level": level, "parallel_optimizer_threshold": threshold},
    )
    try:
        ms.set_seed(1)
        net = make()
        step = wrap(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-2)).set_train()
        x = ms.Tensor(np.random.RandomState(1).rand(8, WIDTH).astype(np.float32))
        outs = [step(x, x) for _ in range(4)]
        losses = [float(out[0] if isinstance(out, tuple) else out) for out in outs]
        return [*losses, *(p.asnumpy() for p in net.trainable_params())], dispatch.graphs(step)[0].split
    finally:
        ms.reset_auto_parallel_context()


def rank_graph(split: Any) -> list[Node]:
    """The nodes that a rank of several processes runs."""
    return list(overlap_exchanges(regather_weights(bound(split.local, 0))).graph.nodes)


def operator_of(node: Node) -> str:
    return str(getattr(node.target, "_opname", ""))


def most_pending(nodes: list[Node]) -> int:
    """How many reduce-scatters and gathers run at the same time at most."""
    pending: set[Node] = set()
    most = 0
    for node in nodes:
        if operator_of(node) in ("reduce_scatter_tensor", "all_gather_into_tensor"):
            pending.add(node)
        pending -= set(node.all_input_nodes) if operator_of(node) == "wait_tensor" else set()
        most = max(most, len(pending))
    return most


@pytest.fixture(autouse=True)
def devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", str(DEVICES))


def test_a_full_gradient_is_free_before_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    losses, split = trained("dense", "level3")
    nodes = rank_graph(split)
    names = [operator_of(node) for node in nodes]
    starts = [at for at, name in enumerate(names) if name == "reduce_scatter_tensor"]
    assert len(starts) == LAYERS
    for at in starts:                                             # between the product and the exchange only the mean is computed
        assert [name for name in names[at - 3:at] if name != "wait_tensor"][-2:] == ["mm", "div"], names[at - 4:at + 1]
    for at in starts[:-1]:                                        # the process computes while the exchange runs
        wait = nodes.index(next(iter(nodes[at].users)))
        assert "mm" in names[at:wait], names[at:wait + 1]
    assert most_pending(nodes) == 1
    early = memory_model.peak(split.local.module)
    monkeypatch.setattr(exchange_schedule, "reorder", lambda local: None)
    previous_losses, previous = trained("dense", "level3")
    late = memory_model.peak(previous.local.module)
    assert losses[:4] == previous_losses[:4]
    assert sum(early.values()) < LAYERS * WEIGHT // DEVICES + 4 * WEIGHT < sum(late.values()), (early, late)


@pytest.mark.parametrize("name", ["clipped", "scaled"])
@pytest.mark.parametrize("means", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_gradients_are_summed_early_and_the_norm_or_overflow_is_computed_of_parts(
    name: str, means: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    values, split = trained(name, "level3", means=means)
    names = [operator_of(node) for node in rank_graph(split)]
    starts = [at for at, operator in enumerate(names) if operator == "reduce_scatter_tensor"]
    checks = [at for at, operator in enumerate(names) if operator == ("sqrt" if name == "clipped" else "logical_not")]
    assert len(starts) == LAYERS and starts[-1] < checks[0]
    assert all("mm" in names[at:after] for at, after in itertools.pairwise(starts))      # one gradient is computed after the other
    early = memory_model.peak(split.local.module)
    monkeypatch.setattr(sharded_capture, "replace", lambda policy, shares: policy)
    previous_values, previous = trained(name, "level3", means=means)
    late = memory_model.peak(previous.local.module)
    assert sum(early.values()) < LAYERS * WEIGHT // DEVICES + 4 * WEIGHT < sum(late.values()), (early, late)
    for value, expected in zip(values, previous_values, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shards_optimizer", [False, True])
def test_recomputed_blocks_exchange_nothing_more(shards_optimizer: bool) -> None:
    """The second run of a block reads its inputs as they are split: none is gathered."""
    exchanges, peaks, losses = {}, {}, {}
    for is_recomputed in (False, True):
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", enable_parallel_optimizer=shards_optimizer,
                                     parallel_optimizer_config={"parallel_optimizer_threshold": 0})
        ms.set_seed(1)
        net = nn.SequentialCell([Blocks() for _ in range(3)])
        for block in net if is_recomputed else ():
            block.recompute()
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-2)).set_train()
        x = ms.Tensor(np.random.RandomState(1).rand(4096, WIDTH).astype(np.float32))
        losses[is_recomputed] = [float(step(x, x)) for _ in range(3)]
        split = dispatch.graphs(step)[0].split
        exchanges[is_recomputed] = sorted(
            (move.kind, tuple(shape)) for operator in split.local.split_operators for move, shape in operator.steps)
        peaks[is_recomputed] = memory_model.peak(split.local.module)["activations"]
        ms.reset_auto_parallel_context()
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-6)
    assert exchanges[True] == exchanges[False]
    assert peaks[True] < 0.7 * peaks[False], peaks


def test_a_recomputed_block_sums_its_gradients_before_the_next_one_runs_again() -> None:
    _, split = trained("recompute", "level2")
    names = [getattr(node.target, "__name__", "") for node in split.local.module.graph.nodes]
    marks = [index for index, name in enumerate(names) if name == "later"]
    sums = [sum(name == "reduce_scatter" for name in names[start:end]) for start, end in zip(marks, [*marks[1:], len(names)])]
    assert sums == [1] * LAYERS, sums
    run = [operator_of(node) or getattr(node.target, "__name__", "") for node in rank_graph(split)]
    begins = [sum(name == "reduce_scatter_tensor" for name in run[:index]) for index, name in enumerate(run) if name == "later"]
    assert begins == list(range(LAYERS)), "the exchange of a block begins before the next block is computed again"


def test_level_3_gathers_the_weights_of_a_recomputed_block_for_its_second_run() -> None:
    losses, peaks = {}, {}
    for level in ("level2", "level3"):
        losses[level], split = trained("recompute", level)
        nodes = list(split.local.module.graph.nodes)
        peaks[level] = memory_model.peak(split.local.module)
        received = {item.op for node in nodes if getattr(node.target, "__name__", "") == "later" for item in node.args[1:]}
        assert received == ({"placeholder"} if level == "level3" else {"call_function"})
        assert sum(getattr(node.target, "__name__", "") == "all_gather" for node in nodes) == (2 * LAYERS if level == "level3" else LAYERS)
        planned = [exchange.kind for row in cost_estimate.rows(split, Machine()) for exchange in row.exchanges]
        assert planned.count("all_gather") == (2 * LAYERS if level == "level3" else LAYERS)
    for ours, theirs in zip(losses["level3"], losses["level2"], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert sum(peaks["level3"].values()) < 0.75 * sum(peaks["level2"].values()), peaks


def test_a_gather_begins_one_product_ahead() -> None:
    _, split = trained("dense", "level3")
    names = [operator_of(node) for node in rank_graph(split)]
    interesting = [name for name in names if name in ("mm", "all_gather_into_tensor", "wait_tensor")]
    gather, wait = "all_gather_into_tensor", "wait_tensor"
    assert interesting[:9] == [gather, wait, gather, "mm", wait, gather, "mm", wait, gather], interesting


@pytest.mark.parametrize("name, level", [
    ("blocks", "level3"), ("tied", "level3"), ("clipped", "level1"), ("scaled", "level2"),
    *[pytest.param(name, level, marks=pytest.mark.slow) for name in CASES for level in ("level1", "level2", "level3")],
])
def test_numbers_do_not_depend_on_the_order(monkeypatch: pytest.MonkeyPatch, name: str, level: str) -> None:
    early, split = trained(name, level)
    monkeypatch.setattr(exchange_schedule, "reorder", lambda local: None)
    late, previous = trained(name, level)
    for a, b in zip(early, late, strict=True):
        np.testing.assert_array_equal(a, b)
    kinds = (collective_nodes.all_gather, collective_nodes.reduce_scatter)
    counts = [
        [sum(node.target is kind for node in graph.local.module.graph.nodes) for kind in kinds] for graph in (split, previous)
    ]
    assert counts[0] == counts[1] and counts[0][0], counts


def test_reserved_zeros_take_memory_where_they_are_written() -> None:
    small, large = torch.zeros(10), torch.zeros(reserved_zeros.SMALLEST)
    assert reserved_zeros.zeros_like(small) is small
    reserved = reserved_zeros.zeros_like(large.view(2, -1))
    assert reserved.shape == (2, large.numel() // 2) and reserved.is_contiguous() and not reserved.any()
    reserved[1, :3] += 2.0
    assert reserved.sum() == 6.0
