"""job_type '1': the ways in which a whole graph can be run: back end, layout, threads, blocking of kernels, limits of fusion."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from torchspore.engine.graph import passes
from torchspore.engine.graph.kernels import making
from torchspore.engine.graph.kernels.flags import Flags
from torchspore.engine.graph.levels import boost, fused, inductor, measure, products, straight
from torchspore.engine.graph.levels.settings import Settings
from torchspore.engine.graph.levels.straight import Code
from torchspore.engine.graph.passes.copy import copied
from torchspore.engine.graph.passes.layout import channels_last, has_images
from torchspore.engine.graph.tuning.trials import Gene, Plan

Module = torch.fx.GraphModule
OPERATORS, KERNELS, LAUNCH, PREPARED = "operators", "kernels", "one launch", "weights prepared"
LARGEST_LAUNCH = 120
"""Graphs of more operators are not tried as one launch: compiling that takes minutes."""
_WANTED = {"BLAS": lambda *operands: False, "oneDNN": products.is_large, "the faster each": products.prefers_onednn}


class Whole:
    """A graph that is tuned as a whole."""

    def __init__(self, module: Module, inputs: measure.Inputs, settings: Settings, held: frozenset[int]) -> None:
        self.module, self.inputs, self.settings, self.held = module, inputs, settings, held
        self._is_on_cpu = boost.is_on_cpu(module)
        self._forms = fused.Forms(module, inputs, settings, held)

    def genes(self) -> list[Gene]:
        """What may be chosen for this graph on this machine."""
        found = [Gene("back end", tuple(self._back_ends()), dear=(KERNELS, LAUNCH))]
        if self._is_on_cpu:
            found += [Gene("products", tuple(_WANTED) if self._has_products() else ("BLAS",)), Gene("threads", threads())]
        if self.settings.layout and has_images(self.module):
            found.append(Gene("layout", ("as it is", "channels last")))
        with_kernels = ("back end", KERNELS)
        found += [Gene("fusion limit", (200, 40, 10), with_kernels), Gene("reductions", (True, False), with_kernels)]
        if self._is_on_cpu:
            found += [
                Gene("vector bits", (0, *widths()), with_kernels), Gene("chunk", (512, 4096, 65536), with_kernels),
                Gene("tiling", (True, False), with_kernels),
            ]
        return found

    def _back_ends(self) -> list[str]:
        found = [OPERATORS]
        if inductor.is_there():
            found.append(KERNELS)
            count = sum(node.op == "call_function" for node in self.module.graph.nodes)
            if count <= LARGEST_LAUNCH and self._is_on_cpu:
                found.append(LAUNCH)
        if self._is_on_cpu and boost.trains(self.module, self.held) is None:
            found.append(PREPARED)
        return found

    def _has_products(self) -> bool:
        return any(node.target in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default) for node in self.module.graph.nodes)

    def code(self, plan: Plan) -> Code | None:
        """The code of a plan; None where it can't be had."""
        with on_threads(plan.get("threads")):
            made = self._made(plan)
        return None if made is None else with_threads(made, plan.get("threads"))

    def _made(self, plan: Plan) -> Code | None:
        back_end = plan.get("back end", OPERATORS)
        if back_end == LAUNCH:
            return self._forms.in_one()
        if back_end == PREPARED:
            return self._prepared(plan)
        module = copied(self.module)
        wanted = _WANTED[plan.get("products", "BLAS")]
        module = fused.with_onednn(module, wanted) or module
        module = channels_last(module) if plan.get("layout") == "channels last" else passes.pool_channels_last(module)
        if back_end == KERNELS:
            fused.restride(module, self.inputs)
            module = making.made(module, flags_of(plan, self.settings)).module
        return straight.compile(passes.overwrite(module))

    def _prepared(self, plan: Plan) -> Code | None:
        layout = plan.get("layout") == "channels last"
        found = boost.hoisted(self.module, self.held, _WANTED[plan.get("products", "BLAS")], layout)
        return None if found is None else boost.code(found)


def flags_of(plan: Plan, settings: Settings) -> Flags:
    """How clusters become kernels under a plan; what the program forbids to fuse stays forbidden."""
    around = settings.kernels or Flags(2, recompute=True)
    return dataclasses.replace(
        around, level=max(2, around.level), stitch=plan.get("reductions", True), dump=False, limit=plan.get("fusion limit", around.limit),
        blocking=(("cpp.simdlen", plan.get("vector bits") or None), ("cpp.min_chunk_size", plan.get("chunk", 512)),
                  ("cpp.enable_tiling_heuristics", plan.get("tiling", True))),
    )


def threads() -> tuple[int, ...]:
    """The numbers of threads to choose from: what torch has now, then its halves down to one."""
    found = [torch.get_num_threads()]
    while found[-1] > 1:
        found.append(found[-1] // 2)
    return tuple(found)


def widths() -> tuple[int, ...]:
    """The widths of the processor's vectors, in bits, that Inductor may be told to use instead of the greatest."""
    can = torch.backends.cpu.get_cpu_capability()
    return {"AVX512": (256,), "AVX2": ()}.get(can, ())


@contextmanager
def on_threads(wanted: int | None) -> Iterator[None]:
    """Gives torch so many threads for a while; None leaves it as it is."""
    before = torch.get_num_threads()
    if wanted is not None and wanted != before:
        torch.set_num_threads(wanted)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def with_threads(code: Callable[..., Any], wanted: int | None) -> Callable[..., Any]:
    """The code on so many threads; as it is where that is what torch has."""
    if wanted is None or wanted == torch.get_num_threads():
        return code

    def run(*inputs: Any) -> Any:
        before = torch.get_num_threads()
        torch.set_num_threads(wanted)
        try:
            return code(*inputs)
        finally:
            torch.set_num_threads(before)

    return run
