"""Applies the strategies of a function or a Cell to its inputs and results while a graph that is going to be split is captured."""
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
from torchspore.graph.capture.running_trace import split_now


def layout_of(strategy: Any, shape: Sequence[int], devices: int) -> TensorLayout:
    """Return the layout for a Tensor of this shape from a tuple of numbers or a Layout. Raises ValueError if it does not fit."""
    wrote = f"a Tensor of shape {tuple(shape)} split by {strategy}"
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
    """Return the Tensors of `value` in the layouts of `strategies`, which has one entry for each Tensor; None leaves a Tensor unchanged.

    Outside of a capture that is going to be split, `value` is returned unchanged. Raises StrategyRefused, with the user's line, for a
    strategy that does not fit.
    """
    capture = split_now()
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
    """Return the strategies of the Tensors; entries for other values may be None. Raises StrategyRefused if there are too few or many."""
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
    """Return part number `at` of `count` of a batch, split like the batch, while a graph that is going to be split is captured.

    If each device has separate rows, the part contains the corresponding part of each device's rows, as in MindSpore, and nothing is sent.
    """
    capture = split_now()
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
