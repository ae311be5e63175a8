"""The destination of a row's result: a transform that creates a large array writes into it, so that no copy is needed afterwards."""
from __future__ import annotations

import threading
from typing import Any

import numpy as np


class _Thread(threading.local):
    array: np.ndarray | None = None


_thread = _Thread()


def offer(array: np.ndarray | None) -> None:
    """Offer an array for this thread's next large result; None withdraws the offer."""
    _thread.array = array


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array for a result: the offered one, once and if it fits, otherwise a new one."""
    array = _thread.array
    if array is None or array.shape != shape or array.dtype != dtype:
        return np.empty(shape, dtype)
    _thread.array = None
    return array
