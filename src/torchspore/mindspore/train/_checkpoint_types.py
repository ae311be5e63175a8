"""Types by their names in checkpoints."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.mindspore.common import dtype as mstype


class _Types(dict[str, Any]):
    """Types by their names in checkpoints: a dict, as in 1.x, and a function, as in 2.x."""

    def __call__(self, name: str) -> Any:
        return self[name]


_NAMES = ("Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Float16", "Float32", "Float64", "Bool", "BFloat16")
tensor_to_ms_type = _Types({name: getattr(mstype, "bool_" if name == "Bool" else name.lower()) for name in _NAMES})
tensor_to_np_type = _Types({name: np.dtype(name.lower()).type for name in _NAMES[:-1]})
