"""The graphs of a branch or loop are brought to the same inputs and outputs."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.interpreter import Interpreter
from torchspore.engine.torch_internals.torch_private import without_modes
from torchspore.graph.control_flow.branch_join import NOTHING, Source
from torchspore.graph.control_flow.subgraph import Outcome
from torchspore.graph.fx.control_flow import flag_like
from torchspore.graph.fx.inputs import new_input
from torchspore.graph.refusal import Refusal


class SubGraph(torch.fx.GraphModule):
    """A graph among the arguments of a node; no Python text is generated for it, which would be most of a module's cost."""

    def __repr__(self) -> str:
        return "subgraph"

    def recompile(self) -> Any:
        """There is nothing to do."""

    def forward(self, *inputs: Any) -> Any:
        """Runs it, node by node."""
        return Interpreter(self).run(*inputs)


_aten = torch.ops.aten
@dataclass
class Shape:
    """The inputs and outputs of the graph of a part."""

    inputs: list[torch.Tensor]
    """Stand-ins of the inputs, or the tensors themselves."""
    outputs: list[torch.Tensor]
    seeds: list[int] = field(default_factory=list)
    """The outputs for which a gradient comes in, after the inputs; the flags of these gradients follow (`control.gradient_presence`)."""
    input_indices: list[int] = field(default_factory=list)
    """The inputs whose gradients go out, after the outputs; the flags of these gradients follow."""
    custom_gradient: str | None = None
    """The line of an operator with a custom gradient inside: this graph uses that gradient, a graph derived from its operators does not."""

    def derived(self) -> list[torch.Tensor]:
        """Return the inputs of the graph of a second-order gradient. Raise Refusal if there is none."""
        if self.custom_gradient is not None:
            what = "takes a gradient of second order, through a branch or loop on a Tensor, of a value that has its own gradient function"
            raise Refusal(f"{what} (`bprop`, a hook)", self.custom_gradient)
        return [*self.inputs, *[self.outputs[i] for i in self.seeds], *[flag_like() for _ in self.seeds]]


