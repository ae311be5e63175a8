"""Where the result of a row's transforms is wanted: a transform that makes a large array makes it there, and nobody copies it after."""
from __future__ import annotations

import threading
from typing import Any

import numpy as np


class _Thread(threading.local):
    array: np.ndarray | None = None


_thread = _Thread()


def offer(array: np.ndarray | None) -> None:
    """Says where this thread's next large result may go; None takes the offer back."""
    _thread.array = array


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array for a result: what was offered, once and where it fits, else a new one."""
    array = _thread.array
    if array is None or array.shape != shape or array.dtype != dtype:
        return np.empty(shape, dtype)
    _thread.array = None
    return array
