"""Counts the floating-point operations of products, convolutions and attention while they run."""
from __future__ import annotations

from typing import Any

from torch.utils.flop_counter import FlopCounterMode


class Counter:
    """Counts between `start` and `stop`, in this thread."""

    def __init__(self) -> None:
        self._mode: Any = None

    def start(self) -> None:
        """Counts from here on."""
        self._mode = FlopCounterMode(display=False)
        self._mode.__enter__()

    def stop(self) -> int:
        """How many there were; 0 where nothing was counted."""
        if self._mode is None:
            return 0
        mode, self._mode = self._mode, None
        mode.__exit__(None, None, None)
        return int(mode.get_total_flops())
