"""Calls of primitives with a strategy while a graph that is going to be split is captured: inputs and results get their layouts."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

from torchspore.base.frames import user_line
from torchspore.base.text import message
from torchspore.context import effects
from torchspore.context.store import DEFAULT, STORE
from torchspore.distributed import device_count
from torchspore.distributed.shard import gradient_norms, manual_split, strategy_io, strategy_marker
from torchspore.distributed.shard.operator_inputs import last_node, note_call
from torchspore.distributed.shard.strategy_validation import Fit, TensorLayout, elementwise, has_rules, is_valid_call, layouts_of, takes
from torchspore.distributed.shard.strategy_validation.layout import read as read_layout
from torchspore.distributed.shard.strategy_validation.validation import is_of_layouts
from torchspore.engine.autograd.gradient_listeners import GradientListener
from torchspore.engine.formulas import attention_blocks
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import TensorBase, raw, wrap
from torchspore.engine.torch_internals.torch_private import without_modes
from torchspore.errors import StrategyRefused
from torchspore.graph.capture.capture import Capture
from torchspore.graph.capture.running_trace import current, split_now
from torchspore.graph.splitter import SPLIT_MODES


class Final(StrategyRefused):
    """Ends a capture with this error; running the call again in PyNative mode would not explain it better."""

    final = True


Final.__name__ = Final.__qualname__ = "StrategyRefused"
_READ_GRADIENTS = ("auto_parallel.gradients_mean", "auto_parallel.enable_parallel_optimizer")
"""The options for which the partitioner must know which values are gradients of Parameters."""
WRITERS = re.compile(
    r"(Assign|Inplace|Apply(?!RotaryPosEmb)|SparseApply|Fused(?!Infer)|Scatter(Nd)?(Update|Add|Sub|Mul|Div|Max|Min)|ScatterNonAliasingAdd)"
)
"""Operators that write their first input: it must be passed itself, without a new layout; their other inputs follow."""

_LISTS = {"FlashAttentionScore": ("actual_seq_qlen", "actual_seq_kvlen"), "RepeatInterleaveTensor": ("repeats",)}
"""Arguments that have a strategy even if they are lists of numbers: MindSpore makes Tensors of them. They come after the Tensors."""

_FIRST_UPDATED_INPUT = {"ReshapeAndCache": 2, "KVCacheScatterUpdate": 0}
"""Operators that write inputs from this one on, and how many inputs come before."""


def laid_out(primitive: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a call with inputs and results in the layouts of the primitive's strategy during such a capture; otherwise run the call.

    Raises ValueError with the user's line if the strategy does not fit.
    """
    capture, strategy = split_now(), primitive.attrs.get("in_strategy")
    if capture is None or strategy is None:
        if strategy is not None and current() is not None and has_single_device():
            _fitting(primitive, args, kwargs, strategy, 1)
        return call(*args, **kwargs)
    before = last_node(capture)
    result, fitting = _laid_out(capture, primitive, call, args, kwargs)
    note_call(capture, before, primitive, args, fitting)
    return result


def has_single_device() -> bool:
    """Return whether the program requests split graphs and sets `device_num=1`: strategies must fit that device."""
    return (
        STORE.get("auto_parallel.parallel_mode") in SPLIT_MODES and STORE.source("auto_parallel.device_num")[0] != DEFAULT
        and device_count.devices()[0] == 1
    )


def _laid_out(
    capture: Capture, primitive: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
) -> tuple[Any, Fit | None]:
    """Return the result of the call, and the layouts of its strategy if a rule exists."""
    if WRITERS.match(primitive.name):
        fitting = _fitting(primitive, args, kwargs, primitive.attrs["in_strategy"], capture.sharded_capture.count)
        return call(*args, **kwargs), fitting
    tensors = [leaf for leaf in tree.leaves((args, kwargs)) if isinstance(leaf, TensorBase)]
    try:
        loaded_strategy = strategy_io.loaded(capture.sharded_capture.strategy_file, capture.sharded_capture.named(primitive.name, tensors))
    except ValueError as error:
        raise Final(f"{user_line()}: {error}") from None
    strategy = loaded_strategy or primitive.attrs["in_strategy"]
    if any(name in primitive.attrs for name in manual_split.NAMES) and primitive.name in manual_split.TABLES:
        try:
            strategy = manual_split.evenly(primitive, strategy, tuple(raw(tensors[0]).shape), args, capture.sharded_capture.count)
        except ValueError as error:
            raise Final(f"{user_line()}: {error}") from None
        effects.note("distribution", f"{user_line()}: {primitive.name}: manual_split: {manual_split.WHY}")
    fitting = _fitting(primitive, args, kwargs, strategy, capture.sharded_capture.count)
    if fitting is None:
        effects.note("distribution", f"{user_line()}: {primitive.name} has no rule for strategies: its layouts follow those of its inputs")
        return call(*args, **kwargs), None
    capture.sharded_capture.note(primitive.name, tensors, strategy)
    _check_parameters(capture, primitive, tensors, fitting)
    alone = _read_alone(primitive)
    if alone is not None:
        for tensor, layout in zip(tensors[alone:], fitting.inputs[alone:]):
            if layout is not None:
                capture.sharded_capture.requested_layouts.setdefault(
                    id(tensor), strategy_marker.text(layout.device_matrix, layout.tensor_map)
                )
    args, kwargs = _laid((args, kwargs), fitting.inputs[:alone])
    is_ring = primitive.attrs.get("enable_ring_attention") or primitive.attrs.get("enable_flash_sp")
    result = _in_blocks(call, args, kwargs) if is_ring else call(*args, **kwargs)
    return result if _is_sum_of_rows(primitive, fitting) else _laid(result, fitting.outputs), fitting


