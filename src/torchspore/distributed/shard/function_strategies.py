"""Inputs and results of a function or a Cell that has strategies, while a graph is captured that is to be split: they are laid out."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from torchspore.base.frames import user_line
from torchspore.base.text import message, short
from torchspore.distributed.shard import strategy_calls, strategy_marker
from torchspore.distributed.shard.strategy_validation import TensorLayout
from torchspore.distributed.shard.strategy_validation.layout import read
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import TensorBase, raw, wrap


def layout_of(strategy: Any, shape: Sequence[int], devices: int) -> TensorLayout:
    """The layout that cuts a Tensor of this shape as numbers, or a Layout, say. Raises ValueError for what does not fit."""
    wrote = f"a Tensor of shape {tuple(shape)} cut by {strategy}"
    if not isinstance(strategy, tuple):
        layout = read(strategy)
        if prod(layout.device_matrix) != devices:
            raise ValueError(message(f"{wrote} on {devices} devices", f"a Layout of {devices} devices"))
    else:
        needed = prod(strategy)
        if len(strategy) != len(shape) or any(cut < 1 for cut in strategy) or devices % needed:
            raise ValueError(message(f"{wrote} on {devices} devices", f"a number for each axis, whose product divides {devices}"))
        tensor_map = tuple(len(strategy) - axis if cut > 1 else -1 for axis, cut in enumerate(strategy))
        layout = TensorLayout((*strategy, devices // needed), tensor_map)
    layout.slice_shape(shape)
    return layout


def placed(what: str, value: Any, strategies: Sequence[Any] | None) -> Any:
    """The Tensors of `value` laid out by `strategies`, one for each Tensor, None for one that is left; outside of such a capture as it is.

    Raises StrategyRefused, at the user's line, for what does not fit.
    """
    capture = strategy_calls.split_now()
    if capture is None or strategies is None:
        return value
    remaining_layouts = iter(_for_tensors(what, value, strategies))
    devices = capture.sharded_capture.count

    def lay_out(leaf: Any) -> Any:
        strategy = next(remaining_layouts, None) if isinstance(leaf, TensorBase) else None
        if strategy is None:
            return leaf
        try:
            layout = layout_of(strategy, tuple(raw(leaf).shape), devices)
        except ValueError as error:
            raise strategy_calls.Final(f"{user_line()}: {what}: {error}") from None
        return wrap(strategy_marker.laid(raw(leaf), strategy_marker.text(layout.device_matrix, layout.tensor_map)))

    return tree.mapped(value, lay_out)


def _for_tensors(what: str, value: Any, strategies: Sequence[Any]) -> list[Any]:
    """The strategies of the Tensors alone: other values may have None. Raises StrategyRefused if there are too few or many."""
    tensors = [isinstance(leaf, TensorBase) for leaf in tree.leaves(value)]
    if len(strategies) == sum(tensors):
        return list(strategies)
    tensor_strategies = [strategy for strategy, is_tensor in zip(strategies, tensors) if is_tensor]
    if len(strategies) == len(tensors) and all(
        strategy is None for strategy, is_tensor_position in zip(strategies, tensors) if not is_tensor_position
    ):
        return tensor_strategies
    wrote = f"{what}: a strategy of {len(strategies)}, {short(strategies)}, for {sum(tensors)} Tensors"
    raise strategy_calls.Final(f"{user_line()}: " + message(wrote, "a tuple, a Layout or None for each Tensor"))


def micro_batch(value: Any, at: int, count: int) -> Any:
    """Part number `at` of `count` of a batch, cut as the batch is while a graph is captured that is to be split.

    Where each device has rows of its own, the part holds that part of each device's rows, as MindSpore's does, and nothing is sent for it.
    """
    capture = strategy_calls.split_now()
    row_share = capture.sharded_capture.row_share if capture is not None and isinstance(value, TensorBase) else 1
    length = value.shape[0] // count
    if row_share == 1 or value.shape[0] % (row_share * count):
        return _laid(value[at * length:(at + 1) * length], capture)
    size, rest = length // row_share, tuple(value.shape[1:])
    part = value.reshape(row_share, count * size, *rest)[:, at * size:(at + 1) * size]
    return _laid(part.reshape(length, *rest), capture)


def _laid(value: Any, capture: Any) -> Any:
    if capture is None or not isinstance(value, TensorBase):
        return value
    t, rows = raw(value), capture.sharded_capture.rows
    if rows == 1 or not t.ndim or t.shape[0] % rows:
        return value
    layout = layout_of((rows, *(1,) * (t.ndim - 1)), tuple(t.shape), capture.sharded_capture.count)
    return wrap(strategy_marker.laid(t, strategy_marker.OF_PARTS + strategy_marker.text(layout.device_matrix, layout.tensor_map)))
