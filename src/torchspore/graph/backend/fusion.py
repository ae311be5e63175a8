"""Clusters of pointwise operators and reductions as compiled kernels, used if they are faster than the separate operators."""
from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import torch
from torch.fx.node import Node

from torchspore.base import event_log, progress
from torchspore.engine.random import operator_streams
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals.torch_private import is_operator, without_modes
from torchspore.graph.backend import eager_codegen, inductor, measurement
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.fx.aliasing import is_view
from torchspore.graph.fx.fingerprint import of_text, signature
from torchspore.graph.fx.modules import copy_module, transform_inner
from torchspore.graph.fx.open_sizes import hint_of
from torchspore.graph.fx.sample_inputs import filled
from torchspore.graph.passes.clusters import Cluster, build_clusters, extract, insert_kernels
from torchspore.translations import translate

WORTH = 0.9
"""A compiled kernel is used if it needs at most this share of the operators' time."""
SHORTEST = 15e-6
"""Seconds: clusters that take less are left as they are; compiling a kernel takes seconds."""
LOOPS = 10
"""How often the body of a loop is taken to run when its share of the time is guessed."""
SHARE = 0.01
"""Equal clusters whose total share of the graph's time is smaller are not compiled."""
CALL, SPEED, CERTAIN = 3e-6, 10e9, 0.7
"""Without measurements: seconds of a call, bytes that it moves per second, the share of the operators' time that a kernel may take."""

POINTWISE = """
    add sub mul div rsub neg abs relu sigmoid tanh exp exp2 expm1 log log1p log2 sqrt rsqrt reciprocal square sin cos erf pow sign
    floor ceil round trunc clamp clamp_min clamp_max minimum maximum where eq ne lt le gt ge logical_and logical_or logical_not
    bitwise_and bitwise_or bitwise_not gelu gelu_backward threshold_backward sigmoid_backward tanh_backward silu silu_backward
    leaky_relu leaky_relu_backward elu elu_backward hardtanh hardtanh_backward hardswish hardswish_backward hardsigmoid softplus
    softplus_backward mish masked_fill lerp addcmul addcdiv fmod remainder isnan isinf _to_copy clone ones_like zeros_like
    full_like full zeros ones fill
""".split()
REDUCTIONS = """
    sum mean amax amin var var_mean native_layer_norm native_layer_norm_backward _softmax _softmax_backward_data _log_softmax
    _log_softmax_backward_data native_batch_norm native_batch_norm_backward native_group_norm native_group_norm_backward
    max_pool2d_with_indices avg_pool2d avg_pool2d_backward
""".split()
MOVES = ["cat", "stack", "constant_pad_nd"]
_HEAVY = {*POINTWISE, *REDUCTIONS, *MOVES}
_TURNS = measurement.Turns(least=5, most=30, longest=0.05)
_FREE = {"ones_like", "zeros_like", "full_like", "full", "zeros", "ones"}

_kernels: dict[str, inductor.Kernel] = {}
"""By fingerprint of a cluster, the kernel that won: equal layers are compiled once."""


def is_fusable(node: Node, is_open: bool = False, more: Collection[str] = ()) -> bool:
    """Return whether a generated kernel can compute the node with the same numbers; with `is_open`, lengths may be symbols. `more` are
    operators beyond the usual ones."""
    target = node.target
    if not is_operator(target) or target.namespace != "aten" or target._opname.endswith("_"):
        return False
    if target._schema.is_mutable or not _has_tensors(node, is_open):
        return False
    return is_view(node) or target._opname in _HEAVY or target._opname in more


def _has_tensors(node: Node, is_open: bool = False) -> bool:
    value = node.meta.get("val")
    values = tree.listed(value)
    if not is_open and any(map(_has_symbols, node.all_input_nodes)):
        return False
    return all(v is None or (isinstance(v, torch.Tensor) and v.layout is torch.strided and _is_sized(v, is_open))
               for v in values)


