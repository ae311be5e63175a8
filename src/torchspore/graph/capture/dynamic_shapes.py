"""Lengths of axes as symbols: a trace runs with torch's ShapeEnv, and `Fits` checks at each call the trace's assumptions about them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchspore.engine.tensors import tree

Axes = tuple[int, ...]
"""The axes of one Tensor that may have any length."""


_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def holds_symbols(value: Any) -> bool:
    """Return whether a nested value contains a length that is a symbol."""
    return any(isinstance(leaf, _SYMBOLS) for leaf in tree.leaves(value))


class Fits:
    """Decides whether the inputs of a graph have lengths that its trace allowed for."""

    def __init__(self, environment: Any, fakes: Sequence[torch.Tensor], indices: Sequence[int]) -> None:
        """`indices` are the inputs with open axes, `fakes` the fake tensors of all inputs."""
        self._environment, self._indices, self._fakes = environment, indices, [fakes[index] for index in indices]
        self.renew()

    def renew(self) -> None:
        """Include the conditions that were added since the trace: a compiled kernel may have some."""
        code = self._environment.produce_guards_expression(self._fakes, ignore_static=False) or "True"
        self._code = compile(code, "<lengths>", "eval")

    def __call__(self, inputs: Sequence[torch.Tensor]) -> bool:
        return bool(self._environment.evaluate_guards_expression(self._code, [inputs[index] for index in self._indices]))
