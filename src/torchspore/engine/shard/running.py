"""A captured graph that is split: what runs, and how inputs and results lie."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.context import plan_request
from torchspore.engine import counters
from torchspore.engine.shard import devices, fusing, metadata, outcomes, parted, saving, scattering, simulation
from torchspore.engine.shard.cut import Cut, cut_of, note_cut, written
from torchspore.engine.shard.local_graph import LocalGraph
from torchspore.engine.shard.pipelines import cutting, staging
from torchspore.engine.shard.pipelines.assigning import ALL
from torchspore.engine.shard.spread import Spread
from torchspore.engine.tensor import TensorBase, wrap
from torchspore.errors import StrategyRefused

Code = Callable[..., list[Any]]
Result = tuple[LocalGraph, tuple[int, int], staging.Pipeline | None]
"""What each device runs, how many sums of gradients go in how many messages, and the pipeline if there is one."""


def cut(module: torch.fx.GraphModule, spread: Spread, lifted: Sequence[Any]) -> Result:
    """Splits a graph over devices, and over the stages of a pipeline. Raises ValueError for what does not fit."""
    local = spread.localized(module, lifted)
    scattering.scattered(local)
    if spread.stages > 1:
        spread.homes = staging.assign(local, lifted, [_stage(item) for item in lifted], spread.stages)
    messages = fusing.fused(local)
    return local, messages, staging.arranged(local, spread.stages) if spread.stages > 1 else None


class Split:
    """A graph of N devices, for the kind of devices that there is: processes, all of them simulated here, or none."""

    def __init__(self, module: torch.fx.GraphModule, spread: Spread, lifted: Sequence[Any]) -> None:
        try:
            found: Result = spread.was_cut or cut(module, spread, lifted)
            self.local, self.messages, self.pipeline = found
            spread.was_cut = None
        except ValueError as error:
            raise StrategyRefused(str(error)) from None
        if self.pipeline is not None:
            staging.note_common(self.local, lifted)
        self.spread, self.lifted = spread, list(lifted)
        self.kind = spread.kind
        outcomes.told(self)
        self.code: Code | None = None
        self.module = module
        if self.kind == devices.SIMULATED:
            self.code = functools.partial(_simulated, self.local)
        elif self.kind == devices.PLANNED:
            self.code = functools.partial(_not_here, self)
        else:
            from torchspore.engine.shard import agreeing, binding

            agreeing.say_context()
            try:
                agreeing.agree(lifted)
                if self.pipeline is not None:
                    _agree_on(self.pipeline)
            except ValueError as error:
                raise StrategyRefused(str(error)) from None
            own = self.local
            if self.pipeline is not None:
                own = replace(own, module=cutting.of_stage(own.module, devices.rank() // spread.count, spread.stages))
            self.module = binding.bound(own, devices.rank(), spread.stages)
            self._cut(lifted)
        metadata.note(spread, lifted)
        saving.keep(spread)
        saving.keep_found(spread)

    def _cut(self, lifted: Sequence[Any]) -> None:
        """Leaves of each Parameter that is cut this process's own part, and nothing of one that only another stage needs."""
        from torchspore.engine.shard import gathering

        mesh = self.local.mesh
        for at, (item, (layout, shape)) in enumerate(zip(lifted, self.local.inputs)):
            if not isinstance(item, TensorBase) or not hasattr(item, "name") or cut_of(item) is not None:
                continue
            stage = self.spread.homes.get(str(item.name))
            if layout.is_whole and stage is None:
                continue
            note_cut(item, mesh, layout, shape, stage)
            if at in self.spread.bases:
                item.__dict__["_base"] = Cut(*written(mesh, self.spread.bases[at]), shape, stage)
            item._t = gathering.kept(gathering.part_of(item._t, item.__dict__["_cut"]), item.__dict__["_cut"])
            counters.rebinds += 1

    def wrapped(self, outs: Sequence[Any]) -> dict[int, Any]:
        """The results by number, those that this process holds a part of with a note of how they lie."""
        made: dict[int, Any] = {}
        if self.kind == devices.RANKS:
            from torchspore.engine.shard import gathering

            for at, (out, place) in enumerate(zip(outs, self.local.outputs)):
                stage = None if self.pipeline is None else self.pipeline.homes.get(at)
                if place is not None and not (place[0].is_whole and stage is None) and isinstance(out, torch.Tensor):
                    made[at] = wrap(out)
                    note_cut(made[at], self.local.mesh, *place, stage)
                    if stage is not None and gathering.is_absent(made[at].__dict__["_cut"]):
                        made[at]._t = gathering.elsewhere(out, made[at].__dict__["_cut"])
                    elif not place[0].is_whole:
                        made[at]._t = parted.Parted(out, made[at].__dict__["_cut"])
        return made


def _agree_on(pipeline: staging.Pipeline) -> None:
    """Raises ValueError where other processes would send something else: they would wait for ever, or take it for what it is not."""
    from torchspore.engine.shard import agreeing

    text = repr([(node.args[1:], tuple(node.meta["val"].shape), str(node.meta["val"].dtype)) for node in pipeline.transfers])
    agreeing.same("the graph of a pipeline", text)


def _stage(item: Any) -> int | None:
    """The stage of a pipeline that has an input, as an earlier graph left it."""
    cut = cut_of(item)
    if cut is not None:
        return cut.stage
    return ALL if getattr(item, "__dict__", {}).get(staging.EVERYWHERE) else None


def _simulated(local: Any, *given: torch.Tensor) -> list[Any]:
    return simulation.run(local, given)


def _not_here(split: Split, *given: torch.Tensor) -> list[Any]:
    if plan_request.pending is not None:
        from torchspore.engine.shard import plan_text

        plan_text.answer(split, plan_request.pending)
        raise SystemExit(0)
    count = split.spread.count
    raise StrategyRefused(message(
        f"a call for {count} devices in one process", f"{count} processes, or one that stands for them",
        hint=f"torchspore workers -n {count} SCRIPT, or torchspore run --simulate {count} SCRIPT",
    ))