def _check_parameters(capture: Capture, primitive: Any, tensors: Sequence[TensorBase], fitting: Fit) -> None:
    """Raise StrategyRefused if an earlier operator has a Parameter in another layout: MindSpore stores one layout for each."""
    if fitting.ignored is not None:
        return
    devices = capture.sharded_capture.count
    for tensor, layout in zip(tensors, fitting.inputs):
        if not hasattr(tensor, "name") or layout is None:
            continue
        parts = tuple(layout.coordinates(rank) for rank in range(devices))
        line, name, cuts, known_parts = capture.sharded_capture.users.setdefault(
            id(tensor), (user_line(), primitive.name, layout.cuts(), parts)
        )
        if parts != known_parts:
            wrote = f"{user_line()}: {primitive.name} with the Parameter {tensor.name} cut {layout.cuts()}"
            before = f"the layout in which {name} has it, cut {cuts}, at {line}"
            raise Final(message(wrote, before, hint="write strategies that give each device the same part of the Parameter"))


def _in_blocks(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an attention whose keys may be split along the sequence. Raise StrategyRefused for arguments that do not allow it."""
    with attention_blocks.in_blocks():
        try:
            return call(*args, **kwargs)
        except ValueError as error:                # with the user's line
            raise Final(str(error)) from None


def _is_sum_of_rows(primitive: Any, fitting: Fit) -> bool:
    """Return whether the call looks up rows of a table split by rows and no strategy sets the layout of the sum; its users then decide.

    MindSpore scatters the sum along its first axis, and gathers it again if the next operator needs the full value.
    """
    if primitive.name not in manual_split.TABLES or getattr(primitive, "out_strategy", None) is not None:
        return False
    table = fitting.inputs[0]
    return bool(table.tensor_map) and table.tensor_map[0] != -1


def _read_alone(primitive: Any) -> int | None:
    """Return how many inputs precede those that the call mutates: running statistics must be passed unchanged."""
    if primitive.name in _FIRST_UPDATED_INPUT:
        return _FIRST_UPDATED_INPUT[primitive.name]
    writes_statistics = primitive.name == "InstanceNorm" or (primitive.name == "BatchNorm" and primitive.attrs.get("is_training"))
    return 3 if writes_statistics else None


def _fitting(primitive: Any, args: tuple[Any, ...], kwargs: dict[str, Any], strategy: Any, devices: int) -> Fit | None:
    """Return the layouts of a call by the primitive's strategy; None if no rule exists."""
    if primitive.attrs.get("self_define_shard"):
        return _self_defined(primitive, args, kwargs, strategy, devices)
    if not has_rules(primitive.name):
        return None
    shapes = [tuple(raw(leaf).shape) for leaf in tree.leaves((args, kwargs)) if isinstance(leaf, TensorBase)]
    call_arguments = {**dict(zip(getattr(primitive, "_called", ()), args)), **kwargs}
    lists = (call_arguments.get(name) for name in _LISTS.get(primitive.name, ()))
    shapes.extend((len(value),) for value in lists if isinstance(value, (tuple, list)))
    plain = {name: _tensorless(value) for name, value in call_arguments.items()}
    if isinstance(strategy, tuple):
        are_tensors = [isinstance(leaf, TensorBase) for leaf in tree.leaves((args, kwargs))]
        strategy = _of_tensors(strategy, are_tensors, primitive.name in elementwise.FAMILIES)
    strategy = _by_layout_attribute(primitive, strategy)
    attributes = {**primitive.attrs, **plain}
    if not is_valid_call(primitive.name, attributes, shapes):
        return None
    if isinstance(strategy, tuple) and not takes(primitive.name, attributes, shapes):
        del shapes[len(strategy):]                             # Tensors of numbers that say how, not what
    results = getattr(primitive, "out_strategy", None)
    try:
        return layouts_of(primitive.name, attributes, shapes, strategy, results, devices)
    except ValueError as error:
        raise Final(f"{user_line()}: {error}") from None


def _by_layout_attribute(primitive: Any, strategy: Any) -> Any:
    """Return the Layouts of the attribute `layout`, {'dev_matrix': ..., 'input_tensor_map': ...}; the strategy if there is none."""
    layout = primitive.attrs.get("layout")
    if not isinstance(layout, dict) or not layout.get("dev_matrix") or not layout.get("input_tensor_map"):
        return strategy
    return tuple(TensorLayout(tuple(layout["dev_matrix"]), tuple(tensor_map)) for tensor_map in layout["input_tensor_map"])


def _self_defined(primitive: Any, args: tuple[Any, ...], kwargs: dict[str, Any], strategy: Any, devices: int) -> Fit:
    """Return the layouts that a program defines itself (`self_define_shard`), regardless of the operator's rule. Raises StrategyRefused."""
    wrote = f"{user_line()}: {primitive.name} with self_define_shard={primitive.attrs['self_define_shard']!r}"
    results = getattr(primitive, "out_strategy", None) or ()
    if primitive.attrs["self_define_shard"] is not True or not is_of_layouts(strategy) or not is_of_layouts(results):
        raise Final(message(wrote, "True, and Layouts as in_strategy and out_strategy"))
    tensors = [leaf for leaf in tree.leaves((args, kwargs)) if isinstance(leaf, TensorBase)]
    layouts = tuple(map(read_layout, strategy))
    try:
        if len(layouts) != len(tensors) or any(prod(layout.device_matrix) != devices for layout in layouts):
            raise ValueError(message(wrote, f"a Layout of {devices} devices for each of {len(tensors)} Tensors"))
        for layout, tensor in zip(layouts, tensors):
            layout.slice_shape(tuple(raw(tensor).shape))
    except ValueError as error:
        raise Final(f"{user_line()}: {error}") from None
    return Fit(layouts[0].device_matrix, layouts, tuple(map(read_layout, results)))


def _of_tensors(strategy: tuple[Any, ...], tensors: Sequence[bool], is_elementwise: bool) -> tuple[Any, ...]:
    """Return the strategy without the () entries of Python numbers: `pow(x, 2.0)` with ((8, 1), ()).

    An elementwise operator may have a tuple of any length for each number.
    """
    if is_elementwise and len(strategy) == len(tensors):
        return tuple(part for part, is_tensor in zip(strategy, tensors) if is_tensor)
    tensor_strategies, remaining = [], list(strategy)
    for at, is_tensor in enumerate(tensors):
        if is_tensor and remaining:
            tensor_strategies.append(remaining.pop(0))
        elif remaining and remaining[0] == () and len(remaining) > sum(tensors[at:]):
            remaining.pop(0)
    return (*tensor_strategies, *remaining)


def _tensorless(value: Any) -> Any:
    """Return an argument in the form that strategies expect: a Tensor of a few numbers that the program wrote as a list."""
    if isinstance(value, TensorBase):
        t = value._t
        if type(t) is not torch.Tensor or t.ndim > 1 or t.numel() > 16 or t.is_floating_point():
            return None
        with without_modes():                       # a capture must not see the copy from an accelerator
            return t.tolist()
    return None if any(isinstance(leaf, TensorBase) for leaf in tree.leaves(value)) else value


def _laid(value: Any, layouts: Sequence[TensorLayout | None]) -> Any:
    """Return the Tensors of a nested structure in these layouts, in order; a Tensor without a layout is unchanged."""
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
    """Return the tensor whose gradient is computed for a weight: `gradients_mean` divides the gradient, and its length is reported.

    With the parallel optimizer each device sums its own part of the gradient there.
    """
    is_requested = any(map(STORE.get, _READ_GRADIENTS)) or gradient_norms.is_requested()
    if not is_requested or split_now() is None or not hasattr(weight, "name"):
        return value
    marked: torch.Tensor = strategy_marker.mirror(value, str(weight.name))
    return marked


class _Listener(GradientListener):
    """Mark the weights of a split graph, so that the partitioner finds their gradients."""

    def mark_leaf(self, weight: TensorBase, leaf: torch.Tensor) -> torch.Tensor:
        return mirror(weight, leaf)


LISTENER = _Listener()
"""`distributed.graph_splitter` adds it to the listeners when the first graph is split."""
