"""`enable_profiling` and `profiling_options` of MindSpore 1.x: the entire program is profiled, and the files are written at its end."""
from __future__ import annotations

import atexit
import sys
import warnings
from pathlib import Path
from typing import Any

from torchspore.base.text import with_hint
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE
from torchspore.observe.profiling import counters, files
from torchspore.observe.profiling.profile_data import ProfileData
from torchspore.observe.profiling.session import MOST, Busy, ProfilerSession
from torchspore.translations import translatable, translate

PARENT = "profiling_options"
FOLDER = "data"
"""Where the files go when neither `output` nor `result_path` names a folder."""
_PARTS = ("training_trace", "task_trace", "op_trace", "aicpu_trace")
_MEMBERS = (*_PARTS, "output", "result_path", "fp_point", "bp_point", "ai_core_metrics")
_DESCRIPTIONS = {
    "training_trace": translatable("each step is split into data wait, forward, backward, gradient sync and update"),
    "task_trace": translatable("the begin and end of each operator, and of each kernel of an accelerator, go into timeline_display"),
    "op_trace": translatable("the times, calls and floating-point operations of operators go into tables"),
    "aicpu_trace": translatable(
        "the host's own processor makes the data here: how long each step waited for them goes into aicpu_intermediate"),
}


class _Session:
    """The session that the option opened."""

    def __init__(self) -> None:
        self.running: tuple[ProfilerSession, dict[str, Any]] | None = None
        self.has_ended = False
        self.switched: bool | None = None
        """The last value of `enable_profiling`."""


_SESSION = _Session()


def enable(is_on: bool) -> Outcome:
    """Apply `enable_profiling`; False ends what True began, and the files are written then."""
    before, _SESSION.switched = _SESSION.switched, is_on
    if before and not is_on:
        _finish()
        return Outcome.applied("the profile ended here, and its files are written")
    return _apply(is_on, _options())


def configure(_: str) -> Outcome:
    """Apply `profiling_options`; without `enable_profiling` they request only the times of steps."""
    if _SESSION.switched is False and _SESSION.running is None and _SESSION.has_ended:
        return Outcome.no_effect("enable_profiling was switched off")
    is_enabled = bool(STORE.get("enable_profiling"))
    outcome, member_outcomes = _apply(is_enabled, _options()), _member_outcomes()
    if is_enabled:
        effects.report("enable_profiling", outcome)           # the files may go elsewhere now, and be others
    return Outcome(outcome.state, "; ".join(member_outcomes)) if member_outcomes else outcome


def _member_outcomes() -> list[str]:
    """Return the outcome of each member that was set, with its name."""
    outcomes = {name: effects.outcome_of(OPTIONS[f"{PARENT}.{name}"], None) for name in _MEMBERS}
    return [
        f"{name}: {outcome.text}" if outcome.state == effects.APPLIED else f"{name} {outcome}" for name, outcome in outcomes.items()
        if outcome is not None and STORE.source(f"{PARENT}.{name}")[0] != "default"
    ]


def _apply(is_on: bool, options: dict[str, Any]) -> Outcome:
    is_set = STORE.source(PARENT)[0] != "default"
    if not is_on and not is_set:
        _finish()
        return Outcome.applied("nothing is watched")
    if not is_on:
        options.update(dict.fromkeys(_PARTS, "off"), training_trace="on")
    _report(options, is_on)
    with_memory = options["op_trace"] == "on" or options["task_trace"] == "on"
    if _SESSION.running is not None and with_memory and not _SESSION.running[0].with_memory:
        if _SESSION.running[0].has_begun:
            effects.note("profile", "memory is not included: operators ran before op_trace or task_trace was set")
        else:
            _SESSION.running[0].stop()                       # the options come in a call of their own
            atexit.unregister(_finish)
            _SESSION.running = None
    if _SESSION.running is not None:
        _SESSION.running[1].clear()
        _SESSION.running[1].update(options)
    else:
        watch = ProfilerSession(with_memory=with_memory, most=MOST, full=_finish)
        try:
            watch.start()
        except Busy:
            return Outcome.no_effect("a mindspore.Profiler watches already, and torch has one profiler for a process")
        _SESSION.running = (watch, options)
        atexit.register(_finish)
        effects.before_table(_finish)
    parts = [part for part in _PARTS if options[part] == "on"]
    folder = Path(options["folder"]) / "profiler"
    text = translate("{parts}: written to {folder} when the program ends, or after {count:,} operators")
    return Outcome.applied(text.format(parts=", ".join(parts), folder=folder, count=MOST))


