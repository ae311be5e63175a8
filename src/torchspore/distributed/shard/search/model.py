"""The captured graph as variables: the split of each operator, and the layout of each value with several users.

A variable is solved for along one axis of the grid at a time. Its choices there are the factors of the operator's rule, no split, or
partial sums that pass through. Operators over lists have as many variables as their lists have positions.
"""
from __future__ import annotations

import copy
import dataclasses
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import strategy_marker
from torchspore.distributed.shard.alias_conflicts import find_alias_conflicts, nodes_written_by
from torchspore.distributed.shard.machine_model import Machine
from torchspore.distributed.shard.propagation_rules.rule import Dims, Naming, Rule
from torchspore.distributed.shard.search.elimination_order import Order
from torchspore.distributed.shard.search.operator_parts import OperatorParts, Operators
from torchspore.distributed.shard.search.relaxed_rules import Wide
from torchspore.engine.autograd.recompute import later
from torchspore.engine.split_layouts.device_layout import Layout
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import owners
from torchspore.graph.fx.operator_arguments import arguments_by_name

HOLDER, OPERATOR, VALUE, END = "holder", "operator", "value", "end"
"""An input; an operator, or a part of one over lists; a value that several operators use; a result of the graph."""


@dataclass
class Operand:
    """A use of a value: the variable that produces it, the index of the result, and the dimensions in factors of the user's rule."""

    source: int
    result: int
    dims: Dims
    number: int = 0
    stays: bool = False
    """True if the value is mutated, so that its layout must not change."""
    is_late: bool = False
    """True if only the optimizer waits for it: its messages go with others."""


@dataclass
class Variable:
    """A variable."""

    kind: str
    node: Node
    rule: Rule
    operands: list[Operand] = field(default_factory=list)
    results: list[Dims] = field(default_factory=list)
    terms: list[Mapping[int, str]] = field(default_factory=list)
    """For each result which factors leave terms, and how these become the value."""
    bytes: list[int] = field(default_factory=list)
    """The full shape of each result."""
    seconds: float = 0.0
    """Of all of it on one device."""
    products: float = 0.0
    """Seconds of its multiplications on one device; the remaining seconds are for memory that it reads and writes."""
    reads: frozenset[int] = frozenset()
    """The indexes of operands that are read, if memory traffic counts."""
    writes: bool = False
    factors: tuple[int, ...] = ()
    """The factors that may be split."""
    wide: Wide | None = None
    is_product: bool = False
    is_linear: bool = False
    term_kinds: frozenset[str] = frozenset()
    """The kinds of terms that all operands can have, so that a linear operator or a value can let them through."""
    fixed: Layout | None = None
    """The layout regardless of the search: of an input, or by a strategy of the program."""
    keeps_terms: bool = False
    """True if a fixed layout allows partial sums: for gradients."""
    is_settled: bool = False
    """True if a result of the graph may keep its layout, once its partial sums are summed."""
    is_fixed_by_program: bool = False
    """True if the program sets the layout of an operand."""
    unfixed: int = -1
    """The same number for variables that are equal apart from their `fixed` layouts, which differ in each grid."""
    form: int = -1
    """The same number for equal variables: layers repeat, and a result for one holds for the others."""


