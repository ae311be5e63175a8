"""The pass: a captured graph of one device becomes the graph of each of N.

Values are followed in order with their layouts. Each operator is split as its rule and the layouts of its inputs allow; where an input lies
otherwise than the split wants it, collectives come before. What has no rule runs whole on each device.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base.text import message
from torchspore.distributed.shard import branches, gradient_norms, node_builder, redistribution, strategy_marker, user_collectives
from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.alias_conflicts import nodes_written_by, tangles
from torchspore.distributed.shard.local_graph import LocalGraph as LocalGraph
from torchspore.distributed.shard.local_graph import Placed, Value
from torchspore.distributed.shard.local_graph import Policy as Policy
from torchspore.distributed.shard.lowerings import LOWERINGS
from torchspore.distributed.shard.node_builder import faking
from torchspore.distributed.shard.plan import Plan
from torchspore.distributed.shard.redistribution import Step
from torchspore.distributed.shard.rules import OperatorCall, rule_of
from torchspore.distributed.shard.rules.rule import Local, Rule, choose, layout_of, results, split_of_writes
from torchspore.engine.core import node_metadata, tree
from torchspore.engine.core.device_layout import Axes, Layout, Shape, unsplit
from torchspore.engine.core.device_mesh import Mesh
from torchspore.engine.core.torch_private import graph_module, is_operator
from torchspore.graph.fx.aliasing import owners, shown
from torchspore.graph.fx.operator_arguments import arguments_by_name

KEEP = 1 << 62
"""The vote of an operand that is written: it stays where it is."""


Output = Callable[[int, Node, Layout, Shape], Layout]


class Partitioner:
    """One run of the pass."""

    def __init__(
        self, module: torch.fx.GraphModule, mesh: Mesh, inputs: Sequence[Layout], output: Output, policy: Policy,
        taken: Mapping[Node, Layout], stored: Mapping[Node, Layout], copies: Mapping[str, int], plan: Plan,
    ) -> None:
        self.module, self.mesh, self.layouts, self.output, self.policy = module, mesh, inputs, output, policy
        self.taken, self.stored, self.copies, self.plan = taken, stored, copies, plan
        self.graph = torch.fx.Graph()
        self.values: dict[Node, Any] = {}              # a Value, or several in a list
        self.calls: dict[Node, Node] = {}               # calls that may give more than values
        self.moved: dict[Node, dict[Layout, Value]] = {}
        self.placed: list[Placed] = []
        self.at: Node | None = None
        self.owners = owners(module.graph)
        self.owned: dict[Node, list[Node]] = {}
        for node, owner in self.owners.items():
            self.owned.setdefault(owner, []).append(node)
        self.tangles = tangles(module.graph, stored)
        self.drawn_with: dict[Node, Node] = {}
        self.homes: dict[Node, Value] = {}             # the parts of inputs that are computed with whole, as they are written
        self.inputs: list[tuple[Layout, Shape]] = []
        self.results: list[tuple[Layout, Shape] | None] = []

    def run(self) -> LocalGraph:
        """The local graph."""
        remaining_layouts = iter(self.layouts)
        for node in self.module.graph.nodes:
            self.at = node
            if node.op == "placeholder":
                self._placeholder(node, next(remaining_layouts))
            elif node.op == "output":
                self._output(node)
            elif node.op == "call_function":
                self._call(node)
            else:
                self._attribute(node)
        return LocalGraph(graph_module(self.module, self.graph), self.mesh, self.inputs, self.results, self.placed, self.module)

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
        if node in self.tangles.unsplit:
            self.homes[node], value = value, self.move(value, unsplit(len(shape)), fresh=True)
        elif node in self.taken and node not in self.tangles.written:
            value = self.move(value, self.taken[node])
        self.values[node] = value
        self.inputs.append((layout, shape))

    def _attribute(self, node: Node) -> None:
        new_node = self.graph.node_copy(node, lambda n: n)
        val = node.meta["val"] if "val" in node.meta else getattr(self.module, str(node.target))
        if isinstance(val, torch.Tensor):
            self.values[node] = Value(new_node, unsplit(val.ndim), tuple(val.shape), val.dtype)
        else:                                                  # what random numbers are drawn with
            new_node.meta["val"] = val
            self.drawn_with[node] = new_node

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
            if at >= len(several):                             # what a branch or loop keeps for its gradient, which is not a value
                several = {at: self.graph.call_function(operator.getitem, (self.calls[source], at))}
            self.values[node] = several[at]
            self._run_locally(node)
            return
        self.placed.append(Placed(node, []))
        _check_known_lengths(node)
        written_nodes = nodes_written_by(node)
        if node.target in strategy_marker.MARKS:
            self.values[node] = self._marked(node)
        elif not self._is_tangled(node, written_nodes) and (split_branch := branches.split(self, node)) is not None:
            self.values[node] = split_branch
        elif not is_operator(node.target):
            self._run_unsplit(node)
        elif self._is_tangled(node, written_nodes):
            self._run_unsplit(node)
            self.placed[-1].why = "what a slice or view writes, or shows after a write, stays whole: each device runs it whole"
        else:
            lowering = LOWERINGS.get(node.target._opname)
            value = lowering(self, node) if lowering is not None else None
            if value is None:
                rule = None if self.drawn_with.keys() & set(node.all_input_nodes) else rule_of(self._call_of(node))
                value = self._run_unsplit(node) if rule is None else self._split(node, rule)
            self.values[node] = value
        self._settle(node)
        self._run_locally(node)
        for item in written_nodes:
            self._forget(self.owners[item])
            self._home(self.owners[item])
        call_arguments = self.values[node]
        self.placed[-1].layouts = [
            value.layout for value in (call_arguments if isinstance(call_arguments, list) else [call_arguments]) if isinstance(value, Value)
        ]

    def _settle(self, node: Node) -> None:
        """Lays results out as the plan wants those that several operators use."""
        for at, layout in self.plan.results.get(node, {}).items():
            value = self.values[node]
            if isinstance(value, list):
                if isinstance(value[at], Value):
                    value[at] = self.move(value[at], _towards(value[at].layout, layout))
            elif isinstance(value, Value):
                self.values[node] = self.move(value, _towards(value.layout, layout))

    def _is_tangled(self, node: Node, written_nodes: Sequence[Node]) -> bool:
        """Return whether it shows or writes memory that stays whole."""
        return any(self.owners[item] in self.tangles.unsplit and self.owners[item] is not node for item in (node, *written_nodes))

    def _run_locally(self, node: Node) -> None:
        """Gives a value memory of its own where its views are written, or where it is what a mark only renames; terms can't be written."""
        value = self.values.get(node)
        if isinstance(value, Value) and node in self.tangles.written and self.owners[node] is node:
            layout = unsplit(len(value.shape)) if node in self.tangles.unsplit else value.layout.settled()
            value = self.values[node] = self.move(value, layout, fresh=True)
        if isinstance(value, Value) and node in self.tangles.copied:
            copied = self.call(torch.ops.aten.clone.default, (value.node,), {})
            self.values[node] = Value(copied, value.layout, value.shape, value.dtype)

    def _home(self, owner: Node) -> None:
        """Writes what was written into a whole value into this device's part of the input that it stands for."""
        home = self.homes.get(owner)
        if home is not None and not home.layout.is_unsplit:
            part = self.move(self.values[owner], home.layout, fresh=True)
            self.call(torch.ops.aten.copy_.default, (home.node, part.node), {})

    def _marked(self, node: Node) -> Value:
        source: Any = node.args[0]
        value = self._used(source, node)
        if node.target is strategy_marker.mirrored:
            return self._gradient(value, str(node.args[1]))
        if node.target is strategy_marker.mirror:
            return value
        layout = strategy_marker.layout_in(self.mesh, str(node.args[1]))
        if node.meta.get(node_metadata.GRADIENT) and value.layout.partial:      # terms become a sum where it is needed, perhaps in parts
            layout = Layout(layout.cuts, tuple(term for term in value.layout.partial if term[0] not in layout.axes))
            if Layout(layout.cuts) != Layout(value.layout.cuts):
                layout = layout.settled()
        return self.move(value, layout)

    def _gradient(self, value: Value, name: str) -> Value:
        """The gradient of a Parameter: its length told, and divided by the number of devices that hold the same part, where asked for."""
        if self.policy.tells_norms:
            rank = self.call(nodes.position, (tuple(range(len(self.mesh.sizes))), 1, self.mesh), {})
            self.graph.call_function(gradient_norms.local_norm, (value.node, name, rank)).meta = dict(value.node.meta)
        copies = self.copies[name]
        if copies == 1 or not self.policy.means:
            return value
        mean = self.call(torch.ops.aten.div.Scalar, (value.node, copies), {})
        return Value(mean, value.layout, value.shape, value.dtype)

    def _used(self, name: Node, by: Node) -> Value:
        """A value to compute with: a weight that the optimizer cuts lies as the step wants it, but in the optimizer's own operators."""
        value: Value = self.values[name]
        if name in self.stored and name not in self.homes and not by.meta.get(node_metadata.OPTIMIZER) and name not in nodes_written_by(by):
            return self.move(value, self.stored[name])
        return value

    def _forget(self, owner: Node) -> None:
        """Drops what was moved of memory that is written."""
        for old in self.owned.get(owner, ()):
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

    def by_rule(self, node: Node, make: Callable[[list[Node]], Node]) -> Any:
        """An operator split by its rule, whose node on parts `make` writes."""
        rule = rule_of(self._call_of(node))
        return None if rule is None else self._split(node, rule, make)

    def _split(self, node: Node, rule: Rule, make: Callable[[list[Node]], Node] | None = None) -> Any:
        operands = self.operands(node)
        written_nodes = set(nodes_written_by(node))
        names = [leaf for leaf in tree.leaves(list(arguments_by_name(node).values())) if isinstance(leaf, Node)]
        weights = [KEEP if name in written_nodes else bytes_of_value(value) for name, value in zip(names, operands)]
        partial = self._through(rule, operands)
        cuts = [Layout(value.layout.cuts) for value in operands]
        if partial:                            # the axes of terms are taken
            cuts = [Layout(tuple(tuple(axis for axis in axes if axis not in partial) for axes in layout.cuts)) for layout in cuts]
        fixed = split_of_writes(
            rule, self.mesh, [(layout, dims) for name, layout, dims in zip(names, cuts, rule.inputs) if name in written_nodes]
        )
        split = choose(rule, self.mesh, cuts, weights, fixed)
        terms = tuple(sorted(partial.items()))
        wanted = [Layout(layout_of(split, dims).cuts, terms) for dims in rule.inputs]
        if any(value.layout != layout for name, value, layout in zip(names, operands, wanted) if name in written_nodes):
            return self._run_unsplit(node)
        moved = [self.move(value, layout) for value, layout in zip(operands, wanted)]
        layouts = results(rule, split, partial)
        if make is not None:
            return self.wrapped(make([value.node for value in moved]), node, layouts)
        return self._emit(node, moved, rule, layouts)

    def _through(self, rule: Rule, operands: Sequence[Value]) -> dict[int, str]:
        """The terms that may stay terms: where the operator is linear and all its operands are terms alike."""
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
        """Return whether an operator is given what it was given as it was captured, in form and strides: then it gives the same."""
        leaves = tree.leaves(list(arguments_by_name(node).values()))
        before = [leaf.meta["val"] for leaf in leaves if isinstance(leaf, Node) and leaf not in self.drawn_with]
        now = [value.node.meta["val"] for value in operands]
        return all(a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype for a, b in zip(before, now, strict=True))

    def wrapped(self, result: Node, node: Node, layouts: Sequence[Layout]) -> Any:
        """The Values of a call's results."""
        val = node.meta.get("val")
        if isinstance(val, (list, tuple)):
            remaining_layouts = iter(layouts)
            return [
                self._item(result, at, out, next(remaining_layouts)) if isinstance(out, torch.Tensor) else None
                for at, out in enumerate(val)
            ]
        return Value(result, layouts[0], tuple(val.shape), val.dtype) if isinstance(val, torch.Tensor) else result

    def _item(self, result: Node, at: int, out: torch.Tensor, layout: Layout) -> Value:
        return Value(self.item(result, at), layout, tuple(out.shape), out.dtype)

    # ---- an operator that no rule splits

    def _run_unsplit(self, node: Node) -> Any:
        """Each device computes all of it; what it writes and is cut gets its own part back."""
        if user_collectives.is_user_collective(node):
            user_collectives.check(node, self.values)
        self.placed[-1].has_rule = not node.all_input_nodes      # what makes a value of nothing has nothing to split
        back: list[tuple[Node, Value, Value]] = []
        written_nodes = set(nodes_written_by(node))

        def full(name: Node) -> Node:
            if name in self.drawn_with:
                return self.drawn_with[name]
            value = self._used(name, node)
            if isinstance(value, Node):
                return value
            moved = self.move(value, unsplit(len(value.shape)))
            if name in written_nodes and moved is not value:
                back.append((name, value, moved))
            return moved.node

        args, kwargs = self.replaced(node, full)
        if node.meta.get("val") is None and not is_operator(node.target):
            check: Any = node.target                       # it gives nothing, and may raise
            new_node = self.graph.call_function(check, args, kwargs)
            new_node.meta = dict(node.meta)
        else:
            new_node = self.call(node.target, args, kwargs, node, node.meta.get("val"))
        self.calls[node] = new_node
        for name, value, moved in back:
            if value.layout.partial:                       # terms have become a value, which was written
                self.values[name] = moved
                continue
            self.call(torch.ops.aten.copy_.default, (value.node, self.move(moved, value.layout, fresh=True).node), {}, node)
        source = shown(node)
        if source in written_nodes and isinstance(node.meta.get("val"), torch.Tensor):      # what was written is given back
            self.values[node] = self.values[source]
            return self.values[node]
        val = node.meta.get("val")
        outs = val if isinstance(val, (list, tuple)) else [val]
        self.values[node] = self.wrapped(
            new_node, node, [unsplit(out.ndim) for out in outs if isinstance(out, torch.Tensor)] or [unsplit(0)]
        )
        return self.values[node]

    # ---- making nodes

    def operands(self, node: Node) -> list[Value]:
        """The Values of a call's Tensors, in the order of its schema."""
        leaves = tree.leaves(list(arguments_by_name(node).values()))
        names = [leaf for leaf in leaves if isinstance(leaf, Node) and leaf not in self.drawn_with]
        values = [self._used(name, node) for name in names]
        written_nodes = nodes_written_by(node)
        for at, layout in enumerate(self.plan.operands.get(node, ())):
            if layout is not None and names[at] not in written_nodes:
                values[at] = self.move(values[at], _towards(values[at].layout, layout))
        self.placed[-1].used.update((name, value.layout) for name, value in zip(names, values) if isinstance(value, Value))
        return values

    def replaced(self, node: Node, change: Callable[[Node], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with other nodes, asked for in the order of its schema."""
        return (
            tuple(tree.mapped(list(node.args), lambda leaf: change(leaf) if isinstance(leaf, Node) else leaf)),
            tree.mapped(dict(node.kwargs), lambda leaf: change(leaf) if isinstance(leaf, Node) else leaf),
        )

    def call(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], source: Node | None = None, val: Any = None) -> Node:
        """A new node, with the stand-in of what it gives; `val` where that is known."""
        source = source if source is not None else self.at
        assert source is not None
        if val is None and target is not nodes.position:
            new_node = node_builder.call(self.graph, target, args, source, kwargs, self.module)
        else:
            new_node = self.graph.call_function(target, args, kwargs)
            new_node.meta = {name: value for name, value in source.meta.items() if name != "val"}
            if val is not None:
                new_node.meta["val"] = val
        if self.placed:
            self.placed[-1].nodes.append(new_node)
        return new_node

    def item(self, node: Node, at: int) -> Node:
        """One of several results."""
        item_node = self.graph.call_function(operator.getitem, (node, at))
        item_node.meta = {**node.meta, "val": node.meta["val"][at]}
        return item_node

    def faking(self) -> AbstractContextManager[None]:
        """A block in which operators compute stand-ins for the values of the captured graph."""
        return faking(self.module)

    def value(self, node: Node, layout: Layout, shape: Shape) -> Value:
        """A node as the Value that it stands for."""
        return Value(node, layout, tuple(shape), node.meta["val"].dtype)

    def layout_of(self, node: Node) -> Layout | None:
        """How the first user of a value that says so wants it to lie: a strategy, or an update of a Parameter."""
        for user in node.users:
            if user.target is strategy_marker.laid:
                return strategy_marker.layout_in(self.mesh, str(user.args[1]))
        return self.plan.requested.get(node)

    def move(self, value: Value, layout: Layout, fresh: bool = False) -> Value:
        """The value in another layout: the collectives that it takes."""
        if value.layout == layout:
            return value
        moved_values, key = self.moved.setdefault(value.node, {}), layout
        if key in moved_values and not fresh:
            return moved_values[key]
        way = redistribution.steps(self.mesh, value.shape, value.dtype.itemsize, value.layout, layout, self.policy.exchanges)
        node = value.node
        for step in way:
            node = self._sent(node, step) if self._is_narrow(value, step) else self._step(node, step)
            if self.placed:
                self.placed[-1].steps.append((step, value.shape))
        moved = moved_values[key] = Value(node, layout, value.shape, value.dtype)
        return moved

    def noted(self, kind: str, x: Node, axes: Axes, dim: int, count: int) -> None:
        """Note an exchange that a lowering creates itself: of `count` indexes of a dimension."""
        val = x.meta["val"]
        sent = val.element_size() * val.numel() // max(1, val.shape[dim]) * count
        self.placed[-1].steps.append((Step(kind, axes, dim, sent=sent), tuple(val.shape)))

    def _is_narrow(self, value: Value, step: Step) -> bool:
        """Return whether half-precision terms are summed in float32: where the context asks for it, of gradients or of all."""
        if step.kind not in (redistribution.REDUCE, redistribution.SCATTER) or value.dtype not in (torch.float16, torch.bfloat16):
            return False
        is_gradient = self.at is not None and bool(self.at.meta.get(node_metadata.GRADIENT))
        return self.policy.sums_wide or (self.policy.sums_gradients_wide and is_gradient)

    def _sent(self, x: Node, step: Step) -> Node:
        """A step in float32."""
        wide = self.call(torch.ops.aten._to_copy.default, (x,), {"dtype": torch.float32})
        return self.call(torch.ops.aten._to_copy.default, (self._step(wide, step),), {"dtype": x.meta["val"].dtype})

    def _step(self, x: Node, step: Step) -> Node:
        if step.kind == redistribution.REDUCE:
            return self.call(nodes.all_reduce, (x, step.axes, step.reduction, self.mesh), {})
        if step.kind == redistribution.SCATTER:
            return self.call(nodes.reduce_scatter, (x, step.axes, step.reduction, step.dim, self.mesh), {})
        if step.kind == redistribution.GATHER:
            return self.call(nodes.all_gather, (x, step.axes, step.dim, self.mesh), {})
        if step.kind == redistribution.EXCHANGE:
            return self.call(nodes.all_to_all, (x, step.axes, step.source, step.dim, self.mesh), {})
        return self.call(nodes.cut, (x, step.axes, step.dim, self.mesh), {})


def _check_known_lengths(node: Node) -> None:
    """Raises ValueError where a result is as long as values say: no device knows what the others hold."""
    val = node.meta.get("val")
    sizes = [size for leaf in tree.leaves(val) if isinstance(leaf, torch.Tensor) for size in leaf.shape]
    if any(isinstance(size, torch.SymInt) for size in sizes):
        what = str(getattr(node.target, "_opname", node.target))
        raise ValueError(f"{node.meta.get(node_metadata.LINE, '')}: " + message(
            f"{what} in a graph that is split, whose result is as long as values say", "results whose lengths are known before the call",
            hint="move that line out of construct, or use a mask",
        ))


def _towards(now: Layout, target: Layout) -> Layout:
    """The layout that is wanted, without terms that the value has not: a value never becomes terms."""
    terms = tuple(term for term in target.partial if term in now.partial)
    return target if terms == target.partial else Layout(target.cuts, terms)


def bytes_of_value(value: Value) -> int:
    """The bytes that a device holds of a value."""
    return value.dtype.itemsize * math.prod(value.shape)


def localized(
    module: torch.fx.GraphModule, mesh: Mesh, inputs: Sequence[Layout], output: Output, policy: Policy | None = None,
    taken: Mapping[Node, Layout] | None = None, stored: Mapping[Node, Layout] | None = None, copies: Mapping[str, int] | None = None,
    plan: Plan | None = None,
) -> LocalGraph:
    """The graph of each device for a captured one whose inputs lie so.

    `output(place, node, layout, shape)` says how a result shall lie. `taken` says of inputs that each device is given whole which part it
    takes at once, `stored` of weights that an optimizer cuts once more how they lie where they are computed with,
    `copies` by name of a Parameter how many devices hold the same part of it, `plan` what a search found.
    """
    return Partitioner(module, mesh, inputs, output, policy or Policy(), taken or {}, stored or {}, copies or {}, plan or Plan()).run()
