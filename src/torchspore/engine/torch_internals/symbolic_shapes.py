"""torch's symbols for lengths. The functions load sympy when they are called."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def sizes_as_symbols(t: torch.Tensor, axes: tuple[int, ...]) -> Any:
    """Return the argument that makes a fake mode use symbols for the lengths of these axes of `t`."""
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    return StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC if axis in axes else DimDynamic.STATIC for axis in range(t.ndim)])


def guard_functions() -> Mapping[str, Any]:
    """Return the functions that the guards of a ShapeEnv may call, by name."""
    from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP

    return SYMPY_INTERP
