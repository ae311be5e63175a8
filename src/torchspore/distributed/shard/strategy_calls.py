"""Calls of primitives that have a strategy, while a graph is captured that is to be split: their inputs and results are laid out."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.base.frames import user_line
from torchspore.context import effects
from torchspore.context.store import STORE
from torchspore.distributed.shard import gradient_norms, manual_split, strategy_io, strategy_marker
from torchspore.distributed.shard.strategies import Fit, TensorLayout, has_rules, layouts_of, takes
from torchspore.engine.autograd import grad
from torchspore.engine.core import tree
from torchspore.engine.core.tensor import TensorBase, raw, wrap
from torchspore.errors import StrategyRefused
from torchspore.graph.capture.capture import Capture, current


class Final(StrategyRefused):
    """Ends a capture as it is: PyNative would not say it better."""

    final = True


Final.__name__ = Final.__qualname__ = "StrategyRefused"
WRITERS = re.compile(r"(Assign|Apply|SparseApply|Fused|Scatter(Nd)?(Update|Add|Sub|Mul|Div|Max|Min)|ScatterNonAliasingAdd)")
"""Operators that write their first input: it must be passed itself, without a new layout; their other inputs follow."""


def split_now() -> Capture | None:
    """The capture of this thread where what it captures is to be split."""
    capture = current()
    return capture if capture is not None and capture.spread is not None else None


def laid_out(primitive: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call with its inputs and results in the layouts of the primitive's strategy, inside of such a capture; else the call alone.

    Raises ValueError with the user's line where the strategy does not fit.
    """
    capture = split_now()
    if capture is None or primitive.attrs.get("in_strategy") is None:
        return call(*args, **kwargs)
    if WRITERS.match(primitive.name):
        _fitting(primitive, args, kwargs, primitive.attrs["in_strategy"], capture.spread.count)
        return call(*args, **kwargs)
    tensors = [leaf for leaf in tree.leaves((args, kwargs)) if isinstance(leaf, TensorBase)]
    try:
        loaded_strategy = strategy_io.loaded(capture.spread.strategy_file, capture.spread.named(primitive.name, tensors))
    except ValueError as error:
        raise Final(f"{user_line()}: {error}") from None
    strategy = loaded_strategy or primitive.attrs["in_strategy"]
    if "manual_split" in primitive.attrs and primitive.name in manual_split.TABLES:
        try:
            strategy = manual_split.evenly(primitive, strategy, tuple(raw(tensors[0]).shape))
        except ValueError as error:
            raise Final(f"{user_line()}: {error}") from None
        effects.note("distribution", f"{user_line()}: {primitive.name}: manual_split: {manual_split.WHY}")
    fitting = _fitting(primitive, args, kwargs, strategy, capture.spread.count)
    if fitting is None:
        effects.note("distribution", f"{user_line()}: {primitive.name} has no rule for strategies: its layouts follow those of its inputs")
        return call(*args, **kwargs)
    capture.spread.note(primitive.name, tensors, strategy)
    alone = _read_alone(primitive)
    if alone is not None:
        for tensor, layout in zip(tensors[alone:], fitting.inputs[alone:]):
            if layout is not None:
                capture.spread.wishes.setdefault(id(tensor), strategy_marker.text(layout.device_matrix, layout.tensor_map))
    args, kwargs = _laid((args, kwargs), fitting.inputs[:alone])
    result = call(*args, **kwargs)
    return result if _is_sum_of_rows(primitive, fitting) else _laid(result, fitting.outputs)


def _is_sum_of_rows(primitive: Any, fitting: Fit) -> bool:
    """Return whether it looks up rows of a table that is cut by rows, and no strategy says how the sum lies: what uses it decides.

    MindSpore scatters the sum along its first axis, and gathers it again where the next operator wants it whole.
    """
    if primitive.name not in manual_split.TABLES or getattr(primitive, "out_strategy", None) is not None:
        return False
    table = fitting.inputs[0]
    return bool(table.tensor_map) and table.tensor_map[0] != -1


