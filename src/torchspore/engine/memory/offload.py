"""`memory_offload` and `set_offload_context`: what moves out of the device's memory, to where, and how much of it.

On an accelerator values move to the host's memory, and beyond `offload_cpu_size` to disk where a path is named; on the CPU they move to
disk. Without `max_device_memory` and `hbm_ratio` all that lies idle moves; with one of them only while memory is short.
"""
from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from torchspore.base import once
from torchspore.base.frames import warn
from torchspore.base.text import format_bytes, with_hint
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import DEFAULT, STORE
from torchspore.engine.core import allocator, gpu_kinds, torch_private
from torchspore.engine.core import device as devices
from torchspore.engine.core.tensor import frame
from torchspore.engine.memory import unlinked_file
from torchspore.engine.memory.backing_stores import Disk, Host, Store, totals
from torchspore.engine.memory.saved_tensors import Tape

_IN = "offload.offload_config."
_GB = 2**30
_STEP, _BLOCK = 16 << 20, 64 << 20
"""Bytes in one read or write, and in one block of the host's memory, where the context does not say it."""
_SHORT = 0.75
"""The share of its limit from which on memory is short: what operators need for themselves comes on top."""
_AT_O1 = "memory_optimize_level O1 plans the memory of graphs itself, and switches offloading off"
NOTES = "memory offload"


@dataclass(frozen=True)
class Wishes:
    """The program's settings for offloading; sizes in bytes, None if unset."""

    path: str
    names_path: bool
    cpu_size: int | None
    disk_size: int | None
    parameters: str
    values: str
    depth: int
    step: int
    block: int
    pinned: bool
    chooses: bool
    """True if it is left to us what moves."""
    limit: int | None
    """How much of the device's memory may be used before it is short."""


_wishes: dict[int, Wishes] = {}


def wishes() -> Wishes:
    """Return the context's settings for this thread."""
    version = STORE.version
    cached = _wishes.get(version)
    if cached is None:
        _wishes.clear()
        cached = _wishes[version] = _read()
    return cached


def _read() -> Wishes:
    def get(name: str) -> Any:
        return STORE.get(_IN + name)

    return Wishes(
        get("offload_path"), _is_set("offload_path"), _host_bytes(get("offload_cpu_size"), get("cpu_ratio")),
        _bytes(get("offload_disk_size")),
        get("offload_param"), get("offload_checkpoint"), get("aio_queue_depth") if get("enable_aio") else 0,
        _bytes(get("aio_block_size")) or _STEP, _bytes(get("host_mem_block_size")) or _BLOCK, get("enable_pinned_mem"), get("auto_offload"),
        _limit(get("hbm_ratio")),
    )


def _is_set(name: str) -> bool:
    return STORE.source(_IN + name)[0] != DEFAULT


def _bytes(text: str) -> int | None:
    return int(float(text[:-2]) * _GB) if text else None


def _host_bytes(text: str, ratio: float) -> int | None:
    """The most of the host's memory that may be used; the share of all counts only where it was asked for."""
    share = int(ratio * _of_host()) if _is_set("cpu_ratio") else None
    size = _bytes(text)
    return min(size, share) if size is not None and share is not None else size if share is None else share


def _of_host() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limit(ratio: float) -> int | None:
    is_capped = STORE.source("max_device_memory")[0] != DEFAULT
    if not is_capped and not _is_set("hbm_ratio"):
        return None
    device = devices.current()
    there = _of_host() if device.type == "cpu" else torch.get_device_module(device).mem_get_info(device)[1]
    return int(ratio * min(there, int(STORE.get("max_device_memory") * _GB)))


# ---- while the program runs


def is_on() -> bool:
    """Return whether `memory_offload` acts for this thread. Tells why it does not where it was asked for."""
    if not STORE.get("memory_offload"):
        return False
    if STORE.get("memory_optimize_level") == 1:
        effects.report("memory_offload", _refused_at_o1())
        return False
    if devices.current().type == gpu_kinds.MPS:
        effects.report("memory_offload", Outcome.no_effect(_SHARED))
        return False
    return True


