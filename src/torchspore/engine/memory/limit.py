"""`max_device_memory` and `variable_memory_max_size`: how much memory the program may take, and the error where it wants more."""
from __future__ import annotations

import re
from typing import Any

import torch

from torchspore.base.frames import near, user_line
from torchspore.base.text import with_hint
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE
from torchspore.engine import device, eager, private
from torchspore.engine.memory import counter, holders
from torchspore.errors import OutOfMemory

GIB = 1 << 30
_NAMES = ("max_device_memory", "variable_memory_max_size")
_told = 0
"""The number of the last refusal that an error was made of."""


def cap(wanted: float) -> Outcome:
    """Makes `max_device_memory` act, in GB of 2**30 bytes."""
    return _cap("max_device_memory", wanted)


def cap_variables(wanted: str) -> Outcome:
    """Makes `variable_memory_max_size` act, which the getter answers as '6 * 1024 * 1024 * 1024'; it counts where the other is not set."""
    return _cap("variable_memory_max_size", wanted)


def _gigabytes(name: str) -> float:
    """The limit that an option sets, 0 for none."""
    value = STORE.get(name)
    if value == OPTIONS[name].default:
        return 0.0
    return float(str(value).partition(" ")[0])


def _cap(name: str, wanted: Any) -> Outcome:
    chosen = next((one for one in _NAMES if _gigabytes(one)), None)
    target = str(STORE.get("device_target"))
    outcome = _on_cpu(chosen) if target == "CPU" else _on_accelerator(target, chosen)
    if chosen is not None and chosen != name and wanted != OPTIONS[name].default:
        return Outcome.no_effect(f"{chosen} sets the limit")
    return outcome


def _on_cpu(name: str | None) -> Outcome:
    if name is None:
        if counter.is_on:
            counter.limit(0, "")
            release()
        return Outcome.applied("no limit; nothing is counted")
    if not counting():
        return Outcome.no_effect(f"the CPU's memory can't be counted: {counter.why_not() or 'the allocator was not built'}")
    size = int(_gigabytes(name) * GIB)
    counter.limit(size, _written(name))
    return Outcome.applied(f"Tensors on the CPU may take {holders.size(size)} from here on; what goes beyond is an error")


def counting() -> bool:
    """Begins to count, and to note the lines of operators; says whether memory can be counted."""
    if not counter.is_on and counter.start():
        eager.note_lines(True)
    return counter.is_on


def release() -> None:
    """Stops counting where nobody wants it any longer."""
    if counter.is_on and not effects.is_explaining() and not any(_gigabytes(name) for name in _NAMES):
        counter.stop()
        eager.note_lines(False)
        holders.lines.clear()


def _written(name: str) -> str:
    _, setting = STORE.source(name)
    if setting is None:
        return name
    return f"{name}={setting.written!r}" + (f" ({near(setting.where)})" if setting.where else "")


def _on_accelerator(target: str, name: str | None) -> Outcome:
    size = int(_gigabytes(name) * GIB) if name is not None else 0
    module = torch.cuda if target == "GPU" else device.npu()

    def act() -> None:
        total = int(module.get_device_properties(module.current_device()).total_memory)
        module.set_per_process_memory_fraction(min(1.0, size / total) if size else 1.0)

    private.when_initialized(module, act)
    if not size:
        return Outcome.applied("as much as the device has")
    return Outcome.applied(f"torch takes at most {holders.size(size)} of the device's memory, or all that it has")


def grow_by(wanted: float) -> Outcome:
    """Makes `mempool_block_size` act: the step, in GB, by which torch's pool of an accelerator's memory grows."""
    target = str(STORE.get("device_target"))
    if target == "CPU":
        return Outcome.no_effect("the CPU has no pool: the C library gives each value memory of its own")
    private.set_allocator_settings(",".join([*_other_settings(), f"large_segment_size_mb:{int(wanted * 1024)}"]))
    return Outcome.applied(f"torch takes the device's memory in steps of {holders.size(int(wanted * GIB))}")


def _other_settings() -> list[str]:
    """What was said to torch's allocators of accelerators beside the step."""
    said = private.allocator_settings() or ""
    return [one for one in _TOP_LEVEL.split(said) if one and not one.strip().startswith("large_segment_size_mb")]


_TOP_LEVEL = re.compile(r",(?![^\[]*\])")
"""A comma that stands in no list: `a:1,b:[2,3]`."""


def error(cause: BaseException) -> OutOfMemory | None:
    """The error to raise in place of one that the limit is the cause of, at the user's line; None where it is not."""
    said = sentence(cause)
    if said is None:
        return None
    line = user_line()
    made = OutOfMemory(f"{line}: {said}" if line else said)
    made.explained = True  # type: ignore[attr-defined]
    return made


def sentence(cause: BaseException) -> str | None:
    """What to say of an error that the limit is the cause of, from "out of memory" to the hint; None where it is not."""
    global _told
    figures = counter.figures() if isinstance(cause, (RuntimeError, MemoryError)) else None
    if figures is None or figures.refusals <= _told or not _OF_MEMORY.search(str(cause)):
        return None
    found = counter.refusal()
    _told = found.number
    name = next((one for one in _NAMES if _gigabytes(one)), _NAMES[0])
    names = holders.settle()
    counter.tidy()                                # for what the program tries next
    head = (f"out of memory: {holders.size(found.asked)} more were asked for, and {holders.size(found.held)} of the "
            f"{holders.size(found.limit)} of {_written(name)} are held:")
    return with_hint("\n".join([head, *holders.listed(found.blocks, names)]), f"raise {name}, or use a smaller batch")


_OF_MEMORY = re.compile(r"out of memory|API call failed")
"""What torch says where an allocator refuses; kernels in C++ say that a call failed."""
