"""The partitioner: a pass that turns the captured graph of one device into the local graph of each of N devices.

It visits the nodes in order and records the layout of each value. Each operator is split according to its rule and the layouts of its
inputs. If the split requires another layout of an input, collectives change it first. Operators without a rule run unsplit on each device.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.text import message
from torchspore.distributed.shard import branches, gradient_norms, strategy_marker, user_collectives
from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.alias_conflicts import find_alias_conflicts, nodes_written_by
from torchspore.distributed.shard.graph_writer import GraphWriter
from torchspore.distributed.shard.local_graph import LocalGraph as LocalGraph
from torchspore.distributed.shard.local_graph import Policy as Policy
from torchspore.distributed.shard.local_graph import SplitOperator, Value
from torchspore.distributed.shard.lowerings import LOWERINGS
from torchspore.distributed.shard.node_builder import faking
from torchspore.distributed.shard.plan import Plan
from torchspore.distributed.shard.propagation_rules import OperatorCall, rule_of
from torchspore.distributed.shard.propagation_rules.rule import Local, Rule, choose, layout_of, results, split_of_writes
from torchspore.engine.autograd.recompute import later
from torchspore.engine.split_layouts.device_layout import Layout, Shape, unsplit
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import graph_module, is_operator
from torchspore.graph.fx.aliasing import owners, view_source
from torchspore.graph.fx.operator_arguments import arguments_by_name

WRITTEN_WEIGHT = 1 << 62
"""The weight of a mutated operand in the choice of a split: its layout must not change."""


Output = Callable[[int, Node, Layout, Shape], Layout]


class Partitioner(GraphWriter):
    """Partitions one captured graph."""

    def __init__(
        self, module: torch.fx.GraphModule, mesh: Mesh, inputs: Sequence[Layout], output: Output, policy: Policy,
        initial_layouts: Mapping[Node, Layout], step_layouts: Mapping[Node, Layout], replica_counts: Mapping[str, int], plan: Plan,
    ) -> None:
        super().__init__(module, mesh, policy)
        self.layouts, self.output = inputs, output
        self.initial_layouts, self.step_layouts, self.replica_counts, self.plan = initial_layouts, step_layouts, replica_counts, plan
        self.values: dict[Node, Any] = {}              # a Value, or a list for several results
        self.calls: dict[Node, Node] = {}               # the new nodes of unsplit calls, which may have further results
        self.owners = owners(module.graph)
        self.nodes_of_owner: dict[Node, list[Node]] = {}
        for node, owner in self.owners.items():
            self.nodes_of_owner.setdefault(owner, []).append(node)
        self.alias_conflicts = find_alias_conflicts(module.graph, step_layouts)
        self.random_sources: dict[Node, Node] = {}
        self.input_parts: dict[Node, Value] = {}             # for inputs that are gathered because of alias conflicts, their local parts
        self.inputs: list[tuple[Layout, Shape]] = []
        self.results: list[tuple[Layout, Shape] | None] = []

    def run(self) -> LocalGraph:
        """Return the local graph."""
        remaining_layouts = iter(self.layouts)
        for node in self.module.graph.nodes:
            self.current_node = node
            if node.op == "placeholder":
                self._placeholder(node, next(remaining_layouts))
            elif node.op == "output":
                self._output(node)
            elif node.op == "call_function":
                self._call(node)
            else:
                self._attribute(node)
        return LocalGraph(graph_module(self.module, self.graph), self.mesh, self.inputs, self.results, self.split_operators, self.module)

    # ---- nodes of the captured graph

    def _placeholder(self, node: Node, layout: Layout) -> None:
        val = node.meta["val"]
        new_node = self.graph.placeholder(str(node.target))
        new_node.meta = dict(node.meta)
        shape = tuple(val.shape)
        if not layout.is_unsplit:
            with faking(self.module):
                new_node.meta["val"] = val.new_empty(layout.local(self.mesh, shape))
        value = Value(new_node, layout, shape, val.dtype)
        if node in self.alias_conflicts.unsplit:
            self.input_parts[node], value = value, self.move(value, unsplit(len(shape)), fresh=True)
        elif node in self.initial_layouts and node not in self.alias_conflicts.written:
            value = self.move(value, self.initial_layouts[node])
        self.values[node] = value
        self.inputs.append((layout, shape))

    def _attribute(self, node: Node) -> None:
        new_node = self.graph.node_copy(node, lambda n: n)
        val = node.meta["val"] if "val" in node.meta else getattr(self.module, str(node.target))
        if isinstance(val, torch.Tensor):
            self.values[node] = Value(new_node, unsplit(val.ndim), tuple(val.shape), val.dtype)
        else:                                                  # a source of random numbers
            new_node.meta["val"] = val
            self.random_sources[node] = new_node

    def _output(self, node: Node) -> None:
        outputs: list[Any] = []
        results: Any = node.args[0]
        for at, item in enumerate(results):
            if not isinstance(item, Node):
                outputs.append(item)
                self.results.append(None)
                continue
            value = self.values[item]
            target_layout = self.output(at, item, value.layout.settled(), value.shape)
            value = self.move(value, target_layout)
            outputs.append(value.node)
            self.results.append((value.layout, value.shape))
        self.graph.output(outputs).meta = dict(node.meta)

    def _call(self, node: Node) -> None:
        if node.target is operator.getitem:
            call_arguments: Any = node.args
            source, at = call_arguments
            several = self.values[source]
            if at >= len(several):                             # a further result, which a branch or loop keeps for its gradient
                several = {at: self.graph.call_function(operator.getitem, (self.calls[source], at))}
            self.values[node] = several[at]
            self._copy_if_shared(node)
            return
        self.split_operators.append(SplitOperator(node, []))
        _check_known_lengths(node)
        written_nodes = nodes_written_by(node)
        if node.target in strategy_marker.MARKS:
            self.values[node] = self._apply_mark(node)
        elif not self._has_alias_conflict(node, written_nodes) and (split_branch := branches.split(self, node)) is not None:
            self.values[node] = split_branch
        elif node.target is later and not self._has_alias_conflict(node, node.all_input_nodes):
            self.values[node] = self._begin_recomputation(node)
        elif not is_operator(node.target):
            self._run_unsplit(node)
        elif user_collectives.is_user_collective(node):    # a rule for an operator of the same name does not apply
            self.values[node] = self._run_unsplit(node)
        elif self._has_alias_conflict(node, written_nodes):
            self._run_unsplit(node)
            self.split_operators[-1].why = "it writes through a slice or view, or reads one after a write, so each device runs it unsplit"
        else:
            lowering = LOWERINGS.get(node.target._opname)
            value = lowering(self, node) if lowering is not None else None
            if value is None:
                rule = None if self.random_sources.keys() & set(node.all_input_nodes) else rule_of(self._call_of(node))
                value = self._run_unsplit(node) if rule is None else self._split(node, rule)
            self.values[node] = value
        self._apply_plan(node)
        self._copy_if_shared(node)
        for item in written_nodes:
            self._drop_moved(self.owners[item])
            self._write_back(self.owners[item])
        call_arguments = self.values[node]
        self.split_operators[-1].layouts = [
            value.layout for value in (call_arguments if isinstance(call_arguments, list) else [call_arguments]) if isinstance(value, Value)
        ]

    def _apply_plan(self, node: Node) -> None:
        """Change the layouts of results as the plan requests, for values that several operators use."""
        for at, layout in self.plan.results.get(node, {}).items():
            value = self.values[node]
            if isinstance(value, list):
                if isinstance(value[at], Value):
                    value[at] = self.move(value[at], _without_new_terms(value[at].layout, layout))
            elif isinstance(value, Value):
                self.values[node] = self.move(value, _without_new_terms(value.layout, layout))

    def _has_alias_conflict(self, node: Node, written_nodes: Sequence[Node]) -> bool:
        """Return whether a node is a view of, or writes into, memory that must stay unsplit."""
        return any(self.owners[item] in self.alias_conflicts.unsplit and self.owners[item] is not node for item in (node, *written_nodes))

    def _copy_if_shared(self, node: Node) -> None:
        """Copy a value if an operator writes into its views, or if a mark returns the same memory. Partial sums are reduced first."""
        value = self.values.get(node)
        if isinstance(value, Value) and node in self.alias_conflicts.written and self.owners[node] is node:
            layout = unsplit(len(value.shape)) if node in self.alias_conflicts.unsplit else value.layout.settled()
            value = self.values[node] = self.move(value, layout, fresh=True)
        if isinstance(value, Value) and node in self.alias_conflicts.copied:
            copied = self.call(torch.ops.aten.clone.default, (value.node,), {})
            self.values[node] = Value(copied, value.layout, value.shape, value.dtype)

    def _write_back(self, owner: Node) -> None:
        """Copy a mutated gathered value back into this device's part of the input."""
        home = self.input_parts.get(owner)
        if home is not None and not home.layout.is_unsplit:
            part = self.move(self.values[owner], home.layout, fresh=True)
            self.call(torch.ops.aten.copy_.default, (home.node, part.node), {})

    def _apply_mark(self, node: Node) -> Value:
        source: Any = node.args[0]
        value = self._operand_value(source, node)
        if node.target is strategy_marker.mirrored:
            return self._finish_gradient(value, str(node.args[1]))
        if node.target is strategy_marker.mirror:
            return value
        layout = strategy_marker.layout_in(self.mesh, str(node.args[1]))
        if node.meta.get(node_metadata.GRADIENT) and value.layout.partial:      # reduced later, where the sum is needed
            layout = Layout(layout.dim_axes, tuple(term for term in value.layout.partial if term[0] not in layout.axes))
            if Layout(layout.dim_axes) != Layout(value.layout.dim_axes):
                layout = layout.settled()
        return self.move(value, layout)

    def _finish_gradient(self, value: Value, name: str) -> Value:
        """Return the gradient of a Parameter; with `gradients_mean`, divided by the number of devices that store the same part."""
        if self.policy.reports_norms:
            rank = self.call(nodes.position, (tuple(range(len(self.mesh.sizes))), 1, self.mesh), {})
            self.graph.call_function(gradient_norms.local_norm, (value.node, name, rank)).meta = dict(value.node.meta)
        node: Any = value.node
        if self.replica_counts[name] > 1 and self.policy.means:
            node = self.call(torch.ops.aten.div.Scalar, (node, self.replica_counts[name]), {})
        elif strategy_marker.is_expanded(node.meta.get("val")):
            node = self.call(torch.ops.aten.clone.default, (node,), {})
        value = Value(node, value.layout, value.shape, value.dtype)
        return self.move(value, self.policy.shares[name]) if name in self.policy.shares and value.layout.partial else value

    def _operand_value(self, node: Node, by: Node) -> Value:
        """Return the value of an operand. Weights that the optimizer splits are gathered, except for its operators."""
        value: Value = self.values[node]
        if (
            node in self.step_layouts
            and node not in self.input_parts
            and not by.meta.get(node_metadata.OPTIMIZER)
            and node not in nodes_written_by(by)
        ):
            return self.move(value, self.step_layouts[node])
        return value

    def _drop_moved(self, owner: Node) -> None:
        """Forget the copies of mutated memory in other layouts."""
        for old in self.nodes_of_owner.get(owner, ()):
            value = self.values.get(old)
            if isinstance(value, Value):
                self.moved.pop(value.node, None)

    # ---- an operator by its rule

    def _call_of(self, node: Node) -> OperatorCall:
        val = node.meta.get("val")
        outputs = tuple(val) if isinstance(val, (list, tuple)) else () if val is None else (val,)
        args = tree.mapped(arguments_by_name(node), lambda leaf: leaf.meta["val"] if isinstance(leaf, Node) else leaf)
        inputs = tuple(leaf for leaf in tree.leaves(list(args.values())) if isinstance(leaf, torch.Tensor))
        return OperatorCall(node.target, args, inputs, tuple(out if isinstance(out, torch.Tensor) else None for out in outputs))

    def split_by_rule(self, node: Node, write_node: Callable[[list[Node]], Node]) -> Any:
        """Split an operator by its rule; `write_node` writes the node from the local operands. None without a rule."""
        rule = rule_of(self._call_of(node))
        return None if rule is None else self._split(node, rule, write_node)

    def _split(self, node: Node, rule: Rule, write_node: Callable[[list[Node]], Node] | None = None) -> Any:
        operands = self.operands(node)
        written_nodes = set(nodes_written_by(node))
        names = [leaf for leaf in tree.leaves(list(arguments_by_name(node).values())) if isinstance(leaf, Node)]
        weights = [WRITTEN_WEIGHT if name in written_nodes else bytes_of_value(value) for name, value in zip(names, operands)]
        partial = self._preserved_terms(rule, operands)
        cuts = [Layout(value.layout.dim_axes) for value in operands]
        if partial:                            # these axes hold partial sums
            cuts = [Layout(tuple(tuple(axis for axis in axes if axis not in partial) for axes in layout.dim_axes)) for layout in cuts]
        fixed = split_of_writes(
            rule, self.mesh, [(layout, dims) for name, layout, dims in zip(names, cuts, rule.inputs) if name in written_nodes]
        )
        split = choose(rule, self.mesh, cuts, weights, fixed)
        terms = tuple(sorted(partial.items()))
        requested = [Layout(layout_of(split, dims).dim_axes, terms) for dims in rule.inputs]
        if any(value.layout != layout for name, value, layout in zip(names, operands, requested) if name in written_nodes):
            return self._run_unsplit(node)
        moved = [self.move(value, layout) for value, layout in zip(operands, requested)]
        layouts = results(rule, split, partial)
        if write_node is not None:
            return self.wrapped(write_node([value.node for value in moved]), node, layouts)
        return self._emit(node, moved, rule, layouts)

    def _preserved_terms(self, rule: Rule, operands: Sequence[Value]) -> dict[int, str]:
        """Return the partial sums that stay partial: the operator is linear, and all operands are partial along the same axes."""
        if not rule.linear or not operands or any(value.layout.partial != operands[0].layout.partial for value in operands):
            return {}
        terms = dict(operands[0].layout.partial)
        return terms if set(terms.values()) <= {"sum", "avg"} else {}

    def _emit(self, node: Node, operands: Sequence[Value], rule: Rule, layouts: Sequence[Layout]) -> Any:
        shapes = [tuple(out.shape) for out in self._call_of(node).outputs if out is not None]
        local = Local(
            self.mesh, tuple(value.layout for value in operands), tuple(layouts), tuple(shapes),
            tuple(layout.local(self.mesh, shape) for layout, shape in zip(layouts, shapes)),
        )
        items = iter(operands)
        new_args, kwargs = self.replaced(node, lambda _: next(items).node)
        args = list(new_args)
        if rule.arguments is not None and not all(layout.is_unsplit for layout in (*local.inputs, *local.outputs)):
            rule.arguments(args, kwargs, local)
        is_as_before = all(layout.is_unsplit for layout in (*local.inputs, *local.outputs)) and self._has_equal_layouts(node, operands)
        result = self.call(node.target, tuple(args), kwargs, node, node.meta.get("val") if is_as_before else None)
        return self.wrapped(result, node, layouts)

    def _has_equal_layouts(self, node: Node, operands: Sequence[Value]) -> bool:
        """Return whether all operands have the shapes, strides and dtypes of the capture; then the result has them, too."""
        leaves = tree.leaves(list(arguments_by_name(node).values()))
        before = [leaf.meta["val"] for leaf in leaves if isinstance(leaf, Node) and leaf not in self.random_sources]
        now = [value.node.meta["val"] for value in operands]
        return all(a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype for a, b in zip(before, now, strict=True))

    # ---- an operator without a rule

    def _begin_recomputation(self, node: Node) -> Any:
        """Pass values to the second run of a recomputed region, each in its layout. Partial sums are reduced first, for both runs."""
        operands: list[Any] = []
        for item in node.args:
            value = self.random_sources[item] if item in self.random_sources else self._operand_value(item, node)  # type: ignore[index, arg-type]
            operands.append(self.move(value, value.layout.settled()) if isinstance(value, Value) else value)
        new_node = self.graph.call_function(later, tuple(value.node if isinstance(value, Value) else value for value in operands))
        new_node.meta = {**node.meta, "val": tuple(argument.meta["val"] for argument in new_node.all_input_nodes)}
        self.calls[node] = new_node
        return self.wrapped(new_node, node, [value.layout for value in operands if isinstance(value, Value)])

    def _run_unsplit(self, node: Node) -> Any:
        """Run the full operator on each device. Mutated operands that are split receive their parts back."""
        if user_collectives.is_user_collective(node):
            user_collectives.check(node, self.values)
        self.split_operators[-1].has_rule = not node.all_input_nodes      # an operator without operands needs no rule
        back: list[tuple[Node, Value, Value]] = []
        written_nodes = set(nodes_written_by(node))

        def full(name: Node) -> Node:
            if name in self.random_sources:
                return self.random_sources[name]
            value = self._operand_value(name, node)
            if isinstance(value, Node):
                return value
            moved = self.move(value, unsplit(len(value.shape)))
            if name in written_nodes and moved is not value:
                back.append((name, value, moved))
            return moved.node

        args, kwargs = self.replaced(node, full)
        if node.meta.get("val") is None and not is_operator(node.target):
            check: Any = node.target                       # a check without a result, which may raise
            new_node = self.graph.call_function(check, args, kwargs)
            new_node.meta = dict(node.meta)
        else:
            new_node = self.call(node.target, args, kwargs, node, node.meta.get("val"))
        self.calls[node] = new_node
        for name, value, moved in back:
            if value.layout.partial:                       # the partial sums were reduced before the write
                self.values[name] = moved
                continue
            self.call(torch.ops.aten.copy_.default, (value.node, self.move(moved, value.layout, fresh=True).node), {}, node)
        source = view_source(node)
        if source in written_nodes and isinstance(node.meta.get("val"), torch.Tensor):      # the result is the mutated operand
            self.values[node] = self.values[source]
            return self.values[node]
        val = node.meta.get("val")
        outs = val if isinstance(val, (list, tuple)) else [val]
        self.values[node] = self.wrapped(
            new_node, node, [unsplit(out.ndim) for out in outs if isinstance(out, torch.Tensor)] or [unsplit(0)]
        )
        return self.values[node]

    # ---- operands

    def operands(self, node: Node) -> list[Value]:
        """Return the Values of a call's Tensor arguments, in the order of its schema."""
        leaves = tree.leaves(list(arguments_by_name(node).values()))
        names = [leaf for leaf in leaves if isinstance(leaf, Node) and leaf not in self.random_sources]
        values = [self._operand_value(name, node) for name in names]
        written_nodes = nodes_written_by(node)
        for at, layout in enumerate(self.plan.operands.get(node, ())):
            if layout is not None and names[at] not in written_nodes:
                values[at] = self.move(values[at], _without_new_terms(values[at].layout, layout))
        self.split_operators[-1].used.update((name, value.layout) for name, value in zip(names, values) if isinstance(value, Value))
        return values

    def replaced(self, node: Node, change: Callable[[Node], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call with each node replaced by `change(node)`, called in the order of the schema."""
        return (
            tuple(tree.mapped(list(node.args), lambda leaf: change(leaf) if isinstance(leaf, Node) else leaf)),
            tree.mapped(dict(node.kwargs), lambda leaf: change(leaf) if isinstance(leaf, Node) else leaf),
        )

    def layout_of(self, node: Node) -> Layout | None:
        """Return the layout that the first user with a strategy, or the plan, requests for a value; None if there is none."""
        for user in node.users:
            if user.target is strategy_marker.laid:
                return strategy_marker.layout_in(self.mesh, str(user.args[1]))
        return self.plan.requested.get(node)


def _check_known_lengths(node: Node) -> None:
    """Raise ValueError if the shape of a result depends on values, because no device knows the values of the others."""
    val = node.meta.get("val")
    sizes = [size for leaf in tree.leaves(val) if isinstance(leaf, torch.Tensor) for size in leaf.shape]
    if any(isinstance(size, torch.SymInt) for size in sizes):
        what = str(getattr(node.target, "_opname", node.target))
        raise ValueError(f"{node.meta.get(node_metadata.LINE, '')}: " + message(
            f"{what} in a split graph: the length of its result depends on values", "results whose lengths are known before the call",
            hint="move that line out of construct, or use a mask",
        ))


def _without_new_terms(now: Layout, target: Layout) -> Layout:
    """Return the target layout without partial sums that the value does not have: a full sum never becomes partial."""
    terms = tuple(term for term in target.partial if term in now.partial)
    return target if terms == target.partial else Layout(target.dim_axes, terms)


def bytes_of_value(value: Value) -> int:
    """Return the bytes of the full value."""
    return value.dtype.itemsize * math.prod(value.shape)


def partition(
    module: torch.fx.GraphModule,
    mesh: Mesh,
    inputs: Sequence[Layout],
    output: Output,
    policy: Policy | None = None,
    initial_layouts: Mapping[Node, Layout] | None = None,
    step_layouts: Mapping[Node, Layout] | None = None,
    replica_counts: Mapping[str, int] | None = None,
    plan: Plan | None = None,
) -> LocalGraph:
    """Return the local graph of each device for a captured graph whose inputs have these layouts.

    `output(index, node, layout, shape)` returns the layout of a result. `initial_layouts` contains the layouts of inputs that each device
    receives in full and splits first, `step_layouts` those of optimizer-split weights in forward and backward operators,
    `replica_counts` the number of devices that store the same part of a Parameter, by its name. `plan` is the result of a search.
    """
    return Partitioner(
        module, mesh, inputs, output, policy or Policy(), initial_layouts or {}, step_layouts or {}, replica_counts or {}, plan or Plan()
    ).run()