def saving() -> AbstractContextManager[Any]:
    """Return the block for a gradient transform: its saved values move out if offloading is on."""
    if not STORE.get("memory_offload") or is_capturing() or torch_private.is_transforming() or not is_on():
        return contextlib.nullcontext()
    _tell()
    if not _moves_values():
        return contextlib.nullcontext()
    return Tape(store_for, ahead_of, waits=wishes().limit is not None).recording()


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
    options = wishes()
    if device.type == "cpu":
        return None if options.values == "cpu" or not is_short(device) else disk()
    return host(device) if is_short(device) else None


def ahead_of(device: torch.device) -> Store | None:
    """Where values come back from before they are asked for; None while memory is short."""
    return None if wishes().limit is not None and is_short(device) else somewhere(device)


def somewhere(device: torch.device) -> Store:
    """Where values of this device go whose graph was planned to let them go."""
    return disk() if device.type == "cpu" else host(device)


def in_graphs() -> int | None:
    """Return the goal of a graph's plan: the bytes that may be in use before values move; None if nothing moves."""
    if not is_on():
        return None
    _tell()
    limit = wishes().limit
    return None if not _moves_values() else 0 if limit is None else int(_SHORT * limit)


def goal(options_given: int) -> int:
    """How many bytes the values of a graph may take where so many may be in use in all; the others are there already."""
    return max(0, options_given - in_use(devices.current())) if options_given else 0


def _moves_values() -> bool:
    """Return whether values for the backward pass move at all."""
    options = wishes()
    return (options.chooses or bool(options.values)) and not (options.values == "cpu" and devices.current().type == "cpu")


def moves_state() -> bool:
    """Return whether the state of optimizers moves out between two steps."""
    return bool(STORE.get("memory_offload")) and is_on() and bool(target := wishes().parameters) and (
        target == "disk" if devices.current().type == "cpu" else True
    )


def moves_state_in_graphs() -> bool:
    """The same of a captured step, which reads state where its kernels are."""
    return devices.current().type == "cpu" and moves_state()


def is_short(device: torch.device) -> bool:
    """Return whether the device has less memory left than the program wants; always, where it names no limit."""
    limit = wishes().limit
    return limit is None or in_use(device) > _SHORT * limit


def in_use(device: torch.device) -> int:
    """Bytes of the device's memory that this process holds; on the CPU, where nobody counts those of tensors, all that is resident."""
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
    """The file that the context names, opened when it is first needed."""
    options = wishes()
    key = (options.path, options.disk_size, options.depth, options.step)
    disk = _disks.get(key)
    if disk is None:
        _disks.clear()                                  # values that are there keep theirs
        disk = _disks[key] = Disk(options.path, options.disk_size, options.depth, options.step)
        if disk.file.is_in_memory:
            effects.note(NOTES, f"{disk.file.folder} lies in memory itself ({disk.file.kind()}): nothing is gained there")
    return disk


def host(device: torch.device) -> Host:
    """The host's memory for values of an accelerator."""
    options = wishes()
    to_disk = options.values == "disk"
    following = disk() if to_disk or options.names_path or options.disk_size is not None else None
    most = 0 if to_disk else options.cpu_size
    key = (device, most, options.block, options.pinned, id(following))
    host = _hosts.get(key)
    if host is None:
        host = _hosts[key] = Host(device, most, options.block, options.pinned, following)
    return host


def _forget() -> None:
    """A forked child has no thread that writes, and must not write into its parent's file."""
    _disks.clear()
    _hosts.clear()


os.register_at_fork(after_in_child=_forget)


# ---- what came of it


def arm(is_on: bool) -> Outcome:
    """Makes `memory_offload` act."""
    _tell_members()
    if not is_on:
        _disks.clear()
        _hosts.clear()
        return Outcome.applied("values stay where they are")
    if STORE.get("memory_optimize_level") == 1:
        return _refused_at_o1()
    if devices.current().type == gpu_kinds.MPS:
        return Outcome.no_effect(_SHARED)
    return Outcome.applied(_text())


