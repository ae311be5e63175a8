"""A captured graph that is split: what runs, and how inputs and results lie."""
from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine import counters
from torchspore.engine.shard import devices, fusing, outcomes, saving, scattering, simulation
from torchspore.engine.shard.spread import Cut, Spread, cut_of, note_cut, written
from torchspore.engine.tensor import TensorBase, wrap
from torchspore.errors import StrategyRefused

Code = Callable[..., list[Any]]


class Split:
    """A graph of N devices, for the kind of devices that there is: processes, all of them simulated here, or none."""

    def __init__(self, module: torch.fx.GraphModule, spread: Spread, lifted: Sequence[Any]) -> None:
        try:
            self.local = spread.localized(module, lifted)
        except ValueError as error:
            raise StrategyRefused(str(error)) from None
        self.spread, self.lifted = spread, list(lifted)
        scattering.scattered(self.local)
        self.messages = fusing.fused(self.local)
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

            agreeing.agree(lifted)
            self.module = binding.bound(self.local, devices.rank())
            self._cut(lifted)
        saving.keep(spread)

    def _cut(self, lifted: Sequence[Any]) -> None:
        """Leaves of each Parameter that is cut this process's own part."""
        mesh = self.local.mesh
        for at, (item, (layout, shape)) in enumerate(zip(lifted, self.local.inputs)):
            if not isinstance(item, TensorBase) or not hasattr(item, "name") or layout.is_whole or cut_of(item) is not None:
                continue
            item._t = item._t[layout.part(mesh, shape, devices.rank())].clone()
            note_cut(item, mesh, layout, shape)
            if at in self.spread.bases:
                item.__dict__["_base"] = Cut(*written(mesh, self.spread.bases[at]), shape)
            counters.rebinds += 1

    def wrapped(self, outs: Sequence[Any]) -> dict[int, Any]:
        """The results by number, those that this process holds a part of with a note of how they lie."""
        made: dict[int, Any] = {}
        if self.kind == devices.RANKS:
            for at, (out, place) in enumerate(zip(outs, self.local.outputs)):
                if place is not None and not place[0].is_whole and isinstance(out, torch.Tensor):
                    made[at] = wrap(out)
                    note_cut(made[at], self.local.mesh, *place)
        return made


def _simulated(local: Any, *given: torch.Tensor) -> list[Any]:
    return simulation.run(local, given)


def _not_here(split: Split, *given: torch.Tensor) -> list[Any]:
    count = split.spread.count
    if os.environ.get(devices.PLAN):
        from torchspore.engine.shard import planning

        machine = planning.Machine(
            float(os.environ.get("TORCHSPORE_PLAN_BANDWIDTH", "50")) * 1e9, float(os.environ.get("TORCHSPORE_PLAN_LATENCY", "20")) / 1e6,
        )
        print("\n".join(planning.text(split, machine)))
        os.environ["TORCHSPORE_PLANNED"] = "1"
        raise SystemExit(0)
    raise StrategyRefused(message(
        f"a call for {count} devices in one process", f"{count} processes, or one that stands for them",
        hint=f"torchspore workers -n {count} SCRIPT, or torchspore run --simulate {count} SCRIPT",
    ))
