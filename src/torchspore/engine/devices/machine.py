"""Facts about this machine and its installed packages, for users and reports."""
from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch

from torchspore.base import cores
from torchspore.base.host_memory import total_memory
from torchspore.base.text import format_bytes
from torchspore.base.versions import installed
from torchspore.engine.devices import device, device_facts, gpu_kinds
from torchspore.engine.native import operators
from torchspore.public_names import mindspore_version
from torchspore.translations import translatable, translate

PACKAGES = ("numpy", "scipy", "opencv-python-headless", "pillow", "protobuf", "safetensors", "rich", "tensorboardX", "onnx", "onnxscript",
            "onnxruntime", "cryptography", "sentencepiece", "av", "triton", "torch_npu", "mindspore")
_PREFIXES = ("TORCHSPORE_", "MS_", "GLOG_", "RANK_", "DEVICE_", "OMP_", "MKL_", "KMP_", "ASCEND_", "HCCL_", "NCCL_", "CUBLAS_", "PYTORCH_",
         "TORCH")
_NAMED = ("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "LD_PRELOAD", "CXX", "CC", "MINDSPORE_DUMP_CONFIG", "MINDSPORE_HCCL_CONFIG_PATH")
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH")


def facts() -> dict[str, dict[str, Any]]:
    """Sections of facts: versions, the machine, devices, environment variables that torchspore, MindSpore or torch read.

    The names are in English, and translated when they are printed.
    """
    return {
        translatable("versions"): versions(),
        translatable("machine"): {
            translatable("system"): platform.platform(), translatable("processor"): processor(), translatable("cores"): os.cpu_count(),
            translatable("usable cores"): cores.usable(), translatable("threads of torch"): torch.get_num_threads(),
            translatable("memory"): _shown(total_memory()),
            translatable("C++ short paths of operators"): _short_paths(),
        },
        translatable("devices"): {"CPU": translate("{count} cores").format(count=os.cpu_count()), **_accelerators()},
        translatable("environment"): environment(),
    }


def versions() -> dict[str, str]:
    """torchspore, the MindSpore that it answers as, Python, torch, and the packages that are installed."""
    facts = {
        "torchspore": installed("torchspore") or translate("not installed"), translatable("acts as MindSpore"): mindspore_version(),
        "Python": platform.python_version(),
        "torch": torch.__version__,
    }
    if torch.version.cuda:
        facts[translatable("CUDA of torch")] = torch.version.cuda
    if torch.version.hip:
        facts[translatable("ROCm of torch")] = torch.version.hip
    if torch.version.xpu:
        facts[translatable("SYCL of torch")] = torch.version.xpu
    facts |= {name: version for name in PACKAGES if (version := installed(name)) is not None}
    facts[translatable("Python is")] = sys.executable
    return facts


def environment() -> dict[str, str]:
    """Environment variables that change what runs; what sounds like a secret is left out."""
    return {
        name: value[:200] for name, value in sorted(os.environ.items())
        if (name.startswith(_PREFIXES) or name in _NAMED) and not any(word in name.upper() for word in _SECRET)
    }


def processor() -> str:
    """The processor's model."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def peak_memory() -> int:
    """The most bytes that this process has held so far."""
    try:
        import resource
    except ImportError:               # Windows counts elsewhere
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def device_peaks() -> dict[str, int]:
    """The most bytes that Tensors held on each accelerator that this process has used."""
    module = gpu_kinds.module()
    if not hasattr(module, "max_memory_allocated") or not module.is_available() or not module.is_initialized():
        return {}                                          # Apple's mps counts no peak
    return {f"GPU {index}": int(module.max_memory_allocated(index)) for index in range(module.device_count())}


def _accelerators() -> dict[str, str]:
    versions = {}
    for target in ("GPU", "Ascend"):
        for index in range(device.count(target)):
            memory = getattr(device_facts.properties(target, index), "total_memory", 0)
            versions[f"{target} {index}"] = f"{device_facts.name(target, index)}, {_shown(int(memory))}"
    return versions or {translatable("GPU, Ascend"): translate("none")}


def _short_paths() -> str:
    if operators.is_bundled():
        return translate("in use, from the wheel")
    return translate("in use") if operators.is_loaded() else translate("not in use")


def _shown(count: int) -> str:
    return format_bytes(count) if count else translate("unknown")
