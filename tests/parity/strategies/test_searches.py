"""The search is never worse, by its own model, than data parallel, Megatron-LM's split and the plans of MindSpore's three searches."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import pytest

import torchspore
from torchspore.context import machines
from torchspore.distributed.shard import machine_model
from torchspore.distributed.shard.search import costs

from . import networks

RECORDS = json.loads((Path(__file__).parent / "searches.json").read_text())
MODES = ("dynamic_programming", "recursive_programming")
MACHINES = {"assumed": machine_model.Machine(), "a100": machines.NAMED["a100"]}


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    """Graph mode and a parallel context during a test."""
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.reset_auto_parallel_context()
    ms.set_context(mode=ms.PYNATIVE_MODE)


def _local_graph(name: str, parallel_mode: str, strategies: dict[str, Any], monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    """Compile a network for 8 devices; return the graph of one of them."""
    monkeypatch.setenv("TORCHSPORE_PLAN", str(networks.DEVICES))
    ms.set_auto_parallel_context(parallel_mode=parallel_mode, dataset_strategy="full_batch", **options)
    step, x = networks.training_step(name, strategies)
    step.compile(x)
    return torchspore.graphs(step)[0].split.local


@pytest.mark.parametrize("machine", list(MACHINES))
@pytest.mark.parametrize("name", list(networks.NETWORKS))
def test_no_plan_that_others_found_is_better(name: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assumed = MACHINES[machine]
    monkeypatch.setattr(machine_model, "machine", lambda: assumed)
    monkeypatch.setattr("torchspore.distributed.shard.search.comparison.machine", lambda: assumed)
    plans = {**RECORDS[name], "megatron": networks.MEGATRON[name], "data parallel": {}}
    others = {
        plan: costs.of(_local_graph(name, "semi_auto_parallel", strategies, monkeypatch), assumed).seconds
        for plan, strategies in plans.items()
    }
    for mode in MODES:
        searched = costs.of(_local_graph(name, "auto_parallel", {}, monkeypatch, search_mode=mode), assumed).seconds
        assert searched <= min(others.values()) * (1 + 1e-9), (mode, searched, others)
        assert searched < others["recursive_programming"]
    assert len(others) == 5 and len(set(others.values())) > 2
