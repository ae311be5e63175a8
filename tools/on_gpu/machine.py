"""Prints a description of the machine as JSON: the card, its driver, versions, the commit. Runs in a separate process, as it may crash."""
from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from typing import Any

import torch

from on_gpu.jobs import ROOT
from torchspore.engine.devices import gpu_kinds

PACKAGES = ("numpy", "triton", "nvidia-nccl-cu13", "torch_npu")


def facts(target: str) -> dict[str, object]:
    """Return the description; `card` is None without a device of the `device_target`, which is GPU or Ascend."""
    module = _module(target)
    has_card = module is not None and module.is_available()
    properties = module.get_device_properties(0) if has_card else None
    return {
        "date": datetime.date.today().isoformat(),
        "commit": _output("git", "rev-parse", "--short", "HEAD"),         # None in a copy without git's files
        "card": module.get_device_name(0) if has_card else None,
        "memory": round(properties.total_memory / 2**30, 1) if properties else None,
        "driver": _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") if has_card and target == "GPU" else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": torch.backends.cudnn.version() if has_card and target == "GPU" else None,
        "cores": os.cpu_count(),
        **{name: version for name in PACKAGES if (version := _version(name))},
    }


def _module(target: str) -> Any:
    if target == "GPU":
        return gpu_kinds.module()
    try:
        return importlib.import_module("torch_npu").npu
    except ImportError:
        return None


def _output(*command: str) -> str | None:
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    print(json.dumps(facts(sys.argv[1])))
