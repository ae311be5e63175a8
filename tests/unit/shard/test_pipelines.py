"""Pipelines: which stage runs what, in which order, and that the numbers are those of one device."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from support.random_pipelines import trained as of_random
from support.split_nets import trained

from torchspore.distributed.shard.pipeline_parallel import cyclic_schedules, schedule
from torchspore.distributed.shard.pipeline_parallel.schedule import BACKWARD, FORWARD, WEIGHTS, Block
from torchspore.errors import StrategyRefused
from torchspore.graph import dispatch


def blocks(stages: int, parts: int, turns: int = 1, splits: bool = False) -> dict[Block, set[Block]]:
    """The blocks of a net of equal layers, `turns` of them in each stage one after another."""
    later: dict[Block, set[Block]] = {}
    hops = stages * turns
    for part in range(parts):
        for hop in range(hops):
            stage = hop % stages
            forward, back = Block(stage, hop, (part,), FORWARD), Block(stage, hops - 1 - hop, (part,), BACKWARD)
            later[forward] = {Block((hop - 1) % stages, hop - 1, (part,), FORWARD)} if hop else set()
            after = {Block((hop + 1) % stages, hops - 2 - hop, (part,), BACKWARD)} if hop < hops - 1 else set()
            later[back] = after | {forward}
            if splits:
                later[Block(stage, back.hop, (part,), WEIGHTS)] = {back}
    return later


@pytest.mark.parametrize(("stages", "parts"), [(2, 4), (4, 8), (4, 2), (8, 32)])
def test_schedules_cost_what_papers_say(stages: int, parts: int) -> None:
    bubble = (stages - 1) / (parts + stages - 1)
    plain = schedule.scheduled(blocks(stages, parts), stages, "1f1b", False)
    first = schedule.scheduled(blocks(stages, parts), stages, "gpipe", True)
    assert plain.idle == pytest.approx(bubble)
    assert first.idle == pytest.approx(bubble)
    assert plain.in_flight == [min(parts, stages - stage) for stage in range(stages)]
    assert first.in_flight == [parts] * stages


def test_several_turns_and_gaps_that_are_filled_wait_less() -> None:
    plain = schedule.scheduled(blocks(4, 16), 4, "1f1b", False)
    turns = schedule.scheduled(blocks(4, 16, turns=2), 4, "1f1b", True)
    filled = schedule.scheduled(blocks(4, 16, splits=True), 4, "zero_bubble_v", True)
    assert turns.idle < 0.75 * plain.idle
    assert filled.idle < 0.75 * plain.idle
    assert turns.in_flight[0] <= 2 * 3 + 4 + 1


@pytest.mark.parametrize(("stages", "parts"), [(2, 8), (4, 16)])
def test_filled_gaps_hold_no_more_than_a_stage_does_without(stages: int, parts: int) -> None:
    """A part is held until the gradients of weights are computed of it, too."""
    starts = schedule.scheduled(blocks(stages, parts, splits=True), stages, "zero_bubble_v", True).starts
    for stage in range(stages):
        active = most = 0
        for _, kind in sorted((at, block.kind) for block, at in starts.items() if block.stage == stage and block.kind != BACKWARD):
            active += 1 if kind == FORWARD else -1
            most = max(most, active)
        assert most <= stages


def test_a_schedule_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match=r"pipeline_scheduler='other': expected .*gpipe.*1f1b.*zero_bubble_v"):
        schedule.scheduled(blocks(2, 2), 2, "other", True)


@pytest.mark.parametrize(("name", "stage", "expected"), [
    ("seqpipe", 0, "0a 1a 0b 1b 2a 0B 3a 1B 2b 0A 3b 1A 2B 3B 2A 3A"), ("seqpipe", 1, "0a 1a 0b 0B 1b 1B 2a 0A 3a 1A 2b 2B 3b 3B 2A 3A"),
    ("seqvpp", 0, "0a 1a 0b 1b 2a 0B 3a 1B 2b 0A 3b 1A 2B 3B 2A 3A"), ("seqsmartvpp", 0, "0a 1a 0b 1b 0B 2a 1B 3a 0A 2b 1A 3b 2B 3B 2A 3A"),
])
def test_orders_by_cycles(name: str, stage: int, expected: str) -> None:
    """Parts 0 to 3 of two stages, turns a and b; large letters are backward. What MindSpore's schedulers do with sequences of one piece."""
    ahead = {(part,): [f"{part}a", f"{part}b"] for part in range(4)}
    back = {(part,): [f"{part}B", f"{part}A"] for part in range(4)}
    assert " ".join(cyclic_schedules.order(name, 2, stage, ahead, back)) == expected
    clock = schedule.scheduled(blocks(2, 4, turns=2), 2, name, True)
    shown = {(part, hop): f"{part}{'ab'[hop // 2]}" for part in range(4) for hop in range(4)}
    ran = [block for block in sorted(clock.starts, key=lambda block: clock.starts[block]) if block.stage == stage]
    turn = [shown[block.part[0], block.hop if block.kind == FORWARD else 3 - block.hop] for block in ran]
    assert " ".join(letter if block.kind == FORWARD else letter.upper() for letter, block in zip(turn, ran)) == expected
    plain = schedule.scheduled(blocks(4, 8), 4, "1f1b", False)
    assert schedule.scheduled(blocks(4, 8), 4, "seqpipe", True).starts == plain.starts


