"""Random numbers in a pipeline: every stage draws the numbers of one device, although it draws fewer, and in another order.

Before a step, this pass computes the state of the generator at each draw of the step by drawing equally many numbers and discarding them; a
stage sets the state before it draws. If a shorter draw advances the generator equally, it replaces the full one: a single number (with
Intel's library), or integers in place of a mask.
"""
from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.context import effects
from torchspore.distributed.shard.node_builder import faking
from torchspore.distributed.shard.pipeline_parallel.stage_assignment import ALL, stage_of
from torchspore.engine.autograd.recompute import random_state, swap_state
from torchspore.engine.random import generators, operator_streams
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.custom_operators import define
from torchspore.engine.torch_internals.torch_private import is_operator

DRAWN = "drawn"
"""In the `meta` of a node: which draw of the step it is."""
_BY_FORM = frozenset({
    "bernoulli_.float", "bernoulli.p", "uniform_.default", "normal_.default", "random_.default", "random_.from", "random_.to",
    "exponential_.default", "native_dropout.default", "rand.default", "randn.default", "randint.default", "randint.low", "randperm.default",
    "rand_like.default", "randn_like.default", "randint_like.default", "randint_like.low_dtype", "rand.generator", "randn.generator",
    "randint.generator", "randint.low_generator", "randperm.generator",
})
"""Draws whose number of random numbers depends on their form alone, not on values."""
_CHUNK = 1 << 16
"""The number of integers that are drawn at once."""


@dataclass
class Draws:
    """The draws of a step in the program's order, as texts; `why` states why they cannot be known beforehand."""

    device: str = ""
    texts: list[str] = field(default_factory=list)
    why: str = ""


