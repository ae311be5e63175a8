"""`mindspore.dataset.config`: settings of every data pipeline of this process.

A setting that has no meaning here (shared memory between processes, NUMA, autotuning of C++ threads) is checked, stored and returned;
its docstring states that nothing acts on it.
"""
from __future__ import annotations

import inspect
import os
import random
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base import cores, json_text
from torchspore.base.text import message, short
from torchspore.engine.random import random_state as engine_random
from torchspore.errors import FileFormatError
from torchspore.mindspore.dataset.core.validator_helpers import INT32_MAX, UINT32_MAX, check_bool, check_choice, check_int, check_type
from torchspore.public_names import missing

_DEFAULT_WORKERS = 8


class ErrorSamplesMode(IntEnum):
    """Treatment of a row whose function raises: stop, replace it by another row, or skip it."""

    RETURN = 0
    REPLACE = 1
    SKIP = 2


def _defaults() -> dict[str, Any]:
    return {
        "num_parallel_workers": min(_DEFAULT_WORKERS, cores.usable()), "prefetch_size": 16, "numa_enable": False,
        "monitor_sampling_interval": 1000, "callback_timeout": 60, "auto_num_workers": False, "enable_shared_mem": True,
        "enable_autotune": False, "autotune_interval": 0, "auto_offload": False, "enable_watchdog": True, "fast_recovery": True,
        "multiprocessing_timeout_interval": 300, "dynamic_shape": False, "debug_mode": False, "debug_hooks": None, "sending_batches": 0,
        "error_samples_mode": ErrorSamplesMode.RETURN, "multiprocessing_start_method": "fork", "video_backend": "CPU",
        "iterator_mode": {"do_copy": False, "parallel_convert": False},
    }


_values = _defaults()


class _Seed:
    """The data sets' seed."""

    def __init__(self) -> None:
        self.value: int | None = None
        self.seedings = 0  # the number of `mindspore.set_seed` calls when `value` was set; a later call there takes precedence


_SEED = _Seed()


def set_seed(seed: int) -> None:
    """Seeds shuffling, sampling and random transforms, and, as MindSpore does, Python's and NumPy's random numbers.

    Raises TypeError if `seed` is not an int, ValueError outside [0, 2**32 - 1].
    """
    check_int("set_seed", "seed", seed, 0, UINT32_MAX)
    _seed_pipelines(seed)
    random.seed(seed)
    np.random.seed(seed)


def _seed_pipelines(seed: int) -> None:
    """Seed the pipelines of this process, and not Python's and NumPy's random numbers."""
    _SEED.value, _SEED.seedings = seed, engine_random.SEED.seedings


def get_seed() -> int:
    """Returns the current seed: the later of this module's and `mindspore.set_seed`'s, 5489 if none was set."""
    seed = chosen_seed()
    return 5489 if seed is None else seed


def chosen_seed() -> int | None:
    """Returns the seed that the program set, None if it set none."""
    program = engine_random.get_seed()
    return program if program is not None and (_SEED.value is None or engine_random.SEED.seedings != _SEED.seedings) else _SEED.value


def fresh_seed() -> int:
    """Returns the start seed of one pipeline: the program's, or 32 bits from the operating system."""
    seed = chosen_seed()
    return int.from_bytes(os.urandom(4), "little") if seed is None else seed


def set_prefetch_size(size: int) -> None:
    """Sets the number of rows that a pipeline may prepare ahead of its reader, from 1."""
    check_int("set_prefetch_size", "size", size, 1)
    _values["prefetch_size"] = size


def get_prefetch_size() -> int:
    """Returns the number of rows that a pipeline may prepare ahead of its reader; 16 by default."""
    return _values["prefetch_size"]


def set_num_parallel_workers(num: int) -> None:
    """Sets the default number of threads of a `map` of built-in operations, from 1."""
    check_int("set_num_parallel_workers", "num", num, 1)
    _values["num_parallel_workers"] = num


def get_num_parallel_workers() -> int:
    """Returns the default number of threads of a `map`: initially the smaller of 8 and the number of cores."""
    return _values["num_parallel_workers"]


