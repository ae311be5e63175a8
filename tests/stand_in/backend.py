"""What torch and torchspore look for as `torch.spore`, and the registration of all of it."""
from __future__ import annotations

import dataclasses
import types
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils import backend_registration

from stand_in import guard, memory, norms, operators, pinned, randomness, recurrent, streams
from stand_in.counting import count_wait
from stand_in.memory import NAME

devices = randomness.devices


def _memory_of(device: Any) -> memory.MemoryCount:
    """Return the count of a device: a number, a torch.device, or None for the current one."""
    if device is None:
        return memory.memory_counts[torch.accelerator.current_device_index()]
    return memory.memory_counts[device if isinstance(device, int) else torch.device(device).index or 0]


class Module(backend_registration._DummyBackendModule):
    """What torch looks for as `torch.spore`."""

    @property
    def default_generators(self) -> list[torch.Generator]:
        return randomness.generators

    def device_count(self) -> int:
        return devices

    def get_device_name(self, device: Any = None) -> str:
        return "a stand-in accelerator"

    def get_device_properties(self, device: Any = None) -> Any:
        return types.SimpleNamespace(name=self.get_device_name(), total_memory=memory.TOTAL)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    Stream, Event = streams.Stream, streams.Event
    current_stream, default_stream = staticmethod(streams.current_stream), staticmethod(streams.default_stream)
    set_stream, stream = staticmethod(streams.set_stream), staticmethod(streams.stream)

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return randomness.generators[torch.device(device or 0).index or 0].get_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        randomness.generators[torch.device(device or 0).index or 0].set_state(state)

    def manual_seed_all(self, seed: int) -> None:
        for generator in randomness.generators:
            generator.manual_seed(seed)

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        """Return how many bytes tensors hold and how many are reserved, under the names of torch.cuda."""
        count = _memory_of(device)
        return {"allocated_bytes.all.current": count.now, "allocated_bytes.all.peak": count.peak,
                "reserved_bytes.all.current": count.reserved, "reserved_bytes.all.peak": count.reserved_peak}

    def memory_allocated(self, device: Any = None) -> int:
        return _memory_of(device).now

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """Return the free bytes and all bytes of a device."""
        return memory.TOTAL - _memory_of(device).reserved, memory.TOTAL

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        """Limit the memory to a part of what the device has. Raises ValueError for a part that is negative or above 1."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
        _memory_of(device).limit = int(fraction * memory.TOTAL)

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        _memory_of(device).reset_peak()

    def empty_cache(self) -> None:
        for count in memory.memory_counts:
            count.empty_cache()

    def synchronize(self, device: Any = None) -> None:
        synchronize(device)


def synchronize(device: Any = None) -> None:
    """Wait for all work of the device. Raises RuntimeError where a kernel has failed."""
    count_wait("a synchronization")
    streams.wait_for_all()
    operators.raise_failure()


_libraries: list[torch.library.Library] = []
"""Registrations are valid as long as these objects live."""


def register() -> Module:
    """Register the device in torch and return its module."""
    guard.register()
    guard.follow_events(streams.follow_autograd)
    module = Module()
    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=module)
    fallback, aten = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    _libraries[:] = fallback, aten
    fallback.fallback(operators.run, "PrivateUse1")
    for name, kernel in (
        ("convolution_overrideable", operators.convolution), ("convolution_backward_overrideable", operators.convolution_backward),
        ("resize_", operators.resize), ("set_.source_Storage_storage_offset", operators.set_storage),
        ("_to_copy", operators.to_copy), ("record_stream", operators.record_stream), ("_fused_sgd_", operators.fused_sgd),
        ("_fused_sgd_.tensor_lr", operators.fused_sgd), *recurrent.KERNELS.items(), *norms.KERNELS.items(),
        *((operator._schema.name.removeprefix("aten::") + f".{operator._overloadname}".removesuffix(".default"),
           partial(operators.run, operator)) for operator in operators.DIRECT),
    ):
        aten.impl(name, kernel, "PrivateUse1")
    for key in ("Conjugate", "Negative"):
        # Without this, torch resolves a conjugate before the copy by a copy of the conjugate, without end.
        aten.impl("_copy_from", torch.library.fallthrough_kernel, key)
    pinned.register()
    torch.accelerator.synchronize = synchronize
    torch.Generator = randomness.Generator
    return module


def begin() -> None:
    """Register the device, and let torchspore use it as its GPU, for the rest of the process."""
    module = register()

    from torchspore.base import frames
    from torchspore.engine.devices import device, gpu_kinds

    gpu_kinds.device_type, gpu_kinds.module = lambda: NAME, lambda: module
    gpu_kinds.NAMES[NAME], gpu_kinds.TOOLS[NAME] = "a stand-in accelerator", "tests/stand_in"
    # The lines of this package stand for torch's kernels. They are no lines of the program in messages.
    frames._is_user_file_cache.update((str(file), False) for file in Path(__file__).parent.glob("*.py"))
    count = device.count
    device.count = lambda target: devices if target == "GPU" else count(target)
    device._DEVICES.machine = dataclasses.replace(device._DEVICES.machine, backend=lambda target: module)
