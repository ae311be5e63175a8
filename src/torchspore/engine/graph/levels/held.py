"""Code with values that hang on weights alone, computed once and again when a weight has changed."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from torchspore.engine import tensor as engine
from torchspore.engine.graph.levels.straight import Code
from torchspore.engine.graph.passes.hoist import Hoisted

_version = operator.attrgetter("_version")


def code(hoisted: Hoisted, first: Code, rest: Code) -> Code:
    """Runs `first` on the weights where one of them is another tensor or was written to since, then `rest`.

    torch counts the writes into a tensor's memory (`_version`); whoever writes past torch (a NumPy view of it) is not seen.
    """
    take = operator.itemgetter(*hoisted.taken) if len(hoisted.taken) > 1 else lambda inputs: (inputs[hoisted.taken[0]],)
    kept: list[Any] = [(), [], [], 0, []]           # the weights, their versions, the values, the count, copies of vectors

    def run(*inputs: torch.Tensor) -> list[Any]:
        weights: Any = take(inputs)
        before, versions, values, count, vectors = kept
        now = list(map(_version, weights))
        if now != versions or not all(map(operator.is_, weights, before)) or (
            count != engine.uncounted and not all(map(torch.equal, vectors, _vectors(weights)))
        ):
            values = first(*weights)
            kept[:3] = [weights, now, values]
            kept[4] = [t.clone() for t in _vectors(weights)]
        kept[3] = engine.uncounted
        return rest(*inputs, *values)

    return run


def _vectors(weights: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The running statistics of batch norms are among these."""
    return [t for t in weights if t.dim() == 1]
