"""The recorder of running data: the record in `<path>/rank_N/rdr/` of a program that failed, was killed or hung."""
from __future__ import annotations

import atexit
import contextlib
import os
import platform
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

from torchspore.base import faults, frames, once
from torchspore.blackbox import record_writer
from torchspore.blackbox.board import ENDED, RECORDED
from torchspore.context import effects, table
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine import process
from torchspore.engine.devices import device
from torchspore.observe.debug import black_box as boxes
from torchspore.observe.debug import live_objects, native, recent_graphs, recorded_steps
from torchspore.translations import translate

_RDR = "env_config_path.rdr."
_MEMBERS = ("enable", "mode", "path", "replay")
is_off = False
"""True if this process runs a recorded step again, and is not to be recorded itself."""


class _Recording:
    """The folder of recorded steps, and their keeper."""

    def __init__(self) -> None:
        self.root = ""
        """The directory under which records are written."""
        self.keeper: recorded_steps.Keeper | None = None


_RECORDING = _Recording()
_requested_records: set[int] = set()
"""Errors that are recorded already, by identity."""


def limit(seconds: int) -> Outcome:
    """Apply `op_timeout`: where the program set it, an operator or a step of the data pipeline that runs longer ends the program."""
    if STORE.source("op_timeout")[0] == "default" or not seconds:
        if boxes.RECORDER.box is not None:
            boxes.RECORDER.box.limit(0)
            boxes.spare()
        if not seconds:
            return Outcome.applied("the device's own limit applies; the CPU has none")
        return Outcome.applied("nothing is watched until the program sets it")
    if STORE.get("device_target") == "Ascend":
        device.npu().set_op_timeout_ms(seconds * 1000)      # work that the device runs asynchronously
    try:
        boxes.need(_facts, _on_request).limit(seconds)
    except OSError as error:
        return _no_watcher(error)
    text = translate("the program ends if an operator or a step of its data takes more than {seconds} s")
    return Outcome.applied(text.format(seconds=seconds) + _by_marks())


def _no_watcher(error: OSError) -> Outcome:
    text = translate("the process that watches can't be started ({reason})")
    return Outcome.no_effect(text.format(reason=error.strerror or error))


def _by_marks() -> str:
    reason = native.why_not()
    text = translate("; operators of the front end alone are watched, not those in graphs and gradients ({reason})")
    return text.format(reason=reason) if reason else ""


def configure(path: str) -> Outcome:
    """Apply `rdr.enable`, `rdr.mode` and `rdr.path`, which the file `path` or the environment gives."""
    enable, mode, where, every = (STORE.get(_RDR + name) for name in _MEMBERS)
    if not enable or is_off:
        _off()
        shares = STORE.get("env_config_path.sys.mem_reuse")
        off = Outcome.applied("nothing is recorded" if shares else "nothing is recorded; each value of a graph keeps its own memory")
        for name in _MEMBERS:
            effects.report(_RDR + name, off)
        return off
    try:
        _on(mode, where)
    except OSError as error:
        return _no_watcher(error)
    _keep_steps(every)
    text = (translate("after a fault a record is written to {folder}") if mode == 1 else
            translate("after a fault and at the end a record is written to {folder}"))
    outcome = Outcome.applied(text.format(folder=folder()) + _by_marks())
    for name in _MEMBERS:
        effects.report(_RDR + name, outcome)
    return outcome


def folder() -> Path:
    """Return the folder of this process's records."""
    return Path(_RECORDING.root, process.folder(), "rdr")


def _on(mode: int, where: str) -> None:
    _RECORDING.root = os.path.abspath(where)
    boxes.need(_facts, _on_request).record(mode)
    recent_graphs.keep(True)
    if _failed not in faults.handlers:
        faults.handlers.append(_failed)
        atexit.register(_ended)
    faults.hook()


def _keep_steps(every: int) -> None:
    _RECORDING.keeper = recorded_steps.Keeper(every) if every else None
    if every or isinstance(recorded_steps.ACTIVE.runner, recorded_steps.Keeper):
        recorded_steps.run_by(_RECORDING.keeper)


