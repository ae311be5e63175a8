"""Graphs for inference alone: batch norms folded into convolutions, weights in oneDNN's order, activations computed on the way out.

Values that depend on weights alone are computed again only when a weight has changed."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from torchspore.engine.tensors import change_counters
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph import passes
from torchspore.graph.backend import eager_codegen, matrix_products
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.fx.aliasing import owner_of, writes
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.passes.folding import Hoisted, constant_nodes, fold_norms, hoist
from torchspore.graph.passes.layout import channels_last, has_images
from torchspore.graph.passes.onednn import fuse_activations, onednn_linears, pack_weights
from torchspore.graph.passes.packed_convolutions import Choice, use_packed_convolutions
from torchspore.graph.report import stages

_version = operator.attrgetter("_version")


def with_cached_values(hoisted: Hoisted, first: Code, rest: Code) -> Code:
    """Run `first` on the weights if one of them was replaced or written to since, then `rest`.

    torch counts the writes into a tensor's memory (`_version`); writes that bypass torch (through a NumPy view) are not seen.
    """
    take = (
        operator.itemgetter(*hoisted.input_indices)
        if len(hoisted.input_indices) > 1
        else lambda inputs: (inputs[hoisted.input_indices[0]],)
    )
    cached: list[Any] = [(), [], [], 0, []]           # the weights, their versions, the values, the count, copies of vectors

    def run(*inputs: torch.Tensor) -> list[Any]:
        weights: Any = take(inputs)
        before, versions, values, count, vectors = cached
        now = list(map(_version, weights))
        if now != versions or not all(map(operator.is_, weights, before)) or (
            count != change_counters.batch_norms and not all(map(torch.equal, vectors, _vectors(weights)))
        ):
            values = first(*weights)
            cached[:3] = [weights, now, values]
            cached[4] = [t.clone() for t in _vectors(weights)]
        cached[3] = change_counters.batch_norms
        return rest(*inputs, *values)

    return run


def _vectors(weights: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The running statistics of batch norms are among these."""
    return [t for t in weights if t.dim() == 1]


Module = torch.fx.GraphModule


def hoisted(
    module: Module, positions: frozenset[int], prefers_onednn: matrix_products.Preference, layout: bool, fuses_products: bool = True,
    choose_tile: Choice | None = None,
) -> Hoisted | None:
    """Return the boosted graphs; None if no value depends on weights alone. `positions` lists the inputs that the program stores.

    With `fuses_products` a matrix product computes the activation that follows it. `choose_tile` says which convolutions of packed weights
    run in C++; oneDNN computes all without it.
    """
    changed = fold_norms(onednn_linears(copy_module(module), prefers_onednn))
    if has_images(changed) and layout:
        changed = channels_last(changed)
    if is_on_cpu(module):
        changed = pack_weights(changed, constant_nodes(changed, positions), layout)
        if choose_tile is not None and layout:           # their results are channels-last images
            changed = use_packed_convolutions(changed, choose_tile)
    if fuses_products:
        changed = fuse_activations(changed)
    return hoist(passes.drop_dead(changed), positions)


def counts(module: Module, hoisted: Hoisted) -> tuple[int, int, int]:
    """Return the number of batch norms in the graph, of folded ones, and of packed weights."""
    norms, norms_after = (
        _count(module, "native_batch_norm"),
        _count(hoisted.rest, "native_batch_norm") + _count(hoisted.first, "native_batch_norm"),
    )
    return (
        norms,
        norms - norms_after,
        sum(_count(hoisted.first, name) for name in ("_reorder_linear_weight", "_reorder_convolution_weight", "pack_convolution")),
    )


def _count(module: Module, name: str) -> int:
    return sum(is_operator(node.target) and node.target._opname == name for node in module.graph.nodes)


def code(hoisted: Hoisted) -> Code:
    """Runs the first graph when weights have changed, the rest at each call."""
    rest = passes.with_fewest_calls(copy_module(hoisted.rest))
    return stages.shown(with_cached_values(hoisted, eager_codegen.compile(hoisted.first, True), eager_codegen.compile(rest)), rest)


def is_on_cpu(module: Module) -> bool:
    """Return whether oneDNN can compute the graph."""
    return all(
        node.meta["val"].device.type == "cpu" for node in module.graph.nodes
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor)
    )


def trains(module: Module, positions: frozenset[int]) -> str | None:
    """Return how the graph differs from an inference: it computes gradients, or writes into one of the inputs at `positions`."""
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in module.graph.nodes:
        if is_operator(node.target) and "backward" in node.target._opname:
            return "computes gradients"
        if any(owner_of(item) in inputs and inputs.index(owner_of(item)) in positions for item in writes(node)):
            return "writes into Parameters or other Tensors of the Cell"
    return None
