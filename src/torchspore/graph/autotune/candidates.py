"""The choices of a tuner: variants of a full graph, and of its single operators."""
from __future__ import annotations

import dataclasses
import functools
import hashlib
import operator
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals.torch_private import without_modes
from torchspore.graph import passes
from torchspore.graph.autotune.searches import Gene, Plan, Trials
from torchspore.graph.backend import convolution_choice, eager_codegen, inductor, inference, matrix_products, measurement, variants
from torchspore.graph.backend.eager_codegen import Code
from torchspore.graph.backend.kernel_operators import is_work
from torchspore.graph.fx.aliasing import writes
from torchspore.graph.fx.fingerprint import signature
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.fx.sample_inputs import filled
from torchspore.graph.graph_kernels import kernel_build, partition
from torchspore.graph.passes.cleanup import has_effect
from torchspore.graph.passes.clusters import Cluster, cluster_of, extract, insert_kernels
from torchspore.graph.passes.layout import channels_last, has_images
from torchspore.graph.settings import Flags, Settings

Module = torch.fx.GraphModule
OPERATORS, KERNELS, LAUNCH, PREPARED = "operators", "kernels", "one launch", "weights prepared"
LARGEST_LAUNCH = 120
"""Graphs of more operators are not tried as one launch: compiling that takes minutes."""
_ONEDNN_RULES = {"BLAS": lambda *operands: False, "oneDNN": matrix_products.is_large, "the faster each": matrix_products.prefers_onednn}


class GraphVariant:
    """A graph that is tuned as a unit."""

    def __init__(self, module: Module, inputs: measurement.Inputs, settings: Settings, persistent: frozenset[int]) -> None:
        self.module, self.inputs, self.settings, self.persistent = module, inputs, settings, persistent
        self._is_on_cpu = inference.is_on_cpu(module)
        self._forms = variants.Forms(module, inputs, settings, persistent)

    def genes(self) -> list[Gene]:
        """Return the choices for this graph on this machine."""
        genes = [Gene("back end", tuple(self._back_ends()), dear=(KERNELS, LAUNCH))]
        if self._is_on_cpu:
            genes += [Gene("products", tuple(_ONEDNN_RULES) if self._has_products() else ("BLAS",)), Gene("threads", threads())]
        if self.settings.layout and has_images(self.module):
            genes.append(Gene("layout", ("as it is", "channels last")))
        with_kernels = ("back end", KERNELS)
        genes += [Gene("fusion limit", (200, 40, 10), with_kernels), Gene("reductions", (True, False), with_kernels)]
        if self._is_on_cpu:
            genes += [
                Gene("vector bits", (0, *widths()), with_kernels), Gene("chunk", (512, 4096, 65536), with_kernels),
                Gene("tiling", (True, False), with_kernels),
            ]
        return genes

    def _back_ends(self) -> list[str]:
        genes = [OPERATORS]
        if inductor.is_there():
            genes.append(KERNELS)
            count = sum(node.op == "call_function" for node in self.module.graph.nodes)
            if count <= LARGEST_LAUNCH and self._is_on_cpu:
                genes.append(LAUNCH)
        if self._is_on_cpu and inference.trains(self.module, self.persistent) is None:
            genes.append(PREPARED)
        return genes

    def _has_products(self) -> bool:
        return any(node.target in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default) for node in self.module.graph.nodes)

    def code(self, plan: Plan) -> Code | None:
        """Return the code of a plan; None if it is unavailable. Raises ValueError for a plan that no search here could produce."""
        check(plan, self.genes())
        with on_threads(plan.get("threads")):
            code = self._build(plan)
        return None if code is None else with_threads(code, plan.get("threads"))

    def _build(self, plan: Plan) -> Code | None:
        back_end = plan.get("back end", OPERATORS)
        if back_end == LAUNCH:
            return self._forms.fused()
        if back_end == PREPARED:
            return self._prepared(plan)
        module = copy_module(self.module)
        prefers_onednn = _ONEDNN_RULES[plan.get("products", "BLAS")]
        module = variants.with_onednn(module, prefers_onednn, self.settings.fuses_products) or module
        module = channels_last(module) if plan.get("layout") == "channels last" else passes.pool_channels_last(module)
        if back_end == KERNELS:
            variants.restride(module, self.inputs)
            module = kernel_build.build(module, flags_of(plan, self.settings)).module
        return eager_codegen.compile(passes.with_fewest_calls(module))

    def _prepared(self, plan: Plan) -> Code | None:
        layout = plan.get("layout") == "channels last"
        rule = _ONEDNN_RULES[plan.get("products", "BLAS")]
        hoisted = inference.hoisted(
            self.module, self.persistent, rule, layout, self.settings.fuses_products, convolution_choice.choose_tile,
        )
        return None if hoisted is None else inference.code(hoisted)


