"""Where families register the rules of their operators."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torchspore.distributed.shard.propagation_rules.rule import Rule
from torchspore.engine.split_layouts.device_layout import Shape


@dataclass(frozen=True)
class OperatorCall:
    """A call: its arguments by their names in the schema, with Tensors in place of their nodes, and its result."""

    target: Any
    args: dict[str, Any]
    inputs: tuple[torch.Tensor, ...]
    """The Tensors among the arguments in order; only their shapes and dtypes count."""
    outputs: tuple[torch.Tensor | None, ...]
    """The results; a rule names the dimensions of those that are not None."""

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def shape(self, name: str) -> Shape:
        """Return the shape of a Tensor argument."""
        return tuple(self.args[name].shape)

    def axis(self, name: str, rank: int) -> int:
        """Return an argument that names a dimension, counted from 0."""
        return int(self.args[name]) % max(rank, 1)


Maker = Callable[[OperatorCall], Rule | None]
_makers: dict[str, Maker] = {}


def splits(*names: str) -> Callable[[Maker], Maker]:
    """Register the decorated function as the rule of torch's operators of these names, in all their overloads.

    It returns None for a call that it has no rule for.
    """
    def enter(maker: Maker) -> Maker:
        for name in names:
            if name in _makers:
                raise ValueError(f"two rules for {name}")
            _makers[name] = maker
        return maker

    return enter


def rule_of(call: OperatorCall) -> Rule | None:
    """Return the rule of a call; None if there is none."""
    name = call.target._opname
    maker = _makers.get(name) or _makers.get(name.removesuffix("_"))
    if maker is None and torch.Tag.pointwise in call.target.tags:
        maker = _makers["pointwise"]
    return None if maker is None else maker(call)
