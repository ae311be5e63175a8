"""The machines that plans assume: connections by the distance of devices, JSON files, and the overlap of exchanges with operators."""
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn

from torchspore.cli import calibration_worker
from torchspore.context import machines
from torchspore.context.plan_request import Level, Machine
from torchspore.distributed.shard import collective_nodes, cost_estimate, partitioner
from torchspore.distributed.shard.partitioner import Policy
from torchspore.distributed.shard.search import axis, costs
from torchspore.distributed.shard.search.axis import UNSPLIT, Move
from torchspore.engine.split_layouts.device_layout import Layout
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import make_fx
from torchspore.graph import dispatch

TWO_LEVELS = Machine(bandwidth=1e9, latency=1e-5, levels=(Level(4, 1e11, 1e-6),))


def test_groups_within_a_machine_use_the_faster_connection() -> None:
    mesh = Mesh((2, 2, 2))
    assert [mesh.extent(axes) for axes in ((2,), (1, 2), (1,), (0,), (0, 2))] == [2, 4, 4, 8, 8]
    assert TWO_LEVELS.transfer_seconds(1e6, 1, 4) == pytest.approx(1e-6 + 1e-5)
    assert TWO_LEVELS.transfer_seconds(1e6, 1, 8) == TWO_LEVELS.transfer_seconds(1e6) == pytest.approx(1e-5 + 1e-3)
    assert replace(TWO_LEVELS, levels=(Level(3, 1e11, 1e-6),)).level(2).devices == 0          # groups of two cross groups of three


def test_a_sum_over_two_axes_costs_less_than_two_sums() -> None:
    mesh, machine = Mesh((2, 4)), Machine(bandwidth=1.0, latency=1e-9)

    def seconds(*axes: int) -> float:
        return axis.exchange_seconds(tuple(Move(axis.SUM, UNSPLIT, at) for at in axes), 800, mesh, machine, True, False)

    assert seconds(0) == pytest.approx(800) and seconds(1) == pytest.approx(1200) and seconds(0, 1) == pytest.approx(1400)


def test_an_axis_behind_one_that_leaves_a_dimension_is_gathered_too() -> None:
    mesh, machine = Mesh((2, 4)), Machine(bandwidth=1.0, latency=1e-9)
    outer = axis.exchange_seconds((Move(0, UNSPLIT, 0), Move(0, 0, 1)), 800, mesh, machine, True, False)
    inner = axis.exchange_seconds((Move(0, 0, 0), Move(0, UNSPLIT, 1)), 800, mesh, machine, True, False)
    assert inner == pytest.approx(300) and outer == pytest.approx(700)


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    for machine in (TWO_LEVELS, *machines.NAMED.values()):
        file.write_text(machines.to_json(machine))
        assert machines.machine_of(str(file)) == machine


@pytest.mark.parametrize("members", [
    {"bandwidth": 0}, {"latency": -1}, {"operations": True}, {"memory": "fast"}, {"speed": 3}, {"levels": [{"devices": 8}]}, {"levels": 3},
    {"levels": [{"devices": 1, "bandwidth": 1.0, "latency": 1.0}]}, {"capacity": 1e999}, [1],
])
def test_wrong_files_are_refused(members: object, tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(members))
    with pytest.raises(ValueError, match=r"machine\.json: .* expected"):
        machines.machine_of(str(file))


def test_unknown_names_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ValueError, match=r"the machine h200: expected h100, a100, ascend910, measured or a JSON file"):
        machines.machine_of("h200")
    with pytest.raises(ValueError, match=r"the machine measured: .*\n\nhint: run torchspore calibrate"):
        machines.machine_of("measured")


def test_the_fit_finds_latency_and_bandwidth() -> None:
    sizes = [4e3, 6e4, 1e6, 2e7]
    latency, bandwidth = calibration_worker.fitted_line(sizes, [2e-5 + size / 3e9 for size in sizes])
    assert latency == pytest.approx(2e-5) and bandwidth == pytest.approx(3e9)


def _step(x: torch.Tensor, first: torch.Tensor, other: torch.Tensor) -> list[torch.Tensor]:
    leaves = [first.requires_grad_(), other.requires_grad_()]
    loss = ((x @ leaves[0]).relu() @ leaves[1]).square().sum()
    return [leaf.detach() - gradient for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves))]


def test_exchanges_run_during_operators_that_do_not_wait() -> None:
    """The sum of the last layer's gradient runs while the first layer's gradient is computed."""
    inputs = [torch.randn(64, 64) for _ in range(3)]
    module = make_fx(_step, tracing_mode="fake")(*inputs)
    for node in module.graph.nodes:
        if node.target is torch.ops.aten.sub.Tensor:
            node.meta[node_metadata.OPTIMIZER] = True
    layouts = [Layout(((0,), ())), Layout(((), ())), Layout(((), ()))]
    local = partitioner.partition(module, Mesh((8,)), layouts, lambda at, node, layout, shape: Layout(((), ())), Policy())
    cost = costs.of(local, Machine(bandwidth=1e9, latency=1e-9, operations=1e10, memory=1e12))
    assert cost.received > 0
    assert max(cost.computing, cost.sending) < cost.seconds < cost.computing + cost.sending


@pytest.mark.parametrize("is_fused", [True, False])
@pytest.mark.parametrize("machine", [Machine(), TWO_LEVELS, machines.NAMED["h100"]], ids=["flat", "two levels", "h100"])
def test_the_time_of_exchanges_is_that_of_the_messages(machine: Machine, is_fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight sums of gradients and one of the loss, among the eight devices of a machine; joined sums wait once for the connection."""
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", gradients_mean=True, comm_fusion={"openstate": is_fused})
    net = nn.SequentialCell([nn.Dense(8, 8) for _ in range(4)])
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9)).set_train()
    x = ms.Tensor(np.ones((16, 8), np.float32))
    step(x, x)
    split = dispatch.graphs(step)[0].split
    exchanges = [node for node in split.local.module.graph.nodes if node.target in collective_nodes.SENDING]
    seconds = sum(
        machine.transfer_seconds(costs.received(node, split.local), 1, split.local.mesh.extent(node.args[1])) for node in exchanges
    )
    assert len(exchanges) == (2 if is_fused else 9)
    assert cost_estimate.totals(split, cost_estimate.rows(split, machine), machine).sending == pytest.approx(seconds)
    assert costs.of(split.local, machine, is_fused=True).messages == len(exchanges)
