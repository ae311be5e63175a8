"""The settings of `memory_offload` and `set_offload_context`: which values move out of the device's memory, and where to.

On an accelerator values move to the host's memory, and beyond `offload_cpu_size` to disk if a path is set; on the CPU they move to disk.
Without `max_device_memory` and `hbm_ratio` all idle values move; with one of these options values move only while memory is short.
"""
from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from torchspore.base import once
from torchspore.base.forks import at_fork
from torchspore.base.frames import warn
from torchspore.base.host_memory import total_memory
from torchspore.base.lazy_dataclasses import dataclass
from torchspore.base.text import format_bytes, with_hint
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import DEFAULT, STORE
from torchspore.engine.devices import device as devices
from torchspore.engine.devices import gpu_kinds
from torchspore.engine.memory import unlinked_file
from torchspore.engine.memory.backing_stores import Disk, Host, Store, totals
from torchspore.engine.memory.saved_tensors import Tape
from torchspore.engine.native import allocator
from torchspore.engine.tensors.tensor import frame
from torchspore.engine.torch_internals import torch_private
from torchspore.translations import translatable, translate

_PREFIX = "offload.offload_config."
_GB = 2**30
_IO_BLOCK, _HOST_BLOCK = 16 << 20, 64 << 20
"""The default bytes of one read or write, and of one block of the host's memory."""
_LIMIT_SHARE = 0.75
"""Memory is short above this share of the limit; the rest is for temporary memory of operators."""
_AT_O1 = translatable("memory_optimize_level O1 plans the memory of graphs itself, and switches offloading off")
NOTES = translatable("memory offload")


@dataclass(frozen=True)
class OffloadSettings:
    """The program's settings for offloading; sizes in bytes, None if unset."""

    path: str
    names_path: bool
    cpu_size: int | None
    disk_size: int | None
    parameters: str
    values: str
    queue_depth: int
    step: int
    block: int
    pinned: bool
    is_automatic: bool
    """True if torchspore chooses the values that move (`auto_offload`)."""
    limit: int | None
    """The limit of the device's memory in bytes; None without a limit."""


_settings_cache: dict[int, OffloadSettings] = {}


def offload_settings() -> OffloadSettings:
    """Return the context's settings for this thread."""
    version = STORE.version
    cached = _settings_cache.get(version)
    if cached is None:
        _settings_cache.clear()
        cached = _settings_cache[version] = _read()
    return cached


def _read() -> OffloadSettings:
    def get(name: str) -> Any:
        return STORE.get(_PREFIX + name)

    return OffloadSettings(
        get("offload_path"),
        _is_set("offload_path"),
        _host_bytes(get("offload_cpu_size"), get("cpu_ratio")),
        _bytes(get("offload_disk_size")),
        get("offload_param"),
        get("offload_checkpoint"),
        get("aio_queue_depth") if get("enable_aio") else 0,
        _bytes(get("aio_block_size")) or _IO_BLOCK,
        _bytes(get("host_mem_block_size")) or _HOST_BLOCK,
        get("enable_pinned_mem"),
        get("auto_offload"),
        _limit(get("hbm_ratio")),
    )


def _is_set(name: str) -> bool:
    return STORE.source(_PREFIX + name)[0] != DEFAULT


def _bytes(text: str) -> int | None:
    return int(float(text[:-2]) * _GB) if text else None


def _host_bytes(text: str, ratio: float) -> int | None:
    """Return the limit of the host's memory in bytes. `cpu_ratio` counts only if the program sets it."""
    share = int(ratio * total_memory()) if _is_set("cpu_ratio") else None
    size = _bytes(text)
    return min(size, share) if size is not None and share is not None else size if share is None else share


def _limit(ratio: float) -> int | None:
    is_capped = STORE.source("max_device_memory")[0] != DEFAULT
    if not is_capped and not _is_set("hbm_ratio"):
        return None
    device = devices.current()
    there = total_memory() if device.type == "cpu" else torch.get_device_module(device).mem_get_info(device)[1]
    return int(ratio * min(there, int(STORE.get("max_device_memory") * _GB)))


# ---- while the program runs


def is_on() -> bool:
    """Return whether `memory_offload` is effective in this thread. Reports the reason if it is set without an effect."""
    if not STORE.get("memory_offload"):
        return False
    if STORE.get("memory_optimize_level") == 1:
        effects.report("memory_offload", _refused_at_o1())
        return False
    reason = _why_nothing_moves()
    if reason:
        effects.report("memory_offload", Outcome.no_effect(reason))
        return False
    return True


