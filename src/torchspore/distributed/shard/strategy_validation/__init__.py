"""Strategies that fit a call of a primitive, and the layouts of its inputs and outputs: MindSpore's rules, family by family."""
from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from torchspore.base.text import message
from torchspore.distributed.shard.strategy_validation.axis_labels import Call, Family, Form
from torchspore.distributed.shard.strategy_validation.layout import TensorLayout, replicated_layout
from torchspore.distributed.shard.strategy_validation.validation import Fit, fit

__all__ = ["Call", "Fit", "Form", "TensorLayout", "forms_of", "is_known", "layouts_of", "replicated", "takes"]


@functools.cache
def _families() -> Mapping[str, Family]:
    from torchspore.distributed.shard.strategy_validation import (
        attention,
        elementwise,
        independent_axes,
        inference,
        lookups,
        more_axes,
        normalization,
        products,
        reductions,
        shapes,
        windows,
    )

    rooms = (elementwise, products, reductions, normalization, shapes, lookups, windows, attention, independent_axes, inference, more_axes)
    return {name: family for room in rooms for name, family in room.FAMILIES.items()}


def has_rules(name: str) -> bool:
    """Return whether there is a rule for the primitive; MindSpore runs one without on every device, whatever its strategy says."""
    return name in _families()


def is_valid_call(name: str, attributes: Mapping[str, Any], shapes: Iterable[Iterable[int]]) -> bool:
    """Return False for a call that the operator itself refuses: shapes that do not broadcast, or an axis that the Tensor does not have."""
    from torchspore.distributed.shard.strategy_validation import elementwise

    call = Call(name, {}, tuple(map(tuple, shapes)))
    if not call.shapes:
        return True
    rank = len(call.shapes[0])
    if any(type(axis := attributes.get(key)) is int and not -rank - 1 <= axis <= rank for key in ("axis", "dim")):
        return False
    return name not in elementwise.FAMILIES or elementwise.broadcasts(call)


def forms_of(name: str, attributes: Mapping[str, Any], shapes: Iterable[Iterable[int]]) -> tuple[Form, ...]:
    """Return the axes that may be split together in such a call; the first form that fits counts. Raises KeyError for an unknown name."""
    forms = _families()[name](Call(name, attributes, tuple(map(tuple, shapes))))
    return forms if isinstance(forms, tuple) else (forms,)


def takes(name: str, attributes: Mapping[str, Any], shapes: Iterable[Iterable[int]]) -> bool:
    """Return whether the primitive may take Tensors of all these shapes, each with a strategy."""
    input_shapes = tuple(map(tuple, shapes))
    try:
        forms = forms_of(name, attributes, input_shapes)
    except (KeyError, ValueError, IndexError, TypeError):
        return False
    return any(len(form.spoken(input_shapes)) == len(input_shapes) for form in forms)


def layouts_of(
    name: str, attributes: Mapping[str, Any], shapes: Iterable[Iterable[int]], in_strategy: Any, out_strategy: Any = None, devices: int = 1,
) -> Fit:
    """Return the grid of devices and the layouts of inputs and outputs.

    `attributes` are the primitive's arguments that are not Tensors, of its constructor and its call, by MindSpore's names; `shapes` are
    those of its Tensors; a strategy is a tuple of tuples of numbers or of Layouts, one for each Tensor. Raises ValueError, with the nearest
    strategy that fits, for one that does not, and KeyError for a primitive without a rule (`has_rules`).
    """
    call = Call(name, attributes, tuple(map(tuple, shapes)))
    if not has_rules(name):
        raise KeyError(name)
    try:
        forms = forms_of(name, attributes, call.shapes)
    except (KeyError, ValueError, IndexError, TypeError):           # fewer Tensors than the primitive takes, or with other axes
        raise ValueError(
            message(f"{call} with in_strategy {in_strategy}", "Tensors as the primitive takes them, and a tuple for each")
        ) from None
    return fit(call, forms, in_strategy, out_strategy, devices)


def replicated(ranks: Iterable[int], outputs: Iterable[int], devices: int) -> Fit:
    """Return the layouts of an operator without a strategy, from the ranks of its inputs and outputs: each device has all values in full.
    """
    return Fit(
        (devices,), tuple(replicated_layout(rank, devices) for rank in ranks), tuple(replicated_layout(rank, devices) for rank in outputs)
    )
