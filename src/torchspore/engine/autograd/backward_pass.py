"""Backward passes in the calling thread.

torch runs the gradients of an accelerator's operators in separate threads. A capture, the frame of a gradient transform, and whether a call
runs in PyNative mode are states of a thread: in torch's threads a program's `bprop` and its hooks would run outside of them.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

in_callers_thread = functools.partial(torch.autograd.set_multithreading_enabled, False)
"""Return a context manager in which torch computes gradients in the thread that asks for them."""


def compute_gradients(
    outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], seeds: Sequence[torch.Tensor | None], create_graph: bool = False,
    retain_graph: bool | None = None,
) -> tuple[torch.Tensor | None, ...]:
    """Return the gradient of each input; None for one that the outputs do not depend on."""
    with in_callers_thread():
        return torch.autograd.grad(outputs, inputs, seeds, retain_graph, create_graph, allow_unused=True)
