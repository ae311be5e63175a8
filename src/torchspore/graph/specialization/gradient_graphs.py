"""Graphs inside a gradient that PyNative takes: captured with their gradient, cut into a forward and a backward half, run under autograd.

A call that runs in parts may lie inside `grad` or `value_and_grad`. Its graphs are then steps of torch's tape: the forward half gives the
results and what the backward half needs, so that nothing is computed twice.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from torchspore.engine.autograd import integer_gradients
from torchspore.engine.autograd.leaves import is_differentiable
from torchspore.engine.execution import precision, pynative
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors import torch_aliases
from torchspore.engine.tensors.in_place_versions import Versions, base_of
from torchspore.engine.tensors.tensor import TensorBase, raw, tensors
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import disable_proxy_modes_tracing, is_operator, without_modes
from torchspore.graph import pipeline
from torchspore.graph.capture.capture import Capture, Captured
from torchspore.graph.control_flow import gradient_presence
from torchspore.graph.control_flow.forward_backward_split import halves
from torchspore.graph.fx.control_flow import Flag, as_tensor
from torchspore.graph.fx.exchanges import has_exchanges
from torchspore.graph.fx.failing_operators import devices_of_random_operators
from torchspore.graph.fx.modules import nested_nodes
from torchspore.graph.fx.sample_inputs import filled
from torchspore.graph.refusal import Kind, Refusal, of_integers
from torchspore.graph.report import stages
from torchspore.graph.settings import Settings
from torchspore.graph.specialization.compiled_graph import Graph
from torchspore.graph.specialization.random_streams import with_own_streams

_WRITES_OUTSIDE = "writes a value that is differentiated into a Tensor from outside"


class RecordedCapture(Capture):
    """A capture whose inputs may be recorded by the gradient transform around it."""

    def __init__(self) -> None:
        super().__init__()
        self._leaves: list[torch.Tensor] = []
        self._plain: list[torch.Tensor] = []
        self.recorded: set[int] = set()
        """The inputs that the transform around records."""
        self.stored: set[int] = set()
        """The inputs that are written into: Parameters in their own dtype, whatever the Cell around computes in."""
        self.leaves: list[int] = []
        """Those of them that the outputs depend on."""
        self.seeds: list[int] = []
        """The outputs that a gradient comes in for."""
        self.views: list[tuple[int, int]] = []
        """(Output, output with its memory) of each Tensor that shows memory of the call which the program itself does not get."""
        self._input_indices: list[int] = []
        self._memories: dict[int, torch.Tensor] = {}
        """By the id of an output the memory that it shows, where no output is that memory."""
        self._gradients: list[torch.Tensor] = []
        self._is_backward = False
        self._has_gradients = False
        """True from the gradients on."""
        self._versions = Versions()

    def _fake_tensor(self, source: Any, t: torch.Tensor) -> torch.Tensor:
        if isinstance(source, TensorBase) and self.outer is not None:
            t = self.outer.resolve(source)
        if integer_gradients.shadow(t) is not None:
            raise of_integers()
        if precision.reads_as_stored():
            self.stored.add(len(self.lifted))
        with without_modes():
            plain = t.detach()
        with disable_proxy_modes_tracing(), torch.no_grad():
            fake: torch.Tensor = self.mode.from_tensor(plain)
            if t.requires_grad:
                fake.requires_grad_()
        if t.requires_grad:
            self.recorded.add(len(self.lifted))
            if not self._has_gradients:            # a Tensor that is met later is returned as it is
                self._leaves.append(fake)
                self.leaves.append(len(self.lifted))
        else:
            self._plain.append(fake)
        return fake

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        leaf = super().resolve(tensor)
        if precision.reads_as_stored() and leaf.dtype is not tensor._t.dtype:
            raise Refusal("writes into a Parameter that it has read in the dtype of the Cell around it")
        return self._versions.read(leaf)

    def write(self, tensor: TensorBase, value: torch.Tensor) -> None:
        precision.as_stored(tensor)
        self._refuse_shared(tensor)
        if self._is_created_here(tensor):
            before = self.resolve(tensor)
            self._versions.replace(tensor._t, value.expand(before.shape).to(before.dtype).clone())
            self._end_write(tensor)
            return
        if self.resolve(tensor).requires_grad:
            raise Refusal("assigns to a Parameter whose gradient is taken")
        if value.requires_grad and not getattr(tensor, "__parameter__", False):      # nothing flows back into a Parameter's new value
            raise Refusal(_WRITES_OUTSIDE)
        super().write(tensor, value)
        self._end_write(tensor)

    def modify(self, tensor: TensorBase, change: Callable[[torch.Tensor], Any]) -> None:
        self._refuse_shared(tensor)
        if self._is_created_here(tensor):
            self._versions.change(tensor._t, change)
        else:
            super().modify(tensor, change)
        self._end_write(tensor)

    def _refuse_shared(self, tensor: TensorBase) -> None:
        """Raises Refusal for a write that torch tensors of the program must show."""
        if torch_aliases.is_shared(Capture.resolve(self, tensor)):
            raise Refusal(torch_aliases.WRITES_SHARED)

    def _is_created_here(self, tensor: TensorBase) -> bool:
        """Return whether the memory that `tensor` shows was made in the call, and is not an input's."""
        base = base_of(tensor._t)
        return self._is_mine(tensor._t) and not any(base is fake for fake in self._fakes)

    def _end_write(self, tensor: TensorBase) -> None:
        if self.settles:
            return
        for other, reason in self.aliases(self._versions.origin(base_of(Capture.resolve(self, tensor)))):
            self.forget(other, reason)

    def origin(self, base: torch.Tensor) -> torch.Tensor:
        return self._versions.origin(base)

    def forget(self, base: torch.Tensor, reason: BaseException) -> None:
        if any(base is fake for fake in self._fakes):
            raise reason
        self._versions.forget(base, reason)

    def known_out(self, tensor: TensorBase) -> Any:
        return None if self._versions.has(base_of(tensor._t)) else super().known_out(tensor)

    def attribute_set(self, owner: Any, name: str, value: Any) -> None:
        if self._is_backward:
            raise self.watch.refuse(f"writes the attribute {name!r} of {type(owner).__name__} in a gradient", Kind.WRITES_ATTRIBUTE)
        super().attribute_set(owner, name, value)

    def _end(self) -> None:
        """Compute the gradients while the trace guard observes the program's code in them (`bprop`, hooks)."""
        for tensor in tensors((self.watch.current_values(), self.result)):
            if self._is_mine(tensor._t):
                tensor._t = self._versions.read(tensor._t)
        outputs = {id(tensor): tensor for tensor in tensors((self.watch.current_values(), self.result)) if self._is_mine(tensor._t)}
        if any(integer_gradients.shadow(tensor._t) is not None for tensor in outputs.values()):
            raise of_integers()
        if any(fake.requires_grad for fake in self._plain):
            raise Refusal(_WRITES_OUTSIDE)
        differentiable = {key: tensor._t for key, tensor in outputs.items() if tensor._t.requires_grad and is_differentiable(tensor._t)}
        if not differentiable or not self._leaves:
            return
        # A view gets its gradient through the memory: later writes into it, or into another view of it, go there.
        self._memories = {key: base for key, t in differentiable.items() if self._is_unnamed(base := base_of(t), list(outputs.values()))}
        memories = {id(base): base for base in self._memories.values()}
        differentiable = {**{key: t for key, t in differentiable.items() if key not in self._memories}, **memories}
        self._input_indices = list(differentiable)
        self._has_gradients = True
        before, last = set(self.tracer.graph.nodes), self._last
        seeds = [self._late_input(t.shape, t.dtype, t.device) for t in differentiable.values()]
        flags: list[Flag] = [self._late_input((), torch.bool, torch.device("cpu")) for _ in seeds]
        self._last = last                  # inputs that only the gradient meets come before the seeds too
        self._is_backward = True
        gradients, flags = gradient_presence.gradients(list(differentiable.values()), self._leaves, seeds, flags)
        are_there = [as_tensor(flag) for flag, g in zip(flags, gradients) if g is not None]
        self._is_backward = False
        for node in self.tracer.graph.nodes:
            if node not in before:
                node.meta[node_metadata.BACKWARD] = True
        self.leaves = [index for index, g in zip(self.leaves, gradients) if g is not None]
        self._gradients = [*[g for g in gradients if g is not None], *are_there]

    def _is_unnamed(self, base: torch.Tensor, outputs: list[TensorBase]) -> bool:
        """Return whether `base` is memory that the call made, and the program gets views of it only."""
        return base.requires_grad and not any(base is t for t in (*self._fakes, *(tensor._t for tensor in outputs)))

    def _late_input(self, shape: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        with disable_proxy_modes_tracing(), torch.no_grad():
            fake = torch.empty(shape, dtype=dtype, device=device)
        self._track(fake)
        return fake

    def _more_outputs(self) -> list[torch.Tensor]:
        memories = {id(base): base for base in self._memories.values()}
        index_of = {key: len(self._outputs) + index for index, key in enumerate(memories)}
        self.seeds = [index_of[key] if key in index_of else self._outs[key].index for key in self._input_indices]
        self.views = [(self._outs[key].index, index_of[id(base)]) for key, base in self._memories.items()]
        return [*memories.values(), *self._gradients]


class RecordedGraph(Graph):
    """A graph that is a step of torch's tape."""

    def __init__(
        self, captured: Captured, flat: list[TensorBase], seconds: float, settings: Settings, capture: RecordedCapture,
    ) -> None:
        self._capture = capture
        super().__init__(captured, flat, seconds, settings)
        # A branch or loop returns what it writes as a result.
        self._input_indices_written = [
            index for index, writers in self._writes.items() if any(is_operator(node.target) for node in writers)
        ]

    def matches(self, version: int, flat: list[TensorBase]) -> bool:
        """Also whether the transform around records the same inputs."""
        if not super().matches(version, flat):
            return False
        recorded = self._capture.recorded
        return all(
            raw(tensor).requires_grad == (index in recorded)
            for index, tensor in enumerate(flat[i] if isinstance(i, int) else i for i in self._inputs) if isinstance(tensor, TensorBase)
        )

    def _compiled(self, flat: list[TensorBase]) -> Callable[..., list[Any]]:
        capture = self._capture
        if not capture.seeds:
            return pipeline.compile(self.module, lambda: self._examples(flat), self.settings, self._exchanges)
        results = [node for node in self.module.graph.nodes if node.op == "output"][-1].args[0]
        count = len(results) - 2 * len(capture.leaves)      # gradients, and whether they are there
        forward, backward = halves(self.module, list(range(count)), list(range(count, len(results))))
        stages.part("forward")
        forward_code = pipeline.compile(forward, lambda: self._examples(flat), self.settings, has_exchanges(forward))
        stages.part("backward")
        backward_code = pipeline.compile(backward, lambda: examples(backward), self.settings, has_exchanges(backward))
        random_devices = devices_of_random_operators(list(backward.graph.nodes), nested_nodes(backward))
        backward_code = with_own_streams(backward_code, random_devices)
        leaves, seeds, views = tuple(capture.leaves), tuple(capture.seeds), capture.views

        def code(*inputs: torch.Tensor) -> list[Any]:
            outs = list(GraphFunction.apply(forward_code, backward_code, count, leaves, seeds, *inputs))
            for index, memory in views:
                outs[index] = _view_of(outs[memory], outs[index])
            return outs

        return code

    def run(self, flat: list[TensorBase]) -> Any:
        """Runs the graph, recorded by the gradient transform around it."""
        self.runs += 1
        inputs = self._items_of(flat)
        for index in self._input_indices_written:
            if isinstance(inputs[index], TensorBase):
                engine.modify(inputs[index], _as_it_is)  # the transform around hands out a copy, and writes it back when it ends
        stored = self._capture.stored
        tensors = [
            raw(precision.as_stored(i) if index in stored else i) if isinstance(i, TensorBase) else i() for index, i in enumerate(inputs)
        ]
        outs = self.code(*tensors) if self._undo is None else self._undoing(self._undo, tensors)
        if engine.observers:
            pynative.after(outs)
        return self._result_of(outs, flat)


def _view_of(memory: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """The part of `memory` that `t` shows, recorded as a view of it."""
    return torch.as_strided(memory, t.shape, t.stride(), t.storage_offset())


def _distinct(outputs: Sequence[torch.Tensor], seeds: Sequence[int]) -> list[torch.Tensor]:
    """Return the outputs as Tensors of their own. Passes join equal outputs, and torch marks a Tensor that occurs twice by its last use."""
    distinct = list(outputs)
    seen: set[int] = set()
    for index in sorted(range(len(distinct)), key=lambda index: index not in seeds):
        if id(distinct[index]) in seen:
            distinct[index] = distinct[index].detach()
        seen.add(id(distinct[index]))
    return distinct


def _as_it_is(t: torch.Tensor) -> None:
    """A change that changes nothing."""


class GraphFunction(torch.autograd.Function):
    """One graph on torch's tape."""

    @staticmethod
    def forward(ctx: Any, forward: Any, backward: Any, count: int, leaves: Any, seeds: Any, *inputs: torch.Tensor) -> Any:
        results = forward(*inputs)
        outputs, saved = _distinct(results[:count], seeds), results[count:]
        ctx.is_tensor = [isinstance(k, torch.Tensor) for k in saved]
        ctx.save_for_backward(*[k for k in saved if isinstance(k, torch.Tensor)])
        ctx.others = [k for k in saved if not isinstance(k, torch.Tensor)]
        ctx.backward_code, ctx.leaves, ctx.seeds, ctx.count = backward, leaves, seeds, len(inputs)
        ctx.metas = [(outputs[i].shape, outputs[i].dtype, outputs[i].device) for i in seeds]
        ctx.mark_non_differentiable(*[o for i, o in enumerate(outputs) if i not in seeds])
        ctx.set_materialize_grads(False)
        return tuple(outputs)

    @staticmethod
    @once_differentiable  # the graph of the gradient leaves no tape behind it
    def backward(ctx: Any, *gradients: Any) -> Any:
        saved, others = iter(ctx.saved_tensors), iter(ctx.others)
        kept = [next(saved) if is_tensor else next(others) for is_tensor in ctx.is_tensor]
        output_gradients = [
            torch.zeros(shape, dtype=dtype, device=device) if gradients[i] is None else gradients[i].contiguous()
            for i, (shape, dtype, device) in zip(ctx.seeds, ctx.metas)
        ]
        flags = [torch.tensor(gradients[i] is not None) for i in ctx.seeds]
        found = ctx.backward_code(*kept, *output_gradients, *flags)
        by_leaf = {i: g if flag.item() else None for i, g, flag in zip(ctx.leaves, found, found[len(ctx.leaves):])}
        return (None, None, None, None, None, *[by_leaf.get(i) for i in range(ctx.count)])


def examples(module: torch.fx.GraphModule) -> list[torch.Tensor]:
    """Made-up inputs of the shapes that a graph expects, to measure it with."""
    examples = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            value = node.meta["val"]
            examples.append(filled(value, lambda tensor: tensor.normal_() if tensor.is_floating_point() else tensor.zero_()))
    return examples
