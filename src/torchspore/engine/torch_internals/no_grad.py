"""Contexts that start and stop the recording of gradients in a fifth of the time of `torch.enable_grad` and `torch.no_grad`."""
from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

import torch

from torchspore.engine.torch_internals.torch_private import set_grad_enabled


class _Restoring:
    """The end of a block: gradients are recorded as before the block."""

    __slots__ = ("_was_enabled",)
    _was_enabled: bool

    def __exit__(self, *error: object) -> None:
        set_grad_enabled(self._was_enabled)


class NoGrad(_Restoring):
    """Gradients are not recorded in the block, in this thread."""

    __slots__ = ()

    def __enter__(self) -> None:
        self._was_enabled = torch.is_grad_enabled()
        set_grad_enabled(False)


class _Grad(_Restoring):
    """Gradients are recorded in the block, in this thread."""

    __slots__ = ()

    def __enter__(self) -> None:
        self._was_enabled = torch.is_grad_enabled()
        set_grad_enabled(True)


def recording_gradients() -> AbstractContextManager[Any]:
    """Return the context in which torch records operators for gradients, also inside `torch.no_grad` and `torch.inference_mode`."""
    if not torch.is_inference_mode_enabled():
        return _Grad()
    stack = ExitStack()
    stack.enter_context(torch.inference_mode(False))
    stack.enter_context(torch.enable_grad())
    return stack