def _off() -> None:
    _keep_steps(0)
    if boxes.RECORDER.box is not None and boxes.RECORDER.box.records:
        boxes.RECORDER.box.record(0)
        recent_graphs.keep(False)
        with contextlib.suppress(ValueError):
            faults.handlers.remove(_failed)
            atexit.unregister(_ended)
        boxes.spare()


# ---- what calls for a record

def _failed(error: BaseException) -> None:
    if id(error) in _requested_records or not _is_ours():
        return
    _requested_records.add(id(error))
    trace = traceback.TracebackException.from_exception(error)
    line = next((f"{at.filename}:{at.lineno}" for at in reversed(trace.stack) if frames.is_user_file(at.filename)), "")
    head = "".join(trace.format_exception_only()).strip()
    at = f" at {line}" if line and line not in head else ""
    memory = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "allocate memory" in str(error)
    record({
        "kind": "out of memory" if memory else "exception", "text": head.splitlines()[0] + at,
        "line": line, "operator": live_objects.operator_of(error), "traceback": "".join(trace.format()),
    })


def _ended() -> None:
    """Called at the end of the program: write mode 2's record without a fault, and a step whose result was not finite."""
    box = boxes.RECORDER.box
    bad = _RECORDING.keeper.first_bad if _RECORDING.keeper is not None else None
    if box is not None and _is_ours() and box.board.state != RECORDED and bad is not None:
        record({"kind": "not finite", "text": f"{bad.label} gave NaN or infinity at its call {bad.number}", "line": "", "operator": ""})
    elif box is not None and _is_ours() and box.board.mode == 2 and box.board.state != RECORDED:
        record({"kind": "normal end", "text": "the program ended by itself", "line": "", "operator": ""})
        box.board.state = ENDED


def _on_request(cause: dict[str, Any]) -> None:
    """Called for a request of the watcher, because an operator hangs."""
    if _is_ours():
        record(cause)


def _is_ours() -> bool:
    return boxes.RECORDER.box is not None and boxes.RECORDER.box.process == os.getpid() and boxes.RECORDER.box.records


def record(cause: dict[str, Any]) -> None:
    """Write a record of this process's present state; report it once, or the reason of a failure."""
    box = boxes.RECORDER.box
    assert box is not None
    with torch.no_grad():
        parts = record_writer.Parts(
            cause=cause, facts=_facts(), ring=box.board.ring(), started=box.board.started, count=box.board.count,
            stacks=cause.get("traceback", "") + "\n" + box.stacks(), graphs=recent_graphs.last(), tensors=live_objects.tensors(),
            device_memory=live_objects.device_memory(), memory=live_objects.memory(box.board.started),
            steps=None if _RECORDING.keeper is None else _RECORDING.keeper.write,
        )
    wrong = record_writer.write(parts)
    box.board.state = RECORDED
    if wrong:
        if once.first_time("rdr can't be written"):
            _print_message(wrong)
    elif cause["kind"] != "normal end":
        _print_message(f"what happened is recorded: torchspore rdr show {frames.relative_line(f'{folder()}:1')[:-2]}")


def _print_message(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(f"torchspore: {text}", file=sys.stderr)


def _program() -> list[str]:
    """The program's own command line, as `torchspore run` takes it."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = getattr(spec, "name", "")
    if spec is not None and not name.startswith("torchspore"):
        return ["-m", name.removesuffix(".__main__"), *sys.argv[1:]]
    return list(sys.argv)


def _facts() -> dict[str, Any]:
    """Return the facts about this program, for a time when it cannot report them."""
    return {
        "folder": str(folder()) if _RECORDING.root else "", "pid": os.getpid(), "command": sys.orig_argv, "folder_of_work": os.getcwd(),
        "program": _program(),
        "versions": {
            "torchspore": sys.modules["torchspore"].__version__, "torch": torch.__version__, "python": platform.python_version(),
            "system": platform.platform(), "cores": os.cpu_count(), "threads": torch.get_num_threads(),
        },
        "context": table.text(),
    }