def offload_saved_tensors() -> AbstractContextManager[Any]:
    """Return the context manager for a gradient transform, in which saved values move out if offloading is on."""
    if not STORE.get("memory_offload") or is_capturing() or torch_private.is_transforming() or not is_on():
        return contextlib.nullcontext()
    _report()
    if not _moves_values():
        return contextlib.nullcontext()
    return Tape(store_for, prefetch_store, waits=offload_settings().limit is not None).recording()


def is_capturing() -> bool:
    """Return whether this thread captures a graph."""
    around = frame()
    while around is not None:
        if getattr(around, "tracer", None) is not None:
            return True
        around = around.outer
    return False


def store_for(device: torch.device) -> Store | None:
    """Return the store for values of this device; None if they stay."""
    options = offload_settings()
    if device.type == "cpu":
        return None if options.values == "cpu" or not is_memory_short(device) else disk()
    return host(device) if is_memory_short(device) else None


def prefetch_store(device: torch.device) -> Store | None:
    """Return the store from which values are fetched before they are needed; None while memory is short."""
    return None if offload_settings().limit is not None and is_memory_short(device) else planned_store(device)


def planned_store(device: torch.device) -> Store:
    """Return the store for values of this device that a graph's plan moves out."""
    return disk() if device.type == "cpu" else host(device)


def graph_limit() -> int | None:
    """Return the goal of a graph's plan: the bytes that may be in use before values move; None if nothing moves."""
    if not is_on():
        return None
    _report()
    limit = offload_settings().limit
    return None if not _moves_values() else 0 if limit is None else int(_LIMIT_SHARE * limit)


def limit_for_values(limit: int) -> int:
    """Return the bytes that the values of a graph may need so that at most `limit` bytes are in use in total; 0 without a limit."""
    return max(0, limit - in_use(devices.current())) if limit else 0


def _moves_values() -> bool:
    """Return whether values for the backward pass move."""
    options = offload_settings()
    return (options.is_automatic or bool(options.values)) and not (options.values == "cpu" and devices.current().type == "cpu")


def moves_state() -> bool:
    """Return whether optimizer states move out between two steps."""
    return bool(STORE.get("memory_offload")) and is_on() and bool(target := offload_settings().parameters) and (
        target == "disk" if devices.current().type == "cpu" else True
    )


def moves_state_in_graphs() -> bool:
    """Return the same for a captured step. On an accelerator its kernels read the states on the device, so they stay."""
    return devices.current().type == "cpu" and moves_state()


def is_memory_short(device: torch.device) -> bool:
    """Return whether the memory in use exceeds the limit's share; always True without a limit."""
    limit = offload_settings().limit
    return limit is None or in_use(device) > _LIMIT_SHARE * limit


def in_use(device: torch.device) -> int:
    """Return the bytes of the device's memory that this process uses; on the CPU without the counting allocator, its resident memory."""
    if device.type != "cpu":
        return int(torch.get_device_module(device).memory_allocated(device))
    figures = allocator.figures() if allocator.is_on else None
    if figures is not None:
        return figures.used
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


_disks: dict[tuple[Any, ...], Disk] = {}
_hosts: dict[tuple[Any, ...], Host] = {}


def disk() -> Disk:
    """Return the file on disk that the context names; it is opened at the first use."""
    options = offload_settings()
    key = (options.path, options.disk_size, options.queue_depth, options.step)
    disk = _disks.get(key)
    if disk is None:
        _disks.clear()                                  # values in an earlier file keep a reference to it
        disk = _disks[key] = Disk(options.path, options.disk_size, options.queue_depth, options.step)
        if disk.file.is_in_memory:
            effects.note(NOTES, f"{disk.file.folder} is in memory itself ({disk.file.kind()}): nothing is gained there")
    return disk


def host(device: torch.device) -> Host:
    """Return the store in the host's memory for values of an accelerator."""
    options = offload_settings()
    to_disk = options.values == "disk"
    following = disk() if to_disk or options.names_path or options.disk_size is not None else None
    most = 0 if to_disk else options.cpu_size
    key = (device, most, options.block, options.pinned, id(following))
    host = _hosts.get(key)
    if host is None:
        host = _hosts[key] = Host(device, most, options.block, options.pinned, following)
    return host


def _clear_after_fork() -> None:
    """Forget the stores in a forked child, which has no writing thread and must not write into its parent's file."""
    _disks.clear()
    _hosts.clear()


at_fork(after_in_child=_clear_after_fork)


# ---- outcomes