def _has_symbols(node: Node) -> bool:
    """Return whether the value of a node is a size or a number that depends on values, or a Tensor of such a size."""
    values = tree.listed(node.meta.get("val"))
    return any(isinstance(item, torch.types.py_sym_types) for v in values for item in (v.shape if isinstance(v, torch.Tensor) else (v,)))


def fuse_all(module: torch.fx.GraphModule) -> torch.fx.GraphModule | None:
    """Return the graph with all operators that neither write nor draw random numbers as one or few C++ launches; None if that is
    impossible."""
    replacements: list[tuple[Cluster, inductor.Kernel]] = []
    for cluster in build_clusters(module, _is_pure):
        if _is_work(cluster, _is_any):
            kernel = inductor.compile_single_kernel(extract(cluster))
            if kernel is None:
                return None
            replacements.append((cluster, kernel))
    return insert_kernels(module, replacements) if replacements else None


def _is_pure(node: Node) -> bool:
    target = node.target
    return (
        is_operator(target) and target.namespace == "aten" and not target._schema.is_mutable and _has_tensors(node)
        and torch.Tag.nondeterministic_seeded not in target.tags
    )


def _is_any(name: str) -> bool:
    return name not in _FREE


@dataclass
class Like:
    """Equal clusters: one as a graph, its inputs, and the seconds of its separate operators."""

    part: torch.fx.GraphModule
    clusters: list[Cluster]
    inputs: list[torch.Tensor] = field(default_factory=list)
    seconds: float = 0.0


def _is_sized(v: torch.Tensor, is_open: bool) -> bool:
    return all((is_open or isinstance(n, int)) and hint_of(n) > 0 for n in v.shape)


def fused(
    module: torch.fx.GraphModule, level: str, total: float, may_fuse: Callable[[Node], bool] = is_fusable,
) -> torch.fx.GraphModule | None:
    """Return the graph with the kernels that won, compiled now; None if none did. `total`: seconds of the graph without kernels, or 0 if
    this form was chosen before, so that only clusters with a chosen kernel count.

    The strides in `meta` must be the actual ones. `may_fuse` excludes more operators than `is_fusable` does.
    """
    module = copy_module(module)
    inside = transform_inner(module, lambda inner: fused(inner, level, total / LOOPS, may_fuse))
    replacements: list[tuple[Cluster, inductor.Kernel]] = []
    alike = _alike(module, may_fuse)
    for position, (text, like) in enumerate(alike.items(), 1):
        if not inductor.is_there():
            return None
        progress.note(translate("measures and compiles kernel {number} of {count}.").format(number=position, count=len(alike)))
        kernel = _cached_kernel(of_text("cluster", level + text), like, level, total)
        if kernel is not None:
            replacements += [(cluster, kernel) for cluster in like.clusters]
    return insert_kernels(module, replacements) if replacements else module if inside else None


def by_rule(module: torch.fx.GraphModule, may_fuse: Callable[[Node], bool] = is_fusable) -> torch.fx.GraphModule | None:
    """Return the graph with the kernels that shapes alone justify, without measuring; None if there are none.

    The strides in `meta` must be the actual ones.
    """
    module = copy_module(module)
    total = sum(_guess(node) for node in module.graph.nodes)
    replacements: list[tuple[Cluster, inductor.Kernel]] = []
    alike = _alike(module, may_fuse)
    for position, (text, like) in enumerate(alike.items(), 1):
        if not inductor.is_there():
            return None
        progress.note(translate("compiles kernel {number} of {count}.").format(number=position, count=len(alike)))
        cluster = like.clusters[0]
        apart, ends = sum(map(_guess, cluster.nodes)), dict.fromkeys((*cluster.inputs, *cluster.outputs))
        if apart < SHORTEST or apart * len(like.clusters) < SHARE * total or CALL + sum(map(_moved, ends)) / SPEED > CERTAIN * apart:
            continue
        key = of_text("cluster", "O1" + text)        # at O2 Inductor would time variants of a kernel
        kernel = _kernels.get(key) or inductor.kernel(like.part, "O1")
        if kernel is not None:
            _kernels[key] = kernel
            replacements += [(cluster, kernel) for cluster in like.clusters]
    return insert_kernels(module, replacements) if replacements else None


