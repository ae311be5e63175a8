"""Functions under `constexpr`: worked out while a graph is captured."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import TensorBase, tensors, transform, wrap
from torchspore.engine.torch_internals.torch_private import without_modes
from torchspore.graph.capture.running_trace import current


def constant(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of `function`, whose arguments are known: it is computed now, and becomes an input of the graph."""
    around, capture = engine.frame(), current()
    if around is None or capture is None or any(True for _ in tensors((args, kwargs))):
        return function(*args, **kwargs)
    engine.thread_state.frame = None
    try:
        with without_modes():
            result = function(*args, **kwargs)
    finally:
        engine.thread_state.frame = around
    for array in (leaf for leaf in tree.leaves(result) if isinstance(leaf, np.ndarray)):
        capture.watch.arrays.setdefault(id(array), lambda array=array: array)  # type: ignore[misc]
    return transform(result, lambda tensor: tensor if _is_programs(tensor) else wrap(around.literal(tensor._t, lambda t: t)))


def _is_programs(tensor: TensorBase) -> bool:
    """Return whether a Tensor is a Parameter, which is itself wherever it is met."""
    return bool(type(tensor).__dict__.get("__parameter__"))