def set_memory_offload(is_on: bool) -> Outcome:
    """Apply `memory_offload`."""
    _report_members()
    if not is_on:
        _disks.clear()
        _hosts.clear()
        return Outcome.applied("values stay where they are")
    if STORE.get("memory_optimize_level") == 1:
        return _refused_at_o1()
    reason = _why_nothing_moves()
    if reason:
        return Outcome.no_effect(reason)
    return Outcome.applied(_describe())


def _describe() -> str:
    options = offload_settings()
    device = devices.current()
    if not options.is_automatic and not options.values:
        return translatable("auto_offload is off, and offload_checkpoint names nothing that moves")
    if device.type == "cpu":
        if options.values == "cpu":
            return translatable("values for the backward pass are in the host's memory already")
        destination = _unnamed_file(options.path)
    else:
        destination = translate("the host's memory") if options.values != "disk" else _unnamed_file(options.path)
    text = (translate("values for the backward pass are in {destination} until they are needed") if options.limit is None else
            translate("values for the backward pass are in {destination} until they are needed while more than {size} is in use"))
    return text.format(destination=destination, size=format_bytes(int(_LIMIT_SHARE * (options.limit or 0))))


def _unnamed_file(folder: object) -> str:
    return translate("a file without a name in {folder}").format(folder=folder)


def report_graph(of_graph: str) -> None:
    """Report the outcome of one graph."""
    effects.report("memory_offload", Outcome.applied(of_graph))
    effects.note(NOTES, figures)


def _report() -> None:
    effects.report("memory_offload", Outcome.applied(_describe()))
    effects.note(NOTES, figures)


def figures() -> str:
    """Return the totals of moves so far, for `explain`; empty if there were none."""
    sizes = [disk.file.largest for disk in _disks.values()]
    return f"{totals}" + (f"; the file took {format_bytes(max(sizes))} at most" if sizes else "") if totals.pieces else ""


def _refused_at_o1() -> Outcome:
    if once.first_time(("memory_offload", "O1")):
        warn(translate("memory_offload has no effect: {reason}.").format(reason=translate(_AT_O1)))
    return Outcome.no_effect(_AT_O1)


_SHARED = translatable("Apple's GPU computes in the host's memory, so that moving values there frees nothing")
_NO_FILES = translatable("values leave the host's memory in files without a name, which torchspore uses on Linux alone")
_ON_CPU = translatable("on the CPU values that move leave the host's memory, so none of it is reserved for them")


def _why_nothing_moves() -> str:
    """Return why no values can move on this machine; empty if they can."""
    if devices.current().type == gpu_kinds.MPS:
        return _SHARED
    return "" if unlinked_file.EXISTS or devices.current().type != "cpu" else _NO_FILES


def _outcome(name: str, value: Any) -> Outcome:
    """Return the outcome of one member of `offload_config` under the present options."""
    if not (_REQUESTS.is_requested_by_cells and name in _OF_CELLS):
        if not STORE.get("memory_offload"):
            return Outcome.no_effect("memory_offload is OFF")
        if STORE.get("memory_optimize_level") == 1:
            return Outcome.no_effect(_AT_O1)
        reason = _why_nothing_moves()
        if reason:
            return Outcome.no_effect(reason)
    is_cpu = devices.current().type == "cpu"
    uses_disk = is_cpu or offload_settings().values == "disk" or offload_settings().names_path or offload_settings().disk_size is not None
    return _MEMBERS[name](value, is_cpu, uses_disk)


class _Requests:
    """The requests of Cells for offloading."""

    def __init__(self) -> None:
        self.is_requested_by_cells = False
        """True if the program called `Cell.offload`, which is independent of `memory_offload`."""


_REQUESTS = _Requests()
_OF_CELLS = {
    "offload_path", "offload_disk_size", "offload_cpu_size", "enable_aio", "aio_block_size", "aio_queue_depth", "enable_pinned_mem",
    "host_mem_block_size", "cpu_ratio",
}


def note_cell_request() -> None:
    """Record that the program called `Cell.offload`. From now on the options for stores have an effect."""
    _REQUESTS.is_requested_by_cells = True
    _report_members()


@contextmanager
def without_cell_requests() -> Iterator[None]:
    """Run the block as if the program had not called `Cell.offload`."""
    before, _REQUESTS.is_requested_by_cells = _REQUESTS.is_requested_by_cells, False
    try:
        yield
    finally:
        _REQUESTS.is_requested_by_cells = before


def is_requested_by_cell() -> bool:
    """Return whether the program called `Cell.offload`."""
    return _REQUESTS.is_requested_by_cells


