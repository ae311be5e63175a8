"""How much memory of the device is in use, and how much may be."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.context.public import set_context
from torchspore.mindspore.hal import memory


def memory_allocated() -> int:
    """Bytes that Tensors hold now; on the CPU those taken since the first question, or since `max_device_memory` was set."""
    return memory.memory_allocated()


def memory_reserved() -> int:
    """Bytes that torch has taken from the device; on the CPU, which has no pool, what Tensors hold."""
    return memory.memory_reserved()


def max_memory_allocated() -> int:
    """The most bytes that Tensors held at once; on the CPU as `memory_allocated` counts them."""
    return memory.max_memory_allocated()


def max_memory_reserved() -> int:
    """The most bytes that torch had taken at once; on the CPU the most that Tensors held."""
    return memory.max_memory_reserved()


def memory_stats() -> dict[str, Any]:
    """These figures under MindSpore's names."""
    return memory.memory_stats()


def memory_summary() -> str:
    """These figures as a table of text."""
    return memory.memory_summary()


def reset_peak_memory_stats() -> None:
    """Starts the largest figures anew."""
    memory.reset_peak_memory_stats()


def reset_max_memory_allocated() -> None:
    """Starts the largest figures anew."""
    memory.reset_peak_memory_stats()


def reset_max_memory_reserved() -> None:
    """Starts the largest figures anew."""
    memory.reset_peak_memory_stats()


def set_memory(
    init_size: str = "2GB", increase_size: str = "2GB", max_size: str = "1024GB", optimize_level: str = "O0",
    huge_page_reserve_size: str = "0GB",
) -> None:
    """Caps the device's memory at `max_size` and sets `memory_optimize_level`; sizes are written '2GB'.

    An `increase_size` of '1GB' or more that is not the usual one is the `mempool_block_size` of an accelerator. Memory is taken when it is
    needed: `init_size` and `huge_page_reserve_size` are checked, and `explain` says that they change nothing. Raises TypeError and
    ValueError for what does not fit.
    """
    sizes = {
        "init_size": init_size, "increase_size": increase_size, "max_size": max_size, "huge_page_reserve_size": huge_page_reserve_size,
    }
    for name, value in sizes.items():
        if not isinstance(value, str):
            raise TypeError(message(f"set_memory({name}={short(value)})", f"a str such as '2GB', got {type(value).__name__}"))
        try:
            float(value.removesuffix("GB") if value.endswith("GB") else "")
        except ValueError:
            raise ValueError(message(f"set_memory({name}={short(value)})", "a size such as '2GB'")) from None
    if optimize_level not in ("O0", "O1"):
        raise ValueError(message(f"set_memory(optimize_level={short(optimize_level)})", list_choices(("O0", "O1"))))
    step = {"mempool_block_size": increase_size} if increase_size != "2GB" and float(increase_size.removesuffix("GB")) >= 1 else {}
    set_context(max_device_memory=max_size, memory_optimize_level=optimize_level, **step)
    for name, usual in (("init_size", "2GB"), *([] if step else [("increase_size", "2GB")]), ("huge_page_reserve_size", "0GB")):
        if sizes[name] != usual:
            effects.note("memory", f"set_memory({name}={sizes[name]!r}): torch takes memory as it is needed, in pieces of its own")
