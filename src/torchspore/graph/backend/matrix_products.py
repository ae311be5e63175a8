"""Matrix products that oneDNN computes faster than torch's BLAS on this machine: each shape is measured once per process."""
from __future__ import annotations

import torch

from torchspore.engine.torch_internals import torch_private
from torchspore.graph.backend import measurement
from torchspore.graph.compile_cache import autotune_cache
from torchspore.graph.fx.fingerprint import of_text
from torchspore.graph.fx.sample_inputs import filled
from torchspore.graph.passes.onednn import LINEAR, Preference

__all__ = ["LINEAR", "Preference", "is_large", "prefers_onednn"]

WORTH = 0.92
"""oneDNN is used if it needs at most this share of the time; a smaller difference is noise."""
_TURNS = measurement.Turns(least=6, most=20, longest=0.02)
"""A wrong choice costs every step to come."""
SMALL = 2**15
"""Products of fewer multiplications are calls and no work: they stay as they are."""


def prefers_onednn(a: torch.Tensor, right: torch.Tensor, added: torch.Tensor | None) -> bool:
    """Return whether oneDNN is the faster one for operands of these shapes and strides; measures if it is not known yet."""
    if not is_large(a, right, added):
        return False
    key = of_text("product", f"{tuple(a.shape)} {a.stride()} {tuple(right.shape)} {right.stride()} {added is None}")
    choice = autotune_cache.find(key)
    if choice is None:
        choice = "oneDNN" if _measured(a, right, added) else "BLAS"
        autotune_cache.keep(key, choice)
    return choice == "oneDNN"


def is_large(a: torch.Tensor, right: torch.Tensor, added: torch.Tensor | None) -> bool:
    """The rule without measurements, for runs in which a choice by time could change the bits."""
    return a.shape[0] * a.shape[1] * right.shape[1] >= SMALL


def _measured(a: torch.Tensor, right: torch.Tensor, added: torch.Tensor | None) -> bool:
    with torch_private.without_modes(), torch.no_grad():
        x, y = (filled(t, lambda memory: memory.fill_(0.5), torch.float32) for t in (a, right))
        b = None if added is None else torch.ones(added.shape)
        turned = y.t()
        if b is None:
            ways = {"BLAS": lambda: torch.mm(x, y), "oneDNN": lambda: torch_private.onednn_linear(x, turned, None, "none", [], "")}
        else:
            ways = {"BLAS": lambda: torch.addmm(b, x, y), "oneDNN": lambda: torch_private.onednn_linear(x, turned, b, "none", [], "")}
        for way in ways.values():
            way()
        took = measurement.seconds(ways, [], _TURNS)
        return took["oneDNN"] < WORTH * took["BLAS"]
