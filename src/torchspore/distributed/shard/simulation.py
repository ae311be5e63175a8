"""Runs all ranks of a local graph in this process: each node for each rank, one after the other.

A dump records the values of rank 0, as its process would write them. Exchanges are not recorded, as between processes.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Container, Sequence
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.partitioner import LocalGraph
from torchspore.engine.execution import current_operator
from torchspore.engine.formulas import recurrent
from torchspore.engine.random import operator_streams
from torchspore.engine.split_layouts.device_layout import Layout, Shape
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import mutated_owners

_REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda terms: terms.sum(0, dtype=terms.dtype), "avg": lambda terms: terms.mean(0), "max": lambda terms: terms.amax(0),
    "min": lambda terms: terms.amin(0),
}


def run(local: LocalGraph, inputs: Sequence[torch.Tensor], parts_of_batch: Container[int] = ()) -> list[torch.Tensor]:
    """Return the full results for full inputs, and write the graph's mutations into the inputs.

    For an input whose index is in `parts_of_batch`, the caller passes the part of one device, which every device then receives.
    """
    mesh = local.mesh
    with torch.no_grad():
        with current_operator.unseen():
            input_parts = [
                [t.clone() for _ in range(mesh.count)] if at in parts_of_batch else parts(mesh, layout, t)
                for at, ((layout, _), t) in enumerate(zip(local.inputs, inputs))
            ]
        outs = _interpreted(local, input_parts)
        with current_operator.unseen():
            for input_index in (index for index in written_input_indices(local) if index not in parts_of_batch):
                inputs[input_index].copy_(
                    joined(mesh, local.inputs[input_index][0], tuple(inputs[input_index].shape), input_parts[input_index])
                )
            return [
                joined(mesh, output[0], output[1], each) if output is not None and isinstance(each, list) else each
                for output, each in zip(local.outputs, outs)
            ]


def written_input_indices(local: LocalGraph) -> list[int]:
    """Return the indexes of the inputs that the graph mutates."""
    changed = mutated_owners(local.module)
    return [at for at, node in enumerate(n for n in local.module.graph.nodes if n.op == "placeholder") if node in changed]


def parts(mesh: Mesh, layout: Layout, t: torch.Tensor) -> list[torch.Tensor]:
    """Return the part of a full value that each rank stores."""
    return [t[layout.part(mesh, t.shape, rank)].clone() for rank in range(mesh.count)]


def joined(mesh: Mesh, layout: Layout, shape: Shape, each: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the full value of the parts of all ranks."""
    out = each[0].new_empty(shape)
    for rank in reversed(range(mesh.count)):
        out[layout.part(mesh, shape, rank)] = each[rank]
    return out


def _interpreted(local: LocalGraph, input_parts: list[list[torch.Tensor]]) -> list[Any]:
    mesh, values = local.mesh, dict[Node, list[Any]]()
    inputs, now, unused = iter(input_parts), object(), _unused_after(local.module.graph)
    for position, node in enumerate(local.module.graph.nodes):
        if node.op == "placeholder":
            values[node] = next(inputs)
        elif node.op == "get_attr":
            values[node] = [getattr(local.module, str(node.target))] * mesh.count
        elif node.op == "output":
            return [values[item] if isinstance(item, Node) else item for item in node.args[0]]
        elif node.target is nodes.passed or node.target in nodes.SENDING or node.target in nodes.LOCAL:
            with current_operator.unseen():
                values[node] = _collective(mesh, node, values)
        else:
            try:
                values[node] = _everywhere(mesh, node, values, functools.partial(current_operator.interpreted, now, position, node))
            except Exception as error:
                current_operator.note_failure(error, node)
                raise
        for item in unused.get(node, ()):
            del values[item]
    raise AssertionError("a graph without an output")


def _unused_after(graph: torch.fx.Graph) -> dict[Node, list[Node]]:
    """Return for each node the values that no later node reads: all ranks together would hold the values of an entire step."""
    last_reader = {item: node for node in graph.nodes for item in (node, *node.all_input_nodes)}
    unused: dict[Node, list[Node]] = {}
    for item, reader in last_reader.items():
        if reader.op != "output":
            unused.setdefault(reader, []).append(item)
    return unused


