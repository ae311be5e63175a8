"""`x[...]` and `x[...] = v`."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchspore.base.frames import line_prefix
from torchspore.base.text import with_hint
from torchspore.engine.autograd import integer_gradients
from torchspore.engine.tensors import creation
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.tensor import TensorBase, modify, raw, unwrap, wrap
from torchspore.mindspore.ops.declaration.explain import shown
from torchspore.mindspore.ops.declaration.indices import as_index_or_mask
from torchspore.mindspore.ops.declaration.reasons import is_torch, reason


def _index(tensor: TensorBase, index: Any) -> Any:
    """Convert a MindSpore index to a torch index: Tensors and arrays as int64 or bool, lists as Tensors."""
    if isinstance(index, list) and any(not isinstance(part, (int, np.integer)) for part in index):
        index = tuple(index)  # as in NumPy before 1.23: a list of lists, slices or Tensors has one index per axis
    if not isinstance(index, tuple):
        return _part(tensor, index)
    parts = [_part(tensor, part) for part in index]
    if any(isinstance(part, (torch.Tensor, list)) and (isinstance(part, list) or part.ndim) for part in parts):
        parts = [_as_index_tensor(part, raw(tensor).device) for part in parts]
    return tuple(parts)


def _as_index_tensor(part: Any, device: torch.device) -> Any:
    """Convert an int next to index Tensors to an index Tensor: it affects where their axis goes, but torch applies ints first."""
    if isinstance(part, torch.Tensor) and not part.ndim and part.dtype is not torch.bool:
        return part.reshape(1)
    return torch.full((1,), int(part), dtype=torch.int64, device=device) if isinstance(part, int) and not isinstance(part, bool) else part


def _integers(t: torch.Tensor) -> torch.Tensor:
    try:
        return as_index_or_mask(t)
    except TypeError as error:
        raise IndexError(str(error)) from None                  # as in MindSpore and NumPy


def _part(tensor: TensorBase, part: Any) -> Any:
    if isinstance(part, (TensorBase, torch.Tensor)):
        return _integers(unwrap(part))
    if isinstance(part, (list, tuple, np.ndarray)):
        return _integers(creation.from_data(part))
    if isinstance(part, slice):
        return slice(*(None if v is None else _bound(v) for v in (part.start, part.stop, part.step)))
    if isinstance(part, (int, np.integer)) or part is None or part is Ellipsis or isinstance(part, (bool, range)):
        return list(part) if isinstance(part, range) else part
    raise IndexError(f"expected ints, slices, None, ..., lists, bools or Tensors, got {type(part).__name__}.")


def _bound(value: Any) -> int:
    """Return a bound or the step of a slice as an int."""
    if isinstance(value, (float, str)):
        raise TypeError(f"Slice indices must be integers or bool. Expected an int, got {value!r:.40}.")
    return creation.length(value)


def _reversed(t: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    """Convert slices with negative steps to flips, because torch does not accept them."""
    if not _steps_back(index):
        return t, index
    parts = list(index) if isinstance(index, tuple) else [index]
    axis, out = 0, []
    spare = t.ndim - sum(p is not None and p is not Ellipsis for p in parts)
    for part in parts:
        if part is Ellipsis:
            axis += spare
        elif isinstance(part, slice) and part.step is not None and part.step < 0:
            chosen = range(*part.indices(t.shape[axis]))
            t = t.index_select(axis, constant(list(chosen), t.device, torch.int64))
            part = slice(None)
        out.append(part)
        axis += part is not None and part is not Ellipsis
    return t, tuple(out)


def _steps_back(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, slice) and part.step is not None and part.step < 0 for part in parts)


def _coordinates(t: torch.Tensor, index: Any) -> tuple[torch.Tensor, ...]:
    """Return an index of index tensors for an index with negative steps, for a write."""
    positions = torch.arange(t.numel(), device=t.device).reshape(t.shape)
    return torch.unravel_index(part_of(positions, index), t.shape)


def part_of(t: torch.Tensor, index: Any) -> torch.Tensor:
    """Return the part for an index of ints, slices (also with negative steps), None and ...."""
    t, at = _reversed(t, index)
    return t[at]


def getitem(self: Any, index: Any) -> Any:
    """Return the part of the Tensor at `index`; a basic index returns a view. Raises IndexError if it is out of range."""
    if isinstance(index, int) and not isinstance(index, (bool, TensorBase)):  # a symbolic number of a graph is both
        t = raw(self)
        if t.ndim and -t.shape[0] <= index < t.shape[0]:
            return wrap(t[index])
    try:
        if _is_basic(index):
            return wrap(raw(self)[index])
        at = _index(self, index)
        if any(part is False for part in (at if isinstance(at, tuple) else (at,))):
            raise IndexError("When tensor is indexed by a bool object, the value only support 'True'.")
        if isinstance(at, torch.Tensor) and not at.ndim and at.dtype is not torch.bool:
            return wrap(raw(self)[at.reshape(1)].squeeze(0))  # an int index would make torch read the number on the host
        if engine.active and isinstance(at, tuple) and any(map(_is_scalar, at)):
            if all(_is_scalar(part) or isinstance(part, (int, slice)) for part in at):
                return wrap(_part_by_axes(raw(self), at))
        return wrap(part_of(raw(self), at))
    except (LookupError, RuntimeError, TypeError, ValueError, ArithmeticError, AttributeError, MemoryError) as error:
        raise _explained(self, f"x[{_index_text(index)}]", error) from None


_BOUNDS = (int, type(None))


def _is_basic(index: Any) -> bool:
    """Return whether an index has only ints, None, ... and slices of ints without a step: torch takes it as it is."""
    for part in index if type(index) is tuple else (index,):
        kind = type(part)
        if kind is slice:
            if part.step is not None or type(part.start) not in _BOUNDS or type(part.stop) not in _BOUNDS:
                return False
        elif kind is not int and part is not None and part is not Ellipsis:
            return False
    return True


def _is_scalar(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and not part.ndim and part.dtype is not torch.bool


def _part_by_axes(t: torch.Tensor, at: tuple[Any, ...]) -> torch.Tensor:
    """Return the part at ints, slices and 0-d Tensors, without reading any of them on the host."""
    axis = 0
    for part in at:
        before = (slice(None),) * axis
        if isinstance(part, torch.Tensor):
            t = t[(*before, part.reshape(1))].squeeze(axis)
        else:
            t = t[(*before, part)]
            axis += isinstance(part, slice)
    return t


def _is_mask_of(t: torch.Tensor, at: Any) -> bool:
    return isinstance(at, torch.Tensor) and at.dtype is torch.bool and 0 < at.ndim <= t.ndim and at.shape == t.shape[: at.ndim]


def setitem(self: Any, index: Any, value: Any) -> None:
    """Write `value` into the part at `index`, in place."""
    try:
        at = _index(self, index)
        if isinstance(at, torch.Tensor) and not at.ndim and at.dtype is not torch.bool:
            at = at.reshape(1)
        if _steps_back(at):
            at = _coordinates(self._t, at)
        source = raw(value) if isinstance(value, TensorBase) else value
        if isinstance(source, (list, tuple)) and not any(isinstance(item, TensorBase) for item in source):
            source = creation.from_data(list(source), self.dtype)  # not through an array, because a graph tracks the list's numbers
        elif isinstance(source, (list, tuple, np.ndarray, np.generic)):
            source = creation.from_data(source if isinstance(source, np.ndarray) else np.asarray(source))
        if isinstance(source, torch.Tensor):
            if source.dtype is not self._t.dtype:
                source = integer_gradients.cast(source, self._t.dtype)
            if not source.ndim and self._t.device.type != "cpu" and _is_mask_of(self._t, at):
                # An index of a mask would make torch read on the host how many elements the mask has.
                mask = at.reshape(*at.shape, *[1] * (self._t.ndim - at.ndim))
                modify(self, lambda t: t.masked_fill_(mask, source))
                return
        modify(self, lambda t: t.__setitem__(at, source))
    except (LookupError, RuntimeError, TypeError, ValueError, ArithmeticError, AttributeError, MemoryError) as error:
        raise _explained(self, f"x[{_index_text(index)}] = {shown(value)}", error) from None


def _index_text(index: Any) -> str:
    return ", ".join(map(shown, index)) if isinstance(index, tuple) else shown(index)


def _explained(tensor: TensorBase, expression: str, error: Exception) -> Exception:
    """Return the error for a part of `tensor` that does not exist or cannot be written."""
    if not is_torch(error):
        return type(error)(f"{line_prefix()}{expression}: {error}")
    kind, sentence, hint = reason("index", {"x": tensor}, error)
    text = f"{line_prefix()}{expression} of shape {tuple(tensor._t.shape)}: {sentence}"
    return kind(text if hint is None else with_hint(text, hint))
