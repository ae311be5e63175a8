"""bfloat16 in NumPy, which does not have the type. The 16 bits of a bfloat16 are the upper half of a float32."""
from __future__ import annotations

import numpy as np


def to_float32(bits: np.ndarray) -> np.ndarray:
    """Return the numbers whose bits are `bits` (uint16, any shape), as float32."""
    # NumPy 1.26 shifts an array without axes in int64 unless the dtype is stated.
    return np.asarray(np.left_shift(bits.astype(np.uint32), 16, dtype=np.uint32).view(np.float32))
