"""Execution of operators on the device: threads, cores, synchronous launches."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_int_type, is_int
from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.context.public import get_context, set_context
from torchspore.engine.devices import threads


def launch_blocking() -> None:
    """Makes each operator run synchronously, so that an error appears at its line."""
    set_context(pynative_synchronize=True)


def dispatch_threads_num(threads_num: int) -> None:
    """Sets the number of threads of operators on the CPU. Raises TypeError and ValueError unless it is an int above 0."""
    if not is_int(threads_num):
        raise TypeError(message(f"dispatch_threads_num({short(threads_num)})", f"an int, got {type(threads_num).__name__}"))
    set_context(runtime_num_threads=threads_num)


def _cores(texts: Any) -> set[int]:
    """Return the cores of texts such as '0-3' or '5'."""
    cores: set[int] = set()
    for text in texts:
        low, _, high = str(text).partition("-")
        cores.update(range(int(low), int(high or low) + 1))
    return cores


def set_cpu_affinity(
    enable_affinity: bool, affinity_cpu_list: Any = None, module_to_cpu_dict: dict[str, Any] | None = None, bind_file: str | None = None,
) -> None:
    """Restricts the process to the cores in `affinity_cpu_list` (['0-3', '5']), or removes the restriction.

    This includes its threads of CPU kernels, at most one for each core. Without a list nothing changes: the operating system schedules
    threads, and `explain` reports it. A dictionary, as before MindSpore 2.7, has the list of each device: {'device0': ['0-3']}. Modules
    have no separate threads here, so that `module_to_cpu_dict` and `bind_file` are refused. Raises TypeError and ValueError for invalid
    arguments.
    """
    if not isinstance(enable_affinity, bool):
        raise TypeError(message(f"set_cpu_affinity({short(enable_affinity)})", f"True or False, got {type(enable_affinity).__name__}"))
    if module_to_cpu_dict or bind_file:
        raise ValueError(message("set_cpu_affinity(module_to_cpu_dict=..., bind_file=...)", "affinity_cpu_list for the full process"))
    if isinstance(affinity_cpu_list, dict):
        affinity_cpu_list = affinity_cpu_list.get(f"device{get_context('device_id')}")
    if affinity_cpu_list is not None and not isinstance(affinity_cpu_list, (list, tuple)):
        raise TypeError(message(f"set_cpu_affinity(affinity_cpu_list={short(affinity_cpu_list)})", "a list such as ['0-3']"))
    if not enable_affinity:
        threads.unbind()
        return
    if not affinity_cpu_list:
        effects.note("threads", "set_cpu_affinity(True): no cores are named, the operating system places threads")
        return
    try:
        cores = _cores(affinity_cpu_list)
    except ValueError:
        cores = set()
    try:
        threads.bind(cores)
    except ValueError as error:
        raise ValueError(message(f"set_cpu_affinity(affinity_cpu_list={short(affinity_cpu_list)})", f"cores of {error}")) from None


def set_kernel_launch_group(thread_num: int = 2, kernel_group_num: int = 8) -> None:
    """Checks the number of threads that launch operators on an Ascend device; `explain` reports that torch launches from one thread."""
    for name, value in (("thread_num", thread_num), ("kernel_group_num", kernel_group_num)):
        check_int_type("set_kernel_launch_group", name, value)
        if value < 1:
            raise ValueError(message(f"set_kernel_launch_group({name}={value})", "an int from 1 on"))
    if kernel_group_num % thread_num:
        raise ValueError(message(f"set_kernel_launch_group({thread_num}, {kernel_group_num})", "groups that the threads share evenly"))
    effects.note("execution", f"set_kernel_launch_group({thread_num}, {kernel_group_num}): torch sends operators from the caller's thread")


def set_kernel_launch_capture(enable_capture_graph: bool, op_capture_skip: list[str] | None = None) -> None:
    """Checks a switch of Ascend devices that records launches; `explain` reports that jit levels do so here (CUDA graphs at O2)."""
    if not isinstance(enable_capture_graph, bool):
        call_text = f"set_kernel_launch_capture({short(enable_capture_graph)})"
        raise TypeError(message(call_text, f"True or False, got {type(enable_capture_graph).__name__}"))
    if op_capture_skip is not None and not (isinstance(op_capture_skip, list) and all(isinstance(name, str) for name in op_capture_skip)):
        raise TypeError(message(f"set_kernel_launch_capture(op_capture_skip={short(op_capture_skip)})", "a list of names, or None"))
    shown = f", {op_capture_skip}" if op_capture_skip else ""
    effects.note("execution", f"set_kernel_launch_capture({enable_capture_graph}{shown}): launches are recorded by the levels of jit")
