"""The result of the partitioner: the graph of each device, and the split of each operator."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.redistribution import Step
from torchspore.engine.split_layouts.device_layout import Layout, Shape
from torchspore.engine.split_layouts.device_mesh import Mesh


@dataclass(frozen=True)
class Value:
    """A value of the local graph: its node, its layout and its full shape."""

    node: Node
    layout: Layout
    shape: Shape
    dtype: torch.dtype


_STATEMENTS = {
    "branch": "an if on a Tensor", "branch_keeping": "an if on a Tensor", "branch_back": "the gradient of an if on a Tensor",
    "loop": "a loop on a Tensor", "loop_keeping": "a loop on a Tensor", "loop_back": "the gradient of a loop on a Tensor",
    "loop_back_second": "the second gradient of a loop on a Tensor", "check": "an assert on a Tensor", "say": "a print",
}
"""The statements that operators replace, by the names of the operators' functions."""


@dataclass
class SplitOperator:
    """The split of an operator of the captured graph, for `explain` and the plan."""

    node: Node
    layouts: list[Layout]
    steps: list[tuple[Step, Shape]] = field(default_factory=list)
    has_rule: bool = True
    why: str = ""
    """The reason why a requested split was not applied."""
    used: dict[Node, Layout] = field(default_factory=dict)
    """The layouts of its operands."""
    nodes: list[Node] = field(default_factory=list)
    """The nodes that each device runs for it."""

    @property
    def name(self) -> str:
        """Return the name for messages: of MindSpore's operator, torch's operator, or a statement of the program."""
        target: Any = self.node.target
        plain = _STATEMENTS.get(getattr(target, "__name__", ""))
        return plain or str(self.node.meta.get("called") or target)


@dataclass
class LocalGraph:
    """The graph of each device, the layouts of its inputs and outputs, and the split of each operator."""

    module: torch.fx.GraphModule
    mesh: Mesh
    inputs: list[tuple[Layout, Shape]]
    outputs: list[tuple[Layout, Shape] | None]
    split_operators: list[SplitOperator]
    unsplit: torch.fx.GraphModule
    """The captured graph of one device."""


@dataclass(frozen=True)
class Policy:
    """The context's settings for exchanges."""

    exchanges: bool = False
    """True if layouts may change by all-to-all; `enable_alltoall`."""
    sums_wide: bool = False
    """True if all terms of half precision are summed in float32; `force_fp32_communication`."""
    sums_gradients_wide: bool = True
    """True if those of gradients are; `gradient_fp32_sync`."""
    means: bool = False
    """True if gradients are divided by the devices that hold the same part of a Parameter; `gradients_mean`."""
    reports_norms: bool = False
    """True if the lengths of gradients are reported before they are summed; `dump_local_norm`."""
    shares: Mapping[str, Layout] = field(default_factory=dict)
    """By the name of a Parameter that the optimizer splits, the layout of the optimizer's part: gradients are summed in it."""