def _options() -> dict[str, Any]:
    """The members as they are set now."""
    values = {name: STORE.get(f"{PARENT}.{name}") for name in _MEMBERS}
    if STORE.source(PARENT)[0] == "default":
        values["training_trace"] = "on"                    # the default of the option is this name
    values["folder"] = values["output"] or values["result_path"] or FOLDER
    return values


def _report(options: dict[str, Any], is_enabled: bool) -> None:
    for name in [name for name in _MEMBERS if STORE.source(f"{PARENT}.{name}")[0] != "default"]:
        if name in _PARTS:
            is_requested = STORE.get(f"{PARENT}.{name}") == "on"
            is_ignored = is_requested and options[name] != "on"
            outcome = Outcome.no_effect("enable_profiling is off: only training_trace is collected") if is_ignored else Outcome.applied(
                _DESCRIPTIONS[name] if is_requested else "none of it is written"
            )
        elif name in ("output", "result_path"):
            text = translate("files go to {folder}").format(folder=f"{options['folder']}/profiler")
            outcome = Outcome.applied(text) if options[name] == options["folder"] else Outcome.no_effect("output names the folder")
        elif name == "ai_core_metrics":
            group = options[name]
            outcome = Outcome.applied(counters.meaning(group)) if counters.column(group) else Outcome.no_effect(counters.meaning(group))
        else:
            what = "forward begins" if name == "fp_point" else "the gradient ends"
            outcome = Outcome.applied(f"{what} at {options[name]}, if such an operator runs" if options[name] else "detected automatically")
        effects.report(f"{PARENT}.{name}", outcome)


def _report_points(profile: ProfileData, options: dict[str, Any]) -> None:
    """Report where each step was divided at `fp_point` and `bp_point`, and warn of points that no operator has."""
    for name, what in (("fp_point", "forward begins"), ("bp_point", "the gradient ends")):
        reason = profile.unknown_points.get(name)
        if reason is not None:
            effects.report(f"{PARENT}.{name}", Outcome.no_effect(reason))
            setting = STORE.source(f"{PARENT}.{name}")[1]
            file, _, line = (setting.where or "" if setting is not None else "").rpartition(":")
            text = f"profiling_options: {name}={options[name]!r} has no effect: {reason}."
            warnings.warn_explicit(text, UserWarning, file or PARENT, int(line) if line.isdigit() else 1)
        elif options[name]:
            effects.report(f"{PARENT}.{name}", Outcome.applied(f"{what} at {options[name]}"))
    if options["fp_point"] or options["bp_point"]:
        effects.report(PARENT, Outcome.applied("; ".join(_member_outcomes())))


def _finish() -> None:
    """End the profile and write the requested files; nothing if no operator ran."""
    if _SESSION.running is None:
        return
    (watch, options), _SESSION.running, _SESSION.has_ended = _SESSION.running, None, True
    atexit.unregister(_finish)
    watch.stop()
    profile = watch.read(options["fp_point"], options["bp_point"])
    if not profile.operators:
        return
    is_on = {part: options[part] == "on" for part in _PARTS}
    group = options["ai_core_metrics"] if STORE.source(f"{PARENT}.ai_core_metrics")[0] != "default" else ""
    selection = files.FileSelection(
        operators=is_on["op_trace"] or is_on["task_trace"], tasks=is_on["task_trace"], steps=is_on["training_trace"],
        memory=is_on["task_trace"] or is_on["op_trace"], counters=group,
    )
    try:
        target = files.write_older(profile, Path(options["folder"]), selection)
        if is_on["aicpu_trace"]:
            files.write_input(profile, Path(options["folder"]))
    except OSError as error:
        print(with_hint(f"profiling_options: {options['folder']} can't be written to ({error.strerror}); the profile there is incomplete.",
                        "name another folder in output"), file=sys.stderr)
        return
    for line in profile.notes:
        effects.note("profile", line)
    _report_points(profile, options)
    text = translate("{operators:,} operators in {steps:,} steps: {folder}")
    effects.note("profile", text.format(operators=len(profile.operators), steps=len(profile.steps), folder=target))
