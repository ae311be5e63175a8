"""Equal bits from equal inputs: the switches of torch and its libraries."""

from __future__ import annotations

import importlib
import os
from typing import Any

import torch

from torchspore.context.effects import Outcome

# Real MindSpore exports these two, and programs for Ascend look at them.
_EXPORTED = {"HCCL_DETERMINISTIC": "true", "TE_PARALLEL_COMPILER": "1"}
_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"

# torch makes an object of this module when it is imported, which its types do not know.
_memory: Any = importlib.import_module("torch.utils.deterministic")
_before: dict[str, bool] = {}
_workspace_is_ours = False


def select(wanted: str) -> Outcome:
    """Makes `deterministic` act: 'ON' gives equal bits run for run, 'OFF' puts back what was found before.

    Operators without a deterministic kernel run and warn. The switch is one for the whole process.
    """
    if wanted == "ON":
        _switch_on()
        return Outcome.applied("operators use kernels that give equal bits run for run")
    _switch_off()
    return Outcome.applied("the fastest kernels are used")


def _switch_on() -> None:
    global _workspace_is_ours
    if not _before:
        _before.update(
            algorithms=torch.are_deterministic_algorithms_enabled(),
            warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
            fill=_memory.fill_uninitialized_memory,
            cudnn=torch.backends.cudnn.deterministic,
            benchmark=torch.backends.cudnn.benchmark,
        )
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Filling fresh memory hides reads of unset values, costs time and changes no result of a right program.
    _memory.fill_uninitialized_memory = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    if _WORKSPACE not in os.environ:  # cuBLAS reads it when CUDA starts
        os.environ[_WORKSPACE] = ":4096:8"
        _workspace_is_ours = True
    for variable, value in _EXPORTED.items():
        if os.environ.get(variable) != "strict":
            os.environ[variable] = value


def _switch_off() -> None:
    global _workspace_is_ours
    if _before:
        torch.use_deterministic_algorithms(_before["algorithms"], warn_only=_before["warn_only"])
        _memory.fill_uninitialized_memory = _before["fill"]
        torch.backends.cudnn.deterministic = _before["cudnn"]
        torch.backends.cudnn.benchmark = _before["benchmark"]
        _before.clear()
    if _workspace_is_ours:
        os.environ.pop(_WORKSPACE, None)
        _workspace_is_ours = False
    for variable in _EXPORTED:
        if os.environ.get(variable) != "strict":
            os.environ.pop(variable, None)