class Model:
    """The variables of a captured graph; `fixed` has the layouts of inputs that must not change; `keeps(node)` those of results."""

    def __init__(self, module: torch.fx.GraphModule, fixed: Mapping[Node, Layout], marked: Mapping[Node, Layout], machine: Machine,
                 keeps: bool) -> None:
        self.module, self.fixed, self.marked, self.machine, self.keeps = module, fixed, marked, machine, keeps
        self.variables: list[Variable] = []
        self.result_positions: dict[Node, list[tuple[int, int] | None]] = {}
        """By node the variable and the result that each of its values is."""
        self.of_nodes: dict[Node, list[int]] = {}
        self.owners = owners(module.graph)
        self.alias_conflicts = find_alias_conflicts(module.graph, ())
        self._shared: dict[tuple[int, int], int] = {}
        self._uses: dict[tuple[Node, int], int] = {}
        self._forms: dict[Any, int] = {}
        self._fixed_forms: dict[Any, int] = {}
        self._operators = Operators(machine)
        self.orders: list[Order] = []
        """The order in which the last search along an axis removed the variables; the model shares the list with those of other grids."""
        self._count_uses()
        for node in module.graph.nodes:
            if node.op == "placeholder" or node.op == "get_attr":
                self._holder(node)
            elif node.op == "output":
                self._ends(node)
            elif node.op == "call_function":
                self._call(node)
        for variable in self.variables:
            sources = [self.variables[use.source] for use in variable.operands]
            variable.term_kinds = _term_kinds(variable, sources)
            variable.is_fixed_by_program = any(source.fixed is not None and source.kind == OPERATOR for source in sources)
            variable.unfixed = self._forms.setdefault(_form(variable, sources), len(self._forms))
        self._number()

    def on(self, fixed: Mapping[Node, Layout], marked: Mapping[Node, Layout]) -> Model:
        """Return the same graph in another grid: layouts that the program sets change, everything else stays."""
        model = copy.copy(self)
        model.fixed, model.marked = fixed, marked
        model.variables = []
        for variable in self.variables:
            layout = model._fixed_layout(variable)
            model.variables.append(variable if layout == variable.fixed else dataclasses.replace(variable, fixed=layout))
        model._number()
        return model

    def _fixed_layout(self, variable: Variable) -> Layout | None:
        if variable.kind == OPERATOR and variable.node.target is strategy_marker.laid:
            return self.marked[variable.node]
        is_unsplit = variable.node.op == "get_attr" or variable.node in self.alias_conflicts.unsplit
        return variable.fixed if variable.kind != HOLDER or is_unsplit else self.fixed.get(variable.node)

    def _number(self) -> None:
        """Give equal variables the same number, which is the same in all grids."""
        numbers = self._fixed_forms
        for variable in self.variables:
            variable.form = numbers.setdefault((variable.unfixed, variable.fixed), len(numbers))

    # ---- nodes

    def _count_uses(self) -> None:
        alias: dict[Node, tuple[Node, int]] = {}
        for node in self.module.graph.nodes:
            if node.target is operator.getitem:
                call_arguments: Any = node.args
                alias[node] = call_arguments
                continue
            for leaf in tree.leaves([list(node.args), dict(node.kwargs)]):
                if isinstance(leaf, Node):
                    key = alias.get(leaf, (leaf, 0))
                    self._uses[key] = self._uses.get(key, 0) + 1

    def _holder(self, node: Node) -> None:
        val = node.meta.get("val", getattr(self.module, str(node.target), None))
        if not isinstance(val, torch.Tensor):
            return
        naming = Naming()
        dims = naming.all(val.shape)
        rule = naming.rule([], [dims])
        fixed = self.fixed.get(node)
        if node.op == "get_attr" or node in self.alias_conflicts.unsplit:
            fixed = Layout(((),) * val.ndim)
        self._add(node, Variable(HOLDER, node, rule, [], [dims], [{}], [_size(val)], factors=tuple(rule.sizes), fixed=fixed))
        self.result_positions[node] = [(len(self.variables) - 1, 0)]

    def _ends(self, node: Node) -> None:
        results: Any = node.args[0]
        for item in results:
            if isinstance(item, Node) and self._result_position(item) is not None:
                naming = Naming()
                dims = naming.all(item.meta["val"].shape)
                settles = self.keeps or bool(item.meta.get(node_metadata.GRADIENT))
                variable = Variable(END, node, naming.rule([dims], []), is_settled=settles)
                variable.operands = self._operands([item], [dims], set())
                self._add(node, variable)

    def _call(self, node: Node) -> None:
        if node.target is operator.getitem:
            call_arguments: Any = node.args
            item_results = self.result_positions.get(call_arguments[0], [])
            self.result_positions[node] = [item_results[call_arguments[1]] if call_arguments[1] < len(item_results) else None]
            return
        if node.target is later:                               # the second run of a recomputed region reads the same values
            self.result_positions[node] = [self._result_position(item) if isinstance(item, Node) else None for item in node.args]
            return
        vals = node.meta.get("val")
        several = list(vals) if isinstance(vals, (list, tuple)) else [] if vals is None else [vals]
        outs = [out if isinstance(out, torch.Tensor) else None for out in several]
        arguments = arguments_by_name(node)
        tensor_nodes = [leaf for leaf in tree.leaves(list(arguments.values())) if isinstance(leaf, Node)]
        names = [source for source in tensor_nodes if _is_value(source)]
        if node.target in strategy_marker.MARKS:
            self._mark(node, names, outs)
            return
        can_split = is_operator(node.target) and not self._is_tangled(node) and len(names) == len(tensor_nodes)
        self._enter_parts(node, names, outs, self._operators.parts(node.target, arguments, outs, can_split))

    def _mark(self, node: Node, names: list[Node], outs: list[Any]) -> None:
        naming = Naming()
        dims = naming.all(outs[0].shape)
        rule = naming.rule([dims], [dims], linear=True)
        variable = Variable(OPERATOR, node, rule, self._operands(names, [dims], set()), [dims], [{}], [_size(outs[0])],
                            factors=tuple(rule.sizes), is_linear=True)
        if node.target is strategy_marker.laid:
            variable.fixed, variable.keeps_terms = self.marked[node], bool(node.meta.get(node_metadata.GRADIENT))
        self._add(node, variable)
        self._give(node, outs, [(len(self.variables) - 1, 0)])

    def _enter_parts(self, node: Node, names: list[Node], outs: list[Any], operator_parts: OperatorParts) -> None:
        """Add the variables of an operator: one for all factors that share a value."""
        written_nodes = set(nodes_written_by(node))
        is_late = bool(node.meta.get(node_metadata.OPTIMIZER))
        first = len(self.variables)
        for part in operator_parts.parts:
            rule = part.relaxed.rule
            sources = [names[at] for at in part.operands]
            self._add(node, Variable(
                OPERATOR, node, rule, self._operands(sources, rule.inputs, written_nodes, is_late, part.operands), list(rule.outputs),
                list(part.terms), list(part.bytes), part.seconds, part.products, operator_parts.reads, operator_parts.writes, part.factors,
                part.relaxed, operator_parts.is_product, rule.linear,
            ))
        self._give(node, outs, [(first + part, result) for part, result in operator_parts.results])

    # ---- values

    def _give(self, node: Node, outs: list[Any], result_positions: list[tuple[int, int] | None]) -> None:
        """Record where the values of a node are; a value with several users becomes a variable."""
        items = iter(result_positions)
        results: list[tuple[int, int] | None] = []
        for at, out in enumerate(outs):
            result_position = next(items, None) if out is not None else None
            if (
                result_position is not None
                and self._uses.get((node, at), 0) > 1
                and out.ndim
                and self.owners[node] not in self.alias_conflicts.written
            ):
                naming = Naming()
                dims = naming.all(out.shape)
                value = Variable(VALUE, node, naming.rule([dims], [dims], linear=True), [Operand(*result_position, dims, at)], [dims], [{}],
                                 [_size(out)], factors=tuple(naming.sizes), is_linear=True)
                self._add(node, value)
                result_position = (len(self.variables) - 1, 0)
            results.append(result_position)
        self.result_positions[node] = results

    def _operands(
        self, names: Sequence[Node], inputs: Sequence[Dims], written_nodes: set[Node], is_late: bool = False,
        numbers: Sequence[int] | None = None,
    ) -> list[Operand]:
        """Return the uses of values; `numbers` are the operands' positions in the call, where they are not all of its operands."""
        operands = []
        for number, name, dims in zip(numbers or range(len(names)), names, inputs):
            result_position = self._result_position(name)
            if result_position is not None:
                operands.append(Operand(*result_position, dims, number, name in written_nodes, is_late))
        return operands

    def _result_position(self, node: Node) -> tuple[int, int] | None:
        result_positions = self.result_positions.get(node)
        return result_positions[0] if result_positions else None

    def _add(self, node: Node, variable: Variable) -> None:
        self.of_nodes.setdefault(node, []).append(len(self.variables))
        self.variables.append(variable)

    def _is_tangled(self, node: Node) -> bool:
        return any(
            self.owners[item] in self.alias_conflicts.unsplit and self.owners[item] is not node for item in (node, *nodes_written_by(node))
        )


