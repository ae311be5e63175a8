"""Equal bits from equal inputs: the switches of torch and its libraries."""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base import once
from torchspore.base.frames import user_frame
from torchspore.base.text import with_hint
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.devices import device
from torchspore.engine.front_end import FRONT
from torchspore.translations import translate

# Real MindSpore exports these two, and programs for Ascend look at them.
_EXPORTED = {"HCCL_DETERMINISTIC": "true", "TE_PARALLEL_COMPILER": "1"}
_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"

# torch makes an object of this module when it is imported, which its types do not know.
_memory: Any = importlib.import_module("torch.utils.deterministic")
_before: dict[str, bool] = {}


class _Changes:
    """The changes of deterministic mode in the process."""

    def __init__(self) -> None:
        self.owns_workspace = False
        self.previous_showwarning: Callable[..., Any] | None = None


_CHANGES = _Changes()


def select(value: str) -> Outcome:
    """Apply `deterministic`: 'ON' makes results bit-equal between runs, 'OFF' restores the earlier state.

    Operators without a deterministic kernel run, and each is named once. The switch applies to the process.
    """
    if value == "ON":
        _switch_on()
        return Outcome.applied("operators use kernels that give equal bits in every run")
    _switch_off()
    return Outcome.applied("the fastest kernels are used")


def _switch_on() -> None:
    if not _before:
        _before.update(
            algorithms=torch.are_deterministic_algorithms_enabled(),
            warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
            fill=_memory.fill_uninitialized_memory,
            cudnn=torch.backends.cudnn.deterministic,
            benchmark=torch.backends.cudnn.benchmark,
        )
    torch.use_deterministic_algorithms(True, warn_only=True)
    _listen(True)
    # Filling fresh memory hides reads of unset values, costs time and changes no result of a right program.
    _memory.fill_uninitialized_memory = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    if STORE.get("device_target") == "Ascend":
        device.npu().set_deterministic_level(1)
    if _WORKSPACE not in os.environ:  # cuBLAS reads it when CUDA starts
        os.environ[_WORKSPACE] = ":4096:8"
        _CHANGES.owns_workspace = True
    for variable, value in _EXPORTED.items():
        if os.environ.get(variable) != "strict":
            os.environ[variable] = value


def _switch_off() -> None:
    if _before:
        if STORE.get("device_target") == "Ascend":
            device.npu().set_deterministic_level(0)
        torch.use_deterministic_algorithms(_before["algorithms"], warn_only=_before["warn_only"])
        _memory.fill_uninitialized_memory = _before["fill"]
        torch.backends.cudnn.deterministic = _before["cudnn"]
        torch.backends.cudnn.benchmark = _before["benchmark"]
        _before.clear()
    _listen(False)
    if _CHANGES.owns_workspace:
        os.environ.pop(_WORKSPACE, None)
        _CHANGES.owns_workspace = False
    for variable in _EXPORTED:
        if os.environ.get(variable) != "strict":
            os.environ.pop(variable, None)


# ---- operators that have no deterministic kernel

_LACKS = re.compile(r"(\w+) does not have a deterministic implementation")
_WITHOUT = frozenset({"max_unpool2d", "max_unpool3d", "put", "put_"})
"""torch's operators that have none on the CPU (its documentation of `use_deterministic_algorithms`)."""
_lock = threading.Lock()


def _listen(is_on: bool) -> None:
    """Translate torch's warnings about them into our words, or stop."""
    if is_on and warnings.showwarning is not _show:
        _CHANGES.previous_showwarning, warnings.showwarning = warnings.showwarning, _show
    elif not is_on and warnings.showwarning is _show and _CHANGES.previous_showwarning is not None:
        warnings.showwarning = _CHANGES.previous_showwarning


def _show(message: Any, category: type[Warning], filename: str, lineno: int, file: Any = None, line: str | None = None) -> None:
    assert _CHANGES.previous_showwarning is not None
    match = _LACKS.match(str(message))
    if match is None:
        _CHANGES.previous_showwarning(message, category, filename, lineno, file, line)
        return
    operator = _running()
    if not once.first_time(("no deterministic kernel", operator or match.group(1))):
        return
    name = f"{operator} ({match.group(1)})" if operator else match.group(1)
    at, number, _ = user_frame() or (filename, lineno, "")
    effects.note("deterministic", translate("{line}: {name} has no deterministic kernel here").format(line=f"{at}:{number}", name=name))
    text = translate("deterministic='ON': {name} has no deterministic kernel here; it runs, and may give other bits in another run.")
    hint = translate("see whether its results differ between two runs; another operator may give equal bits")
    _CHANGES.previous_showwarning(UserWarning(with_hint(text.format(name=name), hint)), category, at, number, file, line)


def _running() -> str:
    """Return the running MindSpore operator; empty if none runs, as in a backward pass."""
    frame = sys._getframe(1)
    while frame is not None:
        name = FRONT.operator_of(frame)
        if name:
            return name
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def in_graph(target: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a graph calls for an operator: a warning about a missing deterministic kernel came at the capture only."""
    if not _before or getattr(target, "_opname", "") not in _WITHOUT:
        return call

    def quiet(*arguments: Any, **keywords: Any) -> Any:
        with _lock:
            was = torch.are_deterministic_algorithms_enabled()
            torch.use_deterministic_algorithms(False)
            try:
                return call(*arguments, **keywords)
            finally:
                torch.use_deterministic_algorithms(was, warn_only=True)

    return quiet