def set_enable_autotune(enable: bool, filepath_prefix: str | None = None) -> None:
    """Stores the setting. Nothing acts on it: threads are cheap to start here, so there is nothing to tune."""
    check_bool("set_enable_autotune", "enable", enable)
    if filepath_prefix is not None:
        check_type("set_enable_autotune", "filepath_prefix", filepath_prefix, str, "a path without its suffix")
    _values["enable_autotune"] = enable


def set_autotune_interval(interval: int) -> None:
    """Stores the setting; see `set_enable_autotune`."""
    check_int("set_autotune_interval", "interval", interval, 0)
    _values["autotune_interval"] = interval


def set_monitor_sampling_interval(interval: int) -> None:
    """Stores the milliseconds between two samples of MindSpore's monitor; nothing acts on them."""
    check_int("set_monitor_sampling_interval", "interval", interval, 1)
    _values["monitor_sampling_interval"] = interval


def set_callback_timeout(timeout: int) -> None:
    """Sets the timeout, in seconds, of a waiting data callback."""
    check_int("set_callback_timeout", "timeout", timeout, 1)
    _values["callback_timeout"] = timeout


def set_multiprocessing_timeout_interval(interval: int) -> None:
    """Sets the seconds between two warnings of the watchdog about a thread or process that works on one row for long; 300 by default."""
    check_int("set_multiprocessing_timeout_interval", "interval", interval, 1, INT32_MAX - 1)
    _values["multiprocessing_timeout_interval"] = interval


def set_multiprocessing_start_method(start_method: str = "fork") -> None:
    """Sets how the processes of `python_multiprocessing=True` start: 'fork' or 'spawn'. Raises TypeError or ValueError for other values.

    Windows has no fork: with 'fork' Python functions run in threads there.
    """
    check_type("set_multiprocessing_start_method", "start_method", start_method, str, "'fork' or 'spawn'")
    check_choice("set_multiprocessing_start_method", "start_method", start_method, ("fork", "spawn"))
    _values["multiprocessing_start_method"] = start_method


def can_start_processes() -> bool:
    """Return whether processes can run the functions of a program: by fork, which copies them, or because the program chose 'spawn'."""
    return hasattr(os, "fork") or _values["multiprocessing_start_method"] == "spawn"


def set_error_samples_mode(error_samples_mode: ErrorSamplesMode) -> None:
    """Sets the treatment of a row whose function raises."""
    check_type("set_error_samples_mode", "error_samples_mode", error_samples_mode, ErrorSamplesMode, "a member of ErrorSamplesMode")
    _values["error_samples_mode"] = error_samples_mode


def set_debug_mode(debug_mode_flag: bool, debug_hook_list: list[Any] | None = None) -> None:
    """Makes pipelines run in the reader's thread if True, so that a debugger stops in the user's functions.

    The hooks inspect each row before the first and after every transform of a `map`; without hooks, dtypes and shapes are printed.
    """
    check_bool("set_debug_mode", "debug_mode_flag", debug_mode_flag)
    if debug_hook_list is not None:
        from torchspore.mindspore.dataset.debug import DebugHook

        check_type("set_debug_mode", "debug_hook_list", debug_hook_list, list, "a list of hooks")
        for hook in debug_hook_list:
            check_type("set_debug_mode", "debug_hook_list", hook, DebugHook, "a list of objects of DebugHook")
    _values["debug_mode"], _values["debug_hooks"] = debug_mode_flag, debug_hook_list


def debug_hooks() -> list[Any]:
    """Returns the hooks of debug mode; empty outside of it."""
    if not _values["debug_mode"]:
        return []
    if _values["debug_hooks"] is None:
        from torchspore.mindspore.dataset.debug import PrintMetaDataHook

        return [PrintMetaDataHook()]
    return list(_values["debug_hooks"])


def set_sending_batches(batch_num: int) -> None:
    """Stores the number of batches that are sent to a device ahead; nothing acts on it, because a pipeline's reader requests each batch."""
    check_int("set_sending_batches", "batch_num", batch_num, 0)
    _values["sending_batches"] = batch_num


