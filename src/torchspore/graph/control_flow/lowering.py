"""After a trace, turns the operator that stands for branches and loops into direct calls, whose forward part saves values for the gradient.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import FakeTensorMode
from torchspore.graph.control_flow import execution
from torchspore.graph.control_flow.branch import Branch, BranchBack
from torchspore.graph.control_flow.forward_backward_split import only, split
from torchspore.graph.control_flow.gradient_presence import GATE
from torchspore.graph.control_flow.loop import Loop, LoopBack, LoopBackSecond
from torchspore.graph.fx.control_flow import OPERATOR, RECORDS, Check, Record, Say, meta_tensor_like
from torchspore.graph.passes.cleanup import drop_dead
from torchspore.graph.passes.unused_errors import keep_errors
from torchspore.graph.report import provenance

_aten = torch.ops.aten
_COPIES = {torch.ops.aten.detach.default, torch.ops.aten.alias.default}


def lower(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return `module` with direct calls in place of branches and loops, including those inside their graphs."""
    if not any(node.target is OPERATOR or node.target is GATE for node in module.graph.nodes):
        return module
    drop_dead(keep_errors(module))
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
    _place_records(module, FakeTensorMode())
    return module


def _lower_gates(graph: torch.fx.Graph) -> None:
    """Replace gates by operators; a gate disappears if its gradient always exists."""
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
                moved.meta["val"] = meta_tensor_like(flag.meta["val"])
                moved.meta["val"].at = device
                flag = moved
            new = graph.call_function(_aten.where.ScalarOther, (flag, gradient, 0))
        _mark_like(node, new)
        new.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(new)
        graph.erase_node(node)


def _is_true(flag: Node) -> bool:
    return flag.target is _aten.full.default and flag.args[1] is True


def _place_records(module: torch.fx.GraphModule, mode: FakeTensorMode) -> None:
    """Replace tensors on the device `meta`, here and in nested graphs, by ones that name the position of the value."""
    for node in module.graph.nodes:
        value = node.meta.get("val")
        node.meta["val"] = [_at(v, mode) for v in value] if isinstance(value, (list, tuple)) else _at(value, mode)
        for item in node.args:
            if isinstance(item, torch.fx.GraphModule):
                _place_records(item, mode)


def _at(value: Any, mode: FakeTensorMode) -> Any:
    if not isinstance(value, torch.Tensor) or value.device.type != "meta":
        return value
    with mode:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=getattr(value, "at", "cpu"))


def _record(node: Node) -> Record:
    return RECORDS[node.args[1]]  # type: ignore[index]


def _pairs(calls: list[Node]) -> dict[Node, Node]:
    """Return for a gradient the call whose gradient it is, if that call can save the values that the gradient needs."""
    replacements: dict[Node, Node] = {}
    for back in reversed(calls):
        record = _record(back)
        for node in calls:
            if node is back:
                break
            if _is_gradient_of(record, _record(node)) and node not in replacements and _begins(back, node):
                replacements[back] = node
    taken = set(replacements.values())
    # A call that is itself a gradient and has a gradient cannot both use saved values and save some.
    return {back: node for back, node in replacements.items() if back not in taken}


def _is_gradient_of(record: Record, other: Record) -> bool:
    if isinstance(other, Branch):
        return record is other.back
    if isinstance(other, BranchBack):
        return other.second is not None and record is other.second.back
    return isinstance(other, Loop) and record is other.back


def _begins(back: Node, node: Node) -> bool:
    """Return whether the inputs of `back` begin with those of `node`."""
    ours, its = back.args[0], node.args[0]
    return len(ours) > len(its) and all(_origin(a) is _origin(b) for a, b in zip(ours, its))  # type: ignore[arg-type]


def _origin(node: Node) -> Node:
    while node.op == "call_function" and node.target in _COPIES:
        node = node.args[0]  # type: ignore[assignment]
    return node


