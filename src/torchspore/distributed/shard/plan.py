"""The plan of a search: the layouts of inputs, and of the operands and results of operators."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch.fx.node import Node

from torchspore.engine.split_layouts.device_layout import Layout


@dataclass(frozen=True)
class Plan:
    """Layouts by node. For other nodes the partitioner decides, as it does without a plan."""

    inputs: Mapping[Node, Layout] = field(default_factory=dict)
    """The layouts of Parameters."""
    operands: Mapping[Node, tuple[Layout | None, ...]] = field(default_factory=dict)
    """The layouts of an operator's operands, in the order of its schema."""
    results: Mapping[Node, Mapping[int, Layout]] = field(default_factory=dict)
    """The layouts of results with several users, by their indexes among the node's results."""
    requested: Mapping[Node, Layout] = field(default_factory=dict)
    """The layouts of results that their operator chooses: the rows of a table's gradient."""
