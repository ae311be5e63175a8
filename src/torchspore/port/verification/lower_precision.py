"""Tolerances of comparisons in lower precisions, and the precision that a call computes in."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.torch_internals.torch_private import TorchDispatchMode

TOLERANCE = 1e-5
TOLERANCES = {torch.float16: 5e-3, torch.bfloat16: 4e-2}
"""Ten units in the last place of 1.0: rounding differs where operators are fused or ordered otherwise."""
TOLERANCE_OF_AUTOCAST = {torch.float16: 2e-2, torch.bfloat16: 1e-1}
"""For a port under torch.autocast, which lowers other operators than MindSpore."""


class LowestPrecision(TorchDispatchMode):
    """Notes the lowest precision of what operators return."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: set[torch.dtype] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for value in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(value, torch.Tensor) and value.dtype in TOLERANCES:
                self.dtypes.add(value.dtype)
        return result

    @property
    def tolerance(self) -> float:
        """The largest tolerance of these precisions."""
        return max((TOLERANCES[dtype] for dtype in self.dtypes), default=TOLERANCE)

    @property
    def names(self) -> str:
        """The names of the lower precisions."""
        return " and ".join(sorted(str(dtype).removeprefix("torch.") for dtype in self.dtypes))