def _everywhere(mesh: Mesh, node: Node, values: dict[Node, list[Any]], seen: Callable[..., Any]) -> list[Any]:
    """Run an operator on each rank, with `seen` on the first; all ranks draw the same random numbers."""
    state, results = torch.get_rng_state() if _may_draw(node.target) else None, []
    streams = operator_streams.snapshot()
    target: Any = recurrent.KEEPING.get(node.target, node.target)  # type: ignore[call-overload]
    states = [
        (generator, generator.get_state()) for leaf in node.all_input_nodes if isinstance(generator := values[leaf][0], torch.Generator)
    ]
    for rank in range(mesh.count):
        if state is not None:
            torch.set_rng_state(state)
            operator_streams.restore(streams)
        for generator, before in states:
            generator.set_state(before)
        value_of_rank = functools.partial(_of, values, rank)
        args, kwargs = tree.mapped([list(node.args), dict(node.kwargs)], value_of_rank)
        if not rank:
            results.append(seen(target, args, kwargs))
            continue
        with current_operator.unseen():
            results.append(target(*args, **kwargs))
    return results


def _may_draw(target: Any) -> bool:
    """Return whether an operator may advance the random generator. Loops, branches and recomputation do not declare it."""
    return torch.Tag.nondeterministic_seeded in target.tags if is_operator(target) else target is not operator.getitem


def _of(values: dict[Node, list[Any]], rank: int, leaf: Any) -> Any:
    return values[leaf][rank] if isinstance(leaf, Node) else leaf


def _collective(mesh: Mesh, node: Node, values: dict[Node, list[Any]]) -> list[Any]:
    args: Any = node.args
    if node.target is nodes.passed:
        return [t.clone() for t in values[args[0]]]
    if node.target is nodes.position:
        return [mesh.position(rank, args[0]) * args[1] for rank in range(mesh.count)]
    each, axes = values[args[0]], args[1]
    results = []
    for rank in range(mesh.count):
        members = [each[member] for member in mesh.group(rank, axes)]
        results.append(_of_rank(node.target, args, members, mesh.position(rank, axes)))
    return results


def _of_rank(kind: Any, args: Any, each: list[torch.Tensor], position: int) -> torch.Tensor:
    count = len(each)
    if kind is nodes.cut:
        return each[position].chunk(count, args[2])[position].clone()
    if kind is nodes.borders:
        return _with_borders(args, each, position)
    if kind is nodes.borders_sum:
        return _without_borders(args, each, position)
    if kind is nodes.rotated:
        return each[position - 1].clone()
    if kind is nodes.all_gather:
        return torch.cat(each, args[2])
    if kind is nodes.all_to_all:
        return torch.cat([t.chunk(count, args[3])[position] for t in each], args[2])
    reduced = _REDUCTIONS[args[2]](torch.stack(each))
    return reduced if kind is nodes.all_reduce else reduced.chunk(count, args[3])[position].clone()


def _with_borders(args: Any, each: list[torch.Tensor], position: int) -> torch.Tensor:
    _, _, dim, before, behind, _ = args
    local_part = each[position]
    ahead = (
        each[position - 1].narrow(dim, local_part.shape[dim] - before, before)
        if position
        else torch.zeros_like(local_part.narrow(dim, 0, before))
    )
    after = each[position + 1].narrow(dim, 0, behind) if position + 1 < len(each) else torch.zeros_like(local_part.narrow(dim, 0, behind))
    return torch.cat([ahead, local_part, after], dim)


def _without_borders(args: Any, each: list[torch.Tensor], position: int) -> torch.Tensor:
    _, _, dim, before, behind, _ = args
    size = each[position].shape[dim] - before - behind
    inner_part = each[position].narrow(dim, before, size).clone()
    if position:
        inner_part.narrow(dim, 0, behind).add_(each[position - 1].narrow(dim, before + size, behind))
    if position + 1 < len(each):
        inner_part.narrow(dim, size - before, before).add_(each[position + 1].narrow(dim, 0, before))
    return inner_part
