"""Precision of operators; the corresponding members of the option `ascend_config`."""
from __future__ import annotations

from torchspore.base.text import message, short
from torchspore.context.store import STORE
from torchspore.public_names import missing


def precision_mode(mode: str) -> None:
    """Selects the operators of a graph that compute in another dtype than the program's. Raises ValueError for another name."""
    _set("precision_mode", mode)


def op_precision_mode(path: str) -> None:
    """Sets the .ini file with the precision of single operators. Raises TypeError, ValueError for another file."""
    if not isinstance(path, str):
        raise TypeError(message(f"op_precision_mode({short(path)})", f"a str, got {type(path).__name__}"))
    _set("op_precision_mode", path)


def matmul_allow_hf32(value: bool) -> None:
    """Sets whether matrix products of float32 may use HF32. Raises ValueError unless it is a bool."""
    _set("matmul_allow_hf32", value)


def conv_allow_hf32(value: bool) -> None:
    """Sets whether convolutions of float32 may use HF32. Raises ValueError unless it is a bool."""
    _set("conv_allow_hf32", value)


def _set(name: str, value: object) -> None:
    STORE.change("context", {"ascend_config": {name: value}}, f"ascend.op_precision.{name}")


__all__ = ["conv_allow_hf32", "matmul_allow_hf32", "op_precision_mode", "precision_mode"]
__getattr__ = missing(__name__)
