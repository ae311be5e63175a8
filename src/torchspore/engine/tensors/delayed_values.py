"""A Parameter whose initial values take no memory until they are needed: a split graph draws this process's part of them alone."""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from torchspore.engine.devices import device
from torchspore.engine.tensors import change_counters
from torchspore.engine.torch_internals import torch_private
from torchspore.engine.torch_internals.torch_private import tree_map

_lock = threading.RLock()


class Drawable(Protocol):
    """Values that can be drawn in parts (`engine.random.initial_values`)."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    def draw(self, part: Sequence[slice] | None = None) -> torch.Tensor:
        """Return the values, or a part of them."""


class DelayedValue(torch.Tensor):
    """Represents initial values that are not drawn yet.

    The first operator that needs them, or a read by Python, draws all of them; the owner's slot contains an ordinary tensor from then on.
    """

    initial: Drawable
    _drawn: torch.Tensor | None
    _owner: Callable[[], Any]

    @staticmethod
    def __new__(cls, initial: Drawable) -> DelayedValue:
        like = torch.empty(initial.shape, dtype=initial.dtype, device="meta")
        value: DelayedValue = torch_private.wrapper_tensor(cls, like, device.current())
        value.initial, value._drawn, value._owner = initial, None, lambda: None
        return value

    __torch_function__ = torch_private.no_torch_function  # type: ignore[assignment]

    def belongs_to(self, owner: Any) -> None:
        """Let the slot of this Tensor contain the values as soon as they are drawn."""
        self._owner = weakref.ref(owner)

    def draw(self) -> torch.Tensor:
        """Return all values, which are drawn once."""
        with _lock:
            if self._drawn is None:
                self._drawn = self.initial.draw()
                owner = self._owner()
                if owner is not None and owner._t is self:
                    owner._t = self._drawn
                    change_counters.rebinds += 1
            return self._drawn

    @property
    def _version(self) -> int:  # type: ignore[override]
        return 0 if self._drawn is None else self._drawn._version

    def numpy(self, *, force: bool = False) -> Any:
        """The values as a NumPy array."""
        return self.draw().numpy(force=force)

    def tolist(self) -> Any:
        """The values as nested lists."""
        return self.draw().tolist()

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.draw().data_ptr()

    def untyped_storage(self) -> Any:
        """The memory of the values."""
        return self.draw().untyped_storage()

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.draw().__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.draw().__dlpack_device__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.draw().__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        return self.draw().clone()

    def __repr__(self) -> str:  # type: ignore[override]
        return repr(self.draw())

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None,
    ) -> Any:
        return function(*tree_map(_values_of, args), **tree_map(_values_of, kwargs or {}))


def _values_of(leaf: Any) -> Any:
    return leaf.draw() if isinstance(leaf, DelayedValue) else leaf


def is_delayed(t: Any) -> bool:
    """Return whether `t` stands for values that are not drawn yet."""
    return isinstance(t, DelayedValue) and t._drawn is None


def draw_in(tensor: Any) -> None:
    """Draw the values of a Tensor if they are not drawn yet; its slot contains them from then on."""
    t = getattr(tensor, "_t", None)
    if isinstance(t, DelayedValue):
        tensor._t = t.draw()