def _guess(node: Node) -> float:
    """Return the approximate seconds of a memory-bound operator; 0 for others."""
    if node.op != "call_function" or not is_operator(node.target) or is_view(node) or node.target._opname in _FREE:
        return 0.0
    return CALL + (_moved(node) + sum(map(_moved, node.all_input_nodes))) / SPEED


def _moved(node: Node) -> int:
    return sum(t.numel() * t.element_size() for t in tree.listed(node.meta.get("val")) if isinstance(t, torch.Tensor))


def _alike(module: torch.fx.GraphModule, may_fuse: Callable[[Node], bool]) -> dict[str, Like]:
    """Return the clusters that compute something, equal ones together."""
    groups: dict[str, Like] = {}
    for cluster in build_clusters(module, may_fuse):
        if _is_work(cluster):
            part = extract(cluster)
            groups.setdefault(signature(part), Like(part, [])).clusters.append(cluster)
    return groups


def _is_generated(name: str) -> bool:
    return name in _HEAVY and name not in _FREE


def _is_work(cluster: Cluster, counts: Callable[[str], bool] = _is_generated) -> bool:
    names = [node.target._opname for node in cluster.nodes if is_operator(node.target) and not is_view(node)]
    return bool(cluster.outputs) and any(map(counts, names))


def _cached_kernel(key: str, like: Like, level: str, total: float) -> inductor.Kernel | None:
    """Return the kernel for clusters of this kind, if it is known, or now measured, to be faster."""
    if key in _kernels:
        return _kernels[key]
    choice = autotune_cache.find(key)
    if choice == "operators" or (choice is None and not total):
        return None
    kernel = inductor.kernel(like.part, level) if choice == "kernel" else _measured(like, key, level, total)
    if kernel is not None:
        _kernels[key] = kernel
    return kernel


def _measured(like: Like, key: str, level: str, total: float) -> inductor.Kernel | None:
    with without_modes(), torch.no_grad(), operator_streams.separate_generators():
        like.inputs = [_values(node.meta["val"]) for node in like.part.graph.nodes if node.op == "placeholder"]
        like.seconds = measurement.seconds({"operators": eager_codegen.compile(like.part)}, like.inputs, _TURNS)["operators"]
        if like.seconds < SHORTEST or like.seconds * len(like.clusters) < SHARE * total:
            return None                       # not kept: in another graph it may be worth while
        kernel = _winner(like, level)
    like.inputs = []
    if inductor.is_there():
        autotune_cache.keep(key, "operators" if kernel is None else "kernel")
    return kernel


def _winner(like: Like, level: str) -> inductor.Kernel | None:
    """Return the compiled kernel if it is faster than the operators."""
    plain, kernel = eager_codegen.compile(like.part), inductor.kernel(like.part, level)
    if kernel is None:
        return None
    took = measurement.seconds({"operators": plain, "kernel": kernel}, like.inputs, _TURNS)
    before, after = min(like.seconds, took["operators"]), took["kernel"]
    event_log.event("level", f"{len(like.clusters)} clusters of {len(like.part.graph.nodes)}: {before * 1e6:.0f} us, "
                       f"as one kernel {after * 1e6:.0f} us")
    return kernel if after < WORTH * before else None


def _values(fake: torch.Tensor) -> torch.Tensor:
    """Return values of the same shape, strides and dtype; small positive numbers, which are slow for no operator."""
    return filled(fake, lambda t: t.fill_(1) if not t.is_floating_point() else t.copy_(torch.rand(t.shape, dtype=torch.float32) + 0.1))
