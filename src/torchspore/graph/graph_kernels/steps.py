"""The steps of graph kernels, in order: arithmetic, common subexpressions, cheap values, then the kernels themselves."""
from __future__ import annotations

import torch

from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.backend import inductor
from torchspore.graph.backend.kernel_operators import is_work
from torchspore.graph.fx.modules import copy_module, inner_of
from torchspore.graph.graph_kernels import dump, kernel_build
from torchspore.graph.passes import algebra, common_subexpressions, joined_products
from torchspore.graph.report import outcomes, stages
from torchspore.graph.settings import Flags, Settings

Module = torch.fx.GraphModule


def applied(module: Module, settings: Settings) -> Module:
    """Return the graph after the steps that the flags request. At O1 and O2, and for infer_boost, the level chooses the kernels."""
    flags = settings.kernels
    assert flags is not None
    before = count(module)
    module = copy_module(module)
    if flags.runs("arithmetic_simplify", 2):
        module = algebra.simplify(module, rules(flags))
        stages.keep_pass("arithmetic_simplify", module)
    if flags.runs("graph_kernel_cse", 2):
        module = common_subexpressions.common_subexpressions(module)
        stages.keep_pass("graph_kernel_cse", module)
    if flags.combines:
        module = joined_products.join_products(module, flags.is_global)
        stages.keep_pass("parallel_op_combine", module)
    if settings.level != "O0" or settings.infer_boost or settings.tuning is not None:
        outcomes.report_level_kernels(settings, before, count(module))
        return module
    kernels = kernel_build.build(module, flags)
    dump.write(kernels, flags)
    outcomes.fused(flags, before, count(kernels.module), kernels.kernels, kernels.slower, inductor.is_there())
    return kernels.module


def rules(flags: Flags) -> list[str]:
    """The rules of arithmetic that apply."""
    return [name for name in algebra.RULES if name not in flags.rules_not and (not flags.rules_only or name in flags.rules_only)]


def count(module: Module) -> int:
    """Return how many kernels the graph launches: operators that are not views, and generated kernels, also in branches and loop bodies."""
    operator_count = sum(is_work(node) or node_metadata.IS_KERNEL in node.meta for node in module.graph.nodes if node.op == "call_function")
    return operator_count + sum(map(count, inner_of(module)))
