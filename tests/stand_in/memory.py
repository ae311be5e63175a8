"""The memory of the device: each storage of the device owns the storage of the host that holds its values.

DLPack carries memory from one library to another together with its owner. `_import` exports a tensor, writes another device into the
exported header, and imports it: the new tensor owns the old one. So memory lives exactly as long as a tensor of either device shows it,
and no table of addresses is needed.
"""
from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import Any

import torch

NAME = "spore"
_HOST_KIND, _DEVICE_KIND = 1, 12
"""DLPack's numbers: kDLCPU, and kDLExtDev, which torch reads as PrivateUse1."""
_HOST_KERNELS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_set = torch.ops.aten.set_.source_Storage_storage_offset
_header = ctypes.pythonapi.PyCapsule_GetPointer
_header.restype, _header.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


TOTAL = 2**34
"""The bytes of memory of each device."""
_BLOCK = 512
"""torch.cuda takes memory in multiples of this."""


@dataclass
class MemoryCount:
    """The bytes of one device that its storages hold and that are reserved, now and at most, as torch.cuda counts them.

    Released memory stays reserved until `empty_cache`, or until a storage does not fit without it.
    """

    index: int
    limit: int = TOTAL
    now: int = 0
    peak: int = 0
    reserved: int = 0
    reserved_peak: int = 0

    def add(self, storage: torch.UntypedStorage) -> None:
        """Count a new storage, and its release. Raises torch.OutOfMemoryError where it goes beyond the limit."""
        size = -(-storage.nbytes() // _BLOCK) * _BLOCK
        if self.now + size > self.limit:
            raise torch.OutOfMemoryError(
                f"stand-in out of memory. Tried to allocate {size / 2**20:.2f} MiB. GPU {self.index} has a total capacity of "
                f"{TOTAL / 2**30:.2f} GiB, of which this process may take {self.limit / 2**20:.2f} MiB; {self.now / 2**20:.2f} MiB are "
                "allocated.")
        self.now += size
        self.reserved = max(self.reserved, self.now)
        if self.reserved > self.limit:
            self.empty_cache()
        self.peak, self.reserved_peak = max(self.peak, self.now), max(self.reserved_peak, self.reserved)
        weakref.finalize(storage, self._release, size).atexit = False

    def _release(self, size: int) -> None:
        self.now -= size

    def empty_cache(self) -> None:
        """Give memory that no storage holds back."""
        self.reserved = self.now

    def reset_peak(self) -> None:
        """Begin the largest figures anew."""
        self.peak, self.reserved_peak = self.now, self.reserved


memory_counts = [MemoryCount(index) for index in range(2)]
"""The memory of each device."""


def is_on_device(value: Any) -> bool:
    """Return whether a value is a tensor of the device."""
    return isinstance(value, torch.Tensor) and value.device.type == NAME


def _import(flat: torch.Tensor, kind: int, index: int) -> torch.Tensor:
    """Return a tensor of another device on the memory of `flat`, which it owns."""
    capsule = torch._C._to_dlpack(flat)
    device = (ctypes.c_int32 * 2).from_address(_header(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p))
    device[0], device[1] = kind, index
    tensor: torch.Tensor = torch._C._from_dlpack(capsule)
    return tensor


def view_of_device(storage: torch.UntypedStorage, dtype: torch.dtype, *layout: Any) -> torch.Tensor:
    """Return a tensor of the device on a storage; `layout` is the offset, the shape and the strides, in elements."""
    index = storage.device.index or 0
    head = _import(torch.empty(0, dtype=dtype), _DEVICE_KIND, index) if index else torch._C._acc.create_empty_tensor([0], dtype)
    tensor: torch.Tensor = _set.redispatch(_HOST_KERNELS, head, storage, *layout)
    return tensor


def view_of_host(storage: torch.UntypedStorage, dtype: torch.dtype, *layout: Any) -> torch.Tensor:
    """Return a tensor of the host on a storage; `layout` is the offset, the shape and the strides, in elements."""
    return torch.empty(0, dtype=dtype).set_(storage, *layout)


def view_like(storage: torch.UntypedStorage, tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the host on a storage, with the layout of a tensor of the device."""
    values = view_of_host(storage, tensor.dtype, tensor.storage_offset(), tensor.shape, tensor.stride())
    values = values.conj() if tensor.is_conj() else values
    return torch._neg_view(values) if tensor.is_neg() else values


class Pairs:
    """The storages of one operator's call, on both devices: tensors that share memory on one side share it on the other."""

    def __init__(self, index: int = 0) -> None:
        self.index = index
        self._hosts: dict[int, torch.UntypedStorage] = {}
        self._devices: dict[int, torch.UntypedStorage] = {}

    def host(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the values of a tensor of the device, with its layout, on the same memory."""
        storage = tensor.untyped_storage()
        if tensor.numel() and not storage.data_ptr():
            raise RuntimeError("the stand-in accelerator reads a tensor without memory")
        entry = self._hosts.get(storage._cdata)
        if entry is None:
            flat = view_of_device(storage, torch.uint8, 0, (storage.nbytes(),), (1,))
            self.index = tensor.device.index or 0
            entry = self._connect(_import(flat, _HOST_KIND, 0).untyped_storage(), storage)
        return view_like(entry, tensor)

    def device(self, values: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the device with the values and the layout of a tensor of the host, on the same memory."""
        if values.layout is not torch.strided:
            raise NotImplementedError(f"the stand-in accelerator has no tensors of layout {values.layout}")
        if values._is_zerotensor():             # torch's zeros without memory, for derivatives; torch does not read their memory
            values = torch.zeros_like(values)
        storage = values.untyped_storage()
        entry = self._devices.get(storage._cdata)
        if entry is None:
            flat = view_of_host(storage, torch.uint8, 0, (storage.nbytes(),), (1,))
            entry = _import(flat, _DEVICE_KIND, self.index).untyped_storage()
            memory_counts[self.index].add(entry)
            self._connect(storage, entry)
        tensor = view_of_device(entry, values.dtype, values.storage_offset(), values.shape, values.stride())
        tensor = tensor.conj() if values.is_conj() else tensor
        return torch._neg_view(tensor) if values.is_neg() else tensor

    def _connect(self, host: torch.UntypedStorage, device: torch.UntypedStorage) -> torch.UntypedStorage:
        self._hosts[device._cdata], self._devices[host._cdata] = host, device
        return host


def host_values(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values of a tensor of the device, on the same memory."""
    return Pairs().host(tensor)
