"""Converts a local graph that was built without a search to choices of variables: a search that starts there never ends worse."""
from __future__ import annotations

from torch.fx.node import Node

from torchspore.distributed.shard.local_graph import LocalGraph
from torchspore.distributed.shard.propagation_rules.rule import Dims
from torchspore.distributed.shard.search.axis import KINDS, Choice
from torchspore.distributed.shard.search.model import HOLDER, VALUE, Model, Variable, node_tensors
from torchspore.engine.split_layouts.device_layout import Layout


def choices_of(model: Model, local: LocalGraph) -> list[Choice]:
    """Return the choice of each variable along the only axis of the local graph's grid."""
    placed = {placed_node.node: placed_node for placed_node in local.split_operators}
    holders = [node for node in model.module.graph.nodes if node.op == "placeholder"]
    inputs = {node: layout for node, (layout, _) in zip(holders, local.inputs)}
    choices = []
    for variable in model.variables:
        if variable.kind == HOLDER:
            choices.append(_choice(variable.results[0], inputs.get(variable.node)))
            continue
        placed_node = placed.get(variable.node)
        if placed_node is None:
            choices.append(Choice())
        elif variable.kind == VALUE:
            at = variable.operands[0].number
            choices.append(_choice(variable.results[0], placed_node.layouts[at] if at < len(placed_node.layouts) else None))
        else:
            choices.append(_of_operands(variable, placed_node.used))
    return choices


def _of_operands(variable: Variable, used: dict[Node, Layout]) -> Choice:
    names = node_tensors(variable.node)
    for use in variable.operands:
        choice = _choice(use.dims, used.get(names[use.number]) if use.number < len(names) else None)
        if choice != Choice():
            return choice
    return Choice()


def _choice(dims: Dims, layout: Layout | None) -> Choice:
    if layout is None:
        return Choice()
    for dim, axes in zip(dims, layout.dim_axes):
        if axes and dim:
            return Choice(dim[0])
    return Choice(terms=KINDS[layout.partial[0][1]]) if layout.partial else Choice()
