"""Precision of float32 products on a GPU; the members `*_allow_tf32` of the option `gpu_config`."""
from __future__ import annotations

from torchspore.base.text import message, short
from torchspore.context.store import STORE
from torchspore.public_names import missing


def conv_allow_tf32(value: bool) -> None:
    """Sets whether convolutions of float32 may round to TF32, 10 bits of fraction. Raises TypeError unless it is a bool."""
    _set("conv_allow_tf32", value)


def matmul_allow_tf32(value: bool) -> None:
    """Sets whether matrix products of float32 may round to TF32, 10 bits of fraction. Raises TypeError unless it is a bool."""
    _set("matmul_allow_tf32", value)


def _set(name: str, value: bool) -> None:
    if not isinstance(value, bool):
        raise TypeError(message(f"{name}({short(value)})", f"True or False, got {type(value).__name__}"))
    STORE.change("context", {name: value}, f"gpu.op_precision.{name}")


__all__ = ["conv_allow_tf32", "matmul_allow_tf32"]
__getattr__ = missing(__name__)
