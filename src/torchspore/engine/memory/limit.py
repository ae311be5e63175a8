"""`max_device_memory` and `variable_memory_max_size`: the limit of the program's memory, and the error of a request beyond it."""
from __future__ import annotations

import os
import re
from typing import Any

import torch

from torchspore.base import progress
from torchspore.base.frames import line_prefix, relative_line, user_line, warn
from torchspore.base.text import format_bytes, with_hint
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE
from torchspore.engine.devices import device, gpu_kinds
from torchspore.engine.devices.device_facts import module_of
from torchspore.engine.memory import memory_owners
from torchspore.engine.native import allocator
from torchspore.engine.torch_internals import torch_private
from torchspore.errors import OutOfMemory
from torchspore.translations import translate

GIB = 1 << 30
_MOST = (1 << 63) - 1
_NAMES = ("max_device_memory", "variable_memory_max_size")


class _Reports:
    """The reports of the limit."""

    def __init__(self) -> None:
        self.last_refusal = 0
        """The number of the last refusal that an error was made of."""
        self.has_warned = False
        """True if `count_from_now` has warned."""


_REPORTS = _Reports()


def set_device_limit(gigabytes: float) -> Outcome:
    """Apply `max_device_memory`, in GB of 2**30 bytes."""
    return _cap("max_device_memory", gigabytes)


def set_variable_limit(text: str) -> Outcome:
    """Apply `variable_memory_max_size`, which the getter answers as '6 * 1024 * 1024 * 1024'; it counts where the other is not set."""
    return _cap("variable_memory_max_size", text)


def _gigabytes(name: str) -> float:
    """The limit that an option sets, 0 for none."""
    value = STORE.get(name)
    if value == OPTIONS[name].default:
        return 0.0
    return float(str(value).partition(" ")[0])


def is_set() -> bool:
    """Return whether the program sets a limit."""
    return _chosen() is not None


def _chosen() -> str | None:
    """Return the option that sets the limit; None if no option does."""
    return next((option for option in _NAMES if _gigabytes(option)), None)


def _cap(name: str, value: Any) -> Outcome:
    chosen = _chosen()
    target = str(STORE.get("device_target"))
    outcome = _on_cpu(chosen) if target == "CPU" else _on_accelerator(target, chosen)
    if chosen is not None and chosen != name and value != OPTIONS[name].default:
        return Outcome.no_effect(translate("{name} sets the limit").format(name=chosen))
    return outcome


def _on_cpu(name: str | None) -> Outcome:
    if name is None:
        if allocator.is_on:
            allocator.limit(0, "")
            release()
        return Outcome.applied("no limit; nothing is counted")
    if not counting():
        return Outcome.no_effect(translate("the CPU's memory can't be counted: {reason}").format(reason=allocator.why_not()))
    size = min(int(_gigabytes(name) * GIB), _MOST)
    allocator.limit(size, _option_text(name))
    early = memory_owners.uncounted()
    text = translate("Tensors on the CPU may take {size} from here on, and what goes beyond is an error")
    if early:
        text += translate("; the {early} of Tensors that were created before are not counted")
    return Outcome.applied(text.format(size=format_bytes(size), early=format_bytes(early)))


def counting() -> bool:
    """Begins to count, and to note the lines of operators; says whether memory can be counted."""
    with progress.waiting(line_prefix() + translate("the memory counter"), translate("is being compiled; this happens once.")):
        if not allocator.is_on and allocator.start():
            memory_owners.note_lines(True)
    return allocator.is_on


def count_from_now() -> None:
    """Begin to count for a program that reads figures of the CPU. Warns once that earlier Tensors do not count, or that counting is
    impossible."""
    if allocator.is_on or _REPORTS.has_warned:
        return
    _REPORTS.has_warned = True
    if counting():
        warn(with_hint(translate("memory on the CPU is counted from here on: the figures omit Tensors that exist already."),
                       translate("set_context(max_device_memory=...) and `torchspore explain` count from the start")))
    else:
        warn(translate("the figures of memory on the CPU are 0: {reason}.").format(reason=allocator.why_not()))


def release() -> None:
    """Stop counting if no option needs it."""
    if allocator.is_on and not effects.is_explaining() and _chosen() is None:
        allocator.stop()
        memory_owners.note_lines(False)
        memory_owners.lines.clear()


def _option_text(name: str) -> str:
    _, setting = STORE.source(name)
    if setting is None:
        return name
    return f"{name}={setting.raw!r}" + (f" ({relative_line(setting.where)})" if setting.where else "")


def _on_accelerator(target: str, name: str | None) -> Outcome:
    module = module_of(target)

    def act() -> None:
        index, chosen = int(STORE.get("device_id")), _chosen()
        if index < module.device_count():
            total = int(module.get_device_properties(index).total_memory)
            limit_bytes = int(_gigabytes(chosen) * GIB) if chosen is not None else total
            module.set_per_process_memory_fraction(min(1.0, limit_bytes / total), index)

    torch_private.when_initialized(module, act)
    if name is None:
        return Outcome.applied("as much as the device has")
    text = translate("torch allocates at most {size} of the device's memory, at most all of it")
    return Outcome.applied(text.format(size=format_bytes(int(_gigabytes(name) * GIB))))


