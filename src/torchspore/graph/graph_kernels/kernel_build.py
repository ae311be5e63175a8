"""Compiles clusters to kernels: equal clusters share one, and this process compiles each only once."""
from __future__ import annotations

import dataclasses
import platform
import re
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.fx.node import Node

from torchspore.engine.random import operator_streams
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import FakeTensor, without_modes
from torchspore.graph.backend import eager_codegen, inductor, kernel_operators, measurement
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.fx import open_sizes
from torchspore.graph.fx.fingerprint import of_text, signature
from torchspore.graph.fx.modules import copy_module, transform_inner
from torchspore.graph.fx.sample_inputs import filled
from torchspore.graph.graph_kernels import partition, rematerialize
from torchspore.graph.passes.clusters import Cluster, extract, insert_kernels
from torchspore.graph.report import outcomes, stages
from torchspore.graph.settings import Flags
from torchspore.public_names.kernels import operator_name
from torchspore.translations import translate

Module = torch.fx.GraphModule
REPORT_TEXT = "graph kernels are generated"
MOST_NAMES = 8
"""So many operators are in the name of a kernel; of more it tells the number."""
BITS = {"sse": 1, "avx": 256, "avx2": 256, "avx512": 512, "neon": 128}
"""By the instruction set that `cpu_feature` names, the bits of a vector in Inductor's kernels; 1 if it writes no vectors for the set."""
_WIDTHS = {"AVX512": (256, 512), "AVX2": (256,)}
WORTH = 0.95
"""With online_tuning a kernel is kept if it needs at most this share of its operators' time."""


@dataclass
class Kernels:
    """A graph with kernels in it, and which operators became which kernel."""

    module: Module
    kernels: list[tuple[str, list[Node]]] = field(default_factory=list)
    slower: int = 0
    """Clusters that stayed operators because their kernel was measured to be slower."""


_compiled: dict[str, inductor.Kernel | None] = {}
_open: WeakKeyDictionary[Any, dict[str, inductor.Kernel | None]] = WeakKeyDictionary()
"""Kernels for open lengths, by the fake mode of their trace: they hold under the conditions that its ShapeEnv has recorded."""


def build(module: Module, flags: Flags) -> Kernels:
    """Return the graph with its clusters as kernels, in branches and loop bodies too; unchanged without a compiler."""
    kernels = Kernels(copy_module(module))
    flags = _with_open_lengths(module, flags)
    transform_inner(kernels.module, lambda inner: _inside(kernels, inner, flags))
    kernels.module = _fused(kernels, kernels.module, flags)
    return kernels


def _with_open_lengths(module: Module, flags: Flags) -> Flags:
    """Return the flags with `open_lengths` set if the graph's open axes may be in kernels, otherwise without both switches."""
    axes = open_sizes.open_axes(module)
    if not axes:
        return flags
    is_allowed = flags.open_lengths or (flags.open_batch and axes == {0})
    return dataclasses.replace(flags, open_lengths=is_allowed, open_batch=False)


def _inside(kernels: Kernels, inner: Module, flags: Flags) -> Module | None:
    before = len(kernels.kernels)
    transform_inner(inner, lambda deeper: _inside(kernels, deeper, flags))
    changed = _fused(kernels, copy_module(inner), flags)
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
    return insert_kernels(module, replacements) if replacements else module


def _kernel(kernels: Kernels, cluster: Cluster, flags: Flags) -> inductor.Kernel | None:
    part = extract(cluster)
    key = of_text("graph kernel", f"{options(flags)} {signature(part)}")
    compiled = _compiled_for(part)
    if key not in compiled:
        compiled[key] = inductor.kernel(part, "O0", options(flags), REPORT_TEXT)
    kernel = compiled[key]
    if kernel is None or not flags.measured:
        return kernel
    if _is_faster(part, kernel, key):
        return kernel
    kernels.slower += 1
    return None


def _compiled_for(part: Module) -> MutableMapping[str, inductor.Kernel | None]:
    values = [node.meta["val"] for node in part.graph.nodes if node.op == "placeholder"]
    modes = [value.fake_mode for value in values if isinstance(value, FakeTensor) and open_sizes.is_open(value)]
    return _open.setdefault(modes[0], {}) if modes else _compiled


def _is_faster(part: Module, kernel: inductor.Kernel, key: str) -> bool:
    """Return whether the kernel needs less time than its operators, measured once for clusters that are alike."""
    choice = autotune_cache.find(key)
    if choice is None:
        with without_modes(), torch.no_grad(), operator_streams.separate_generators():
            inputs = [_example(node.meta["val"]) for node in part.graph.nodes if node.op == "placeholder"]
            ways = {"operators": eager_codegen.compile(part), "kernel": kernel}
            for way in ways.values():
                way(*inputs)
            seconds = measurement.seconds(ways, inputs)
        choice = "kernel" if seconds["kernel"] < WORTH * seconds["operators"] else "operators"
        autotune_cache.keep(key, choice)
    return choice == "kernel"


def _example(fake: Any) -> Any:
    """Return a tensor with some values, or the number that a length had in the trace."""
    if not isinstance(fake, torch.Tensor):
        return open_sizes.hint_of(fake)
    if open_sizes.is_open(fake):
        fake = torch.empty_strided(open_sizes.shape_of(fake), open_sizes.stride_of(fake), dtype=fake.dtype, device=fake.device)
    return filled(fake, lambda t: t.uniform_(0.1, 1.1) if t.is_floating_point() else t.fill_(1))


def options(flags: Flags) -> dict[str, Any]:
    """Inductor's settings for a kernel."""
    options: dict[str, Any] = {"size_asserts": False, "alignment_asserts": False, "max_fusion_size": flags.limit}
    if flags.horizontal or flags.parallel:
        options["aggressive_fusion"] = True
    options |= flags.blocking
    if flags.instructions:
        options["cpp.simdlen"] = _vector_bits(flags.instructions)
    if not flags.vectors:
        options["cpp.simdlen"] = 1
    if flags.is_debugged:
        options["aot_inductor.debug_compile"] = True
    if flags.threads is not None:
        options["cpp.threads"] = flags.threads
    return options


def _vector_bits(instructions: str) -> int | None:
    """Return the bits of a vector for Inductor: 1 for none, None for the widest. Warn about instructions that the machine lacks."""
    bits, usable = BITS.get(instructions), {1, *_WIDTHS.get(torch.backends.cpu.get_cpu_capability(), ())}
    if platform.machine() == "aarch64":
        usable.add(128)
    if bits not in usable:
        text = translate("--cpu_feature={name} is none of the instruction sets of this machine ({known}); kernels use the widest.")
        known = ", ".join(name for name, width in BITS.items() if width in usable)
        outcomes.warn(text.format(name=instructions, known=known))
        return None
    return bits


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
    """Return the kernel as a separate function with this name, which texts of graphs show."""
    def run(*inputs: torch.Tensor) -> list[Any]:
        return kernel(*inputs)

    run.__name__ = run.__qualname__ = name
    return run
