"""Prints what the machine is, as JSON: the card, its driver, versions, the commit. It runs in a process of its own, which may crash."""
from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess

import torch

from on_gpu.jobs import ROOT

PACKAGES = ("numpy", "triton", "nvidia-nccl-cu13")


def facts() -> dict[str, object]:
    """Gives the description; `card` is None without a GPU."""
    has_card = torch.cuda.is_available()
    properties = torch.cuda.get_device_properties(0) if has_card else None
    return {
        "date": datetime.date.today().isoformat(),
        "commit": _output("git", "rev-parse", "--short", "HEAD"),         # None in a copy without git's files
        "card": torch.cuda.get_device_name(0) if has_card else None,
        "memory": round(properties.total_memory / 2**30, 1) if properties else None,
        "driver": _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") if has_card else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": torch.backends.cudnn.version() if has_card else None,
        "cores": os.cpu_count(),
        **{name: version for name in PACKAGES if (version := _version(name))},
    }


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
    print(json.dumps(facts()))
