"""Pinned memory of the host: ordinary memory that is noted here, for torch has it from the device, and asks no Python for it."""
from __future__ import annotations

import warnings
import weakref
from typing import Any

import torch

from stand_in.memory import NAME, view_of_device

_aten = torch.ops.aten
_storages: set[int] = set()
_libraries: list[torch.library.Library] = []


def is_pinned(tensor: torch.Tensor, device: Any = None) -> bool:
    """Return whether the memory of a tensor of the host is pinned."""
    return tensor.untyped_storage()._cdata in _storages


def pin(tensor: torch.Tensor) -> torch.Tensor:
    """Note that the memory of a tensor is pinned, as long as it lives; return the tensor."""
    storage = tensor.untyped_storage()
    _storages.add(storage._cdata)
    weakref.finalize(storage, _storages.discard, storage._cdata).atexit = False
    return tensor


def _pinned_copy(tensor: torch.Tensor, device: Any = None) -> torch.Tensor:
    return pin(tensor.clone())


def _empty(
    size: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None, memory_format: Any = None,
) -> torch.Tensor:
    """Allocate a tensor. This is the kernel that chooses among devices, which is asked before memory is pinned."""
    kind = torch.device(device or "cpu").type
    keys = torch._C.DispatchKeySet(torch._C._dispatch_key_for_device(kind))
    empty: Any = _aten.empty.memory_format
    names = {"dtype": dtype, "layout": layout, "device": device, "memory_format": memory_format}
    if pin_memory and kind == "cpu":
        return pin(empty.redispatch(keys, size, **names))
    return empty.redispatch(keys, size, **names, pin_memory=pin_memory)


def _empty_like(tensor: torch.Tensor, *, pin_memory: Any = None, device: Any = None, **names: Any) -> torch.Tensor:
    """Allocate a tensor of the shape of a tensor of the device; one of the host may be pinned."""
    device = torch.device(device or tensor.device)
    values = torch.empty_like(torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"), **names)
    new = torch.empty_strided(values.shape, values.stride(), dtype=values.dtype, device=device)
    return pin(new) if pin_memory and device.type == "cpu" else new


def register() -> None:
    """Register pinned memory in torch."""
    library = torch.library.Library("aten", "IMPL")
    _libraries[:] = [library]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                     # torch warns of kernels that replace its own
        library.impl("is_pinned", is_pinned, "CPU")
        library.impl("is_pinned", lambda tensor, device=None: False, "PrivateUse1")
        library.impl("_pin_memory", _pinned_copy, "CPU")
        library.impl("empty.memory_format", _empty, "BackendSelect")
        library.impl("empty_like", _empty_like, "PrivateUse1")
    resizable = torch.UntypedStorage.resizable

    def is_resizable(storage: torch.UntypedStorage) -> bool:
        # torch can not build storages of a Python device that it resizes. Offloading asks for it: memory of a GPU is torch's to free.
        return storage.device.type == NAME or resizable(storage)

    torch.UntypedStorage.resizable = is_resizable
    clone = torch.UntypedStorage.clone

    def clone_storage(storage: torch.UntypedStorage) -> torch.UntypedStorage:
        # torch's allocator for such a device gives no memory, and the process ends; copy.deepcopy of a tensor comes here.
        if storage.device.type != NAME:
            return clone(storage)
        return view_of_device(storage, torch.uint8, 0, (storage.nbytes(),), (1,)).clone().untyped_storage()

    torch.UntypedStorage.clone = clone_storage