def check(plan: Any, genes: list[Gene]) -> None:
    """Raise ValueError for a plan with unknown choices: a file may contain anything, and choices become part of generated code."""
    values = {gene.name: gene.values for gene in genes}
    if not isinstance(plan, dict):
        raise ValueError(f"{plan!r:.60} is no plan")
    for name, value in plan.items():
        if not any(type(other) is type(value) and other == value for other in values.get(name, ())):
            raise ValueError(f"{name!r:.40} {value!r:.40} is not one of the choices")


def flags_of(plan: Plan, settings: Settings) -> Flags:
    """Return how clusters become kernels under a plan; what the program excludes from fusion stays excluded."""
    around = settings.kernels or Flags(2, recompute=True)
    return dataclasses.replace(
        around, level=max(2, around.level), stitch=plan.get("reductions", True), dump=False, limit=plan.get("fusion limit", around.limit),
        blocking=(("cpp.simdlen", plan.get("vector bits") or None), ("cpp.min_chunk_size", plan.get("chunk", 512)),
                  ("cpp.enable_tiling_heuristics", plan.get("tiling", True))),
    )


def threads() -> tuple[int, ...]:
    """Return the numbers of threads to choose from: torch's present number, then its halves down to one."""
    counts = [torch.get_num_threads()]
    while counts[-1] > 1:
        counts.append(counts[-1] // 2)
    return tuple(counts)


def widths() -> tuple[int, ...]:
    """Return the vector widths of the processor, in bits, that Inductor can use instead of the greatest."""
    can = torch.backends.cpu.get_cpu_capability()
    return {"AVX512": (256,), "AVX2": ()}.get(can, ())


@contextmanager
def on_threads(threads: int | None) -> Iterator[None]:
    """Set torch's number of threads in the block; None leaves it unchanged."""
    before = torch.get_num_threads()
    if threads is not None and threads != before:
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def with_threads(code: Callable[..., Any], threads: int | None) -> Callable[..., Any]:
    """Return the code on this many threads; unchanged if torch uses that number already."""
    if threads is None or threads == torch.get_num_threads():
        return code

    def run(*inputs: Any) -> Any:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            return code(*inputs)
        finally:
            torch.set_num_threads(before)

    return run


SHORTEST = 20e-6
"""Seconds: units that take less stay as they are."""
SHARE = 0.01
"""Equal units with a smaller share of the total time are not tuned."""
_PRODUCTS = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)


@dataclass
class Unit:
    """Equal units: one as a graph, their positions, and the total of their seconds."""

    part: Module
    clusters: list[Cluster] = field(default_factory=list)
    seconds: float = 0.0


