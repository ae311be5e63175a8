"""The number of devices for which graphs are split, and how the devices are realized: as processes, simulated in this process, or only
planned."""
from __future__ import annotations

import os

from torchspore.base.text import message
from torchspore.context.store import DEFAULT, STORE
from torchspore.errors import StrategyRefused

RANKS, SIMULATED, PLANNED = "ranks", "simulated", "planned"
SIMULATE, PLAN = "TORCHSPORE_SIMULATE", "TORCHSPORE_PLAN"


def simulated() -> int:
    """The number of ranks that this process simulates with real numbers: `torchspore run --simulate N`; 0 without simulation."""
    return _number(SIMULATE)


def planned() -> int:
    """For how many devices graphs are compiled and not run: `torchspore plan`, MS_SIMULATION_LEVEL with RANK_SIZE; 0 where they run."""
    if os.environ.get(PLAN):
        return _number(PLAN)
    level = os.environ.get("MS_SIMULATION_LEVEL", "")
    return _number("RANK_SIZE") if level in ("0", "1", "2", "3") else 0


def _number(name: str) -> int:
    text = os.environ.get(name, "")
    if not text:
        return 0
    if not text.isdigit() or not 1 <= int(text) <= 4096:
        raise ValueError(message(f"{name}={text!r}", "a number of devices from 1 to 4096"))
    return int(text)


def devices() -> tuple[int, str]:
    """The number of devices, and how they are realized."""
    from torchspore.distributed.comm import groups

    if groups.is_started() and groups.size() > 1:
        return groups.size(), RANKS
    if simulated():
        return simulated(), SIMULATED
    return planned() or int(STORE.get("auto_parallel.device_num")), PLANNED


def check() -> None:
    """Raises StrategyRefused where `device_num` or `global_rank` was set to something that the processes, or devices, are not."""
    count, kind = devices()
    options = {name: int(STORE.get("auto_parallel." + name)) for name in ("device_num", "global_rank")
             if STORE.source("auto_parallel." + name)[0] != DEFAULT}
    actual = {"device_num": (count, "the number of processes"), "global_rank": (rank(), "the rank of this process")}
    for name, value in options.items():
        if kind == RANKS and value != actual[name][0]:
            actual_value, what = actual[name]
            raise StrategyRefused(
                message(f"set_auto_parallel_context({name}={value})", f"{actual_value}, {what}", hint=f"leave {name} out")
            )
    if options.get("global_rank", 0) >= count:
        wrote = f"set_auto_parallel_context(global_rank={options['global_rank']}) for {count} devices"
        raise StrategyRefused(message(wrote, f"a number below {count}"))


def stages() -> int:
    """Into how many stages of a pipeline the context divides the devices. Raises StrategyRefused where they can't be."""
    count, stage_count = devices()[0], int(STORE.get("auto_parallel.pipeline_stages"))
    if count % stage_count:
        wrote = f"set_auto_parallel_context(pipeline_stages={stage_count}) for {count} devices"
        raise StrategyRefused(message(wrote, f"a number that divides {count}"))
    return stage_count


def rank() -> int:
    """Return the rank of this process; in a simulation or a plan, the context's setting."""
    from torchspore.distributed.comm import groups

    return groups.rank() if groups.is_started() else int(STORE.get("auto_parallel.global_rank"))
