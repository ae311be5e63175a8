"""Tensors whose initial values are drawn at their first use, as in MindSpore: the order of uses determines the numbers.

Until then such a Tensor has no torch tensor in its slot. Python looks up the missing slot in `__getattr__`, which only this class has,
so no other Tensor becomes slower. Drawing restores the object's normal class.
"""
from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.distributed.data_parallel import settings
from torchspore.distributed.parameter_server import roles
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.delayed_values import DelayedValue, is_delayed
from torchspore.graph.splitter import SPLIT_MODES
from torchspore.mindspore.common import tensor as front
from torchspore.mindspore.common.seed import get_seed

_NAME = "init_param_in_compile"
OPTION = "auto_parallel." + _NAME
SMALLEST = 1 << 14
"""Bytes from which on values are delayed."""
SMALLEST_IN_SERVER_JOB = 1 << 20
"""Bytes from which on the values of matrices are delayed in a parameter server job: each server draws the rows that it stores."""
_lock = threading.RLock()


class _Slices:
    """The seed of slices."""

    def __init__(self) -> None:
        self.seed = 0
        """MindSpore adds this to the index of a slice if the program has no seed."""


_SLICES = _Slices()


def postpone(tensor: Any, shape: Sequence[int], dtype: Any) -> None:
    """Let `tensor` draw its values from `tensor.init` at its first use. A Tensor of a user-defined class draws them now."""
    if type(tensor) is not front.Tensor:
        tensor._t = tensor.init._values_(shape, dtype)
        return
    tensor.__dict__["_shape_and_dtype_"] = tuple(shape), dtype
    tensor.__class__ = _Undrawn


def is_delay_requested() -> bool:
    """Return whether `init_param_in_compile` delays the values of Parameters until a graph is split over processes."""
    if not settings.is_set(_NAME) or not STORE.get(OPTION) or settings.mode() not in SPLIT_MODES:
        return False
    if settings.processes() == 1:
        effects.report(OPTION, Outcome.no_effect("there is one process"))
        return False
    return engine.frame() is None


def initial_values(tensor: Any) -> Any:
    """Return a torch tensor for a Parameter that gets the values of `tensor`: in its memory, or values that are delayed.

    Delayed are the values of an Initializer that describes them, if the switch is on and they are large. The draw from NumPy's stream
    happens now, so that all later draws are those of a program without the switch.
    """
    stored = tensor.__dict__.get("_shape_and_dtype_") if type(tensor) is _Undrawn else None
    if stored is not None and _is_delayed_here(*stored):
        described = tensor.init._describe_(*stored) if dtypes.to_torch(stored[1]).is_floating_point else None
        if described is not None:
            del tensor.__dict__["_shape_and_dtype_"]
            tensor._t, tensor.__class__ = DelayedValue(described), front.Tensor
            tensor._t.belongs_to(tensor)
            tensor.__dict__.pop("init", None)
    t = draw(tensor)._t
    return DelayedValue(t.initial) if is_delayed(t) else t


def is_table_of_server_job(shape: Sequence[int], dtype: Any) -> bool:
    """Return whether values may be those of a table of which each server of a parameter server job draws its rows."""
    if len(shape) != 2 or not roles.has_cluster() or engine.frame() is not None:
        return False
    return math.prod(shape) * dtypes.to_torch(dtype).itemsize >= SMALLEST_IN_SERVER_JOB


def _is_delayed_here(shape: Sequence[int], dtype: Any) -> bool:
    is_large = math.prod(shape) * dtypes.to_torch(dtype).itemsize >= SMALLEST
    return is_table_of_server_job(shape, dtype) or (is_large and is_delay_requested())


def draw(tensor: Any, slice_index: int | None = None, shape: Any = None) -> Any:
    """Draw the values of `tensor` if it has an Initializer; return it. See `Tensor.init_data`."""
    init = tensor.init
    if init is None:
        return tensor
    is_undrawn = type(tensor) is _Undrawn
    if is_undrawn or slice_index is not None or shape is not None:
        around = engine.frame()
        if around is not None:
            around.acts_beside("draws the initial values of a Tensor")
        with _lock:
            if tensor.init is None:                          # another thread has drawn them
                return tensor
            _draw(tensor, init, slice_index, shape)
    tensor.__dict__.pop("init", None)
    return tensor


def _draw(tensor: Any, init: Any, slice_index: int | None, shape: Any) -> None:
    drawn_shape, dtype = tensor.__dict__.pop("_shape_and_dtype_", None) or (tensor.shape, tensor.dtype)
    if shape is not None:
        drawn_shape = (shape,) if isinstance(shape, int) else tuple(shape)
    try:
        values = init._values_(drawn_shape, dtype) if slice_index is None else _slice(init, drawn_shape, dtype, int(slice_index))
    except BaseException:
        if type(tensor) is _Undrawn:
            tensor.__dict__["_shape_and_dtype_"] = drawn_shape, dtype
        raise
    tensor._t = values
    tensor.__class__ = front.Tensor if type(tensor) is _Undrawn else type(tensor)
    tensor.__dict__.pop("init", None)


def _slice(init: Any, shape: Any, dtype: Any, index: int) -> Any:
    """Return the values of one slice, from a seed that every device with this slice uses."""
    numpy_state: Any = np.random.get_state(legacy=False)
    seed_before, init_seed = int(numpy_state["state"]["key"][0]), init.seed
    base = get_seed()
    np.random.seed(index + (_SLICES.seed if base is None else base))
    init.seed = index + (_SLICES.seed if base is None else base)
    if base is None:
        from torchspore.distributed.comm import groups

        _SLICES.seed += 2 * groups.size()
    try:
        return init._values_(shape, dtype)
    finally:
        np.random.seed(seed_before)
        init.seed = init_seed[0]


class _Undrawn(front.Tensor):
    """A Tensor without values yet; a program sees a `Tensor`."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name == "_t":
            draw(self)
        return object.__getattribute__(self, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return front.Tensor.__deepcopy__(draw(self), memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return front.Tensor.__reduce_ex__(draw(self), protocol)


_Undrawn.__name__ = _Undrawn.__qualname__ = "Tensor"
_Undrawn.__module__ = front.Tensor.__module__