def _text() -> str:
    options = wishes()
    device = devices.current()
    if not options.chooses and not options.values:
        return "auto_offload is off, and offload_checkpoint names nothing that moves"
    if device.type == "cpu":
        if options.values == "cpu":
            return "values for the backward pass lie in the host's memory already"
        where = f"a file without a name in {options.path}"
    else:
        where = "the host's memory" if options.values != "disk" else f"a file without a name in {options.path}"
    when = "" if options.limit is None else f" while more than {format_bytes(int(_SHORT * options.limit))} is in use"
    return f"values for the backward pass lie in {where} until they are needed{when}"


def tell(of_graph: str) -> None:
    """Tells what came of one graph."""
    effects.report("memory_offload", Outcome.applied(of_graph))
    effects.note(NOTES, figures)


def _tell() -> None:
    effects.report("memory_offload", Outcome.applied(_text()))
    effects.note(NOTES, figures)


def figures() -> str:
    """Return the totals of moves so far, for `explain`; empty if there were none."""
    sizes = [disk.file.largest for disk in _disks.values()]
    return f"{totals}" + (f"; the file took {format_bytes(max(sizes))} at most" if sizes else "") if totals.pieces else ""


def _refused_at_o1() -> Outcome:
    if once.first_time(("memory_offload", "O1")):
        warn(f"memory_offload has no effect: {_AT_O1}.")
    return Outcome.no_effect(_AT_O1)


_SHARED = "Apple's GPU computes in the host's memory, so that moving values there frees nothing"
_ON_CPU = "on the CPU values that move leave the host's memory, so that none of it is set aside for them"


def _outcome(name: str, value: Any) -> Outcome:
    """Return the outcome of one member of `offload_config` under the present options."""
    if not (_REQUESTS.is_requested_by_cells and name in _OF_CELLS):
        if not STORE.get("memory_offload"):
            return Outcome.no_effect("memory_offload is OFF")
        if STORE.get("memory_optimize_level") == 1:
            return Outcome.no_effect(_AT_O1)
        if devices.current().type == gpu_kinds.MPS:
            return Outcome.no_effect(_SHARED)
    is_cpu = devices.current().type == "cpu"
    uses_disk = is_cpu or wishes().values == "disk" or wishes().names_path or wishes().disk_size is not None
    return _MEMBERS[name](value, is_cpu, uses_disk)


class _Requests:
    """The request of Cells for offloading."""

    def __init__(self) -> None:
        self.is_requested_by_cells = False
        """True if `Cell.offload` asks for values to move, whatever `memory_offload` says."""


_REQUESTS = _Requests()
_OF_CELLS = {
    "offload_path", "offload_disk_size", "offload_cpu_size", "enable_aio", "aio_block_size", "aio_queue_depth", "enable_pinned_mem",
    "host_mem_block_size", "cpu_ratio",
}


def note_cell_request() -> None:
    """Is told that `Cell.offload` was called: what says where values go acts from now on."""
    _REQUESTS.is_requested_by_cells = True
    _tell_members()


@contextmanager
def no_cell_asks() -> Iterator[None]:
    """Lets the block begin like a program whose Cells are not offloaded."""
    before, _REQUESTS.is_requested_by_cells = _REQUESTS.is_requested_by_cells, False
    try:
        yield
    finally:
        _REQUESTS.is_requested_by_cells = before


def is_requested_by_cell() -> bool:
    """Return whether some Cell is to be offloaded."""
    return _REQUESTS.is_requested_by_cells


def _of_disk(text: str) -> Callable[[Any, bool, bool], Outcome]:
    def outcome(value: Any, is_cpu: bool, uses_disk: bool) -> Outcome:
        return Outcome.applied(text.format(value)) if uses_disk else Outcome.no_effect("nothing goes to disk: offload_path names no folder")

    return outcome


