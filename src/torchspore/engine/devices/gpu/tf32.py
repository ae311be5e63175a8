"""Decides whether float32 may be rounded to TF32 (10 bits of fraction) in the GPU's matrix units, by torch's `fp32_precision` settings."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.devices import gpu_kinds

_CUDNN: Any = torch.backends.cudnn
"""torch's types do not know its settings for single kinds of operators."""


def conv(may_round: bool) -> Outcome:
    """Apply `conv_allow_tf32` to convolutions."""
    return _set(_CUDNN.conv, may_round, "convolutions")


def matmul(may_round: bool) -> Outcome:
    """Apply `matmul_allow_tf32` to matrix products."""
    return _set(torch.backends.cuda.matmul, may_round, "matrix products")


def _set(where: object, may_round: bool, what: str) -> Outcome:
    if not gpu_kinds.is_available():
        return Outcome.no_effect("no GPU")
    if STORE.get("device_target") != "GPU":
        return Outcome.no_effect(f"operators run on {STORE.get('device_target')}")
    why = gpu_kinds.lacks("TF32 is a format of NVIDIA's matrix units", gpu_kinds.CUDA)
    if why:
        return Outcome.no_effect(why)
    setattr(where, "fp32_precision", "tf32" if may_round else "ieee")
    return Outcome.applied(f"{what} of float32 round to TF32" if may_round else f"{what} of float32 keep all of their bits")
