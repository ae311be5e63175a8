"""Dropout as the identity, in the original and in the port: their random masks differ."""
from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch

from torchspore.mindspore.ops import dropouts

_FUNCTIONS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
_WITH_MASK = ("dropout_with_mask", "dropout_of_channels")


def _unchanged(x: Any, *_: Any, **__: Any) -> Any:
    return x


_attention = torch.nn.functional.scaled_dot_product_attention


def _attention_without_dropout(*args: Any, **kwargs: Any) -> Any:
    kwargs.pop("dropout_p", None)
    return _attention(*args[:4], *((0.0, *args[5:]) if len(args) > 4 else ()), **kwargs)


def _with_mask(x: torch.Tensor, *_: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return x, torch.ones_like(x)


@contextlib.contextmanager
def without_dropout(ported: types.ModuleType | None = None) -> Iterator[None]:
    """While it lasts, functions and primitives of dropout change nothing; `ported` is the module of a port."""
    modules = [] if ported is None else [ported, *vars(ported).get("__modules__", {}).values()]
    with contextlib.ExitStack() as stack:
        for name in _FUNCTIONS:
            stack.enter_context(mock.patch.object(torch.nn.functional, name, _unchanged))
        stack.enter_context(mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", _attention_without_dropout))
        for name in ("dropped", "_channels", "_torch_dropout_and_mask"):
            stack.enter_context(mock.patch.object(dropouts, name, _with_mask))
        for module in modules:
            for name in _WITH_MASK:
                if name in vars(module):
                    stack.enter_context(mock.patch.dict(vars(module), {name: _with_mask}))
        yield