def _read_alone(primitive: Any) -> int | None:
    """How many inputs come before those that the call writes to: running values must be given themselves, not laid out."""
    writes_statistics = primitive.name == "InstanceNorm" or (primitive.name == "BatchNorm" and primitive.attrs.get("is_training"))
    return 3 if writes_statistics else None


def _fitting(primitive: Any, args: tuple[Any, ...], kwargs: dict[str, Any], strategy: Any, devices: int) -> Fit | None:
    """The layouts of a call by the primitive's strategy; None where there is not a rule for it."""
    if not has_rules(primitive.name):
        return None
    shapes = [tuple(raw(leaf).shape) for leaf in tree.leaves((args, kwargs)) if isinstance(leaf, TensorBase)]
    call_arguments = {**dict(zip(getattr(primitive, "_called", ()), args)), **kwargs}
    plain = {name: _tensorless(value) for name, value in call_arguments.items()}
    if isinstance(strategy, tuple):
        strategy = _of_tensors(strategy, [isinstance(leaf, TensorBase) for leaf in tree.leaves((args, kwargs))])
    attributes = {**primitive.attrs, **plain}
    if isinstance(strategy, tuple) and not takes(primitive.name, attributes, shapes):
        del shapes[len(strategy):]                             # Tensors of numbers that say how, not what
    results = getattr(primitive, "out_strategy", None)
    try:
        return layouts_of(primitive.name, attributes, shapes, strategy, results, devices)
    except ValueError as error:
        raise Final(f"{user_line()}: {error}") from None


def _of_tensors(strategy: tuple[Any, ...], tensors: Sequence[bool]) -> tuple[Any, ...]:
    """The strategy without the () that stands for a Python number: `pow(x, 2.0)` by ((8, 1), ())."""
    tensor_strategies, remaining = [], list(strategy)
    for at, is_tensor in enumerate(tensors):
        if is_tensor and remaining:
            tensor_strategies.append(remaining.pop(0))
        elif remaining and remaining[0] == () and len(remaining) > sum(tensors[at:]):
            remaining.pop(0)
    return (*tensor_strategies, *remaining)


def _tensorless(value: Any) -> Any:
    """An argument as the table of strategies takes it: a Tensor of a few numbers that the program wrote down as a list."""
    if isinstance(value, TensorBase):
        t = value._t
        return t.tolist() if type(t) is torch.Tensor and t.ndim <= 1 and t.numel() <= 16 and not t.is_floating_point() else None
    return None if any(isinstance(leaf, TensorBase) for leaf in tree.leaves(value)) else value


def _laid(value: Any, layouts: Sequence[TensorLayout | None]) -> Any:
    """The Tensors of a nested structure in these layouts, in order; one without a layout as it is."""
    remaining_layouts = iter(layouts)

    def lay_out(leaf: Any) -> Any:
        if not isinstance(leaf, TensorBase):
            return leaf
        layout = next(remaining_layouts, None)
        if layout is None:
            return leaf
        return wrap(strategy_marker.laid(raw(leaf), strategy_marker.text(layout.device_matrix, layout.tensor_map)))

    return tree.mapped(value, lay_out)


def mirror(weight: Any, value: torch.Tensor) -> torch.Tensor:
    """Return the tensor whose gradient is computed for a weight: `gradients_mean` divides the gradient, and its length is reported."""
    if (
        not (STORE.get("auto_parallel.gradients_mean") or gradient_norms.is_requested())
        or split_now() is None
        or not hasattr(weight, "name")
    ):
        return value
    marked: torch.Tensor = strategy_marker.mirror(value, str(weight.name))
    return marked


class _Listener(grad.GradientListener):
    """Marks weights of a split graph, so that the partitioner finds their gradients."""

    def mark_leaf(self, weight: TensorBase, leaf: torch.Tensor) -> torch.Tensor:
        return mirror(weight, leaf)


LISTENER = _Listener()
"""`distributed.graph_splitter` adds it to the listeners when the first graph is split."""
