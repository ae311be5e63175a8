"""Levels O1 and O2 of a graph that communicates with other processes: generated kernels between the exchanges.

A rule chooses them by shapes alone: measurements may differ between ranks, and values that all ranks share would then drift apart in their
last bits. The kernels' results are compared with O0's numbers as for other graphs, in a run whose exchanges are answered in this process.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base import event_log
from torchspore.graph.backend import fusion, measurement
from torchspore.graph.backend.variant_race import Race
from torchspore.graph.fx.exchanges import is_exchange
from torchspore.graph.fx.modules import copy_module, inner_of
from torchspore.graph.passes.layout import record_strides

Module = torch.fx.GraphModule


def with_kernels(
    module: Module, held: measurement.Inputs, lines: Callable[[Module], Any], may_fuse: Callable[[Node], bool],
) -> Module | None:
    """Return the graph with the kernels that the rule chooses; None if there are none, or if they cannot be compared.

    `held` are the inputs, `lines` generates code for a graph, `may_fuse` says which operators may become parts of a kernel.
    """
    alone = answered(module)

    def inputs() -> list[torch.Tensor]:
        return [t if type(t) is torch.Tensor else _nothing(t) for t in held()]

    if alone is None:
        event_log.event("level", "no kernels are generated: the graph has an exchange that can't be answered within this process")
        return None
    try:
        with measurement.undisturbed():
            record_strides(alone, [measurement.copy(t) for t in inputs()])
    except (RuntimeError, IndexError, ValueError) as error:
        raise measurement.Unrunnable(str(error).partition("\n")[0]) from None
    for node, twin in zip(module.graph.nodes, alone.graph.nodes):
        node.meta = dict(twin.meta)
    clustered = fusion.by_rule(module, may_fuse)
    fused = None if clustered is None else answered(clustered)
    if fused is None:
        return None
    race, name = Race(inputs), "kernels chosen by a rule"
    race.enter("O0", functools.partial(lines, alone))
    race.enter(name, functools.partial(lines, fused))
    if name not in race.codes:
        return None
    event_log.event("level", name)
    return clustered


def answered(module: Module) -> Module | None:
    """Return a copy whose exchanges are answered in this process, as if all processes had sent equal values; None if that is impossible."""
    segments = copy_module(module)
    for node in segments.graph.nodes:
        if is_exchange(node):
            answer = _ANSWERS.get(str(node.target))
            if answer is None:
                return None
            node.target = answer
        # Its operand may depend on values of other processes.
        elif getattr(node.target, "__name__", "") == _CHECK:
            node.target = _unchecked
    segments.recompile()
    return None if any(is_exchange(node) for inner in inner_of(segments) for node in inner.graph.nodes) else segments


def _nothing(t: torch.Tensor) -> torch.Tensor:
    """Replaces an input that another stage of a pipeline stores; this process does not compute with it."""
    return torch.zeros((), dtype=t.dtype, device=t.device).expand(t.shape)


_CHECK = "check"
"""The name of the operator that replaces an assert."""


def _unchecked(*_: Any) -> None:
    return None


def _alike(x: torch.Tensor, *_: Any) -> torch.Tensor:
    return x.clone(memory_format=torch.contiguous_format)


def _gathered(x: torch.Tensor, count: int, _: str) -> torch.Tensor:
    return torch.cat([x] * count)


def _scattered(x: torch.Tensor, _: str, count: int, __: str) -> torch.Tensor:
    return x[: x.shape[0] // count].clone()


def _all_to_all_values(x: torch.Tensor, received: list[int], sent: list[int], _: str) -> torch.Tensor:
    return torch.cat([x[:length].clone() if length <= len(x) else x.new_ones((length, *x.shape[1:])) for length in received])


def _same_tensor(x: torch.Tensor) -> torch.Tensor:
    return x


def _received_values(shape: list[int], dtype: torch.dtype, device: torch.device, *_: Any) -> torch.Tensor:
    """Return values for those of another stage of a pipeline: numbers from -1 to 1, or zeros, which every operator accepts as indexes."""
    if not dtype.is_floating_point:
        return torch.zeros(shape, dtype=dtype, device=device)
    return torch.arange(math.prod(shape), dtype=torch.float64, device=device).sin().to(dtype).reshape(shape)


_NAMED: dict[str, Callable[..., Any]] = {
    "all_reduce": _alike, "broadcast": _alike, "all_gather_into_tensor": _gathered, "reduce_scatter_tensor": _scattered,
    "all_to_all_single": _all_to_all_values, "wait_tensor": _same_tensor,
}
_ANSWERS = {
    **{f"_c10d_functional.{name}.default": answer for name, answer in _NAMED.items()},
    "torchspore.send.default": _alike, "torchspore.receive.default": _received_values,
}
"""By the name of each exchange, a function that returns values of the right shape instead of those of other processes."""