def grow_by(gigabytes: float) -> Outcome:
    """Apply `mempool_block_size`: the step, in GB, by which torch's pool of an accelerator's memory grows."""
    target = str(STORE.get("device_target"))
    if target == "CPU":
        return Outcome.no_effect("the CPU has no pool: the C library allocates each value separately")
    chosen = _chosen()
    why = gpu_kinds.lacks("only the allocators of CUDA and ROCm have a step", gpu_kinds.CUDA, gpu_kinds.ROCM) if target == "GPU" else ""
    if why:
        return Outcome.no_effect(why)
    step = int(min(gigabytes, _gigabytes(chosen) if chosen is not None else gigabytes) * 1024)
    if step <= _SMALLEST_STEP:
        return Outcome.no_effect(f"{chosen} leaves less than one step")
    try:
        _set_step(target, step)
    except (RuntimeError, ValueError) as error:        # another setting of the program's does not go with it, or torch is too old
        return Outcome.refused(str(error).partition("\n")[0].rstrip("."))
    return Outcome.applied(translate("torch allocates the device's memory in steps of {size}").format(size=format_bytes(step << 20)))


def _set_step(target: str, megabytes: int) -> None:
    """Set the block size of torch's allocator. torch_npu has a separate one, which reads its variable at the device's first use."""
    step = f"{_STEP}:{megabytes}"
    if target == "Ascend":
        os.environ[_OF_NPU] = ",".join([*_others(os.environ.get(_OF_NPU, "")), step])
    else:
        settings_text = (
            torch_private.allocator_settings() or os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
        )
        torch_private.set_allocator_settings(",".join([*_others(settings_text), step]))


def _others(settings_text: str) -> list[str]:
    """Return the allocator settings that do not concern the step."""
    return [setting for setting in _TOP_LEVEL.split(settings_text) if setting.strip() and not setting.strip().startswith(_STEP + ":")]


_STEP, _OF_NPU = "large_segment_size_mb", "PYTORCH_NPU_ALLOC_CONF"
_SMALLEST_STEP = 20
"""MiB that torch takes at a time by itself."""
_TOP_LEVEL = re.compile(r",(?![^\[]*\])")
"""A comma outside of lists: `a:1,b:[2,3]`."""


def error(cause: BaseException) -> OutOfMemory | None:
    """Return the error to raise, at the user's line, in place of one that the limit caused; None for other errors."""
    text = sentence(cause, names_operator=True)
    if text is None:
        return None
    line = user_line()
    error = OutOfMemory(f"{line}: {text}" if line else text)
    error.explained = True  # type: ignore[attr-defined]
    return error


def backward_error(cause: RuntimeError) -> BaseException:
    """Return OutOfMemory at the user's line if the limit refused memory in a backward pass, else `cause` itself."""
    if _OF_MEMORY.search(str(cause)):
        _drop_tasks()
    return error(cause) or cause


def _drop_tasks() -> None:
    """Make torch's engine drop the tasks of a failed backward pass in this thread's queue, which hold values until the next pass."""
    with allocator.aside(), torch.enable_grad():
        leaf = torch.zeros((), requires_grad=True)
        torch.autograd.grad(leaf + leaf, leaf)


def sentence(cause: BaseException, names_operator: bool = False) -> str | None:
    """Return the text for an error that the limit caused, from "out of memory" to the hint; None for other errors.

    `names_operator` is for places that do not say themselves which operator it was.
    """
    if not isinstance(cause, (RuntimeError, MemoryError)) or not _OF_MEMORY.search(str(cause)):
        return None
    if str(STORE.get("device_target")) != "CPU":
        return _sentence_of_accelerator(cause)
    number = _REFUSAL.search(str(cause))
    figures = allocator.figures()
    if figures is None or (number is None and figures.refusals <= _REPORTS.last_refusal):
        return None
    refusal = allocator.refusal(int(number[1]) if number is not None else 0)
    _REPORTS.last_refusal = max(_REPORTS.last_refusal, refusal.number)
    names = memory_owners.settle()
    allocator.tidy()                                # for the program's next attempt
    by = memory_owners.called(refusal.operator) if names_operator else ""
    request_text = translate("{size} more were requested by {operator}") if by else translate("{size} more were requested")
    request_text = request_text.format(size=format_bytes(refusal.requested), operator=by)
    return _sentence(request_text, refusal.used, refusal.limit, memory_owners.listed(refusal.blocks, names))


def _sentence_of_accelerator(cause: BaseException) -> str | None:
    chosen = _chosen()
    kind = device.type_of(str(STORE.get("device_target")))
    is_mps = kind == gpu_kinds.MPS                                # which raises no special class
    if chosen is None or not (isinstance(cause, torch.OutOfMemoryError) or is_mps):
        return None
    tried = re.search(r"[Tt]ried to allocate ([\d.]+ \w+)", str(cause))
    module = module_of(str(STORE.get("device_target")))
    used_bytes = int(module.memory_allocated(int(STORE.get("device_id"))))
    listed = memory_owners.listed(*memory_owners.living(kind))
    request_text = translate("{size} more were requested").format(size=tried[1]) if tried else ""
    return _sentence(request_text, used_bytes, int(_gigabytes(chosen) * GIB), listed)


def _sentence(request_text: str, used_bytes: int, most: int, listed: list[str]) -> str:
    name = _chosen() or _NAMES[0]
    head = (translate("out of memory: {request}, and {used} of the {limit} of {option} are held") if request_text else
            translate("out of memory: {used} of the {limit} of {option} are held"))
    head = head.format(request=request_text, used=format_bytes(used_bytes), limit=format_bytes(most), option=_option_text(name))
    hint = translate("raise {name}, or use a smaller batch").format(name=name)
    return with_hint("\n".join([head + (":" if listed else translate(".")), *listed]), hint)


_REFUSAL = re.compile(r"out of memory: .* \(refusal (\d+)\)")
_OF_MEMORY = re.compile(r"out of memory|API call failed")
"""torch's text if an allocator refuses; kernels in C++ report that a call failed."""
