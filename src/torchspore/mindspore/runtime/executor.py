"""How operators reach the device: threads, cores, one after the other."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.context.public import set_context
from torchspore.engine.core import threads


def launch_blocking() -> None:
    """Waits for each operator from here on, so that an error appears at its line."""
    set_context(pynative_synchronize=True)


def dispatch_threads_num(threads_num: int) -> None:
    """Sets how many threads operators on the CPU use. Raises TypeError and ValueError for what is no int above 0."""
    if isinstance(threads_num, bool) or not isinstance(threads_num, int):
        raise TypeError(message(f"dispatch_threads_num({short(threads_num)})", f"an int, got {type(threads_num).__name__}"))
    set_context(runtime_num_threads=threads_num)


def _cores(given: Any) -> set[int]:
    """The cores of texts such as '0-3' or '5'."""
    found: set[int] = set()
    for text in given:
        low, _, high = str(text).partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def set_cpu_affinity(
    enable_affinity: bool, affinity_cpu_list: Any = None, module_to_cpu_dict: dict[str, Any] | None = None, bind_file: str | None = None,
) -> None:
    """Keeps the process to the cores in `affinity_cpu_list` (['0-3', '5']), or gives it all of its own back.

    Its threads of CPU kernels come along, one for each core at most. Without a list nothing is changed: the operating system places
    threads, and `explain` says so. Modules have no threads of their own here, so that `module_to_cpu_dict` and `bind_file` are
    refused. Raises TypeError and ValueError for what does not fit.
    """
    if not isinstance(enable_affinity, bool):
        raise TypeError(message(f"set_cpu_affinity({short(enable_affinity)})", f"True or False, got {type(enable_affinity).__name__}"))
    if module_to_cpu_dict or bind_file:
        raise ValueError(message("set_cpu_affinity(module_to_cpu_dict=..., bind_file=...)", "affinity_cpu_list for the whole process"))
    if affinity_cpu_list is not None and not isinstance(affinity_cpu_list, (list, tuple)):
        raise TypeError(message(f"set_cpu_affinity(affinity_cpu_list={short(affinity_cpu_list)})", "a list such as ['0-3']"))
    if not enable_affinity:
        threads.unbind()
        return
    if not affinity_cpu_list:
        effects.note("threads", "set_cpu_affinity(True): no cores are named, the system places threads")
        return
    try:
        wanted = _cores(affinity_cpu_list)
    except ValueError:
        wanted = set()
    try:
        threads.bind(wanted)
    except ValueError as error:
        raise ValueError(message(f"set_cpu_affinity(affinity_cpu_list={short(affinity_cpu_list)})", f"cores of {error}")) from None


def set_kernel_launch_group(thread_num: int = 2, kernel_group_num: int = 8) -> None:
    """Checks how many threads send operators to an Ascend device; `explain` says that torch sends them from one thread here."""
    for name, value in (("thread_num", thread_num), ("kernel_group_num", kernel_group_num)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(message(f"set_kernel_launch_group({name}={short(value)})", f"an int, got {type(value).__name__}"))
        if value < 1:
            raise ValueError(message(f"set_kernel_launch_group({name}={value})", "an int from 1 on"))
    if kernel_group_num % thread_num:
        raise ValueError(message(f"set_kernel_launch_group({thread_num}, {kernel_group_num})", "groups that the threads share evenly"))
    effects.note("execution", f"set_kernel_launch_group({thread_num}, {kernel_group_num}): torch sends operators from the caller's thread")


def set_kernel_launch_capture(enable_capture_graph: bool, op_capture_skip: list[str] | None = None) -> None:
    """Checks a switch of Ascend devices that records launches; `explain` says that jit levels do so here (CUDA graphs at O2)."""
    if not isinstance(enable_capture_graph, bool):
        wrote = f"set_kernel_launch_capture({short(enable_capture_graph)})"
        raise TypeError(message(wrote, f"True or False, got {type(enable_capture_graph).__name__}"))
    if op_capture_skip is not None and not (isinstance(op_capture_skip, list) and all(isinstance(one, str) for one in op_capture_skip)):
        raise TypeError(message(f"set_kernel_launch_capture(op_capture_skip={short(op_capture_skip)})", "a list of names, or None"))
    shown = f", {op_capture_skip}" if op_capture_skip else ""
    effects.note("execution", f"set_kernel_launch_capture({enable_capture_graph}{shown}): launches are recorded by the levels of jit")
