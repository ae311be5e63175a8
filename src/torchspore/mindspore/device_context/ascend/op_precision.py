"""How exactly operators compute; the members of the option `ascend_config` that say so."""
from __future__ import annotations

from torchspore.base.text import message, short
from torchspore.context.store import STORE
from torchspore.names import missing


def precision_mode(mode: str) -> None:
    """Sets which operators of a graph compute in another dtype than the program gives them. Raises ValueError for another name."""
    _set("precision_mode", mode)


def op_precision_mode(path: str) -> None:
    """Sets the .ini file that says for single operators how precise they are. Raises TypeError, ValueError for what is no such file."""
    if not isinstance(path, str):
        raise TypeError(message(f"op_precision_mode({short(path)})", f"a str, got {type(path).__name__}"))
    _set("op_precision_mode", path)


def matmul_allow_hf32(value: bool) -> None:
    """Sets whether matrix products of float32 may use HF32. Raises ValueError for what is no bool."""
    _set("matmul_allow_hf32", value)


def conv_allow_hf32(value: bool) -> None:
    """Sets whether convolutions of float32 may use HF32. Raises ValueError for what is no bool."""
    _set("conv_allow_hf32", value)


def _set(name: str, value: object) -> None:
    STORE.change("context", {"ascend_config": {name: value}}, f"ascend.op_precision.{name}")


__all__ = ["conv_allow_hf32", "matmul_allow_hf32", "op_precision_mode", "precision_mode"]
__getattr__ = missing(__name__)
