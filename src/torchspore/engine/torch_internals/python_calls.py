"""Calls of Python functions as nodes of a captured graph: the shapes and dtypes of their results are declared."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from torchspore.base.text import message
from torchspore.engine.torch_internals.custom_operators import define

_Function = Callable[..., list[torch.Tensor]]
_functions: list[tuple[_Function, list[tuple[tuple[int, ...], torch.dtype]]]] = []
"""Functions with the shapes and dtypes of their results, by the number in a node. Graphs refer to them, so none is removed."""


def declared_results(
    function: _Function, inputs: Sequence[torch.Tensor], shapes: Sequence[Sequence[int]], kinds: Sequence[torch.dtype],
) -> list[torch.Tensor]:
    """Return fake results of `function(*inputs)`, which runs with the graph that is being captured."""
    declared = [(tuple(int(size) for size in shape), kind) for shape, kind in zip(shapes, kinds, strict=True)]
    _functions.append((function, declared))
    results: list[torch.Tensor] = _python_call(list(inputs), len(_functions) - 1)
    return results


def _compute(inputs: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    function, declared = _functions[number]
    results = function(*inputs)
    shapes = [tuple(result.shape) for result in results]
    if shapes != [shape for shape, _ in declared]:
        raise ValueError(message(f"a function with results of shapes {shapes}", f"the declared shapes {[shape for shape, _ in declared]}"))
    return [result.to(inputs[0].device if inputs else "cpu", kind, copy=True) for result, (_, kind) in zip(results, declared)]


def _describe(inputs: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    return [torch.empty(shape, dtype=kind, device=inputs[0].device if inputs else "cpu") for shape, kind in _functions[number][1]]


_python_call = define("python_call(Tensor[] inputs, int number) -> Tensor[]", _compute, _describe)