@pytest.mark.parametrize(("name", "stages", "parts", "turns", "expected"), [
    ("seqvpp", 2, 4, 1, "stages that have several turns"), ("seqsmartvpp", 3, 6, 2, "an even number of stages"),
    ("seqvpp", 4, 2, 2, "4 parts or more"),
])
def test_pipelines_that_a_schedule_is_not_for(name: str, stages: int, parts: int, turns: int, expected: str) -> None:
    with pytest.raises(ValueError, match=rf"pipeline_scheduler='{name}' with {parts} parts over {stages} stages.*: expected {expected}"):
        schedule.scheduled(blocks(stages, parts, turns=turns), stages, name, True)


@pytest.mark.parametrize(("name", "data", "model", "strategy"), [
    ("lenet", 2, 1, "full_batch"), ("residual", 2, 1, "data_parallel"), ("towers", 1, 2, "full_batch"), ("gpt", 1, 2, "full_batch"),
])
def test_numbers_are_those_of_one_device(
    name: str, data: int, model: int, strategy: str, monkeypatch: pytest.MonkeyPatch, graph_mode: None,
) -> None:
    alone, _ = trained(name, optimizer="momentum", steps=3, parts=2, ways=2 if strategy == "data_parallel" else 1)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy=strategy, pipeline_stages=2)
    cut, step = trained(name, data, model, optimizer="momentum", steps=3, parts=2)
    np.testing.assert_allclose(cut, alone, rtol=3e-6 if name != "residual" else 1e-5)
    pipeline = dispatch.graphs(step)[0].split.pipeline
    assert pipeline.stages == 2
    if name == "gpt":
        homes = dispatch.graphs(step)[0].split.sharded_capture.homes
        assert homes["table"] == homes["places"] == homes["moments.table"] == homes["blocks.0.up.weight"] == 0
        assert homes["norm.gamma"] == homes["blocks.1.q.weight"] == homes["moments.norm.gamma"] == 1
        # Two parts pass forth and back, the shared table goes once and its gradient comes back once, the loss is told.
        assert [node.args[1:] for node in pipeline.transfers].count((0, 1)) == 3
        assert [node.args[1:] for node in pipeline.transfers].count((1, 0)) == 3
        assert [node.args[1:] for node in pipeline.transfers].count((1, -1)) == 1