class _Rewrite:
    """The rewriting of one call and its gradients."""

    def __init__(self, graph: torch.fx.Graph, node: Node, backs: list[Node]) -> None:
        self._graph, self._node, self._backs = graph, node, backs
        self._inputs: list[Node] = list(node.args[0])  # type: ignore[arg-type]

    def run(self, record: Record) -> None:
        """Insert the direct calls."""
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
            if record.second is not None and self._backs:
                self._branch(record.second.then, record.second.otherwise, len(record.metas), 0)
            else:
                self._branch(record.of.then, record.of.otherwise, len(record.metas), len(record.of.metas))
        elif isinstance(record, Loop):
            self._loop(record)
        elif isinstance(record, LoopBack):
            self._lower_second(record)
        elif isinstance(record, LoopBackSecond):
            self._second(record)

    def _branch(self, then: torch.fx.GraphModule, otherwise: torch.fx.GraphModule, count: int, skip: int) -> None:
        test, *inputs = self._inputs
        used = self._used(self._node, count)
        if not self._backs:
            codes = [only(module, [skip + i for i in used], bool(skip)) for module in (then, otherwise)]
            self._replace(self._node, execution.branch, (test, inputs, *codes), used)
            return
        used_indices = sorted({i for back in self._backs for i in self._used(back, None)})
        (then_forward, then_back), (else_forward, else_back) = (
            split(module, used, [count + i for i in used_indices]) for module in (then, otherwise)
        )
        new = self._replace(self._node, execution.branch_keeping, (test, inputs, then_forward, else_forward, len(used)), used)
        saved = self._save_result(new, len(used))
        for back in self._backs:
            gradients = list(back.args[0])[len(self._inputs):]  # type: ignore[arg-type]
            self._replace(back, execution.branch_back, (saved, gradients, then_back, else_back), used_indices)

    def _loop(self, record: Loop) -> None:
        test, *rest = self._inputs
        state, inputs = rest[:record.count], rest[record.count:]
        every = list(range(record.count))
        if not self._backs:
            self._replace(self._node, execution.loop, (test, state, inputs, only(record.body, [*every, record.count])), every)
            return
        count, input_indices = record.count + 1, list(range(2 * len(record.shape.input_indices)))
        forward, back_code = split(record.body, list(range(count)), [count + i for i in input_indices])
        new = self._replace(self._node, execution.loop_keeping, (test, state, inputs, forward), every)
        saved = self._save_result(new, record.count)
        extra = [rest[i] for i in record.of_inputs]
        for back in self._backs:
            gradients = list(back.args[0])[len(self._inputs):]  # type: ignore[arg-type]
            self._replace(back, execution.loop_back, (saved, gradients, extra, back_code), input_indices)

    def _lower_second(self, record: LoopBack) -> None:
        """The gradient of a loop that is not at hand: the loop runs once more."""
        loop = record.of
        test, *rest = self._inputs
        state, inputs = rest[:loop.count], rest[loop.count:len(loop.shape.inputs)]
        gradients = rest[len(loop.shape.inputs):]
        count, input_indices = loop.count + 1, list(range(2 * len(loop.shape.input_indices)))
        forward, back_code = split(loop.body, list(range(count)), [count + i for i in input_indices], ran=True)
        with self._graph.inserting_before(self._node):
            first = self._graph.call_function(execution.loop_keeping, (test, state, inputs, forward))  # type: ignore[arg-type]
            first.meta["val"] = [*loop.metas, None]
            saved = self._graph.call_function(operator.getitem, (first, loop.count))
        _mark_like(self._node, first, saved)
        self._replace(self._node, execution.loop_back, (saved, gradients, [rest[i] for i in loop.of_inputs], back_code), input_indices)

    def _second(self, record: LoopBackSecond) -> None:
        back, loop = record.of, record.of.of
        test, *rest = self._inputs
        many = len(loop.shape.inputs)
        first = many + 2 * len(loop.of_state)
        state, inputs, ends, output_gradients = rest[:loop.count], rest[loop.count:many], rest[many:first], rest[first:]
        count = loop.count + 1
        body = only(loop.body, list(range(count)), prints=False)
        back_code = only(loop.body, [count + i for i in range(2 * len(loop.shape.input_indices))], True, prints=False)
        second = _second_code(record, loop)
        positions = (loop.of_state, [i - loop.count for i in loop.of_inputs])
        self._replace(self._node, execution.loop_back_second, (
            test, state, inputs, ends, output_gradients, body, back_code, second, positions,
        ), list(range(len(record.metas))))
        assert len(back.metas) == 2 * len(loop.shape.input_indices)

    # ---- nodes

    def _used(self, node: Node, count: int | None) -> list[int]:
        """Return which results of a call are read."""
        result_indices = {user.args[1] for user in node.users if user.target is operator.getitem}
        if any(user.target is not operator.getitem for user in node.users):
            result_indices |= set(range(count if count is not None else len(_record(node).metas)))
        return sorted(result_indices)  # type: ignore[arg-type]

    def _call(self, at: Node, target: Callable[..., Any], arguments: tuple[Any, ...]) -> Node:
        with self._graph.inserting_before(at):
            new = self._graph.call_function(target, arguments)
        _mark_like(at, new)
        return new

    def _replace(self, old: Node, target: Callable[..., Any], arguments: tuple[Any, ...], gives: list[int]) -> Node:
        """Replace `old` by a call of `target`, whose results at `gives` are those of `old`."""
        new = self._call(old, target, arguments)
        value = old.meta.get("val")
        new.meta["val"] = [value[i] for i in gives] if isinstance(value, (list, tuple)) else None
        for user in list(old.users):
            user.args = (new, gives.index(user.args[1]))  # type: ignore[arg-type]
        self._graph.erase_node(old)
        return new

    def _save_result(self, node: Node, position: int) -> Node:
        with self._graph.inserting_after(node):
            saved = self._graph.call_function(operator.getitem, (node, position))
        _mark_like(node, saved)
        return saved


def _mark_like(old: Node, *new_nodes: Node) -> None:
    for node in new_nodes:
        provenance.inherit(node, old)
        if node_metadata.BACKWARD in old.meta:
            node.meta[node_metadata.BACKWARD] = True


def _second_code(record: LoopBackSecond, loop: Loop) -> torch.fx.GraphModule:
    """Return the graph (state, inputs, a, c, d, with flags) -> gradients by a, by the state and by the inputs that have one, and their
    flags."""
    taken = [*loop.shape.inputs, *[loop.shape.outputs[i] for i in loop.shape.seeds]]
    leaves = [i for i, t in enumerate(taken) if t.dtype.is_floating_point or t.dtype.is_complex]
    first = 2 * len(loop.shape.input_indices)
    many = len(loop.shape.inputs)
    order = [*range(many, many + len(loop.of_state)), *loop.of_state, *loop.of_inputs]
    positions = [first + leaves.index(i) for i in order]
    return only(record.second, [*positions, *[position + len(leaves) for position in positions]], True, prints=False)
