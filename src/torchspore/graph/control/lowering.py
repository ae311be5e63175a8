"""After a trace: the operator that stood for branches and loops becomes direct calls, whose forward part keeps what the gradient needs."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.core import node_metadata
from torchspore.engine.core.torch_private import FakeTensorMode
from torchspore.graph.control import execution
from torchspore.graph.control.branch import Branch, BranchBack
from torchspore.graph.control.forward_backward_split import only, split
from torchspore.graph.control.gradient_presence import GATE
from torchspore.graph.control.loop import Loop, LoopBack, LoopBackAgain
from torchspore.graph.fx.control_flow import OPERATOR, RECORDS, Check, Record, Say, stand_in
from torchspore.graph.passes.cleanup import drop_dead
from torchspore.graph.report import provenance

_aten = torch.ops.aten
_SAME = {torch.ops.aten.detach.default, torch.ops.aten.alias.default}


def lower(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """`module` with direct calls in the place of branches and loops, those inside their graphs too."""
    if not any(node.target is OPERATOR or node.target is GATE for node in module.graph.nodes):
        return module
    drop_dead(module)
    calls = [node for node in module.graph.nodes if node.target is OPERATOR]
    pairs = _pairs(calls)
    done: set[Node] = set()
    for node in calls:
        if node not in done:
            backs = [back for back in calls if pairs.get(back) is node]
            done.update(backs)
            _Rewrite(module.graph, node, backs).run(_record(node))
    _lower_gates(module.graph)
    module.graph.lint()
    module.recompile()
    _place(module, FakeTensorMode())
    return module


def _lower_gates(graph: torch.fx.Graph) -> None:
    """Puts operators in the place of gates: none where the gradient is there in any case."""
    for node in list(graph.nodes):
        if node.target is not GATE:
            continue
        flag, gradient = node.args
        if _is_true(flag):
            node.replace_all_uses_with(gradient)
            graph.erase_node(node)
            continue
        value = gradient.meta["val"]
        device = getattr(value, "at", value.device)
        with graph.inserting_before(node):
            if device.type != "cpu":
                moved = graph.call_function(_aten._to_copy.default, (flag,), {"device": device})
                _mark_like(node, moved)
                moved.meta["val"] = stand_in(flag.meta["val"])
                moved.meta["val"].at = device
                flag = moved
            new = graph.call_function(_aten.where.ScalarOther, (flag, gradient, 0))
        _mark_like(node, new)
        new.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(new)
        graph.erase_node(node)


def _is_true(flag: Node) -> bool:
    return flag.target is _aten.full.default and flag.args[1] is True


def _place(module: torch.fx.GraphModule, mode: FakeTensorMode) -> None:
    """Gives stand-ins on the device `meta`, here and in the graphs inside, for ones that say where the value will be."""
    for node in module.graph.nodes:
        value = node.meta.get("val")
        node.meta["val"] = [_at(v, mode) for v in value] if isinstance(value, (list, tuple)) else _at(value, mode)
        for item in node.args:
            if isinstance(item, torch.fx.GraphModule):
                _place(item, mode)


def _at(value: Any, mode: FakeTensorMode) -> Any:
    if not isinstance(value, torch.Tensor) or value.device.type != "meta":
        return value
    with mode:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=getattr(value, "at", "cpu"))


def _record(node: Node) -> Record:
    return RECORDS[node.args[1]]  # type: ignore[index]


def _pairs(calls: list[Node]) -> dict[Node, Node]:
    """For a gradient the call whose gradient it is, where that one can keep what it needs."""
    found: dict[Node, Node] = {}
    for back in reversed(calls):
        record = _record(back)
        for node in calls:
            if node is back:
                break
            if _is_gradient_of(record, _record(node)) and node not in found and _begins(back, node):
                found[back] = node
    taken = set(found.values())
    # What is itself a gradient and has one of its own can't both use what was kept and keep.
    return {back: node for back, node in found.items() if back not in taken}


def _is_gradient_of(record: Record, other: Record) -> bool:
    if isinstance(other, Branch):
        return record is other.back
    if isinstance(other, BranchBack):
        return other.again is not None and record is other.again.back
    return isinstance(other, Loop) and record is other.back


def _begins(back: Node, node: Node) -> bool:
    """Return whether the inputs of `back` begin with those of `node`."""
    ours, its = back.args[0], node.args[0]
    return len(ours) > len(its) and all(_origin(a) is _origin(b) for a, b in zip(ours, its))  # type: ignore[arg-type]


def _origin(node: Node) -> Node:
    while node.op == "call_function" and node.target in _SAME:
        node = node.args[0]  # type: ignore[assignment]
    return node


class _Rewrite:
    """The rewriting of one call and its gradients."""

    def __init__(self, graph: torch.fx.Graph, node: Node, backs: list[Node]) -> None:
        self._graph, self._node, self._backs = graph, node, backs
        self._inputs: list[Node] = list(node.args[0])  # type: ignore[arg-type]

    def run(self, record: Record) -> None:
        """Puts the direct calls in."""
        if isinstance(record, Check):
            line = self._node.meta.get(node_metadata.LINE, "")             # kept where PyNative can't run the call again, to say it
            self._call(self._node, execution.check, (self._inputs[0], record.text, *([line] if line else [])))
            self._graph.erase_node(self._node)
        elif isinstance(record, Say):
            self._call(self._node, execution.say, (record.text,))
            self._graph.erase_node(self._node)
        elif isinstance(record, Branch):
            self._branch(record.then, record.otherwise, len(record.metas), 0)
        elif isinstance(record, BranchBack):
            if record.again is not None and self._backs:
                self._branch(record.again.then, record.again.otherwise, len(record.metas), 0)
            else:
                self._branch(record.of.then, record.of.otherwise, len(record.metas), len(record.of.metas))
        elif isinstance(record, Loop):
            self._loop(record)
        elif isinstance(record, LoopBack):
            self._loop_again(record)
        elif isinstance(record, LoopBackAgain):
            self._second(record)

    def _branch(self, then: torch.fx.GraphModule, otherwise: torch.fx.GraphModule, count: int, skip: int) -> None:
        test, *inputs = self._inputs
        used = self._used(self._node, count)
        if not self._backs:
            codes = [only(module, [skip + i for i in used], bool(skip)) for module in (then, otherwise)]
            self._replace(self._node, execution.branch, (test, inputs, *codes), used)
            return
        wanted = sorted({i for back in self._backs for i in self._used(back, None)})
        (then_forward, then_back), (else_forward, else_back) = (
            split(module, used, [count + i for i in wanted]) for module in (then, otherwise)
        )
        new = self._replace(self._node, execution.branch_keeping, (test, inputs, then_forward, else_forward, len(used)), used)
        kept = self._kept(new, len(used))
        for back in self._backs:
            gradients = list(back.args[0])[len(self._inputs):]  # type: ignore[arg-type]
            self._replace(back, execution.branch_back, (kept, gradients, then_back, else_back), wanted)

    def _loop(self, record: Loop) -> None:
        test, *rest = self._inputs
        state, inputs = rest[:record.count], rest[record.count:]
        every = list(range(record.count))
        if not self._backs:
            self._replace(self._node, execution.loop, (test, state, inputs, only(record.body, [*every, record.count])), every)
            return
        count, wanted = record.count + 1, list(range(2 * len(record.shape.wanted)))
        forward, back_code = split(record.body, list(range(count)), [count + i for i in wanted])
        new = self._replace(self._node, execution.loop_keeping, (test, state, inputs, forward), every)
        kept = self._kept(new, record.count)
        extra = [rest[i] for i in record.of_inputs]
        for back in self._backs:
            gradients = list(back.args[0])[len(self._inputs):]  # type: ignore[arg-type]
            self._replace(back, execution.loop_back, (kept, gradients, extra, back_code), wanted)

    def _loop_again(self, record: LoopBack) -> None:
        """The gradient of a loop that is not at hand: the loop runs once more."""
        loop = record.of
        test, *rest = self._inputs
        state, inputs = rest[:loop.count], rest[loop.count:len(loop.shape.inputs)]
        gradients = rest[len(loop.shape.inputs):]
        count, wanted = loop.count + 1, list(range(2 * len(loop.shape.wanted)))
        forward, back_code = split(loop.body, list(range(count)), [count + i for i in wanted], ran=True)
        with self._graph.inserting_before(self._node):
            first = self._graph.call_function(execution.loop_keeping, (test, state, inputs, forward))  # type: ignore[arg-type]
            first.meta["val"] = [*loop.metas, None]
            kept = self._graph.call_function(operator.getitem, (first, loop.count))
        _mark_like(self._node, first, kept)
        self._replace(self._node, execution.loop_back, (kept, gradients, [rest[i] for i in loop.of_inputs], back_code), wanted)

    def _second(self, record: LoopBackAgain) -> None:
        back, loop = record.of, record.of.of
        test, *rest = self._inputs
        many = len(loop.shape.inputs)
        first = many + 2 * len(loop.of_state)
        state, inputs, ends, given = rest[:loop.count], rest[loop.count:many], rest[many:first], rest[first:]
        count = loop.count + 1
        body = only(loop.body, list(range(count)), prints=False)
        back_code = only(loop.body, [count + i for i in range(2 * len(loop.shape.wanted))], True, prints=False)
        second = _second_code(record, loop)
        places = (loop.of_state, [i - loop.count for i in loop.of_inputs])
        self._replace(self._node, execution.loop_back_again, (
            test, state, inputs, ends, given, body, back_code, second, places,
        ), list(range(len(record.metas))))
        assert len(back.metas) == 2 * len(loop.shape.wanted)

    # ---- nodes

    def _used(self, node: Node, count: int | None) -> list[int]:
        """Which results of a call are read."""
        found = {user.args[1] for user in node.users if user.target is operator.getitem}
        if any(user.target is not operator.getitem for user in node.users):
            found |= set(range(count if count is not None else len(_record(node).metas)))
        return sorted(found)  # type: ignore[arg-type]

    def _call(self, at: Node, target: Callable[..., Any], arguments: tuple[Any, ...]) -> Node:
        with self._graph.inserting_before(at):
            new = self._graph.call_function(target, arguments)
        _mark_like(at, new)
        return new

    def _replace(self, old: Node, target: Callable[..., Any], arguments: tuple[Any, ...], gives: list[int]) -> Node:
        """A call of `target`, whose results are those of `old` at `gives`, in its place."""
        new = self._call(old, target, arguments)
        value = old.meta.get("val")
        new.meta["val"] = [value[i] for i in gives] if isinstance(value, (list, tuple)) else None
        for user in list(old.users):
            user.args = (new, gives.index(user.args[1]))  # type: ignore[arg-type]
        self._graph.erase_node(old)
        return new

    def _kept(self, node: Node, position: int) -> Node:
        with self._graph.inserting_after(node):
            kept = self._graph.call_function(operator.getitem, (node, position))
        _mark_like(node, kept)
        return kept


def _mark_like(old: Node, *made: Node) -> None:
    for node in made:
        provenance.inherit(node, old)
        if node_metadata.BACKWARD in old.meta:
            node.meta[node_metadata.BACKWARD] = True


def _second_code(record: LoopBackAgain, loop: Loop) -> torch.fx.GraphModule:
    """The graph (state, inputs, a, c, d, with flags) -> gradients by a, by the state and by the inputs, those that have one; flags."""
    taken = [*loop.shape.inputs, *[loop.shape.outputs[i] for i in loop.shape.seeds]]
    leaves = [i for i, t in enumerate(taken) if t.dtype.is_floating_point or t.dtype.is_complex]
    first = 2 * len(loop.shape.wanted)
    many = len(loop.shape.inputs)
    order = [*range(many, many + len(loop.of_state)), *loop.of_state, *loop.of_inputs]
    places = [first + leaves.index(i) for i in order]
    return only(record.second, [*places, *[place + len(leaves) for place in places]], True, prints=False)
