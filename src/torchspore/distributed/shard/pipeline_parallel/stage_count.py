"""`auto_pipeline` chooses the number of stages into which the devices are divided, from 1 to `pipeline_stages`.

The step is captured and split for each number, and its order simulated with a clock; the cheapest is used. Nothing depends on time or
chance, so all processes choose the same number.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from torchspore.base.text import message
from torchspore.context import effects, plan_request
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.distributed import device_count
from torchspore.distributed.shard.machine_model import machine
from torchspore.distributed.shard.search.costs import Cost
from torchspore.errors import StrategyRefused
from torchspore.translations import translate

if TYPE_CHECKING:
    import torch

    from torchspore.distributed.shard.sharded_capture import ShardedCapture

OPTION = "auto_parallel.auto_pipeline"
_STAGES = "auto_parallel.pipeline_stages"
_Trace = TypeVar("_Trace")
Parts = Callable[[_Trace], tuple["torch.fx.GraphModule", "ShardedCapture", list[Any]]]


@dataclass(frozen=True)
class Chosen:
    """The cost of each number of stages, and the reasons why others do not fit."""

    stages: int
    costs: dict[int, Cost]
    refused: dict[int, str]

    def describe(self) -> str:
        """Return the description for the user."""
        others = [
            (translate("1 takes {cost}") if count == 1 else translate("{count} take {cost}")).format(count=count, cost=cost.describe())
            for count, cost in sorted(self.costs.items()) if count != self.stages
        ]
        others += [translate("{count} do not fit: {reason}").format(count=count, reason=why) for count, why in sorted(self.refused.items())]
        text = translate("1 stage: {cost}") if self.stages == 1 else translate("{count} stages: {cost}")
        more = translate(", where {others}").format(others=translate("; ").join(others)) if others else translate(
            ", the only number that fits")
        return text.format(count=self.stages, cost=self.costs[self.stages].describe()) + more


def is_requested() -> bool:
    """Return whether the number of stages is to be chosen; report the reason if the context requests it and it cannot be.

    A plan with `torchspore plan --stages` has that one number.
    """
    if _planned_stages():
        return True
    if not STORE.get(OPTION):
        return False
    get, why = STORE.get, ""
    if get("auto_parallel.parallel_mode") != "auto_parallel" or get("auto_parallel.search_mode") != "recursive_programming":
        why = "only parallel_mode='auto_parallel' with search_mode='recursive_programming' chooses the number of stages"
    elif device_count.devices()[1] == device_count.RANKS and get("auto_parallel.dataset_strategy") != "full_batch":
        why = "the part of the batch in each process depends on the number of stages; dataset_strategy='full_batch' lets it be chosen"
    if why:
        effects.report(OPTION, Outcome.no_effect(f"{why}: there are {get(_STAGES)}"))
    return not why


def _planned_stages() -> int:
    """Return the number of stages that `torchspore plan --stages` requests; 0 if it requests none."""
    return 0 if plan_request.pending is None else plan_request.pending.stages


def numbers() -> list[int]:
    """Return the possible numbers of stages, the largest first. Raises StrategyRefused for a planned number that does not fit."""
    count, most, planned = device_count.devices()[0], int(STORE.get(_STAGES)), _planned_stages()
    if planned and (planned > most or most % planned or count % planned):
        limits = f"a number that divides the {count} devices and the program's pipeline_stages, {most}"
        raise StrategyRefused(message(
            f"torchspore plan --stages {planned}", limits, hint="set pipeline_stages in the program, and pipeline_stage of its Cells"))
    if planned:
        return [planned]
    return [divisor for divisor in range(min(count, most), 0, -1) if count % divisor == 0]


def cheapest(trace: Callable[[int], _Trace], parts: Parts[_Trace]) -> _Trace:
    """Return the capture for the number of stages with the least cost; `parts` returns its graph, its devices, and its inputs.

    Parameters that are already stored by stages determine the number. If no number fits, the error of the largest is raised.
    """
    best: tuple[_Trace, ShardedCapture] | None = None
    first: Exception | None = None
    costs, refused = dict[int, Cost](), dict[int, str]()
    for count in numbers():
        try:
            attempt = trace(count)
            module, sharded_capture, lifted = parts(attempt)
            if _others_hold(sharded_capture, lifted):
                continue
            costs[count] = _cost(module, sharded_capture, lifted)
        except (ValueError, StrategyRefused) as error:
            first = first or error
            refused[count] = str(error).splitlines()[0]
            continue
        if best is None or costs[count].order() <= costs[best[1].stages].order():
            if best is not None:
                best[1].was_cut = None
            best = attempt, sharded_capture
        else:
            sharded_capture.was_cut = None
    if best is None:
        raise first or StrategyRefused(message(f"pipeline_stages={STORE.get(_STAGES)}", "a number of stages that fits"))
    if not _planned_stages():
        best[1].chosen = Chosen(best[1].stages, costs, refused)
        _report_choice(best[1].chosen)
    return best[0]


def _cost(module: torch.fx.GraphModule, sharded_capture: ShardedCapture, lifted: list[Any]) -> Cost:
    from torchspore.distributed.shard import execution
    from torchspore.distributed.shard.pipeline_parallel import step_time

    sharded_capture.was_cut = execution.cut(module, sharded_capture, lifted)
    return step_time.of(sharded_capture.was_cut[0], sharded_capture.stages, machine())


def _others_hold(sharded_capture: ShardedCapture, lifted: list[Any]) -> bool:
    """Return whether the layouts of Parameters belong to another number of stages."""
    from torchspore.engine.split_layouts.sharded_layout import sharded_layout_of

    return any(prod(cut.matrix) != sharded_capture.count for cut in map(sharded_layout_of, lifted) if cut is not None)


def _report_choice(chosen: Chosen) -> None:
    from torchspore.distributed.shard import consistency

    if device_count.devices()[1] == device_count.RANKS:
        consistency.check_equal("the number of pipeline stages that was chosen", str(chosen.stages))
    text = translate("auto_pipeline: {choice}, at {speeds}")
    effects.note("distribution", text.format(choice=chosen.describe(), speeds=machine().describe()))
    effects.report(OPTION, Outcome.applied(chosen.describe()))
