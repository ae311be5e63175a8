"""Random numbers that a program draws by torch's functions: they come from torch's generators, which graphs do not draw from."""
from __future__ import annotations

import functools
from typing import Any

import torch

from torchspore.engine.random import generators
from torchspore.engine.torch_internals.torch_private import is_operator


def refuse_in(tracer: Any, watch: Any) -> None:
    """End the trace of `tracer` where an operator draws random numbers outside of MindSpore's operators; `watch` keeps the reason."""
    create = tracer.create_node

    def create_node(kind: str, target: Any, *arguments: Any, **keywords: Any) -> Any:
        if kind == "call_function" and _draws(target) and not generators.is_lent_in_trace():
            raise watch.refuse("draws random numbers by a torch function")
        return create(kind, target, *arguments, **keywords)

    tracer.create_node = create_node


@functools.cache
def _draws(target: Any) -> bool:
    """Return whether `target` draws from torch's global generator. Attention draws with dropout alone, and never does so here."""
    return (
        is_operator(target) and target.namespace == "aten" and torch.Tag.nondeterministic_seeded in target.tags
        and "attention" not in str(target)
    )
