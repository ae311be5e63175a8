"""Backward passes in the calling thread, and the weights of their results.

torch runs the gradients of an accelerator's operators in separate threads. A capture, the frame of a gradient transform, and whether a call
runs in PyNative mode are states of a thread: in torch's threads a program's `bprop` and its hooks would run outside of them.
"""
from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import Composite, TensorBase, raw
from torchspore.engine.torch_internals.static_symbols import static_symbols

_autograd_grad, _LOG = torch.autograd.grad, logging.getLogger("torch.autograd.graph")


def is_observed() -> bool:
    """Return whether other code has replaced `torch.autograd.grad`, or the log of torch's backward passes is on."""
    return torch.autograd.grad is not _autograd_grad or _LOG.isEnabledFor(logging.DEBUG)


def in_callers_thread(has_seeds: bool = False) -> AbstractContextManager[Any]:
    """Return a context manager in which torch computes gradients in the thread that asks for them.

    `has_seeds` says that the call passes gradients of the outputs: torch compares their shapes, for which it would load sympy.
    """
    return _with_seeds() if has_seeds else torch.autograd.set_multithreading_enabled(False)


@contextmanager
def _with_seeds() -> Iterator[None]:
    with static_symbols(), torch.autograd.set_multithreading_enabled(False):
        yield


def compute_gradients(
    outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], seeds: Sequence[torch.Tensor | None], create_graph: bool = False,
    retain_graph: bool | None = None,
) -> tuple[torch.Tensor | None, ...]:
    """Return the gradient of each input; None for one that the outputs do not depend on."""
    with in_callers_thread(any(seed is not None for seed in seeds)):
        return torch.autograd.grad(outputs, inputs, seeds, retain_graph, create_graph, allow_unused=True)


def seeds_of(result: Any, sens: Any) -> list[torch.Tensor]:
    """Return the values of `sens` for the Tensors of `result`; where both have the same structure, those for its constants are left out."""
    weights, values = list(tree.leaves(sens)), list(tree.leaves(result))
    if len(weights) == len(values):
        weights = [weight for weight, value in zip(weights, values) if isinstance(value, (TensorBase, Composite))]
    parts = [part for weight in weights for part in (weight.parts() if isinstance(weight, Composite) else (weight,))]
    return [raw(part) if isinstance(part, TensorBase) else torch.as_tensor(part) for part in parts]
