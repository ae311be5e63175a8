"""`mindspore.common.np_dtype`: NumPy types for dtypes that NumPy lacks."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message

__all__ = ["bfloat16"]  # noqa: F822  a module attribute that is loaded on access


def __getattr__(name: str) -> Any:
    """Load `bfloat16` from the package ml_dtypes. Raises ImportError without that package."""
    if name != "bfloat16":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(message(
            "mindspore.common.np_dtype.bfloat16 without the package ml_dtypes", "the package", hint="pip install ml_dtypes",
        )) from None
    return ml_dtypes.bfloat16