def noted(graph: torch.fx.Graph) -> Draws:
    """Number the draws of a graph in the program's order; the second run of a region has the numbers of the first.

    Nodes that set the generator for second runs are removed, because each draw sets it. If the draws are not comparable, nothing changes.
    """
    draws, at, marked = Draws(), 0, dict[Node, int]()
    states: dict[Node, int] = {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is random_state:
            states[node] = at
        elif node.target is swap_state:
            states[node], at = at, states[node.args[0]]
        elif node.target in operator_streams.NAMING_STREAMS and operator_streams.is_of_layer(node.args[0]):
            pass                                    # each layer has a separate stream, from which no other stage draws
        elif _draws(node):
            text = _text(node)
            device = next(str(t.device) for t in tree.leaves([node.meta["val"]]) if isinstance(t, torch.Tensor))
            draws.why = draws.why or _why_not(node, draws, at, text, device)
            if draws.why:
                continue
            draws.device = device
            draws.texts[at:at + 1] = [text]
            marked[node] = at
            at += 1
        elif _may_draw(node):
            draws.why = draws.why or f"{node.meta.get(node_metadata.LINE, '')}: random numbers in a branch or a loop"
    if draws.why:
        effects.note("distribution", f"pipeline: {draws.why}: each stage draws separate random numbers")
        return Draws(why=draws.why)
    for node, draw_index in marked.items():
        node.meta[DRAWN] = draw_index
    for node in reversed(list(states)):
        graph.erase_node(node)
    return draws


def _why_not(node: Node, draws: Draws, at: int, text: str, device: str) -> str:
    line, name = node.meta.get(node_metadata.LINE, ""), node.target
    if not text:
        return f"{line}: how many random numbers {name} draws depends on values"
    if draws.device not in ("", device):
        return f"{line}: random numbers of several devices"
    return f"{line}: a second run draws something else" if at < len(draws.texts) and draws.texts[at] != text else ""


def put(module: torch.fx.GraphModule, draws: Draws) -> None:
    """Let each numbered draw begin with its state on one device, and the step end with the state after all draws."""
    if not draws.texts:
        return
    graph, form = module.graph, (len(draws.texts) + 1, _size(draws.device))
    first = next(node for node in graph.nodes if node.op != "placeholder")
    with graph.inserting_before(first), faking(module):
        states = graph.call_function(ahead, ("\n".join(draws.texts), draws.device))
        states.meta = {"val": torch.empty(form, dtype=torch.uint8), node_metadata.RUNS_IN: ALL}
    for node in list(graph.nodes):
        if DRAWN in node.meta:
            _seek(graph, node, (states, node.meta[DRAWN], draws.device), stage_of(node))
        elif node.op == "output":
            _seek(graph, node, (states, len(draws.texts), draws.device), ALL)


def _seek(graph: torch.fx.Graph, before: Node, args: tuple[Any, ...], stage: int) -> None:
    with graph.inserting_before(before):
        seek_node = graph.call_function(seek, args)
    seek_node.meta = {"val": None, node_metadata.RUNS_IN: stage, node_metadata.LINE: before.meta.get(node_metadata.LINE, "")}


def _draws(node: Node) -> bool:
    """Return whether an operator draws from the device's generator."""
    if not is_operator(node.target) or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    return not any(isinstance(operand, Node) and isinstance(operand.meta.get("val"), torch.Generator) for operand in node.all_input_nodes)


def _may_draw(node: Node) -> bool:
    """Return whether an operator runs graphs that draw."""
    call_arguments: Any = node.args
    graphs = [graph for graph in call_arguments if isinstance(graph, torch.fx.GraphModule)]
    return any(_draws(inner) or _may_draw(inner) for graph in graphs for inner in graph.graph.nodes if inner.op == "call_function")


def _text(node: Node) -> str:
    """Return the draw as text: operator, and its arguments with forms for Tensors; empty if it depends on values."""
    target: Any = node.target
    name = f"{target._opname}.{target._overloadname}"
    if name not in _BY_FORM or target.namespace != "aten":
        return ""
    return json.dumps(
        [
            name,
            [_serialize(argument) for argument in node.args],
            {key: _serialize(argument) for key, argument in sorted(node.kwargs.items())},
        ]
    )


def _serialize(value: Any) -> Any:
    if isinstance(value, Node):
        val = value.meta["val"]
        return {"shape": list(val.shape), "dtype": str(val.dtype).removeprefix("torch."), "device": str(val.device)}
    if isinstance(value, (list, tuple)):
        return [_serialize(item) for item in value]
    if isinstance(value, torch.dtype):
        return {"type": str(value).removeprefix("torch.")}
    return {"text": str(value)} if isinstance(value, (torch.device, torch.layout, torch.memory_format)) else value


def _read(value: Any, is_single: bool) -> Any:
    if isinstance(value, list):
        return [_read(item, is_single) for item in value]
    if not isinstance(value, dict):
        return value
    if "shape" in value:
        shape = [1] * len(value["shape"]) if is_single else value["shape"]
        return torch.empty(shape, dtype=getattr(torch, value["dtype"]), device=value["device"])
    return getattr(torch, value["type"]) if "type" in value else _named(value["text"])


def _named(text: str) -> Any:
    return getattr(torch, text.removeprefix("torch.")) if text.startswith("torch.") else torch.device(text)


def _draw_all(text: str) -> None:
    """Draw what a text describes, and discard the numbers."""
    _drawn(text, is_single=False)


def _single(text: str) -> None:
    """Run the draw with Tensors of one element."""
    _drawn(text, is_single=True)


def _words(text: str) -> None:
    """Draw equally many integers, which takes a third of the time."""
    draw_arguments = _read(json.loads(text)[1], False)
    length = next((argument.numel() for argument in draw_arguments if isinstance(argument, torch.Tensor)), 0)
    words = torch.empty(min(length, _CHUNK), dtype=torch.int64)
    while length:
        length -= words[:length].random_().numel()


def _drawn(text: str, is_single: bool) -> None:
    name, args, kwargs = json.loads(text)
    operator, overload = name.split(".")
    keywords = {key: _read(item, is_single) for key, item in kwargs.items()}
    getattr(getattr(torch.ops.aten, operator), overload)(*_read(args, is_single), **keywords)


@functools.cache
def way(text: str, device: str) -> Callable[[str], None]:
    """Return the cheapest draw that advances the generator equally; it is verified once, from two states."""
    before = generators.current_state(device)
    for draw_words in (_single, _words) if device == "cpu" else (_single,):
        starts = []
        for _ in range(2):
            start, ends = generators.current_state(device), []
            for drawn in (draw_words, _draw_all):
                generators.go_on_from(start, device)
                drawn(text)
                ends.append(generators.current_state(device))
            starts.append(torch.equal(*ends))
        generators.go_on_from(before, device)
        if all(starts):
            return draw_words
    return _draw_all


def _states(draws: str, device: str) -> torch.Tensor:
    """Return the state before each draw, and the one after all; the generator is unchanged."""
    start = generators.current_state(device)
    states = [start]
    for text in draws.split("\n"):
        way(text, device)(text)
        states.append(generators.current_state(device))
    generators.go_on_from(start, device)
    return torch.stack(states)


def _taken_up(states: torch.Tensor, draw_index: int, device: str) -> None:
    generators.go_on_from(states[draw_index].clone(), device)                # torch reads a view from the beginning of its memory


def _form(draws: str, device: str) -> torch.Tensor:
    return torch.empty((draws.count("\n") + 2, _size(device)), dtype=torch.uint8)


@functools.cache
def _size(device: str) -> int:
    return generators.current_state(device).numel()


_DRAWS = (torch.Tag.nondeterministic_seeded,)
ahead = define("draws_ahead(str draws, str device) -> Tensor", _states, _form, _DRAWS)
"""The states of the generator before each of some draws, and the one after them."""
seek = define("take_up(Tensor states, int place, str device) -> ()", _taken_up, lambda states, draw_index, device: None, _DRAWS)
"""Makes one of these states the generator's."""
