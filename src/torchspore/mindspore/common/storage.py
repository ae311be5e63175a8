"""The memory behind a Tensor: `Tensor.untyped_storage()`."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short, with_type
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase, raw


class UntypedStorage:
    """The bytes that a Tensor and its views share. Tensors of one memory have storages with the same `data_ptr`."""

    def __init__(self, tensor: TensorBase) -> None:
        self._tensor = tensor

    @property
    def _storage(self) -> Any:
        return raw(self._tensor).untyped_storage()

    @property
    def device(self) -> str:
        """The device that holds the bytes, as in `Tensor.device`."""
        return str(self._tensor.device)  # type: ignore[attr-defined]

    @property
    def dtype(self) -> Any:
        """The dtype of the Tensor."""
        return FROM_TORCH[raw(self._tensor).dtype]

    def size(self) -> int:
        """Return the number of bytes."""
        return int(self._storage.nbytes())

    nbytes = size

    def element_size(self) -> int:
        """Return the bytes of one element of an untyped storage: 1."""
        return 1

    def data_ptr(self) -> int:
        """Return the address of the first byte, 0 for a storage without bytes."""
        return int(self._storage.data_ptr())

    def is_shared(self) -> bool:
        """Return whether other processes can use the bytes."""
        return bool(self._storage.is_shared())

    def resize_(self, size: int) -> UntypedStorage:
        """Make the storage `size` bytes long, keep the bytes that fit, and return it.

        Raises TypeError for a size that is not an int, RuntimeError for memory that a NumPy array shares.
        """
        if isinstance(size, bool) or not isinstance(size, int):
            raise TypeError(message(f"resize_({short(size)})", with_type("an int", size)))
        if not self._storage.resizable():
            raise RuntimeError(f"resize_({size}): expected memory that no NumPy array shares.\n\nhint: resize a copy: tensor.copy().")
        self._storage.resize_(size)
        return self

    def copy_(self, src: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Copy the bytes of `src`, which has the same size, and return the storage. Raises TypeError for another value."""
        if not isinstance(src, UntypedStorage):
            raise TypeError(message(f"copy_({short(src)})", with_type("an UntypedStorage", src)))
        self._storage.copy_(src._storage, non_blocking)
        return self

    def __len__(self) -> int:
        return self.size()
