"""The context's settings for training on several processes, and whether they fit the processes."""
from __future__ import annotations

from torchspore.base.text import message
from torchspore.context.store import DEFAULT, STORE
from torchspore.distributed.comm import environment, groups
from torchspore.graph.splitter import SPLIT_MODES

ALIKE = ("data_parallel", "hybrid_parallel")
"""The modes in which each process has its own part of the batch, and gradients are summed over all."""

_IN = "auto_parallel."


def mode() -> str:
    """The parallel mode."""
    return str(STORE.get(_IN + "parallel_mode"))


def is_set(name: str) -> bool:
    """Return whether the program gave an option of `set_auto_parallel_context` a value."""
    return STORE.source(_IN + name)[0] != DEFAULT


def processes() -> int:
    """Return the number of processes: 1 before `init()`."""
    return groups.size() if groups.is_started() else 1


def device_num() -> int:
    """Return the divisor of gradients: 1 without other processes, `device_num` if it is set, otherwise the number of processes."""
    if mode() == "stand_alone":
        return 1
    return int(STORE.get(_IN + "device_num")) if is_set("device_num") else processes()


def takes_means() -> bool:
    """Return whether gradients become means over the processes; they stay sums by default."""
    return bool(STORE.get(_IN + "gradients_mean"))


def accumulation() -> int:
    """Over how many steps gradients are added up before they are applied; 1 where each step applies its own."""
    return int(STORE.get(_IN + "grad_accumulation_step"))


def is_shared() -> bool:
    """Return whether gradients of this training are summed over several processes."""
    return mode() in ALIKE and processes() > 1


def planned_devices() -> int:
    """Return for how many devices without processes a graph with sums of gradients is compiled; 1 if there are processes or none is set."""
    is_planned = mode() in ALIKE and processes() == 1 and not environment.simulated_size() > 1 and is_set("device_num")
    return int(STORE.get(_IN + "device_num")) if is_planned else 1


def check() -> None:
    """Raise RuntimeError if `device_num` or `global_rank` differs from the existing processes.

    Also if one process simulates several ranks: it cannot store each rank's results for its part of the batch.
    """
    check_mode()
    if mode() not in ALIKE:
        return
    together = environment.simulated_size()
    if together > 1 and processes() == 1:
        raise RuntimeError(message(
            f"parallel_mode={mode()!r} in one process that simulates {together}",
            "'semi_auto_parallel' or 'auto_parallel', which split operators",
            hint=f"torchspore workers -n {together} SCRIPT runs a process for each part of the batch",
        ))
    rank = groups.rank() if groups.is_started() else 0
    for name, actual, what in (("device_num", processes(), "number of processes"), ("global_rank", rank, "rank of this process")):
        if is_set(name) and STORE.get(_IN + name) != actual:
            hint = f"leave {name} out" if groups.is_started() else "call mindspore.communication.init() in each process before"
            raise RuntimeError(message(
                f"set_auto_parallel_context({name}={STORE.get(_IN + name)}) in {mode()!r}", f"{actual}, the {what}", hint=hint,
            ))


def check_mode() -> None:
    """Raises RuntimeError where operators are to be split and nothing is a graph."""
    if mode() in SPLIT_MODES and processes() > 1 and not STORE.graph_mode:
        raise RuntimeError(message(
            f"PYNATIVE_MODE with parallel_mode={mode()!r}", "GRAPH_MODE: operators are split in a graph",
            hint="write set_context(mode=GRAPH_MODE), or put the step into a function under @mindspore.jit and wrap that in AutoParallel",
        ))