class Assembly:
    """The making of one graph."""

    def __init__(self, part: Outcome, shape: Shape, at: Sequence[int | None]) -> None:
        """`at` says for each input of the part which input of the new graph it is, None where the part does not use it."""
        self._part, self._shape, self._at = part, shape, at
        self._graph = torch.fx.Graph()
        self._env: dict[Node, Node] = {}
        self._constants: dict[str, torch.Tensor] = {}

    def run(self, sources: Sequence[Source], contiguous: Sequence[bool]) -> torch.fx.GraphModule:
        """The graph whose outputs are `sources`."""
        shape, graph = self._shape, self._graph
        self._inputs = [self._new(new_input(graph, f"in{i}"), t) for i, t in enumerate(shape.inputs)]
        self._seeds = {i: self._new(new_input(graph, f"d{i}"), shape.outputs[i], True) for i in shape.seeds}
        self._flags = {i: self._new(new_input(graph, f"f{i}"), flag_like(), True) for i in shape.seeds}
        gave: list[Node] = []
        module: Any = self._part.module
        if module is not None:
            gave = self._copy(module, sources)
        outs = [self._output(s, meta, flat, gave) for s, meta, flat in zip(sources, shape.outputs, contiguous)]
        gradients = [self._gradient(i, sources, gave) for i in shape.input_indices]
        graph.output([*outs, *[g for g, _ in gradients], *[flag for _, flag in gradients]])
        root = module if module is not None else torch.nn.Module()
        return SubGraph({**_attributes(root), **self._constants}, graph)

    def _copy(self, module: torch.fx.GraphModule, sources: Sequence[Source]) -> list[Node]:
        """Copy the part's nodes; return its results."""
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        count = len(self._part.inputs)
        for node, place in zip(placeholders[:count], self._at):
            if place is not None:
                self._env[node] = self._inputs[place]
        seeds = self._part.seeds
        for index, node, flag in zip(seeds, placeholders[count:], placeholders[count + len(seeds):]):
            operands = [
                self._cast(self._seeds[i], self._part.metas[index], True) for i, source in enumerate(sources)
                if source.index == index and i in self._seeds
            ]
            self._env[node] = self._sum(operands, self._part.metas[index])
            self._env[flag] = self._either([
                self._flags[i] for i, source in enumerate(sources) if source.index == index and i in self._seeds
            ])
        gave: list[Node] = []
        for node in module.graph.nodes:
            if node.op == "output":
                gave = [self._env[n] for n in node.args[0]]
            elif node.op != "placeholder":
                self._env[node] = self._graph.node_copy(node, lambda n: self._env[n])
        return gave

    def _output(self, source: Source, meta: torch.Tensor, contiguous: bool, gave: list[Node]) -> Node:
        if source.index is not None:
            node = self._cast(gave[source.index], meta, False)
        elif source.outside is not None:
            node = self._cast(self._inputs[self._position(source.outside)], meta, False)
        elif source.is_fixed:
            return self._constant(meta, source.value)
        else:
            return self._full(meta, 0 if source.value is NOTHING else source.value, False)
        if contiguous:
            node = self._new(self._graph.call_function(_aten.clone.default, (node,), {"memory_format": torch.contiguous_format}), meta)
        return node

    def _gradient(self, input_index: int, sources: Sequence[Source], gave: list[Node]) -> tuple[Node, Node]:
        """(The gradient of one input, its flag): from the part's graph, and from outputs that are this very input."""
        gradients, flags = [], []
        first, count = len(self._part.metas), len(self._part.input_indices)
        if self._part.seeds:
            gradients += [gave[first + i] for i, index in enumerate(self._part.input_indices) if self._at[index] == input_index]
            flags += [gave[first + count + i] for i, index in enumerate(self._part.input_indices) if self._at[index] == input_index]
        meta = self._shape.inputs[input_index]
        for i, source in enumerate(sources):
            if source.outside is not None and i in self._seeds and self._position(source.outside) == input_index:
                gradients.append(self._cast(self._seeds[i], meta, True))
                flags.append(self._flags[i])
        return self._sum(gradients, meta), self._either(flags)

    # ---- nodes

    def _position(self, t: torch.Tensor) -> int:
        return next(i for i, other in enumerate(self._shape.inputs) if other is t)

    def _new(self, node: Node, meta: torch.Tensor, backward: bool = False) -> Node:
        node.meta["val"] = meta
        if backward:
            node.meta[node_metadata.BACKWARD] = True
        return node

    def _sum(self, nodes: list[Node], meta: torch.Tensor) -> Node:
        if not nodes:
            return self._full(meta, 0, True)
        total = nodes[0]
        for node in nodes[1:]:
            total = self._new(self._graph.call_function(_aten.add.Tensor, (total, node)), meta, True)
        return total

    def _either(self, flags: list[Node]) -> Node:
        if not flags:
            return self._full(flag_like(), False, True)
        total = flags[0]
        for flag in flags[1:]:
            total = self._new(self._graph.call_function(_aten.logical_or.default, (total, flag)), flag_like(), True)
        return total

    def _full(self, meta: torch.Tensor, value: Any, backward: bool) -> Node:
        keywords = {"dtype": meta.dtype, "device": getattr(meta, "at", meta.device), "pin_memory": False}
        return self._new(self._graph.call_function(_aten.full.default, (list(meta.shape), value), keywords), meta, backward)

    def _constant(self, meta: torch.Tensor, value: Any) -> Node:
        """A number that is made once."""
        name = f"_number{len(self._constants)}"
        with without_modes():
            self._constants[name] = torch.full((), value, dtype=meta.dtype)
        return self._new(self._graph.get_attr(name), meta)

    def _cast(self, node: Node, meta: torch.Tensor, backward: bool) -> Node:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype is meta.dtype:
            return node
        return self._new(self._graph.call_function(_aten._to_copy.default, (node,), {"dtype": meta.dtype}), meta, backward)


def _attributes(module: torch.nn.Module) -> dict[str, Any]:
    """The constants and graphs that a module holds."""
    names = [*module.__dict__, *dict(module.named_buffers(recurse=False)), *dict(module.named_parameters())]
    return {name: getattr(module, name) for name in names if name.startswith(("_tensor_constant", "_number", "lifted"))}
