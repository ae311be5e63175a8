"""Writes of a result into the Tensor that an operator received."""
from __future__ import annotations

from typing import Any

from torchspore.engine.tensors.tensor import raw, write


def write_back(input: Any, out: Any) -> Any:
    """Write `out` into `input`; return `input`."""
    write(input, raw(out).to(input._t.dtype))
    return input
