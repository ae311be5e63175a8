"""`Layout`, `shard` and `reshard`: the cut of Tensors among devices in split graphs; elsewhere operators run unsplit."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.cell_facts import check_strategies
from torchspore.public_names import missing


class Layout:
    """A grid of devices with named axes. A call with a name, 'None', or a tuple of names for each axis of a Tensor defines its cut. Raises
    TypeError and ValueError for invalid arguments.
    """

    def __init__(self, device_matrix: tuple[int, ...], alias_name: tuple[str, ...], rank_list: list[int] | None = None) -> None:
        for name, value, kind, item in (
            ("device_matrix", device_matrix, tuple, int), ("alias_name", alias_name, tuple, str), ("rank_list", rank_list, list, int),
        ):
            if value is None and name == "rank_list":
                continue
            if not isinstance(value, kind) or not all(isinstance(element, item) and not isinstance(element, bool) for element in value):
                raise TypeError(message(f"Layout({name}={short(value)})", f"a {kind.__name__} of {item.__name__}s"))
        if len(device_matrix) != len(alias_name):
            raise ValueError(message(f"Layout({device_matrix}, {alias_name})", "a name for each axis"))
        if len(set(alias_name)) != len(alias_name) or {"", "None"} & set(alias_name):
            raise ValueError(message(f"Layout(alias_name={alias_name})", "names that differ, none of them '' or 'None'"))
        count = int(np.prod(device_matrix))
        if rank_list is not None and (len(rank_list) != count or len(set(rank_list)) != count):
            raise ValueError(message(f"Layout(rank_list={short(rank_list)})", f"{count} numbers that differ"))
        if "interleaved_parallel" in alias_name[:-1]:
            raise ValueError(message(f"Layout(alias_name={alias_name})", "'interleaved_parallel' as the last name"))
        if any(size < 1 for size in device_matrix):
            raise ValueError(message(f"Layout({device_matrix}, ...)", "numbers from 1 on"))
        self._devices, self._names = device_matrix, alias_name
        self._ranks = list(range(count)) if rank_list is None else list(rank_list)
        self._axes_of_devices: tuple[Any, ...] | None = None

    def __call__(self, *tensor_map: Any) -> Layout:
        """Returns the layout of a Tensor: for each of its axes the name, or names, of the device axes that cut it."""
        layout = Layout(self._devices, self._names, self._ranks)
        layout._axes_of_devices = tuple(
            tuple(map(self._device_axis, names)) if isinstance(names, tuple) else self._device_axis(names) for names in tensor_map
        )
        used = [axis for axes in layout._axes_of_devices for axis in (axes if isinstance(axes, tuple) else (axes,)) if axis != -1]
        if len(set(used)) != len(used):
            raise ValueError(message(f"Layout(...){tensor_map}", "each name once"))
        return layout

    def _device_axis(self, name: Any) -> int:
        if name == "None":
            return -1
        if name not in self._names:
            raise ValueError(message(f"Layout(...)({short(name)})", list_choices(self._names)))
        return len(self._names) - 1 - self._names.index(name)

    def __repr__(self) -> str:
        ranks = "" if self._ranks == list(range(len(self._ranks))) else f", {self._ranks}"
        layout = f"Layout({self._devices}, {self._names}{ranks})"
        if self._axes_of_devices is None:
            return layout
        names = (*reversed(self._names), "None")                          # -1 stands for an axis that is not cut
        parts = [tuple(names[axis] for axis in axes) if isinstance(axes, tuple) else names[axes] for axes in self._axes_of_devices]
        return f"{layout}({', '.join(map(repr, parts))})"

    def to_dict(self) -> dict[str, Any]:
        """Returns the layout as a dict. Raises ValueError before a call."""
        if self._axes_of_devices is None:
            raise ValueError(message("Layout(...).to_dict()", "a call with names first: layout('a', 'None')"))
        return {
            "device_matrix": self._devices, "tensor_map": self._axes_of_devices,
            "interleaved_parallel": "interleaved_parallel" in self._names,
            "alias_name": self._names, "rank_list": self._ranks,
        }


def shard(fn: Any, in_strategy: tuple[Any, ...], out_strategy: Any = None, parameter_plan: dict[str, Any] | None = None) -> Any:
    """Returns the Cell, or a wrapped function, whose inputs and results are cut by the strategies in graphs that are split among devices.

    A strategy is a tuple with a tuple of numbers, a Layout, or None for each Tensor. Elsewhere it runs unsplit, and `explain` reports it.
    Raises TypeError unless `fn` is a Cell or function, the strategies are tuples and the plan is a dict.
    """
    if not isinstance(fn, Cell) and not callable(fn):
        raise TypeError(message(f"shard({short(fn)})", f"a Cell or a function, got {type(fn).__name__}"))
    if not isinstance(fn, Cell):
        for name, value, kind in (
            ("in_strategy", in_strategy, tuple), ("out_strategy", out_strategy, tuple), ("parameter_plan", parameter_plan, dict),
        ):
            if not isinstance(value, kind) and (value is not None or name == "in_strategy"):
                raise TypeError(message(f"shard({name}={short(value)})", f"a {kind.__name__}, got {type(value).__name__}"))
    else:
        return fn.shard(in_strategy, out_strategy, parameter_plan)
    check_strategies(f"shard({short(in_strategy)})", in_strategy, out_strategy)
    return _sharded(fn, in_strategy, out_strategy)


def _sharded(fn: Callable[..., Any], in_strategy: tuple[Any, ...], out_strategy: tuple[Any, ...] | None) -> Callable[..., Any]:
    """Wrap a function so that it lays out its inputs and results."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        from torchspore.distributed.shard import function_strategies

        args, kwargs = function_strategies.placed(f"an input of {call.__name__}", (args, kwargs), in_strategy)
        return function_strategies.placed(f"a result of {call.__name__}", fn(*args, **kwargs), out_strategy)

    return call


