"""The policies of `precision_mode`: for each operator of a graph the dtype in which it computes."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.fx.node import Node

from torchspore.engine.graph.precision import kernels, lists
from torchspore.engine.private import is_operator

HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32


@dataclass(frozen=True)
class Policy:
    """Which operators take another dtype.

    `sources` are the dtypes that may be replaced; everything else in a graph stays as it is. `inside` (by names of operators) compute in
    `dtype`; with `inside` None all do that can. `outside` compute in their own dtype. What is in neither follows its inputs where
    `spreads`: in `dtype` where all of them are, else in the wider one; otherwise it gets the dtypes that the program gave.
    """

    dtype: torch.dtype
    sources: frozenset[torch.dtype]
    inside: frozenset[str] | None
    outside: frozenset[str] = frozenset()
    spreads: bool = False
    rounds = False

    def wanted(self, node: Node, given: Sequence[torch.Tensor], now: Sequence[torch.dtype]) -> torch.dtype | None:
        """The dtype in which `node` computes; None for the dtypes that the program gave.

        `given` are its inputs in one of the `sources`, as the program has them; `now` their dtypes as the graph has them by now.
        """
        name = node.target._opname if is_operator(node.target) else ""
        if name in self.outside:
            return None
        found = self.dtype if self.inside is None or name in self.inside else self._followed(given, now)
        if found is None or found in self.sources or kernels.has(node, self.sources, found):
            return found
        return None

    def _followed(self, given: Sequence[torch.Tensor], now: Sequence[torch.dtype]) -> torch.dtype | None:
        if not self.spreads:
            return None
        # A 0-d value takes the dtype of the others, as it does in torch's promotion.
        voices = [dtype for t, dtype in zip(given, now) if t.ndim] or list(now)
        agreed = any if self.dtype is SINGLE else all
        return self.dtype if agreed(dtype is self.dtype for dtype in voices) else None


def _cube(dtype: torch.dtype) -> Policy:
    return Policy(dtype, frozenset({SINGLE}), lists.CUBE)


def _mixed(dtype: torch.dtype) -> Policy:
    return Policy(dtype, frozenset({SINGLE}), lists.ALLOWED, lists.DENIED | lists.STATEFUL, spreads=True)


_POLICIES: dict[str, Policy | None] = {
    "must_keep_origin_dtype": None,
    "force_fp16": Policy(HALF, frozenset({SINGLE}), None, lists.STATEFUL),
    "force_fp32": Policy(SINGLE, frozenset({HALF, BRAIN}), lists.CUBE, lists.STATEFUL, spreads=True),
    "allow_fp32_to_fp16": _cube(HALF),
    "allow_fp32_to_bf16": _cube(BRAIN),
    "allow_mix_precision": _mixed(HALF),
    "allow_mix_precision_fp16": _mixed(HALF),
    "allow_mix_precision_bf16": _mixed(BRAIN),
}


def named(mode: str) -> Policy | None:
    """The policy of this name; None where nothing is cast."""
    return _POLICIES.get(mode)
