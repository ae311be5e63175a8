"""cuDNN's algorithms of convolutions; the members `conv_*_algo` of the option `gpu_config`."""
from __future__ import annotations

from torchspore.base.text import message, short
from torchspore.context.store import STORE
from torchspore.public_names import missing


def conv_fprop_algo(mode: str) -> None:
    """Sets the algorithm of the forward convolution. Raises TypeError unless it is a str, ValueError for another name."""
    _set("conv_fprop_algo", mode)


def conv_dgrad_algo(mode: str) -> None:
    """Sets the algorithm of the gradient of a convolution's input. Raises TypeError unless it is a str, ValueError for another name."""
    _set("conv_dgrad_algo", mode)


def conv_wgrad_algo(mode: str) -> None:
    """Sets the algorithm of the gradient of a convolution's weight. Raises TypeError unless it is a str, ValueError for another name."""
    _set("conv_wgrad_algo", mode)


def _set(name: str, mode: str) -> None:
    if not isinstance(mode, str):
        raise TypeError(message(f"{name}({short(mode)})", f"a str, got {type(mode).__name__}"))
    STORE.change("context", {name: mode}, f"gpu.op_tuning.{name}")


__all__ = ["conv_dgrad_algo", "conv_fprop_algo", "conv_wgrad_algo"]
__getattr__ = missing(__name__)
