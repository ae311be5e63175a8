"""The number of CPU threads; the option `runtime_num_threads`."""
from __future__ import annotations

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.context.public import set_context
from torchspore.public_names import missing


def threads_num(num: int) -> None:
    """Sets the number of threads of operators. Raises TypeError unless it is an int, ValueError for one below 1."""
    if not is_int(num):
        raise TypeError(message(f"threads_num({short(num)})", f"an int, got {type(num).__name__}"))
    if num < 1:
        raise ValueError(message(f"threads_num({num})", "an int from 1 on"))
    set_context(runtime_num_threads=num)


__all__ = ["threads_num"]
__getattr__ = missing(__name__)
