"""Memory of the device: use and limits."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.context.public import set_context
from torchspore.mindspore.hal import memory


def memory_allocated() -> int:
    """Returns the bytes that Tensors use now; on the CPU those allocated since the first query, or since `max_device_memory` was set."""
    return memory.memory_allocated()


def memory_reserved() -> int:
    """Returns the bytes that torch has reserved on the device; on the CPU, which has no pool, the bytes that Tensors use."""
    return memory.memory_reserved()


def max_memory_allocated() -> int:
    """Returns the peak of the bytes that Tensors used; on the CPU as `memory_allocated` counts them."""
    return memory.max_memory_allocated()


def max_memory_reserved() -> int:
    """Returns the peak of the bytes that torch had reserved; on the CPU the peak that Tensors used."""
    return memory.max_memory_reserved()


def memory_stats() -> dict[str, Any]:
    """Returns these figures under MindSpore's names."""
    return memory.memory_stats()


def memory_summary() -> str:
    """Returns these figures as a text table."""
    return memory.memory_summary()


def reset_peak_memory_stats() -> None:
    """Resets the peak figures."""
    memory.reset_peak_memory_stats()


def reset_max_memory_allocated() -> None:
    """Resets the peak figures."""
    memory.reset_peak_memory_stats()


def reset_max_memory_reserved() -> None:
    """Resets the peak figures."""
    memory.reset_peak_memory_stats()


def set_memory(
    init_size: str = "2GB", increase_size: str = "2GB", max_size: str = "1024GB", optimize_level: str = "O0",
    huge_page_reserve_size: str = "0GB",
) -> None:
    """Limits the device's memory to `max_size` and sets `memory_optimize_level`; sizes have the form '2GB'.

    An `increase_size` of '1GB' or more that is not the default is the `mempool_block_size` of an accelerator. Memory is allocated on
    demand: `init_size` and `huge_page_reserve_size` are checked, and `explain` reports that they change nothing. Raises TypeError and
    ValueError for invalid arguments.
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
            effects.note("memory", f"set_memory({name}={sizes[name]!r}): torch allocates memory on demand, in its own sizes")
