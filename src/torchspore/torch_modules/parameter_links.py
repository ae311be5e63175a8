"""A Parameter of a Cell and a Parameter of a torch Module in one memory, whichever side gives it new memory."""
from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from torchspore.base.text import message
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.tensor import LINKS, TensorBase, outside, tell_links

_tensors = WeakTensorKeyDictionary()
"""Weak references to the MindSpore Tensors, by the torch tensors that Modules have for them."""

joins = 0
"""Counts the torch tensors that links have received in place of others."""


class Link:
    """Joins a MindSpore Tensor (a Parameter or a buffer) and a torch tensor, the entry `name` of `home`."""

    __slots__ = ("address", "can_follow", "dtype", "home", "is_alone", "is_buffer", "is_trained", "name", "stored", "t", "tensor")
    is_alone: bool
    """True if the Tensor has no other link."""

    def __init__(self, tensor: Any, t: torch.Tensor, home: dict[str, Any], name: str, can_follow: bool = False) -> None:
        """With `can_follow`, the Module gets the torch tensor that replaces the Tensor's in another Module."""
        self.tensor, self.t, self.home, self.name, self.can_follow = tensor, t, home, name, can_follow
        self.is_buffer = not isinstance(t, torch.nn.Parameter)
        self._remember()
        links = tensor.__dict__.setdefault(LINKS, [])
        links.append(self)
        for link in links:
            link.is_alone = len(links) == 1
        _tensors[t] = weakref.ref(tensor)

    def _remember(self) -> None:
        self.stored, self.address, self.dtype = self.tensor._t, self.t.data_ptr(), self.t.dtype
        self.is_trained = self.t.requires_grad

    def is_replaced(self) -> bool:
        """Return whether the Module has another object now, as inside `torch.func.functional_call`."""
        return self.home.get(self.name) is not self.t

    def take_values(self) -> bool:
        """Copy the values of another buffer of equal shape that the Module has now; return whether that was possible."""
        now = self.home.get(self.name)
        if isinstance(self.t, torch.nn.Parameter) or not isinstance(now, torch.Tensor) or now.shape != self.t.shape:
            return False
        with torch.no_grad():
            self.t.copy_(now)
        self.home[self.name] = self.t
        return True

    def update(self) -> None:
        """Give both the memory, dtype and requires_grad of the one that has changed."""
        t, tensor = self.t, self.tensor
        if (
            tensor._t is self.stored and t.data_ptr() == self.address and t.dtype is self.dtype
            and (self.is_buffer or t.requires_grad is self.is_trained is tensor.requires_grad)
        ):
            return
        if self.tensor._t is not self.stored:
            self.t.data = self.tensor._t.detach()
        elif self.t.data_ptr() != self.address or self.t.dtype is not self.dtype:
            self.move()
        self.take_flag()
        self._remember()

    def take_flag(self) -> None:
        """Give the Cell's Parameter the requires_grad that the Module's has received."""
        if not self.is_buffer and self.t.requires_grad is not self.is_trained:
            self.is_trained = self.t.requires_grad
            self.tensor.requires_grad = self.is_trained

    def give_flag(self, is_trained: bool) -> None:
        """Give the Module's parameter the requires_grad that the Cell's has received."""
        if not self.is_buffer and self.t.requires_grad is not is_trained and can_be_trained(self.t):
            self.t.requires_grad_(is_trained)
            self.is_trained = is_trained

    def move(self) -> None:
        """Give the Cell's Parameter the memory of the Module's."""
        self.tensor._t = self.t.detach()
        change_counters.rebinds += 1
        self._remember()
        tell_links(self.tensor)

    def adopt(self) -> None:
        """Join the Cell's Parameter with the object that the Module has now."""
        t = self.home.get(self.name)
        if isinstance(t, torch.Tensor) and t is not self.t:
            global joins
            for link in self.tensor.__dict__[LINKS]:          # an optimizer of one Module then trains the others too
                if link.can_follow and link.is_buffer is self.is_buffer and not link.is_replaced():
                    link.home[link.name] = link.t = t
            self.t = t
            joins += 1
            _tensors[t] = weakref.ref(self.tensor)
            if isinstance(t, torch.nn.Parameter):
                self.tensor.requires_grad = t.requires_grad
            self.move()


def tensor_of(t: torch.Tensor) -> Any:
    """Return the Tensor that a Cell or a Module has joined with a torch tensor, with the present memory; None without one."""
    reference = _tensors.get(t)
    tensor = None if reference is None else reference()
    for link in () if tensor is None else tensor.__dict__.get(LINKS, ()):
        if link.t is t:
            link.update()
            return tensor
    return None


def torch_parameter_of(tensor: Any) -> torch.nn.Parameter | None:
    """Return the torch Parameter that a Module has for a Parameter, with the present memory; None without one."""
    for link in tensor.__dict__.get(LINKS, ()):
        if isinstance(link.t, torch.nn.Parameter) and not link.is_replaced():
            link.update()
            return link.t
    return None


def can_be_trained(t: torch.Tensor) -> bool:
    """Return whether torch can record a gradient of `t`."""
    return t.dtype.is_floating_point or t.dtype.is_complex


def stored_tensor(tensor: TensorBase, what: str) -> torch.Tensor:
    """Return the torch tensor that stores a Parameter or a buffer. Raises TypeError if this process stores only a part of it."""
    with outside():
        tensor.init_data()  # type: ignore[attr-defined]
    t = tensor._t
    if type(t) is not torch.Tensor:
        raise TypeError(message(f"as_module: {what}", "a complete value in the memory of this process, not a part of it"))
    return t