class Single:
    """A graph whose operators are tuned one by one."""

    def __init__(self, module: Module, inputs: measurement.Inputs, settings: Settings) -> None:
        self.settings = settings
        self.module = passes.pool_channels_last(copy_module(module))
        variants.restride(self.module, inputs)

    def search(self, searches: list[Callable[[Trials], None]], seconds: float) -> tuple[Plan, int]:
        """Return the plan, which has the fastest plan of each kind of unit if it differs from the present one, and the number of tries."""
        units = self._units()
        for unit in units.values():
            unit.seconds = _seconds(eager_codegen.compile(unit.part), _values(unit.part)) * len(unit.clusters)
        total = sum(unit.seconds for unit in units.values())
        ends = time.monotonic() + seconds
        plan: Plan = {}
        tried = 0
        for name, unit in sorted(units.items(), key=lambda item: -item[1].seconds):
            if unit.seconds < max(SHARE * total, SHORTEST * len(unit.clusters)) or time.monotonic() > ends:
                continue
            trials = Trials(self._genes(unit), functools.partial(self._measured, unit, _values(unit.part)), ends - time.monotonic())
            for search in searches:
                search(trials)
            tried += len(trials.seconds)
            best, base = next(iter(trials.ranked()), None), trials.seconds.get(trials.effective_genes(trials.base))
            took = None if best is None else trials.seconds[trials.effective_genes(best)]
            if best is not None and took is not None and base is not None and took < 0.95 * base:
                plan[name] = trials.clean(best)
        return plan, tried

    def _units(self) -> dict[str, Unit]:
        units: dict[str, Unit] = {}
        taken: set[Node] = set()
        groups = partition.groups(self.module, flags_of({}, self.settings))
        for cluster in groups:
            taken |= set(cluster.nodes)
        singles = [cluster_of(sorted([node, *items], key=_node_index(self.module))) for node, items in _alone(self.module, taken)]
        for cluster in [*groups, *singles]:
            part = extract(cluster)
            name = hashlib.sha256(signature(part).encode()).hexdigest()[:16]
            units.setdefault(name, Unit(part)).clusters.append(cluster)
        return units

    def _genes(self, unit: Unit) -> list[Gene]:
        genes = [Gene("threads", threads())]
        if any(node.target in _PRODUCTS for node in unit.part.graph.nodes):
            genes.append(Gene("by", ("BLAS", "oneDNN")))
        elif len(unit.clusters[0].nodes) > 1 and inductor.is_there() and not _is_single_operator(unit.clusters[0]):
            kernel = ("by", "kernel")
            genes += [Gene("by", ("operators", "kernel"), dear=("kernel",)), Gene("chunk", (512, 4096, 65536), kernel),
                      Gene("vector bits", (0, *widths()), kernel), Gene("tiling", (True, False), kernel)]
        return genes

    def _measured(self, unit: Unit, inputs: list[torch.Tensor], plan: Plan) -> float | None:
        code = self._code(unit.part, plan)
        return None if code is None else _seconds(code, inputs)

    def _code(self, part: Module, plan: Plan) -> Code | None:
        """One unit under a plan."""
        with on_threads(plan.get("threads")):
            if plan.get("by") == "kernel":
                code = inductor.kernel(part, "O0", kernel_build.options(flags_of(plan, self.settings)), kernel_build.REPORT_TEXT)
            else:
                changed = variants.with_onednn(part, lambda *operands: True) if plan.get("by") == "oneDNN" else None
                code = eager_codegen.compile(changed or part)
        return None if code is None else with_threads(code, plan.get("threads"))

    def code(self, plan: Plan) -> Code | None:
        """Return the graph with each unit in its planned form; None if one is unavailable. Raises ValueError for plans that no search
        produces."""
        replacements: list[tuple[Cluster, Callable[..., Any]]] = []
        for name, unit in self._units().items():
            if name in plan:
                check(plan[name], self._genes(unit))
                code = self._code(unit.part, plan[name])
                if code is None:
                    return None
                replacements += [(cluster, code) for cluster in unit.clusters]
        module = insert_kernels(self.module, replacements) if replacements else copy_module(self.module)
        return eager_codegen.compile(passes.with_fewest_calls(module))


def _node_index(module: Module) -> Callable[[Node], int]:
    return {node: index for index, node in enumerate(module.graph.nodes)}.__getitem__


def _alone(module: Module, taken: set[Node]) -> list[tuple[Node, list[Node]]]:
    """The operators outside of groups that compute and neither write nor draw random numbers, each with the choices of its results."""
    genes = []
    for node in module.graph.nodes:
        if node.op != "call_function" or node in taken or not is_work(node) or has_effect(node) or writes(node):
            continue
        values = [item.meta.get("val") for item in (node, *node.all_input_nodes)]
        flat = [v for value in values for v in tree.listed(value)]
        if all(v is None or (isinstance(v, torch.Tensor) and v.layout is torch.strided) for v in flat) and values[0] is not None:
            genes.append((node, [user for user in node.users if user.target is operator.getitem]))
    return genes


def _is_single_operator(cluster: Cluster) -> bool:
    return sum(map(is_work, cluster.nodes)) < partition.FEWEST


def _values(part: Module) -> list[torch.Tensor]:
    """Return made-up inputs; integers are 0, which is a valid index of every table."""
    clusters = []
    for node in part.graph.nodes:
        if node.op == "placeholder":
            clusters.append(filled(node.meta["val"], lambda t: t.uniform_(0.1, 1.1) if t.is_floating_point() else t.zero_()))
    return clusters


def _seconds(code: Callable[..., Any], inputs: list[torch.Tensor]) -> float:
    with without_modes(), torch.no_grad():
        code(*inputs)
        return measurement.seconds({"unit": code}, inputs)["unit"]
