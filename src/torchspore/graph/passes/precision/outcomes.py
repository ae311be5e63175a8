"""The outcome of precision options, for `torchspore explain`."""
from __future__ import annotations

from collections import Counter

import torch

from torchspore.base import event_log
from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.modules import transform_inner
from torchspore.graph.passes.precision.casts import CAST
from torchspore.graph.settings import Settings
from torchspore.translations import translate

_DTYPE_NAMES = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32", torch.float64: "float64"}


def count_dtypes(module: torch.fx.GraphModule) -> Counter[str]:
    """Count the operators by the dtype of their first floating-point input, and the casts as `cast`."""
    counts: Counter[str] = Counter()

    def look(graph: torch.fx.GraphModule) -> None:
        for node in graph.graph.nodes:
            if node.op == "call_function" and node.target is CAST:
                counts["cast"] += 1
            elif node.op == "call_function" and is_operator(node.target):
                kinds = [t.dtype for n in node.all_input_nodes if isinstance(t := n.meta.get("val"), torch.Tensor)]
                kind = next((k for k in kinds if k in _DTYPE_NAMES), None)
                if kind is not None:
                    counts[_DTYPE_NAMES[kind]] += 1
        transform_inner(graph, look)

    look(module)
    return counts


def report_casts(settings: Settings, before: Counter[str], after: Counter[str]) -> None:
    """Report the operators and casts of a graph under a policy."""
    count_text = translate("{count} operators in {dtype}")
    kinds = [kind for kind in ("float16", "bfloat16", "float32", "float64") if after[kind]]
    counts = translate(", ").join(count_text.format(count=after[kind], dtype=kind) for kind in kinds)
    text = translate("{policy}: {counts}, {casts} casts put in")
    text = text.format(policy=settings.precision, counts=counts, casts=after["cast"] - before["cast"])
    effects.note("precision", f"{user_line()}: {text}")
    event_log.event("precision", text)
    report(settings, Outcome.applied(text))


def report(settings: Settings, outcome: Outcome) -> None:
    """Report the outcome of the option that requested a policy."""
    if settings.is_auto_mixed:
        effects.report("enable_auto_mixed_precision", outcome)
    else:
        effects.report("precision_mode", outcome)