def set_video_backend(backend: str) -> None:
    """Stores 'CPU' or 'Ascend'; nothing acts on it."""
    check_choice("set_video_backend", "backend", backend, ("CPU", "Ascend"))
    _values["video_backend"] = backend


def set_iterator_mode(do_copy: bool = False, parallel_convert: bool = False) -> None:
    """Sets whether iterators copy the rows that they return."""
    check_bool("set_iterator_mode", "do_copy", do_copy)
    check_bool("set_iterator_mode", "parallel_convert", parallel_convert)
    _values["iterator_mode"] = {"do_copy": do_copy, "parallel_convert": parallel_convert}


def load(file: str) -> None:
    """Reads settings from a JSON file whose keys are the names of the setters without `set_`.

    Raises FileNotFoundError if the file is missing, FileFormatError if it is not a JSON object of known names.
    """
    path = Path(file)
    if not path.is_file():
        raise FileNotFoundError(message(f"config.load({file!r})", "an existing file of settings"))
    try:
        read = json_text.parse(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileFormatError(message(f"config.load({file!r})", f"a JSON object ({error})")) from None
    for name, value in read.items():
        setter = globals().get(f"set_{name}", globals().get(f"set_{name}".replace("numParallelWorkers", "num_parallel_workers")))
        if setter is None:
            raise FileFormatError(message(f"config.load({file!r}): key {short(name)}", "the name of a setting"))
        setter(value)


def _flag(name: str, meaning: str, argument: str = "enable") -> tuple[Any, Any]:
    signature = inspect.Signature([inspect.Parameter(argument, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=bool)])

    def setter(*args: Any, **named: Any) -> None:
        value = signature.bind(*args, **named).arguments[argument]
        check_bool(f"set_{name}", argument, value)
        _values[name] = value

    def getter() -> bool:
        return _values[name]

    setter.__signature__ = signature  # type: ignore[attr-defined]
    setter.__name__ = setter.__qualname__ = f"set_{name}"
    getter.__name__ = getter.__qualname__ = f"get_{name}"
    setter.__doc__ = getter.__doc__ = meaning
    return setter, getter


set_numa_enable, get_numa_enable = _flag(
    "numa_enable", "Binding to NUMA nodes; nothing acts on it, because the operating system schedules threads.", "numa_enable",
)
set_enable_shared_mem, get_enable_shared_mem = _flag(
    "enable_shared_mem", "Shared memory between worker processes; nothing acts on it, because threads share all memory."
)
set_auto_num_workers, get_auto_num_workers = _flag("auto_num_workers", "Choosing the number of workers; nothing acts on it.")
set_auto_offload, get_auto_offload = _flag("auto_offload", "Moving transforms to the accelerator; nothing acts on it.", "offload")
set_enable_watchdog, get_enable_watchdog = _flag(
    "enable_watchdog", "Warnings about a pipeline that delays the program: the step that hangs, for how long, and at which line."
)
set_fast_recovery, get_fast_recovery = _flag(
    "fast_recovery", "Skipping to a step without repeating random transforms; nothing acts on it.", "fast_recovery",
)
set_dynamic_shape, get_dynamic_shape = _flag("dynamic_shape", "Batches whose shapes differ; every pipeline accepts them.", "is_dynamic")


def _getter(name: str) -> Any:
    def getter() -> Any:
        return _values[name]

    getter.__name__ = getter.__qualname__ = f"get_{name}"
    getter.__doc__ = f"The value that `set_{name}` stored, or its default."
    return getter


get_enable_autotune, get_autotune_interval = _getter("enable_autotune"), _getter("autotune_interval")
get_monitor_sampling_interval, get_callback_timeout = _getter("monitor_sampling_interval"), _getter("callback_timeout")
get_multiprocessing_timeout_interval = _getter("multiprocessing_timeout_interval")
get_multiprocessing_start_method, get_error_samples_mode = _getter("multiprocessing_start_method"), _getter("error_samples_mode")
get_debug_mode, get_video_backend, get_iterator_mode = _getter("debug_mode"), _getter("video_backend"), _getter("iterator_mode")


__getattr__ = missing(__name__)