def _of_host_memory(text: str) -> Callable[[Any, bool, bool], Outcome]:
    def outcome(value: Any, is_cpu: bool, uses_disk: bool) -> Outcome:
        return Outcome.no_effect(_ON_CPU) if is_cpu else Outcome.applied(text.format(value))

    return outcome


def offload_path(path: str) -> Outcome:
    """Says what a folder comes to. Raises OptionPathError for one in which no file can be made."""
    problem = unlinked_file.check_folder(path) if STORE.get("memory_offload") else None
    if problem is not None:
        kind, reason = problem
        raise kind(with_hint(
            f"set_offload_context(offload_path={path!r}): {reason}.",
            "name a folder that you may write to; only its last part is made where it is missing",
        ))
    return _outcome("offload_path", path)


def _values(value: Any, is_cpu: bool, uses_disk: bool) -> Outcome:
    if not value:
        return Outcome.applied("left to auto_offload")
    if value == "cpu" and is_cpu:
        return Outcome.no_effect("on the CPU values lie in the host's memory already")
    return Outcome.applied(f"values for the backward pass go to {'disk' if value == 'disk' else 'the host'}")


def _state(value: Any, is_cpu: bool, uses_disk: bool) -> Outcome:
    if not value:
        return Outcome.applied("the state of optimizers stays where it is")
    if is_cpu:
        if value == "cpu":
            return Outcome.no_effect("on the CPU the state of optimizers lies in the host's memory already")
        return Outcome.applied("the state of optimizers lies in files without names, and leaves memory after each step")
    where = "the host's memory" if value == "cpu" else "files without names, in the host's memory as long as there is room,"
    return Outcome.applied(f"in PYNATIVE_MODE the state of optimizers lies in {where} between two steps")


def _aio(value: Any, is_cpu: bool, uses_disk: bool) -> Outcome:
    return _of_disk("threads read and write while the program goes on" if value else "the program waits for each read and write")(
        value, is_cpu, uses_disk,
    )


_MEMBERS: dict[str, Callable[[Any, bool, bool], Outcome]] = {
    "offload_path": _of_disk("a file without a name in {}"),
    "offload_disk_size": _of_disk("the file grows to {} at most; what finds no room there stays in memory"),
    "offload_cpu_size": _of_host_memory("at most {} of the host's memory"),
    "offload_checkpoint": _values,
    "enable_aio": _aio,
    "aio_block_size": _of_disk("read and written in blocks of {}"),
    "aio_queue_depth": _of_disk("{} reads and as many writes at a time at most"),
    "enable_pinned_mem": _of_host_memory("pinned memory of the host: {}"),
    "host_mem_block_size": _of_host_memory("the host's memory is taken in blocks of {}"),
    "cpu_ratio": _of_host_memory("at most the share {} of the host's memory"),
    "auto_offload": lambda value, *_: Outcome.applied("what lies idle moves" if value else "only what the other keys name moves"),
    "hbm_ratio": lambda *_: Outcome.applied(f"values move while more than {format_bytes(int(_SHORT * (wishes().limit or 0)))} is in use"),
    "offload_param": _state,
}


def _member(name: str) -> Callable[[Any], Outcome]:
    def effect(value: Any) -> Outcome:
        return _outcome(name, value)

    return effect


def _tell_members() -> None:
    """Report the members that were set before: their outcome depends on the other switches."""
    for name in _MEMBERS:
        if _is_set(name):
            effects.report(_IN + name, _outcome(name, STORE.get(_IN + name)))


offload_disk_size, offload_cpu_size = _member("offload_disk_size"), _member("offload_cpu_size")
offload_checkpoint, enable_aio, aio_block_size = _member("offload_checkpoint"), _member("enable_aio"), _member("aio_block_size")
aio_queue_depth, enable_pinned_mem = _member("aio_queue_depth"), _member("enable_pinned_mem")
auto_offload, hbm_ratio, offload_param = _member("auto_offload"), _member("hbm_ratio"), _member("offload_param")
host_mem_block_size, cpu_ratio = _member("host_mem_block_size"), _member("cpu_ratio")
