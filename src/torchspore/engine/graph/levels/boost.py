"""Graphs for inference alone: batch norms folded into convolutions, weights in oneDNN's order, activations computed on the way out."""
from __future__ import annotations

import torch

from torchspore.engine.graph import passes
from torchspore.engine.graph.levels import held, products, straight
from torchspore.engine.graph.levels.straight import Code
from torchspore.engine.graph.passes.copy import copied
from torchspore.engine.graph.passes.fold import fold_norms
from torchspore.engine.graph.passes.hoist import Hoisted, hoist, steady
from torchspore.engine.graph.passes.layout import channels_last, has_images
from torchspore.engine.graph.passes.linear import fuse_activations, onednn_linears
from torchspore.engine.graph.passes.pack import pack
from torchspore.engine.graph.passes.views import root
from torchspore.engine.graph.passes.writes import writes
from torchspore.engine.graph.saved import stages
from torchspore.engine.private import is_operator

Module = torch.fx.GraphModule


def hoisted(module: Module, places: frozenset[int], wanted: products.Wanted, layout: bool) -> Hoisted | None:
    """The boosted graphs; None where no value hangs on weights alone. `places` says which inputs the program holds."""
    changed = fold_norms(onednn_linears(copied(module), wanted))
    if has_images(changed) and layout:
        changed = channels_last(changed)
    if is_on_cpu(module):
        changed = pack(changed, steady(changed, places), layout)
    return hoist(passes.drop_dead(fuse_activations(changed)), places)


def code(found: Hoisted) -> Code:
    """Runs the first graph when weights have changed, the rest at each call."""
    rest = passes.overwrite(copied(found.rest))
    return stages.shown(held.code(found, straight.compile(found.first, True), straight.compile(rest)), rest)


def is_on_cpu(module: Module) -> bool:
    """Whether oneDNN can compute the graph."""
    return all(
        node.meta["val"].device.type == "cpu" for node in module.graph.nodes
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor)
    )


def trains(module: Module, places: frozenset[int]) -> str | None:
    """What the graph does that is no inference: it computes gradients, or writes into one of the inputs at `places`."""
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in module.graph.nodes:
        if is_operator(node.target) and "backward" in node.target._opname:
            return "computes gradients"
        if any(root(item) in inputs and inputs.index(root(item)) in places for item in writes(node)):
            return "writes into Parameters or other Tensors of the Cell"
    return None