def _of_disk(text: str) -> Callable[[Any, bool, bool], Outcome]:
    def outcome(value: Any, is_cpu: bool, uses_disk: bool) -> Outcome:
        if uses_disk:
            return Outcome.applied(translate(text).format(value))
        return Outcome.no_effect("nothing goes to disk: offload_path names no folder")

    return outcome


def _of_host_memory(text: str) -> Callable[[Any, bool, bool], Outcome]:
    def outcome(value: Any, is_cpu: bool, uses_disk: bool) -> Outcome:
        return Outcome.no_effect(_ON_CPU) if is_cpu else Outcome.applied(translate(text).format(value))

    return outcome


def offload_path(path: str) -> Outcome:
    """Return the outcome of `offload_path`. Raises OptionPathError for a folder in which no file can be created."""
    problem = unlinked_file.check_folder(path) if STORE.get("memory_offload") and not _why_nothing_moves() else None
    if problem is not None:
        kind, reason = problem
        raise kind(with_hint(
            f"set_offload_context(offload_path={path!r}): {reason}.",
            "name a folder that you may write to; only its last component is created if it is missing",
        ))
    return _outcome("offload_path", path)


def _values(value: Any, is_cpu: bool, uses_disk: bool) -> Outcome:
    if not value:
        return Outcome.applied("left to auto_offload")
    if value == "cpu" and is_cpu:
        return Outcome.no_effect("on the CPU values are in the host's memory already")
    return Outcome.applied("values for the backward pass go to disk" if value == "disk" else "values for the backward pass go to the host")


def _state(value: Any, is_cpu: bool, uses_disk: bool) -> Outcome:
    if not value:
        return Outcome.applied("the state of optimizers stays where it is")
    if is_cpu:
        if value == "cpu":
            return Outcome.no_effect("on the CPU the state of optimizers is in the host's memory already")
        return Outcome.applied("the state of optimizers is in unlinked files, and leaves memory after each step")
    return Outcome.applied(
        "in PYNATIVE_MODE the state of optimizers is in the host's memory between two steps" if value == "cpu" else
        "in PYNATIVE_MODE the state of optimizers is in files without names, in the host's memory as long as there is room, between two "
        "steps")


def _aio(value: Any, is_cpu: bool, uses_disk: bool) -> Outcome:
    text = (translatable("threads read and write while the program continues") if value else
            translatable("the program waits for each read and write"))
    return _of_disk(text)(value, is_cpu, uses_disk)


_MEMBERS: dict[str, Callable[[Any, bool, bool], Outcome]] = {
    "offload_path": _of_disk(translatable("a file without a name in {}")),
    "offload_disk_size": _of_disk(translatable("the file grows to {} at most; what finds no room there stays in memory")),
    "offload_cpu_size": _of_host_memory(translatable("at most {} of the host's memory")),
    "offload_checkpoint": _values,
    "enable_aio": _aio,
    "aio_block_size": _of_disk(translatable("read and written in blocks of {}")),
    "aio_queue_depth": _of_disk(translatable("{} reads and as many writes at a time at most")),
    "enable_pinned_mem": _of_host_memory(translatable("pinned memory of the host: {}")),
    "host_mem_block_size": _of_host_memory(translatable("the host's memory is taken in blocks of {}")),
    "cpu_ratio": _of_host_memory(translatable("at most the share {} of the host's memory")),
    "auto_offload": lambda value, *_: Outcome.applied("idle values move" if value else "only the values that the other keys name move"),
    "hbm_ratio": lambda *_: Outcome.applied(
        translate("values move while more than {size} is in use").format(
            size=format_bytes(int(_LIMIT_SHARE * (offload_settings().limit or 0))))
    ),
    "offload_param": _state,
}


def _member(name: str) -> Callable[[Any], Outcome]:
    def effect(value: Any) -> Outcome:
        return _outcome(name, value)

    return effect


def _report_members() -> None:
    """Report the members that the program has set; their outcomes depend on the other options."""
    for name in _MEMBERS:
        if _is_set(name):
            effects.report(_PREFIX + name, _outcome(name, STORE.get(_PREFIX + name)))


offload_disk_size, offload_cpu_size = _member("offload_disk_size"), _member("offload_cpu_size")
offload_checkpoint, enable_aio, aio_block_size = _member("offload_checkpoint"), _member("enable_aio"), _member("aio_block_size")
aio_queue_depth, enable_pinned_mem = _member("aio_queue_depth"), _member("enable_pinned_mem")
auto_offload, hbm_ratio, offload_param = _member("auto_offload"), _member("hbm_ratio"), _member("offload_param")
host_mem_block_size, cpu_ratio = _member("host_mem_block_size"), _member("cpu_ratio")
