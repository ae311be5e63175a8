"""Clusters become compiled kernels: clusters that are alike share one, and one that was compiled in this process is not compiled again."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.core import node_metadata
from torchspore.engine.core.torch_private import without_modes
from torchspore.engine.random import operator_streams
from torchspore.graph.backend import autotune_cache, eager_codegen, inductor, kernel_operators, measurement
from torchspore.graph.fx.fingerprint import of_text, signature
from torchspore.graph.fx.modules import change_inner, copied
from torchspore.graph.fx.sample_inputs import filled
from torchspore.graph.graph_kernels import partition, rematerialize
from torchspore.graph.passes.clusters import Cluster, put_in, taken_out
from torchspore.graph.report import stages
from torchspore.graph.settings import Flags
from torchspore.names.kernels import operator_name

Module = torch.fx.GraphModule
REPORT_TEXT = "graph kernels are generated"
MOST_NAMES = 8
"""So many operators are in the name of a kernel; of more it tells the number."""
WORTH = 0.95
"""With online_tuning a kernel stays where it needs at most this share of the time of its operators."""


@dataclass
class Kernels:
    """A graph with kernels in it, and which operators became which kernel."""

    module: Module
    kernels: list[tuple[str, list[Node]]] = field(default_factory=list)
    slower: int = 0
    """Clusters that stayed operators because their kernel was measured to be slower."""


_compiled: dict[str, inductor.Kernel | None] = {}


def build(module: Module, flags: Flags) -> Kernels:
    """The graph with its clusters as kernels, in branches and loop bodies too; as it was where no compiler is there."""
    kernels = Kernels(copied(module))
    change_inner(kernels.module, lambda inner: _inside(kernels, inner, flags))
    kernels.module = _fused(kernels, kernels.module, flags)
    return kernels


def _inside(kernels: Kernels, inner: Module, flags: Flags) -> Module | None:
    before = len(kernels.kernels)
    change_inner(inner, lambda deeper: _inside(kernels, deeper, flags))
    changed = _fused(kernels, copied(inner), flags)
    return changed if len(kernels.kernels) > before else None


def _fused(kernels: Kernels, module: Module, flags: Flags) -> Module:
    if flags.recompute and flags.runs("graph_kernel_cluster", 1):
        module = rematerialize.recomputed(module, flags)
        stages.keep_pass("graph_kernel_recompute", module)
    replacements: list[tuple[Cluster, Callable[..., Any]]] = []
    for cluster in partition.groups(module, flags):
        if not inductor.is_there():
            break
        kernel = _kernel(kernels, cluster, flags)
        if kernel is not None:
            name = name_of(cluster)
            replacements.append((cluster, _named(kernel, name)))
            kernels.kernels.append((name, cluster.nodes))
    return put_in(module, replacements) if replacements else module


def _kernel(kernels: Kernels, cluster: Cluster, flags: Flags) -> inductor.Kernel | None:
    part = taken_out(cluster)
    key = of_text("graph kernel", f"{options(flags)} {signature(part)}")
    if key not in _compiled:
        _compiled[key] = inductor.kernel(part, "O0", options(flags), REPORT_TEXT)
    kernel = _compiled[key]
    if kernel is None or not flags.measured:
        return kernel
    if _is_faster(part, kernel, key):
        return kernel
    kernels.slower += 1
    return None


def _is_faster(part: Module, kernel: inductor.Kernel, key: str) -> bool:
    """Return whether the kernel needs less time than its operators, measured once for clusters that are alike."""
    choice = autotune_cache.find(key)
    if choice is None:
        with without_modes(), torch.no_grad(), operator_streams.separate_generators():
            inputs = [_values(node.meta["val"]) for node in part.graph.nodes if node.op == "placeholder"]
            ways = {"operators": eager_codegen.compile(part), "kernel": kernel}
            for way in ways.values():
                way(*inputs)
            seconds = measurement.seconds(ways, inputs)
        choice = "kernel" if seconds["kernel"] < WORTH * seconds["operators"] else "operators"
        autotune_cache.keep(key, choice)
    return choice == "kernel"


def _values(fake: torch.Tensor) -> torch.Tensor:
    return filled(fake, lambda t: t.uniform_(0.1, 1.1) if t.is_floating_point() else t.fill_(1))


def options(flags: Flags) -> dict[str, Any]:
    """Inductor's settings for a kernel."""
    options: dict[str, Any] = {"size_asserts": False, "alignment_asserts": False, "max_fusion_size": flags.limit}
    if flags.horizontal or flags.parallel:
        options["aggressive_fusion"] = True
    options |= flags.blocking
    if not flags.vectors:
        options["cpp.simdlen"] = 1
    if flags.threads is not None:
        options["cpp.threads"] = flags.threads
    return options


# ---- names

def name_of(cluster: Cluster) -> str:
    """`GraphKernel_Add_ReLU_fusion`."""
    names = [node_name(node) for node in cluster.nodes if kernel_operators.is_work(node)]
    shown = names if len(names) <= MOST_NAMES else [*names[:MOST_NAMES], f"and_{len(names) - MOST_NAMES}_more"]
    return f"GraphKernel_{'_'.join(shown)}_fusion"


def node_name(node: Node) -> str:
    """MindSpore's name of a node's operator."""
    return str(node.meta.get(node_metadata.CALLED) or operator_name(getattr(node.target, "_opname", re.sub(r"\W", "", str(node.target)))))


def _named(kernel: inductor.Kernel, name: str) -> Callable[..., Any]:
    """The kernel as a function of its own with this name, which graphs are shown with."""
    def run(*inputs: torch.Tensor) -> list[Any]:
        return kernel(*inputs)

    run.__name__ = run.__qualname__ = name
    return run
