"""Lengths of axes as symbols: a trace runs with torch's ShapeEnv, and `Fits` checks at each call the trace's assumptions about them."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals.symbolic_shapes import guard_functions

Axes = tuple[int, ...]
"""The axes of one Tensor that may have any length."""
Limit = tuple[int, int, int, int]
"""An input, one of its axes, the least and the greatest length."""

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def holds_symbols(value: Any) -> bool:
    """Return whether a nested value contains a length that is a symbol."""
    return any(isinstance(leaf, _SYMBOLS) for leaf in tree.leaves(value))


class Fits:
    """Decides whether the inputs of a graph have lengths that its trace allowed for."""

    def __init__(
        self, environment: Any, fakes: Sequence[torch.Tensor], indices: Sequence[int], limits: Sequence[Limit] = (),
    ) -> None:
        """`indices` are the inputs with open axes, `fakes` the fake tensors of all inputs, `limits` further conditions."""
        self.indices, self._limits = tuple(indices), limits
        self._environment, self._fakes = environment, [fakes[index] for index in indices]
        self.are_met: Callable[..., bool]
        """Returns whether tensors, those at `indices`, have lengths that fit."""
        self.renew()

    def renew(self) -> None:
        """Include the conditions that were added since the trace: a compiled kernel may have some."""
        text = self._environment.produce_guards_expression(self._fakes, ignore_static=False) or "True"
        for index, axis, least, most in self._limits:
            text = f"{least} <= L['t{self.indices.index(index)}'].size()[{axis}] <= {most} and ({text})"
        self.are_met = _compiled(text, self._fakes)

    def __call__(self, inputs: Sequence[torch.Tensor]) -> bool:
        return self.are_met(*[inputs[index] for index in self.indices])


_SIZE = re.compile(r"L\['t(\d+)'\]\.(size|stride)\(\)\[(\d+)\]")
_TENSOR = re.compile(r"L\['t(\d+)'\]")


def _compiled(text: str, fakes: Sequence[torch.Tensor]) -> Callable[..., bool]:
    """Return a function of the tensors that evaluates an expression of torch's guards. It reads each shape and each stride once."""
    lines = []
    for kind, reads in (("size", "shape"), ("stride", "stride()")):
        for index, fake in enumerate(fakes):
            if f"L['t{index}'].{kind}()" in text:
                names = "".join(f"{kind}{index}_{axis}, " for axis in range(fake.dim()))
                lines.append(f"    {names}= t{index}.{reads}\n")
    condition = _TENSOR.sub(r"t\1", _SIZE.sub(r"\2\1_\3", text))
    arguments = ", ".join(f"t{index}" for index in range(len(fakes)))
    if "L[" in condition:                                              # another torch may write sizes in another form
        lines.append(f"    L = dict({', '.join(f't{index}=t{index}' for index in range(len(fakes)))})\n")
    scope = dict(guard_functions())
    exec(compile(f"def are_met({arguments}):\n{''.join(lines)}    return bool({condition})\n", "<lengths>", "exec"), scope)
    are_met: Callable[..., bool] = scope["are_met"]
    return are_met

