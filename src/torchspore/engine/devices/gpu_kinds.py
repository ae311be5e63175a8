"""The kinds of GPU that `device_target='GPU'` means, torch's module for each, and which of them lack what CUDA has.

torch has one accelerator in each build: NVIDIA's CUDA, AMD's ROCm (which torch offers under the names of CUDA), Intel's xpu or Apple's mps.
"""
from __future__ import annotations

import shutil
import types
from typing import Any

import torch

from torchspore.engine.torch_internals import torch_private

CUDA, ROCM, XPU, MPS = "cuda", "rocm", "xpu", "mps"
NAMES = {CUDA: "NVIDIA's CUDA", ROCM: "AMD's ROCm", XPU: "Intel's xpu", MPS: "Apple's mps"}
TOOLS = {CUDA: "nvidia-smi", ROCM: "rocm-smi", XPU: "xpu-smi", MPS: "system_profiler SPDisplaysDataType"}
"""The command that shows more about the GPU."""
VISIBLE = {CUDA: "CUDA_VISIBLE_DEVICES", ROCM: "HIP_VISIBLE_DEVICES", XPU: "ZE_AFFINITY_MASK"}
"""The variable that hides GPUs from a process."""


def kind() -> str:
    """Return the kind of GPU that this build of torch uses; CUDA for a build without any."""
    type_name = device_type()
    return ROCM if type_name == CUDA and torch.version.hip is not None else type_name


def device_type() -> str:
    """Return torch's name for the GPU's device: "cuda" for CUDA and ROCm, "xpu" or "mps"."""
    accelerator = torch.accelerator.current_accelerator()
    return accelerator.type if accelerator is not None and accelerator.type in (XPU, MPS) else CUDA


def module() -> Any:
    """Return what has the functions of `torch.cuda` for the GPU, as far as its kind has them."""
    return {CUDA: torch.cuda, XPU: torch.xpu, MPS: mps}[device_type()]


def is_available() -> bool:
    """Return whether torch can use a GPU."""
    return bool(module().is_available())


def lacks(feature: str, *kinds: str) -> str:
    """Return why a `feature` that only `kinds` have does nothing here; empty where the GPU is of such a kind."""
    backend = kind()
    return "" if backend in kinds else f"{feature}, and the GPU is {NAMES[backend]}"


def is_built() -> bool:
    """Return whether torch was built for any GPU."""
    return torch.version.cuda is not None or torch.version.hip is not None or device_type() != CUDA


def of_another_build() -> str:
    """Return the kind of GPU whose driver is on this machine and that this build of torch does not know; empty where there is none."""
    built = kind() if is_built() else ""
    return next((other for other in (CUDA, ROCM, XPU) if other != built and shutil.which(TOOLS[other])), "")


class Mps:
    """Apple's GPU under the names of `torch.cuda`: `torch.mps` has one device, one stream, and functions of other names.

    It counts no largest figures of memory: `memory_stats` has the present ones alone.
    """

    Event = property(lambda self: torch.mps.event.Event)

    def is_available(self) -> bool:
        """Return whether macOS and the machine offer it."""
        return bool(torch.backends.mps.is_available())

    is_initialized = is_available

    def device_count(self) -> int:
        """Return 1, or 0 without the GPU."""
        return int(torch.mps.device_count())

    def current_device(self) -> int:
        """Return the only number."""
        return 0

    def get_device_name(self, device: Any = None) -> str:
        """Return a name for people; torch does not know the model."""
        return "Apple GPU (mps)"

    def get_device_properties(self, device: Any = None) -> Any:
        """Return the name and the bytes of memory that Apple recommends to use at most."""
        return types.SimpleNamespace(name=self.get_device_name(), total_memory=int(torch.mps.recommended_max_memory()))

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        """Limit the memory to a part of what Apple recommends."""
        torch.mps.set_per_process_memory_fraction(fraction)

    def memory_allocated(self, device: Any = None) -> int:
        """Return the bytes that tensors hold."""
        return int(torch.mps.current_allocated_memory())

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        """Return the bytes that tensors hold and that the driver reserves, under the names of `torch.cuda.memory_stats`."""
        return {"allocated_bytes.all.current": self.memory_allocated(),
                "reserved_bytes.all.current": int(torch.mps.driver_allocated_memory())}

    def empty_cache(self) -> None:
        """Give memory that no tensor holds back."""
        torch.mps.empty_cache()

    @property
    def default_generators(self) -> tuple[torch.Generator, ...]:
        """The generator of the only device."""
        return (torch_private.mps_generator(),)


mps = Mps()


def module_of(device: torch.device) -> Any:
    """Return what has the functions of `torch.cuda` for a device of any kind."""
    return mps if device.type == MPS else torch.get_device_module(device)