def test_a_step_that_may_be_skipped(monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    alone, in_parts = trained("gpt", optimizer="scaled", steps=4, parts=2)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=2)
    cut, step = trained("gpt", 1, 2, optimizer="scaled", steps=4, parts=2)
    np.testing.assert_allclose(cut, alone, rtol=3e-6)
    assert len(dispatch.graphs(step)) == 1
    for name in ("global_step", "beta1_power", "scale_sense"):
        parameters = {p.name: p for p in step.get_parameters()}
        if name in parameters:
            np.testing.assert_array_equal(parameters[name].asnumpy(), {p.name: p for p in in_parts.get_parameters()}[name].asnumpy())


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 200))])
def test_random_nets(seed: int, monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    stages = 2 + seed % 3
    alone, description, _ = of_random(seed, stages, is_cut=False, ways=1 + seed % 2)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", str(stages * (1 + seed % 2)))
    cut, _, _ = of_random(seed, stages, is_cut=True)
    np.testing.assert_allclose(cut, alone, rtol=1e-5, err_msg=description)


class Two(nn.Cell):
    """Two Cells in stages of their own."""

    def __init__(self, first: Any = 0, second: Any = 1) -> None:
        super().__init__()
        self.one, self.other = nn.Dense(4, 4), nn.Dense(4, 4)
        self.one.pipeline_stage, self.other.pipeline_stage = first, second

    def construct(self, x: Any) -> Any:
        return self.other(self.one(x))


X = Tensor(np.ones((4, 4), np.float32))


@pytest.mark.parametrize(("second", "config", "expected"), [
    (2, {}, r"test_pipelines.py:\d+: pipeline_stage = 2 with pipeline_stages=2: expected a stage from 0 to 1"),
    (1, {"pipeline_stages": 3}, r"pipeline_stages=3.* for 4 devices: expected a number that divides 4"),
    (1, {"global_rank": 4}, r"global_rank=4.* for 4 devices: expected a number below 4"),
])
def test_what_does_not_fit_is_refused(
    second: int, config: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch, graph_mode: None,
) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", **{"pipeline_stages": 2, **config})
    with pytest.raises(StrategyRefused, match=expected):
        Two(second=second)(X)


def test_a_schedule_for_several_turns_refuses_one(monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    config = {"pipeline_interleave": True, "pipeline_scheduler": "seqvpp"}
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=2, pipeline_config=config)
    net = Two()
    with pytest.raises(StrategyRefused, match=r"pipeline_scheduler='seqvpp' .* expected stages that have several turns"):
        nn.TrainOneStepCell(nn.PipelineCell(net, 2), nn.SGD(net.trainable_params())).set_train()(X)


def test_another_context_splits_anew(monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "4")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=2)
    net = Two()
    first = net(X).asnumpy()
    ms.set_auto_parallel_context(pipeline_stages=1)
    np.testing.assert_allclose(net(X).asnumpy(), first, rtol=1e-5, atol=1e-6)
    assert sorted(graph.split.local.mesh.count for graph in dispatch.graphs(net)) == [2, 4]


class Writes(nn.Cell):
    """Writes into a Parameter of another Cell."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = weight

    def construct(self, x: Any) -> Any:
        self.weight[0] = x[0]
        return x * 2


def test_a_stage_that_writes_what_another_holds_is_refused(monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    net = Two()
    last = Writes(net.one.weight)
    last.pipeline_stage = 1
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=2)
    with pytest.raises(StrategyRefused, match=r"test_pipelines.py:\d+: .* in pipeline stage 1 writes what stage 0 holds"):
        nn.SequentialCell([net, last])(X)


class Clipped(nn.Cell):
    """A step of one's own: gradients clipped by their common norm, and an update that may be skipped."""

    def __init__(self, network: nn.Cell, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer = network, optimizer
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        grads = ops.clip_by_global_norm(self.grad(self.network, self.optimizer.parameters)(*inputs), 0.1)
        if loss < 1e9:
            self.optimizer(grads)
        return loss


def test_gradients_that_are_clipped_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the terms of their norm, and what they are divided by, pass between stages."""
    def trained_so() -> tuple[list[float], Any]:
        ms.set_seed(1)
        net = nn.SequentialCell([nn.Dense(16, 32), nn.Dense(32, 64)])
        net[0].pipeline_stage, net[1].pipeline_stage = 0, 1
        step = Clipped(nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2), nn.AdamWeightDecay(net.trainable_params(), 1e-2))
        x, y = Tensor(np.ones((4, 16), np.float32)), Tensor(np.ones((4, 64), np.float32))
        return [float(step(x, y)) for _ in range(3)], step

    alone, _ = trained_so()
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=2)
    cut, step = trained_so()
    np.testing.assert_allclose(cut, alone, rtol=3e-6)
    transfers = dispatch.graphs(step)[0].split.pipeline.transfers
    # A part's values one way and their gradients the other are 2 x 32 numbers; gradients of weights would be 16 x 32.
    assert max(node.meta["val"].numel() for node in transfers) == 64