def reshard(tensor: Tensor, layout: Layout) -> Tensor:
    """Returns the Tensor, cut by a Layout in graphs that are split among devices; elsewhere unchanged.

    Raises TypeError for anything but a Tensor and a Layout.
    """
    from torchspore.distributed.shard import function_strategies

    if not isinstance(tensor, Tensor):
        raise TypeError(message(f"reshard({short(tensor)})", f"a Tensor, got {type(tensor).__name__}"))
    if not isinstance(layout, Layout):
        raise TypeError(message(f"reshard(layout={short(layout)})", f"a Layout, got {type(layout).__name__}"))
    layout.to_dict()
    resharded: Tensor = function_strategies.placed("reshard", tensor, (layout,))
    return resharded


def sync_pipeline_shared_parameters(net: Cell) -> None:
    """Synchronizes Parameters that pipeline stages share; one process has one of each. Raises TypeError unless the net is a Cell."""
    if not isinstance(net, Cell):
        raise TypeError(message(f"sync_pipeline_shared_parameters({short(net)})", f"a Cell, got {type(net).__name__}"))


def lazy_inline(fn: Callable[..., Any] | None = None, attrs: Any = None, policy: str | None = None) -> Any:
    """Decorates a Cell's `__init__`: the arguments named in `attrs` (a name or a list; None: none) become attributes of the Cell.

    A graph contains such a Cell's operators like any other's, and `explain` reports it. Raises TypeError and ValueError for invalid
    arguments.
    """
    import inspect

    if attrs is not None and not isinstance(attrs, (str, list)):
        raise TypeError(message(f"lazy_inline(attrs={short(attrs)})", f"a name or a list of names, got {type(attrs).__name__}"))
    if policy not in (None, "front"):
        raise ValueError(message(f"lazy_inline(policy={short(policy)})", "None or 'front'"))

    def decorated(init: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(init)

        @functools.wraps(init)
        def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            for name in [attrs] if isinstance(attrs, str) else attrs or ():
                if name not in bound.arguments:
                    raise ValueError(message(f"lazy_inline(attrs={short(attrs)})", list_choices(list(bound.arguments)[1:])))
                setattr(self, name, bound.arguments[name])
            effects.note("execution", f"lazy_inline of {type(self).__name__}: its operators are in the graph as any other's")

        return initialise

    return decorated if fn is None else decorated(fn)


def no_inline(fn: Callable[..., Any] | None = None) -> Any:
    """Decorates a function. A graph contains its operators like any other's, and `explain` reports it."""

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        name = getattr(function, "__qualname__", function)
        effects.note("execution", f"no_inline of {name}: its operators are in the graph as any other's")
        return function

    return decorated if fn is None else decorated(fn)


__getattr__ = missing(__name__)
