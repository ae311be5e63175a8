"""Kernels with wrong numbers."""
from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class Wrong(TorchDispatchMode):
    """Within the block the kernels of these names give `factor` times what they should."""

    def __init__(self, *names: str, factor: float = 1.01) -> None:
        super().__init__()
        self._names, self._factor = names, factor

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * self._factor if func._opname in self._names else result
