"""Sums of gradients that start while the backward pass still runs.

A reducer learns in its first step whether it receives the unmodified gradients of a transform of its Parameters. From then on each message
leaves as soon as the last of its gradients exists, always in the same order, so that all processes agree. A program that modifies its
gradients first (clips or scales them) is detected at the next call, and runs without overlap from then on.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.distributed.data_parallel import gradient_reduction as sums
from torchspore.distributed.data_parallel import parameter_broadcast
from torchspore.distributed.data_parallel.gradient_reduction import Message, Plan, is_traced
from torchspore.engine.autograd.gradient_listeners import LISTENERS, GradientListener
from torchspore.engine.tensors.tensor import TensorBase

_reducers: dict[tuple[int, ...], weakref.ref[EarlyReducer]] = {}
"""By the ids of Parameters, the object that sums their gradients."""


class EarlyReducer:
    """Connects one reducer with the transform that computes its gradients."""

    def __init__(self, parameters: Sequence[TensorBase], plan: Plan) -> None:
        self.plan = plan
        self._parameters = list(parameters)
        self._key = tuple(map(id, parameters))
        self._seen: list[Any] = []
        self._messages: list[Message] = []
        self._ready: dict[int, torch.Tensor] = {}
        self._is_unchanged = True
        """False once the program was seen to change gradients before they are summed."""
        self._has_learned = False
        self.count = 0
        """How many messages left during a backward pass."""
        _reducers[self._key] = weakref.ref(self)
        if _LISTENER not in LISTENERS:
            LISTENERS.append(_LISTENER)

    def begin(self, leaves: Sequence[torch.Tensor]) -> None:
        """A forward and a backward pass are going to compute the gradients of these leaves."""
        parameter_broadcast.begin(self._parameters)
        if self._messages:                                 # nothing requested those of the last pass
            self._drop()
        self._ready.clear()
        if not (self._is_unchanged and self._has_learned):
            return
        for index, leaf in enumerate(leaves):
            if leaf.requires_grad:
                leaf.register_hook(self._hook(index))

    def _hook(self, index: int) -> Any:
        reference = weakref.ref(self)

        def arrived(gradient: torch.Tensor) -> None:
            ahead = reference()
            if ahead is not None:
                ahead._ready[index] = gradient
                ahead._send()

        return arrived

    def _send(self) -> None:
        """Starts the messages whose gradients are all there, in their order."""
        while len(self._messages) < len(self.plan.buckets):
            indices = self.plan.buckets[len(self._messages)]
            if not all(index in self._ready for index in indices):
                return
            self._messages.append(sums.start([self._ready[index] for index in indices], self.plan))
            self.count += 1

    def end(self, gradients: Sequence[Any]) -> None:
        """Called after the backward pass with its gradients (torch tensors, or None)."""
        self._seen = [None if t is None else (weakref.ref(t), t._version) for t in gradients]

    def reduced(self, gradients: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The gradients over all processes."""
        is_unchanged = len(self._seen) == len(gradients) and all(
            seen is not None and seen[0]() is t and seen[1] == t._version for seen, t in zip(self._seen, gradients)
        )
        self._is_unchanged = self._is_unchanged and is_unchanged
        self._has_learned = True
        reduced = list(gradients)
        if is_unchanged:
            done = [indices for indices, _ in zip(self.plan.buckets, self._messages)]
            are_equal = all(self._ready.get(index) is gradients[index] for indices in done for index in indices)
        if not is_unchanged or not are_equal:
            self._drop()
        messages, self._messages = self._messages, []
        for indices in self.plan.buckets[len(messages):]:
            messages.append(sums.start([gradients[index] for index in indices], self.plan))
        for indices, message in zip(self.plan.buckets, messages):
            for index, gradient in zip(indices, message.parts()):
                reduced[index] = gradient
        self._ready.clear()
        self._seen = []
        return reduced

    def _drop(self) -> None:
        """Wait for messages whose results are no longer needed."""
        messages, self._messages = self._messages, []
        for message in messages:
            message.wait()
        self._is_unchanged = False


class _Listener(GradientListener):
    """Hands the gradients of a transform to the reducer of its Parameters."""

    def begin_pass(self, weights: Sequence[TensorBase], leaves: list[torch.Tensor]) -> Callable[[list[torch.Tensor | None]], None] | None:
        ahead = of(weights)
        if ahead is None:
            return None
        ahead.begin(leaves)
        return ahead.end


_LISTENER = _Listener()


def of(weights: Sequence[TensorBase]) -> EarlyReducer | None:
    """Return the object that sums the gradients of these Parameters; None without one, and while a graph is captured."""
    if not _reducers or is_traced():
        return None
    reference = _reducers.get(tuple(map(id, weights)))
    ahead = None if reference is None else reference()
    if reference is not None and ahead is None:
        del _reducers[tuple(map(id, weights))]
    return ahead
