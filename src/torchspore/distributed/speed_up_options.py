"""The switches of `parallel_speed_up_json_path`: all steer the exchanges of a program that runs on several devices.

`communi_parallel_mode` is one of `set_auto_parallel_context`.
Those that say which exchanges begin early are read by `graph.passes.communication`, and `distributed.shard.reduce_scatter` reads one.
"""
from __future__ import annotations

from typing import Any

from torchspore.context.effects import Outcome
from torchspore.distributed.comm import channels


def file(path: str) -> Outcome:
    """The file was read; its switches are options of their own."""
    return Outcome.applied(f"switches are read from {path}, see each" if path else "no file is read")


def early(value: Any) -> Outcome | None:
    """Apply a switch that lets exchanges begin early; the compilation of a graph reports the outcome."""
    return _alone()


def scatters(value: Any) -> Outcome | None:
    """Apply `enable_allreduce_slice_to_reducescatter`; splitting a graph reports the outcome."""
    return _alone()


def always(value: Any) -> Outcome:
    """Apply a switch whose optimization is always active here."""
    how = "sums of gradients begin as soon as they are there, and a bias is added after a sum, with it or without"
    return _alone() or Outcome.applied(how)


def joins(value: Any) -> Outcome:
    """`enable_task_opt`."""
    return _alone() or Outcome.no_effect("operators are handed to a device one by one; comm_fusion joins messages")


def pipelines(value: Any) -> Outcome:
    """A switch for the pieces of a pipeline."""
    return _alone() or Outcome.no_effect("the schedule of a pipeline alone says when its exchanges begin")


def cuts(value: Any) -> Outcome:
    """A switch that cuts operators in two, so that one half is sent while the other one is computed."""
    return _alone() or Outcome.no_effect("no operator is cut in two here, so that one half could be sent while the other is computed")


def branches(value: Any) -> Outcome:
    """A switch that interleaves branches."""
    how = "branches run in the program's order; inter_op_parallel_num runs independent operators side by side"
    return _alone() or Outcome.no_effect(how)


def data(value: Any) -> Outcome:
    """`dataset_broadcast_opt_level`."""
    return _alone() or Outcome.no_effect("each process reads its own data")


def balances(value: Any) -> Outcome:
    """`enable_flash_attention_load_balance`."""
    return _alone() or Outcome.no_effect("no pass gives each device an equal share of causal attention")


def serializes(mode: str) -> Outcome:
    """`communi_parallel_mode`."""
    channels.set_mode(mode)
    texts = {
        channels.ALL: "groups do not wait for each other",
        channels.WITHIN_SERVER: "groups of several machines exchange one after the other",
        channels.NONE: "groups exchange one after the other",
    }
    return _alone() or Outcome.applied(texts[mode])


def _alone() -> Outcome | None:
    """Return the outcome for one device; None if there are several, or may be: `init()` may still come."""
    from torchspore.distributed import device_count
    from torchspore.distributed.comm import environment

    if environment.read().size > 1 or device_count.devices()[0] > 1:
        return None
    return Outcome.no_effect("it steers exchanges between devices, and a program in one process has none")
