"""Explains why a device is unavailable: what was checked, what exists, and the command that fixes it."""
from __future__ import annotations

import importlib
import shutil
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.base.versions import installed
from torchspore.engine.devices import gpu_kinds
from torchspore.translations import translate

_PIP = f"{sys.executable} -m pip install --force-reinstall torch"
_INSTALL = {
    gpu_kinds.CUDA: _PIP, gpu_kinds.ROCM: f"{_PIP} --index-url https://download.pytorch.org/whl/rocm7.0",
    gpu_kinds.XPU: f"{_PIP} --index-url https://download.pytorch.org/whl/xpu",
}
"""The commands that install a build of torch for a kind of GPU."""


@dataclass(frozen=True)
class Broken:
    """A device whose driver is installed and that torch cannot use: the reason, and the command that fixes it."""

    why: str
    command: str


def broken(target: str) -> Broken | None:
    """Return why a `device_target` is unusable; None if the machine has no such device at all."""
    return _gpu() if target == "GPU" else _npu() if target == "Ascend" else None


def _gpu() -> Broken | None:
    other = gpu_kinds.of_another_build()
    if other and not (gpu_kinds.is_built() and gpu_kinds.is_available()):
        return Broken(translate("{tool} is here, but torch was built without {kind}").format(
            tool=gpu_kinds.TOOLS[other], kind=gpu_kinds.NAMES[other]), _INSTALL[other])
    kind = gpu_kinds.kind()
    if kind == gpu_kinds.MPS and not gpu_kinds.is_available():
        return Broken(translate("torch was built with mps, and this macOS or this Mac does not offer it"), "softwareupdate --list")
    if not gpu_kinds.is_built() or kind in (gpu_kinds.XPU, gpu_kinds.MPS):
        return None                            # without a driver there is not a GPU, and xpu raises nothing for one that is broken
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        if "no NVIDIA driver" in reason.lower() or "found no nvidia driver" in reason.lower():
            return None
        if "forked subprocess" in reason and not _has_nvidia_driver():
            return None                        # torch raises this before it looks for a driver, if the parent process has looked for one
        text = translate("torch {version} can't use it: {reason}").format(version=torch.__version__, reason=reason)
        return Broken(text, gpu_kinds.TOOLS[kind])
    return None


def _has_nvidia_driver() -> bool:
    return shutil.which("nvidia-smi") is not None or Path("/proc/driver/nvidia").exists()


def _npu() -> Broken | None:
    driver = shutil.which("npu-smi") is not None or Path("/usr/local/Ascend").exists()
    if find_spec("torch_npu") is None:
        version = torch.__version__.partition("+")[0]
        command = f"{sys.executable} -m pip install torch_npu=={version}"
        return Broken(translate("CANN is installed, torch_npu is not"), command) if driver else None
    error = npu_error()
    if error:
        text = translate("torch_npu {version} can't be imported: {error}").format(version=installed("torch-npu") or "", error=error)
        return Broken(text.replace("  ", " "),
                      "source /usr/local/Ascend/ascend-toolkit/set_env.sh")
    return Broken(translate("torch_npu finds no device"), "npu-smi info") if driver else None


@cache
def npu_error() -> str:
    """Import torch_npu, which adds torch's `npu` module and needs the CANN libraries. Return why that fails; empty if it works."""
    try:
        importlib.import_module("torch_npu")
    except Exception as error:                 # a package half installed raises whatever it likes
        return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    return "" if hasattr(torch, "npu") else "it gives torch no device"
