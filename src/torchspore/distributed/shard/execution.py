"""The execution of a captured graph that is split: which graph runs, and the layouts of its inputs and results."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from torchspore.base.frames import warn
from torchspore.base.host_memory import total_memory
from torchspore.base.text import message
from torchspore.context import plan_request
from torchspore.context.store import STORE
from torchspore.distributed import device_count
from torchspore.distributed.shard import (
    allreduce_fusion,
    exchange_schedule,
    memory_model,
    metadata,
    outcomes,
    reduce_scatter,
    simulation,
    strategy_io,
)
from torchspore.distributed.shard.local_graph import LocalGraph
from torchspore.distributed.shard.pipeline_parallel import construction, gradient_accumulation, stage_graph
from torchspore.distributed.shard.pipeline_parallel.stage_assignment import ALL
from torchspore.distributed.shard.sharded_capture import ShardedCapture
from torchspore.engine.split_layouts import sharded_value
from torchspore.engine.split_layouts.sharded_layout import ShardedLayout, as_tensor_map, set_sharded_layout, sharded_layout_of
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.delayed_values import draw_in, is_delayed
from torchspore.engine.tensors.tensor import TensorBase, wrap
from torchspore.errors import StrategyRefused
from torchspore.translations import translate

Code = Callable[..., list[Any]]
Result = tuple[LocalGraph, tuple[int, int], construction.Pipeline | None]
"""The graph of each device, the number of gradient sums and of their messages, and the pipeline if there is one."""


def cut(module: torch.fx.GraphModule, sharded_capture: ShardedCapture, lifted: Sequence[Any]) -> Result:
    """Split a graph over devices, and over the stages of a pipeline. Raises ValueError for strategies or shapes that do not fit."""
    local = sharded_capture.partition(module, lifted)
    reduce_scatter.scattered(local)
    if sharded_capture.stages == 1:
        local.module = gradient_accumulation.ordered(local.module)
        exchange_schedule.reorder(local)
    else:
        sharded_capture.homes = construction.assign(local, lifted, [_stage(item) for item in lifted], sharded_capture.stages)
    messages = allreduce_fusion.fused(local)
    return local, messages, construction.arranged(local, sharded_capture.stages) if sharded_capture.stages > 1 else None


class Split:
    """A graph of N devices, bound to the existing devices: processes, a simulation of all devices in this process, or none."""

    def __init__(self, module: torch.fx.GraphModule, sharded_capture: ShardedCapture, lifted: Sequence[Any]) -> None:
        try:
            result: Result = sharded_capture.was_cut or cut(module, sharded_capture, lifted)
            self.local, self.messages, self.pipeline = result
            sharded_capture.was_cut = None
        except ValueError as error:
            raise StrategyRefused(str(error)) from None
        if self.pipeline is not None:
            construction.note_common(self.local, lifted)
        self.sharded_capture, self.lifted = sharded_capture, list(lifted)
        self.kind = sharded_capture.kind
        is_planned = self.kind == device_count.PLANNED
        self.rank = (int(STORE.get("auto_parallel.global_rank")) if is_planned else device_count.rank()) % sharded_capture.count
        """The device of its stage that this process is, or that `global_rank` names."""
        outcomes.report(self)
        self.code: Code | None = None
        self.module = module
        if self.kind == device_count.SIMULATED:
            self.code = functools.partial(_simulated, self)
        elif self.kind == device_count.PLANNED:
            self.code = functools.partial(_planned, self)
            if plan_request.pending is not None:
                plan_request.pending.compiled = self
        else:
            from torchspore.distributed.shard import consistency, rank_binding

            consistency.report_context()
            try:
                consistency.agree(lifted)
                if self.pipeline is not None:
                    _agree_on(self.pipeline)
            except ValueError as error:
                raise StrategyRefused(str(error)) from None
            local = self.local
            if self.pipeline is not None:
                local = replace(
                    local, module=stage_graph.of_stage(local.module, device_count.rank() // sharded_capture.count, sharded_capture.stages)
                )
            self.module = rank_binding.bound(local, device_count.rank(), sharded_capture.stages)
            self._cut(lifted)
        metadata.note(sharded_capture, lifted)
        strategy_io.keep(sharded_capture)
        strategy_io.store_found_strategies(sharded_capture)

    @functools.cached_property
    def bytes_of_all_devices(self) -> int:
        """The bytes that all devices together hold at the peak of a step."""
        stages: list[int | None] = [None] if self.pipeline is None else list(range(self.sharded_capture.stages))
        return sum(memory_model.memory(self, stage).total for stage in stages) * self.sharded_capture.count

    @functools.cached_property
    def has_enough_memory(self) -> bool:
        """False if all devices together need far more memory than the machine has; True if its memory is unknown."""
        present = total_memory()
        return not present or self.bytes_of_all_devices <= _TOLERANCE * present

    def _cut(self, lifted: Sequence[Any]) -> None:
        """Reduce each split Parameter to this process's part, and each Parameter that only another stage needs to a placeholder without
        memory."""
        from torchspore.distributed.shard import gather

        mesh = self.local.mesh
        delayed = [item for item in lifted if is_delayed(getattr(item, "_t", None))]
        for at, (item, (layout, shape)) in enumerate(zip(lifted, self.local.inputs)):
            if not isinstance(item, TensorBase) or not hasattr(item, "name") or sharded_layout_of(item) is not None:
                continue
            stage = self.sharded_capture.homes.get(str(item.name))
            if layout.is_unsplit and stage is None:
                draw_in(item)
                continue
            set_sharded_layout(item, mesh, layout, shape, stage)
            if at in self.sharded_capture.bases:
                item.__dict__["_base"] = ShardedLayout(*as_tensor_map(mesh, self.sharded_capture.bases[at]), shape, stage)
            item._t = gather.stored_value(gather.part_of(item._t, item.__dict__["_sharded_layout"]), item.__dict__["_sharded_layout"])
            change_counters.rebinds += 1
        if delayed:
            outcomes.report_delayed(delayed)

    @property
    def unsplit(self) -> torch.fx.GraphModule:
        """Return the graph of one device."""
        return self.local.unsplit

    def wrapped(self, outs: Sequence[Any]) -> dict[int, Any]:
        """Return the results by index, each with its layout if this process holds a part of it."""
        wrapped: dict[int, Any] = {}
        if self.kind == device_count.RANKS:
            from torchspore.distributed.shard import gather

            for at, (out, output) in enumerate(zip(outs, self.local.outputs)):
                stage = None if self.pipeline is None else self.pipeline.homes.get(at)
                if output is not None and not (output[0].is_unsplit and stage is None) and isinstance(out, torch.Tensor):
                    wrapped[at] = wrap(out)
                    set_sharded_layout(wrapped[at], self.local.mesh, *output, stage)
                    if stage is not None and gather.is_absent(wrapped[at].__dict__["_sharded_layout"]):
                        wrapped[at]._t = gather.remote_value(out, wrapped[at].__dict__["_sharded_layout"])
                    elif not output[0].is_unsplit:
                        wrapped[at]._t = sharded_value.ShardedValue(out, wrapped[at].__dict__["_sharded_layout"])
        return wrapped


def _agree_on(pipeline: construction.Pipeline) -> None:
    """Raise ValueError if other processes would send something else: they would wait forever, or misread the data."""
    from torchspore.distributed.shard import consistency

    text = repr([(node.args[1:], tuple(node.meta["val"].shape), str(node.meta["val"].dtype)) for node in pipeline.transfers])
    consistency.check_equal("the graph of a pipeline", text)


def _stage(item: Any) -> int | None:
    """Return the pipeline stage that holds an input after an earlier graph."""
    cut = sharded_layout_of(item)
    if cut is not None:
        return cut.stage
    return ALL if getattr(item, "__dict__", {}).get(construction.EVERYWHERE) else None


def _simulated(split: Split, *tensors: torch.Tensor) -> list[Any]:
    _check_memory(split)
    return simulation.run(split.local, tensors)


def _planned(split: Split, *tensors: torch.Tensor) -> list[Any]:
    """Answer a pending request for a plan, or else compute the results of all devices in this process.

    Raises StrategyRefused if the environment requests compilation only (MS_SIMULATION_LEVEL).
    """
    if plan_request.pending is not None:
        from torchspore.distributed.shard import plan_text

        plan_text.answer(split, plan_request.pending)
        raise SystemExit(0)
    count = split.sharded_capture.count * split.sharded_capture.stages
    launch = f"torchspore workers -n {count} SCRIPT"
    if device_count.planned():
        raise StrategyRefused(message(
            f"a call for {count} devices in one process", f"{count} processes, or one that simulates them",
            hint=f"{launch}, or torchspore run --simulate {count} SCRIPT",
        ))
    _check_memory(split)
    if count not in _WARNED:
        _WARNED.add(count)
        text = translate("device_num={count} in one process: this process computes for all {count} devices, one after the other.")
        warn(f"{text.format(count=count)}\n\n{translate('hint: ')}{launch}")
    parts_of_batch = {at for at, item in enumerate(split.lifted) if split.sharded_capture.is_part_of_batch(item)}
    return simulation.run(split.local, tensors, parts_of_batch)


def _check_memory(split: Split) -> None:
    """Raise StrategyRefused if all devices together need far more memory than the machine has: the system would kill the process."""
    if not split.has_enough_memory:
        count = split.sharded_capture.count * split.sharded_capture.stages
        raise StrategyRefused(message(
            f"a call for {count} devices in one process, which needs about {split.bytes_of_all_devices / 1e9:.1f} GB",
            f"at most the {total_memory() / 1e9:.1f} GB of memory of this machine",
            hint=f"torchspore workers -n {count} SCRIPT on machines with more memory, or a smaller batch",
        ))


_TOLERANCE = 1.2
"""The estimate may be this many times the memory of the machine: it counts some values that share memory twice."""

_WARNED: set[int] = set()
"""The numbers of devices that a warning has named."""
