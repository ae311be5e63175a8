"""An `if` on a Tensor inside a capture: both ways are captured, and their results joined."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchspore.base import tracebacks
from torchspore.base.frames import user_line
from torchspore.engine.autograd.grad import is_differentiating
from torchspore.engine.autograd.leaves import is_differentiable
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.number import Number
from torchspore.engine.tensors.tensor import raw
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import graph_of, without_modes
from torchspore.graph.capture import constant_values
from torchspore.graph.capture.ambiguous_tensors import mark, mark_numbers
from torchspore.graph.capture.capture import Capture
from torchspore.graph.capture.profile_hook import quiet
from torchspore.graph.control_flow import gradient_presence, subgraph
from torchspore.graph.control_flow.assemble import Assembly, Shape, SubGraph
from torchspore.graph.control_flow.branch_join import Join, Mismatch, Slot, filled
from torchspore.graph.control_flow.forward_backward_split import without_prints
from torchspore.graph.control_flow.mutable_state import UNBOUND, Local, MutableState, WrittenTensor
from torchspore.graph.control_flow.subgraph import Outcome
from torchspore.graph.fx.control_flow import Flag, Gradients, Record, as_tensor, emit, flag_like, meta_tensor_like
from torchspore.graph.passes.unused_errors import keep_errors
from torchspore.graph.refusal import Kind, Refusal
from torchspore.graph.report import provenance
from torchspore.translations import translate


@dataclass(eq=False)
class Branch(Record):
    """A branch: two graphs of one shape."""

    then: torch.fx.GraphModule
    otherwise: torch.fx.GraphModule
    shape: Shape
    back: BranchBack | None = None

    def graphs(self) -> list[torch.fx.GraphModule]:
        return [self.then, self.otherwise]

    def gradient(self, inputs: Sequence[torch.Tensor], gradients: list[torch.Tensor], flags: list[Flag]) -> Gradients:
        if self.back is None:
            metas = [self.shape.inputs[i] for i in self.shape.input_indices]
            self.back = BranchBack([*metas, *[flag_like() for _ in metas]], self)
        found = emit(self.back, [*inputs, *gradients, *map(as_tensor, flags)])
        return scattered(found, self.shape.input_indices, len(inputs), 1)


@dataclass(eq=False)
class BranchBack(Record):
    """The gradient of a branch."""

    of: Branch
    second: Branch | None = None

    def gradient(self, inputs: Sequence[torch.Tensor], gradients: list[torch.Tensor], flags: list[Flag]) -> Gradients:
        """Second order: the gradient as a separate branch, with a gradient."""
        if self.second is None:
            shape = self.of.shape
            count = len(shape.outputs)
            taken = shape.derived()
            then, otherwise = (derivative(module, taken, count) for module in (self.of.then, self.of.otherwise))
            seeds = list(range(len(shape.input_indices)))
            differentiable = [i for i, t in enumerate(taken) if is_differentiable(t)]
            self.second = Branch(self.metas, then, otherwise, Shape(taken, self.metas, seeds, differentiable))
        return self.second.gradient(inputs, gradients, flags)


def scattered(gradients: Sequence[torch.Tensor], differentiable: Sequence[int], count: int, shift: int) -> Gradients:
    """The gradients in `gradients`, and then their flags, at the positions `differentiable`, moved by `shift`, of lists of `count`."""
    out: list[torch.Tensor | None] = [None] * count
    flags: list[Flag] = [False] * count
    for position, t, flag in zip(differentiable, gradients, gradients[len(differentiable):]):
        out[position + shift], flags[position + shift] = t, flag
    return out, flags


def derivative(module: torch.fx.GraphModule, taken: list[torch.Tensor], skip: int) -> torch.fx.GraphModule:
    """Return, for the graph of a part, the graph (its inputs, gradients of its outputs after the first `skip`, their flags) -> those
    outputs, the gradients of all its differentiable inputs, and their flags."""
    names: set[str] = set()
    ours: set[str] = set()
    count_taken = len(taken)
    module = _undetached(module)

    def both(*tensors: torch.Tensor) -> list[torch.Tensor]:
        from torchspore.engine.torch_internals.torch_private import current_trace

        with torch.enable_grad():
            graph = current_trace()[0].graph
            at = [t.detach().requires_grad_(is_differentiable(t)) for t in tensors[:count_taken]]
            ours.update(node.name for node in graph.nodes if node.op == "call_function")
            outs = module(*at)[skip:]
            names.update(node.name for node in graph.nodes)
            plain = [o.detach() for o in outs]
            leaves = [t for t in at if t.requires_grad]
            ours.update(node.name for node in graph.nodes if node.name not in names)
            names.update(ours)
            rows = list(zip([o for o in outs if is_differentiable(o)], tensors[count_taken:], tensors[count_taken + count:]))
            rows = [row for row in rows if row[0].requires_grad]
            got: Sequence[Any] = [None] * len(leaves)
            flags: list[Flag] = [False] * len(leaves)
            if rows:
                got, flags = gradient_presence.gradients([o for o, _, _ in rows], leaves, [g for _, g, _ in rows], [f for _, _, f in rows])
        zeros = [torch.zeros_like(t) if g is None else g for t, g in zip(leaves, got)]
        return [*plain, *zeros, *map(as_tensor, flags)]

    with torch.no_grad():
        results = [value for node in _outputs(module)[skip:] if is_differentiable(value := node.meta["val"])]
        count = len(results)
        metas = [*taken, *results, *[flag_like() for _ in results]]
        examples = [torch.empty_strided(m.shape, m.stride(), dtype=m.dtype, device=getattr(m, "at", m.device)) for m in metas]
    with without_modes():
        traced = keep_errors(graph_of(both, examples))
    for node in reversed(list(traced.graph.nodes)):
        if node.name in ours:    # a leaf is its input, and also a result: a gradient of a higher order passes through
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    for node in traced.graph.nodes:
        if node.name not in names and node.op != "output":
            node.meta[node_metadata.BACKWARD] = True
    for node in [n for n in traced.graph.nodes if n.op == "placeholder"][count_taken:]:
        node.meta[node_metadata.BACKWARD] = True
    return traced


def _undetached(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A copy without the `detach` that autograd puts around results it keeps for a gradient: they do not stop a further one."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    forward_module = without_prints(SubGraph(module, graph), True)    # the forward part runs by itself, and prints
    detach = torch.ops.aten.detach.default
    for node in reversed(list(graph.nodes)):
        is_backward = node_metadata.BACKWARD in node.meta or (
            node.users and all(node_metadata.BACKWARD in user.meta for user in node.users)
        )
        if node.target is detach and is_backward:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return forward_module


def _outputs(module: torch.fx.GraphModule) -> list[Any]:
    return list(next(node for node in reversed(module.graph.nodes) if node.op == "output").args[0])


def on_tensor(around: Capture, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], live: Iterable[str]) -> Any:
    """Capture both ways of an `if`, join their results and state, and put a branch into the trace.

    In a graph that is split, a condition of constants alone is decided at once.
    """
    is_true = constant_values.decide(around, test)
    if is_true is not None:
        return then() if is_true else otherwise()
    with quiet():
        return _on_tensor(around, test, then, otherwise, live)


def _on_tensor(around: Capture, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], live: Iterable[str]) -> Any:
    line = user_line()
    state = MutableState((then, otherwise))  # type: ignore[arg-type]
    then_outcome, right = subgraph.trace(then, around, state), subgraph.trace(otherwise, around, state)
    if then_outcome.raised is not None and right.raised is not None:
        raise Refusal(translate("raises {error}").format(error=type(then_outcome.raised).__name__), line, Kind.RAISES)
    join = Join(then_outcome, right)
    value, changes = _joined(join, then_outcome, right, set(live), around, line)
    results: list[torch.Tensor]
    flags = _flags(join.slots)
    if flags and not any(acts(side) for side in (then_outcome, right)):
        t = scalar(test)
        truth = t if t.dtype is torch.bool else t != 0
        results = [truth if is_true else torch.logical_not(truth) for is_true in flags]
    elif not join.slots and not any(acts(side) for side in (then_outcome, right)):
        results = []
    else:
        results = _emit(scalar(test), join.slots, then_outcome, right)
        mark(results, (slot.is_shared for slot in join.slots))
        mark_numbers(results, (slot.may_be_number for slot in join.slots))
    for location, structure in changes:
        leave(location, filled(structure, results))
    _note_aliases(around, join.slots, results, then_outcome, right, line)
    _forget(then_outcome, right)
    return filled(value, results)


def _note_aliases(
    around: Capture, slots: list[Slot], results: list[torch.Tensor], then_outcome: Outcome, right: Outcome, line: str | None,
) -> None:
    """Record which memory a result may share: that of a Tensor from outside, or that of another result."""
    if not is_differentiating():
        return                                          # what shares memory shares it when the graph runs, too
    sides_of = (then_outcome, right)
    memory = [
        [
            [] if tensor is None or isinstance(tensor, Number) else subgraph.memory_of(side, tensor)
            for side, tensor in zip(sides_of, slot.tensors)
        ] for slot in slots
    ]
    for i, (t, sides) in enumerate(zip(results, memory)):
        for base in (base for bases in sides for base in bases if subgraph.is_live_in(around, base)):
            around.watch.aliases.add(t, base, line)
        for other, its_sides in zip(results[:i], memory[:i]):
            if any(first is two for here, there in zip(sides, its_sides) for first in here for two in there):
                around.watch.aliases.add(t, other, line)


def _forget(*sides: Outcome) -> None:
    """Forget values that a side forgot."""
    for side in sides:
        for base, reason in side.unknown:
            around = engine.frame()
            assert around is not None
            around.forget(base, reason)


def both(around: Capture, value: Any, other: Callable[[], Any], combine: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Any:
    """Return `and` or `or` of a Tensor and the result of `other`: both are computed if that costs less than a decision."""
    is_and = combine is torch.logical_and
    if raw(value).dtype is torch.bool:
        seen = subgraph.trace(other, around, MutableState((other,)))  # type: ignore[arg-type]
        if _is_cheap(seen):
            return Number(combine(scalar(value), scalar(other())))
        if type(seen.value) is bool and not seen.changes and not acts(seen):
            return value if seen.value is is_and else seen.value
    get_value = (lambda: value)
    return on_tensor(around, value, other if is_and else get_value, get_value if is_and else other, ())


_COMPARISONS = {
    getattr(torch.ops.aten, name).default for name in ("logical_not", "logical_and", "logical_or")
} | {
    getattr(getattr(torch.ops.aten, name), kind) for name in ("lt", "le", "gt", "ge", "eq", "ne") for kind in ("Scalar", "Tensor")
}


def _is_cheap(side: Outcome) -> bool:
    """Return whether a part only compares numbers: then nothing is lost if it is computed in vain."""
    if side.module is None or side.changes or not isinstance(side.value, Number) or len(side.metas) != 1:
        return False
    steps = [node for node in side.module.graph.nodes if node.op not in ("placeholder", "output")]
    free = (torch.ops.aten.full.default, torch.ops.aten._to_copy.default, torch.ops.aten.scalar_tensor.default)
    return side.metas[0].dtype is torch.bool and len(steps) <= 4 and all(
        node.target in _COMPARISONS or node.target in free for node in steps
    )


def acts(side: Outcome) -> bool:
    """Return whether the side does something besides giving values."""
    from torchspore.graph.passes.cleanup import has_effect as node_acts

    return side.module is None or any(node.op == "call_function" and node_acts(node) for node in side.module.graph.nodes)


def scalar(test: Any) -> torch.Tensor:
    """The 0-d tensor of a test, which has one element."""
    t = raw(test)
    return t.reshape(()) if t.ndim else t


def _flags(slots: list[Slot]) -> list[bool]:
    """Return, for results that only state which way was taken, the flag of the first way; None if there are other results."""
    if not all(slot.then_source.is_fixed and slot.right.is_fixed and isinstance(slot.then_source.value, bool) for slot in slots):
        return []
    return [slot.then_source.value for slot in slots]


def leave(location: Any, value: Any) -> None:
    """Store the final values of a branch or loop, so that the enclosing frames see them."""
    if isinstance(location, WrittenTensor):
        engine.write(location.tensor, raw(value))
    else:
        location.set(value)


def _joined(join: Join, then_outcome: Outcome, right: Outcome, live: set[str], around: Capture, line: str | None) -> tuple[Any, list[Any]]:
    """Return the joined result, and (position, structure) for each position that a side changed."""
    if then_outcome.raised is not None or right.raised is not None:
        side = right if then_outcome.raised is not None else then_outcome
        pick = (lambda v: join._join_one_sided(v, side is right))
        return pick(side.value), [(location, pick(now)) for location, _, now in side.changes.values()]
    try:
        value = join.value(then_outcome.value, right.value)
    except Mismatch as mismatch:
        text = translate("returns two kinds of result, depending on a Tensor:\n{mismatch}").format(mismatch=mismatch)
        raise Refusal(text, line, Kind.TWO_KINDS) from None
    changes: list[tuple[Any, Any]] = []
    for key in [*then_outcome.changes, *[k for k in right.changes if k not in then_outcome.changes]]:
        location, before, _ = (then_outcome.changes.get(key) or right.changes[key])
        a = then_outcome.changes[key][2] if key in then_outcome.changes else before
        b = right.changes[key][2] if key in right.changes else before
        if isinstance(location, Local) and not location.foreign and location.name not in live:
            continue
        try:
            if (a is UNBOUND) != (b is UNBOUND) and isinstance(location, Local):
                around.watch.lost[location.name] = Refusal(
                    translate("reads {name!r}, which only one branch of an `if` on a Tensor assigns").format(name=location.name), line,
                    Kind.UNBOUND,
                )
                changes.append((location, UNBOUND))
                continue
            count = len(join.slots)
            changes.append((location, join.value(a, b)))
            if isinstance(location, WrittenTensor):
                for slot in join.slots[count:]:
                    slot.tensors = (None, None)            # values, which are copied: no name is given to them
        except Mismatch as mismatch:
            text = translate("gives {variable} two kinds of value, depending on a Tensor:\n{mismatch}")
            reason = Refusal(text.format(variable=location, mismatch=mismatch), line, Kind.TWO_KINDS)
            if not isinstance(location, Local):
                raise reason from None
            around.watch.lost[location.name] = reason
            changes.append((location, UNBOUND))
    return value, changes


def _emit(test: torch.Tensor, slots: list[Slot], then_outcome: Outcome, right: Outcome) -> list[torch.Tensor]:
    inputs: list[torch.Tensor] = []

    def position(t: torch.Tensor) -> int:
        for i, other in enumerate(inputs):
            if other is t:
                return i
        inputs.append(t)
        return len(inputs) - 1

    at = [[position(t) for t in side.inputs] for side in (then_outcome, right)]
    for slot in slots:
        for source in (slot.then_source, slot.right):
            if source.outside is not None:
                position(source.outside)
    recording = torch.is_grad_enabled() and any(t.requires_grad for t in inputs)
    metas = [slot.meta for slot in slots]
    shape = Shape(
        inputs, metas, [i for i, m in enumerate(metas) if recording and is_differentiable(m)],
        [i for i, t in enumerate(inputs) if recording and t.requires_grad], then_outcome.custom_gradient or right.custom_gradient,
    )
    flat = [slot.contiguous for slot in slots]
    modules = []
    for side, positions, sources in ((then_outcome, at[0], [s.then_source for s in slots]), (right, at[1], [s.right for s in slots])):
        modules.append(Assembly(side, shape, positions).run(sources, flat) if side.raised is None else _raising(side, shape))
    shape.inputs = [meta_tensor_like(t) for t in inputs]
    return emit(Branch(metas, modules[0], modules[1], shape), [test, *inputs])


def _raising(side: Outcome, shape: Shape) -> torch.fx.GraphModule:
    """The graph of a way that raises."""
    from torchspore.graph.control_flow.branch_join import Source
    from torchspore.graph.control_flow.execution import fail

    empty_side = Assembly(Outcome(), shape, []).run([Source()] * len(shape.outputs), [False] * len(shape.outputs))
    first = next(node for node in empty_side.graph.nodes if node.op != "placeholder")
    with empty_side.graph.inserting_before(first):
        line = tracebacks.last_line(side.raised) if provenance.keeps_lines() else ""
        empty_side.graph.call_function(fail, (f"{type(side.raised).__name__}: {side.raised}", *([line] if line else [])))
    return empty_side
