"""Calls of primitives that have a strategy, while a graph is captured that is to be split: their inputs and results are laid out."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchspore.base.frames import user_line
from torchspore.engine import tree
from torchspore.engine.graph.capture.capture import Capture, current
from torchspore.engine.shard import marking
from torchspore.engine.shard.strategies import TensorLayout, layouts_of
from torchspore.engine.tensor import TensorBase, raw, wrap

WRITERS = frozenset({"Assign", "AssignAdd", "AssignSub"})
"""What writes its first input must be given it itself, not a value laid out."""


def split_now() -> Capture | None:
    """The capture of this thread where what it captures is to be split."""
    found = current()
    return found if found is not None and found.spread is not None else None


def laid_out(primitive: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call with its inputs and results in the layouts of the primitive's strategy, inside of such a capture; else the call alone.

    Raises ValueError with the user's line where the strategy does not fit.
    """
    capture = split_now()
    if capture is None or primitive.attrs.get("in_strategy") is None or primitive.name in WRITERS:
        return call(*args, **kwargs)
    shapes = [tuple(raw(leaf).shape) for leaf in tree.leaves((args, kwargs)) if isinstance(leaf, TensorBase)]
    try:
        inputs, outputs = layouts_of(
            primitive.name, primitive.attrs, shapes, primitive.attrs["in_strategy"], getattr(primitive, "out_strategy", None),
            capture.spread.count,
        )
    except ValueError as error:
        error.args = (f"{user_line()}: {error.args[0]}", *error.args[1:])
        error.final = True  # type: ignore[attr-defined]
        raise
    args, kwargs = _laid((args, kwargs), inputs)
    return _laid(call(*args, **kwargs), outputs)


def _laid(value: Any, layouts: Sequence[TensorLayout | None]) -> Any:
    """The Tensors of a nested structure in these layouts, in order; one without a layout as it is."""
    places = iter(layouts)

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, TensorBase):
            return leaf
        layout = next(places, None)
        return leaf if layout is None else wrap(marking.laid(raw(leaf), marking.text(layout.device_matrix, layout.tensor_map)))

    return tree.mapped(value, one)
