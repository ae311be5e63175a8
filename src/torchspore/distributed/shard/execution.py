"""A captured graph that is split: what runs, and how inputs and results lie."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.context import plan_request
from torchspore.distributed import device_count
from torchspore.distributed.shard import allreduce_fusion, metadata, outcomes, reduce_scatter, simulation, strategy_io
from torchspore.distributed.shard.local_graph import LocalGraph
from torchspore.distributed.shard.pipelines import construction, stage_graph
from torchspore.distributed.shard.pipelines.stage_assignment import ALL
from torchspore.distributed.shard.sharded_capture import ShardedCapture
from torchspore.engine.core import change_counters, sharded_value
from torchspore.engine.core.sharded_layout import ShardedLayout, as_tensor_map, cut_of, note_cut
from torchspore.engine.core.tensor import TensorBase, wrap
from torchspore.errors import StrategyRefused

Code = Callable[..., list[Any]]
Result = tuple[LocalGraph, tuple[int, int], construction.Pipeline | None]
"""The graph of each device, the number of gradient sums and of their messages, and the pipeline if there is one."""


def cut(module: torch.fx.GraphModule, spread: ShardedCapture, lifted: Sequence[Any]) -> Result:
    """Splits a graph over devices, and over the stages of a pipeline. Raises ValueError for what does not fit."""
    local = spread.localized(module, lifted)
    reduce_scatter.scattered(local)
    if spread.stages > 1:
        spread.homes = construction.assign(local, lifted, [_stage(item) for item in lifted], spread.stages)
    messages = allreduce_fusion.fused(local)
    return local, messages, construction.arranged(local, spread.stages) if spread.stages > 1 else None


class Split:
    """A graph of N devices, for the kind of devices that there is: processes, all of them simulated here, or none."""

    def __init__(self, module: torch.fx.GraphModule, spread: ShardedCapture, lifted: Sequence[Any]) -> None:
        try:
            result: Result = spread.was_cut or cut(module, spread, lifted)
            self.local, self.messages, self.pipeline = result
            spread.was_cut = None
        except ValueError as error:
            raise StrategyRefused(str(error)) from None
        if self.pipeline is not None:
            construction.note_common(self.local, lifted)
        self.spread, self.lifted = spread, list(lifted)
        self.kind = spread.kind
        outcomes.report(self)
        self.code: Code | None = None
        self.module = module
        if self.kind == device_count.SIMULATED:
            self.code = functools.partial(_simulated, self.local)
        elif self.kind == device_count.PLANNED:
            self.code = functools.partial(_not_here, self)
        else:
            from torchspore.distributed.shard import consistency, rank_binding

            consistency.say_context()
            try:
                consistency.agree(lifted)
                if self.pipeline is not None:
                    _agree_on(self.pipeline)
            except ValueError as error:
                raise StrategyRefused(str(error)) from None
            local = self.local
            if self.pipeline is not None:
                local = replace(local, module=stage_graph.of_stage(local.module, device_count.rank() // spread.count, spread.stages))
            self.module = rank_binding.bound(local, device_count.rank(), spread.stages)
            self._cut(lifted)
        metadata.note(spread, lifted)
        strategy_io.keep(spread)
        strategy_io.store_found_strategies(spread)

    def _cut(self, lifted: Sequence[Any]) -> None:
        """Leaves of each Parameter that is cut this process's own part, and nothing of one that only another stage needs."""
        from torchspore.distributed.shard import gather

        mesh = self.local.mesh
        for at, (item, (layout, shape)) in enumerate(zip(lifted, self.local.inputs)):
            if not isinstance(item, TensorBase) or not hasattr(item, "name") or cut_of(item) is not None:
                continue
            stage = self.spread.homes.get(str(item.name))
            if layout.is_unsplit and stage is None:
                continue
            note_cut(item, mesh, layout, shape, stage)
            if at in self.spread.bases:
                item.__dict__["_base"] = ShardedLayout(*as_tensor_map(mesh, self.spread.bases[at]), shape, stage)
            item._t = gather.stored_value(gather.part_of(item._t, item.__dict__["_cut"]), item.__dict__["_cut"])
            change_counters.rebinds += 1

    @property
    def unsplit(self) -> torch.fx.GraphModule:
        """The graph of one device."""
        return self.local.unsplit

    def wrapped(self, outs: Sequence[Any]) -> dict[int, Any]:
        """The results by number, those that this process holds a part of with a note of how they lie."""
        wrapped: dict[int, Any] = {}
        if self.kind == device_count.RANKS:
            from torchspore.distributed.shard import gather

            for at, (out, output) in enumerate(zip(outs, self.local.outputs)):
                stage = None if self.pipeline is None else self.pipeline.homes.get(at)
                if output is not None and not (output[0].is_unsplit and stage is None) and isinstance(out, torch.Tensor):
                    wrapped[at] = wrap(out)
                    note_cut(wrapped[at], self.local.mesh, *output, stage)
                    if stage is not None and gather.is_absent(wrapped[at].__dict__["_cut"]):
                        wrapped[at]._t = gather.elsewhere(out, wrapped[at].__dict__["_cut"])
                    elif not output[0].is_unsplit:
                        wrapped[at]._t = sharded_value.ShardedValue(out, wrapped[at].__dict__["_cut"])
        return wrapped


def _agree_on(pipeline: construction.Pipeline) -> None:
    """Raises ValueError where other processes would send something else: they would wait for ever, or take it for what it is not."""
    from torchspore.distributed.shard import consistency

    text = repr([(node.args[1:], tuple(node.meta["val"].shape), str(node.meta["val"].dtype)) for node in pipeline.transfers])
    consistency.check_equal("the graph of a pipeline", text)


def _stage(item: Any) -> int | None:
    """The stage of a pipeline that has an input, as an earlier graph left it."""
    cut = cut_of(item)
    if cut is not None:
        return cut.stage
    return ALL if getattr(item, "__dict__", {}).get(construction.EVERYWHERE) else None


def _simulated(local: Any, *tensors: torch.Tensor) -> list[Any]:
    return simulation.run(local, tensors)


def _not_here(split: Split, *tensors: torch.Tensor) -> list[Any]:
    if plan_request.pending is not None:
        from torchspore.distributed.shard import plan_text

        plan_text.answer(split, plan_request.pending)
        raise SystemExit(0)
    count = split.spread.count
    raise StrategyRefused(message(
        f"a call for {count} devices in one process", f"{count} processes, or one that stands for them",
        hint=f"torchspore workers -n {count} SCRIPT, or torchspore run --simulate {count} SCRIPT",
    ))
