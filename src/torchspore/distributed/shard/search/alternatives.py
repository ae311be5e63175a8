"""How many devices a graph needs that does not fit into the memory of the existing ones; `torchspore plan` prints it."""
from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from torchspore.distributed.shard import strategy_marker
from torchspore.distributed.shard.search.costs import Cost
from torchspore.translations import translate

if TYPE_CHECKING:
    from torchspore.distributed.shard.sharded_capture import ShardedCapture

MOST_DEVICES = 4096


@dataclass(frozen=True)
class Sufficient:
    """The number of devices at which a plan fits into memory, and the cost of a step there."""

    devices: int
    cost: Cost
    too_few: tuple[int, ...]
    """The numbers of devices at which no plan fits, the program's first."""


def sufficient_devices(
    sharded_capture: ShardedCapture, module: torch.fx.GraphModule, least_cost: Callable[[ShardedCapture], Cost],
) -> Sufficient | str:
    """Double the number of devices until the cheapest plan fits, as `least_cost` searches it for a capture with another number.

    Return the reason if none fits, or if the program sets the number.
    """
    if any(node.target is strategy_marker.laid for node in module.graph.nodes) or sharded_capture.input_layouts is not None:
        return translate("the strategies of the program are for this number of devices")
    too_few = [sharded_capture.count]
    while 2 * too_few[-1] <= MOST_DEVICES:
        capture = copy.copy(sharded_capture)
        capture.count = 2 * too_few[-1]
        cost = least_cost(capture)
        if not cost.excess:
            return Sufficient(capture.count, cost, tuple(too_few))
        too_few.append(capture.count)
    text = translate("no number up to {most} suffices; smaller batches, recomputation or pipeline stages hold less")
    return text.format(most=MOST_DEVICES)