def _term_kinds(variable: Variable, sources: Sequence[Variable]) -> frozenset[str]:
    """Return the kinds of terms that all operands can have. Sources come first in the graph, so that theirs are known."""
    kinds: list[frozenset[str]] = []
    for use, source in zip(variable.operands, sources):
        passed = source.term_kinds if source.is_linear else frozenset[str]()
        kept = frozenset({"sum"}) if source.keeps_terms else frozenset[str]()
        kinds.append(passed | kept | frozenset(source.terms[use.result].values()))
    shared = frozenset.intersection(*kinds) if kinds else frozenset[str]()
    return shared if variable.kind == VALUE else shared & {"sum", "avg"}       # -max(a, b) is not max(-a, -b)


def _form(variable: Variable, sources: Sequence[Variable]) -> Any:
    """Return everything that a variable's choices and costs depend on, including the values that it reads, except fixed layouts."""
    rule, wide = variable.rule, variable.wide
    return (
        variable.kind,
        rule.inputs,
        rule.outputs,
        tuple(rule.sizes.items()),
        variable.factors,
        variable.keeps_terms,
        tuple(
            (use.dims, use.number in variable.reads, use.stays, use.is_late, source.bytes[use.result])
            for use, source in zip(variable.operands, sources)
        ),
        tuple(variable.results),
        tuple(tuple(sorted(terms.items())) for terms in variable.terms),
        tuple(variable.bytes),
        variable.seconds,
        variable.products,
        variable.writes,
        variable.is_product,
        variable.is_linear,
        tuple(sorted(variable.term_kinds)),
        variable.is_settled,
        variable.is_fixed_by_program,
        None if wide is None else (wide.messages, wide.seen, wide.share),
    )


def node_tensors(node: Node) -> list[Node]:
    """Return the nodes among a call's arguments that stand for Tensors; the pass reads their Values in this order."""
    return [leaf for leaf in tree.leaves(list(arguments_by_name(node).values())) if isinstance(leaf, Node)]


def _is_value(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _size(val: torch.Tensor) -> int:
    return int(val.numel() * val.element_size())

