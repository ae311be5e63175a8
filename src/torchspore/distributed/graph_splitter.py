"""Implements `graph.splitter.Splitter`: how Graph mode splits a captured graph over devices."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from torchspore.context import plan_request
from torchspore.distributed import device_count as devices
from torchspore.distributed.data_parallel import parameter_broadcast
from torchspore.distributed.shard import execution, sharded_capture, strategy_calls
from torchspore.distributed.shard.pipeline_parallel import stage_count
from torchspore.engine.autograd.gradient_listeners import LISTENERS
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.splitter import SplitGraph, Trace

LISTENERS.append(strategy_calls.LISTENER)

refusal_error = sharded_capture.refused
chooses_stage_count = stage_count.is_requested


def device_count() -> int:
    """Return the number of devices that graphs are split over."""
    return devices.devices()[0]


def begin_capture(tensors: list[TensorBase], stages: int | None) -> sharded_capture.ShardedCapture:
    """Return the record of one capture; `stages` is the number of pipeline stages, that of the context if None."""
    if plan_request.pending is not None:
        plan_request.pending.prepare()
    return sharded_capture.ShardedCapture(tensors, stages)


def cheapest_capture(trace: Callable[[int], Trace], parts: Callable[[Trace], tuple[Any, Any, list[Any]]]) -> Trace:
    """Capture a call for each number of pipeline stages and return the capture that costs the least."""
    return stage_count.cheapest(trace, parts)


def split(module: torch.fx.GraphModule, capture: Any, inputs: Sequence[Any]) -> SplitGraph:
    """Split a captured graph over devices. Raises StrategyRefused for strategies that do not fit."""
    return execution.Split(module, capture, inputs)


def broadcast_parameters(parameters: Iterable[Any]) -> None:
    """Give new Parameters the values of process 0 if `parameter_broadcast` is set."""
    parameter_broadcast.begin(parameters)
