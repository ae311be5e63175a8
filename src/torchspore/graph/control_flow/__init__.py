"""Control flow on Tensors as control flow of the graph: source to closures, branches and loops, their gradients, what STRICT refuses.

Only the part that a capture needs is here; the rest is loaded when a capture converts.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.graph.refusal import Refusal


def lowered(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return the captured graph with direct calls in place of branches and loops."""
    from torchspore.graph.control_flow.lowering import lower as run

    return run(module)


def converted(function: Callable[..., Any], watch: Any) -> Callable[..., Any]:
    """Return the function to call for `function` in a capture that converts; `watch` learns of its free variables."""
    from torchspore.graph.control_flow.runtime_helpers import call

    function_to_call = call(function)
    watch.learn(function_to_call)
    return function_to_call


def explained(error: BaseException, watch: Any) -> BaseException:
    """Return `error`; a Refusal because of unconverted source gets the reason for that."""
    if isinstance(error, Refusal) and error.needs_values:
        from torchspore.graph.control_flow.function_conversion import reasons

        for code, reason in reasons(watch.codes).items():
            lines = {line for _, _, line in code.co_lines() if line is not None}
            file, _, line = error.line.rpartition(":")
            if file == code.co_filename and line.isdigit() and int(line) in lines:
                error.reason += f" in {code.co_name}, which can't be converted, because {reason}"
    return error
