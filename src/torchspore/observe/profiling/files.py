"""The files of a profile, with MindSpore's names and columns: those of 2.x in a separate folder, those of 1.x in `profiler/`."""
from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import os
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchspore.base.files import atomic_file, write_atomically
from torchspore.engine.execution import flop_counts
from torchspore.observe.profiling import counters, timeline
from torchspore.observe.profiling.profile_data import PHASES, Allocation, Operator, ProfileData
from torchspore.observe.profiling.totals import by_kind, by_name
from torchspore.translations import translate

_TICK = 10
"""Nanoseconds of a tick of the counter that 1.x's step times are given in."""
OUTPUT, FRAMEWORK = "ASCEND_PROFILER_OUTPUT", "FRAMEWORK"


@dataclass
class FileSelection:
    """The selected files and options."""

    operators: bool = True
    tasks: bool = True
    steps: bool = True
    memory: bool = True
    counters: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    timeline_bytes: int | None = None
    pretty: bool = False
    without_kinds: frozenset[str] = frozenset()
    only_kinds: frozenset[str] = frozenset()
    subgraph: str = "all"
    full_names: bool = True
    details: bool = True
    exchanges: bool = False
    steps_chosen: frozenset[int] = frozenset()


def write(profile: ProfileData, folder: Path, selection: FileSelection, worker: str | None = None) -> Path:
    """Writes the folder of 2.x into `folder`; gives its path. Raises OSError."""
    profile = of_steps(profile, selection.steps_chosen)
    target = _fresh(folder, worker)
    (target / "logs").mkdir()
    (target / OUTPUT).mkdir()
    rows = _chosen(profile.operators, selection)
    facts_found = facts(profile, selection)
    with atomic_file(target / OUTPUT / "trace_view.json") as file:
        timeline.write(file, profile, facts_found, selection.timeline_bytes)
    if selection.operators:
        (target / FRAMEWORK).mkdir()
        _framework(target / FRAMEWORK, rows, profile)
        _table(target / OUTPUT / "op_statistic.csv", _STATISTIC, _statistic(rows, profile))
        _table(target / OUTPUT / "flops.csv", _FLOPS, _flops(rows, profile))
        if selection.counters and counters.column(selection.counters):
            _table(target / OUTPUT / "aicore_metrics.csv", ("Name", "Type", "Calls", str(counters.column(selection.counters))), [
                (row.name, row.kind, row.count, value) for row in by_name(rows)
                if (value := counters.value(selection.counters, row, facts_found.get("peak_flops", 0.0)))
            ])
    if profile.kernels and selection.tasks:
        _table(target / OUTPUT / "kernel_details.csv", _KERNELS, [
            (kernel.device, kernel.stream, kernel.name, kernel.operator, _us(kernel.start), _us(kernel.span)) for kernel in profile.kernels
        ])
    if selection.steps:
        _table(target / OUTPUT / "step_trace_time.csv", _STEP_TIME, _step_time(profile))
    if selection.memory and profile.allocations:
        _table(
            target / OUTPUT / "memory_record.csv",
            _MEMORY_RECORD,
            [
                ("torch", _us(row.at), _mb(row.bytes_in_use), _mb(row.bytes_in_use), _mb(row.bytes_in_use), "", row.device)
                for row in profile.allocations
            ],
        )
        _table(target / OUTPUT / "operator_memory.csv", _OPERATOR_MEMORY, list(_operator_memory(profile)))
    if selection.exchanges:
        _table(target / OUTPUT / "communication.csv", ("Name", "Type", "Count", "Total Time(us)", "Avg Time(us)"), [
            (row.name, row.kind, row.count, _us(row.span), _us(round(row.mean))) for row in by_name(rows) if row.phase == "sync"
        ])
    text = json.dumps({**facts_found, **selection.metadata}, indent=2 if selection.pretty else None, default=str)
    write_atomically(target / "profiler_metadata.json", text)
    write_atomically(target / "logs" / "profiler.log", "\n".join([*facts_found["facts"], *profile.notes]) + "\n")
    return target


def write_older(profile: ProfileData, folder: Path, selection: FileSelection, rank: int = 0) -> Path:
    """Write the files of 1.x into `folder/profiler`, replacing older ones; return that folder. Raises OSError."""
    profile = of_steps(profile, selection.steps_chosen)
    target = folder / "profiler"
    target.mkdir(parents=True, exist_ok=True)
    rows = _chosen(profile.operators, selection)
    if selection.steps:
        _table(target / f"step_trace_raw_{rank}_detail_time.csv", *_step_ticks(profile))
        points = {"fp_start": profile.forward_point, **({"bp_end": profile.backward_point} if profile.backward_point else {})}
        write_atomically(target / f"step_trace_point_info_{rank}.json", json.dumps(points))
        _table(target / f"step_trace_split_{rank}.csv", ("step_num", "total(ms)", *(f"{phase}(ms)" for phase in PHASES)), [
            (step.number, _ms(step.total), *(_ms(step.phases[phase]) for phase in PHASES)) for step in profile.steps
        ])
    if selection.operators:
        write_atomically(target / f"output_op_compute_time_{rank}.txt", _compute_time(rows))
        _table(target / f"aicore_intermediate_{rank}_type.csv", ("op_type", "execution_time", "execution_frequency", "percent"), [
            (row.name, _ms(row.span), row.count, f"{row.span / (sum(r.cost for r in rows) or 1) * 100:.2f}") for row in by_kind(rows)
        ])
        extra = counters.column(selection.counters) if selection.counters else None
        peak = _peak(profile) if extra else 0.0
        if selection.details:
            _table(
                target / f"aicore_intermediate_{rank}_detail.csv",
                ("full_op_name", "execution_time", "execution_frequency", *([extra] if extra else [])),
                [(row.name if selection.full_names else row.name.rpartition("/")[2], _ms(row.mean), row.count,
                  *([counters.value(selection.counters, row, peak)] if extra else [])) for row in by_name(rows)],
            )
    if selection.tasks:
        with atomic_file(target / f"timeline_display_{rank}.json") as file:
            timeline.write(file, profile, facts(profile, selection), selection.timeline_bytes)
    if selection.memory and profile.allocations:
        _table(target / f"memory_usage_{rank}.csv", ("time(us)", "device", "bytes", "held"), [
            (_us(row.at), row.device, row.bytes, row.bytes_in_use) for row in profile.allocations
        ])
    return target


def write_input(profile: ProfileData, folder: Path, rank: int = 0) -> None:
    """Writes what `aicpu_trace` names: how long each step waited for the data that the host's own processor makes."""
    (folder / "profiler").mkdir(parents=True, exist_ok=True)
    waits = [row for row in profile.stretches if row.kind == "data"]
    _table(folder / "profiler" / f"aicpu_intermediate_{rank}.csv", (
        "serial_number", "op_type", "total_time(ms)", "dispatch_time(ms)", "execution_time(ms)", "run_start", "run_end",
    ), [
        (number, "GetNext", _ms(row.span), 0, _ms(row.span), _us(row.start), _us(row.start + row.span))
        for number, row in enumerate(waits, 1)
    ])


def facts(profile: ProfileData, selection: FileSelection) -> dict[str, Any]:
    """Return the facts about the profile: the machine, counted operations, the measured peak."""
    contents: dict[str, Any] = {"device": profile.device, "host": platform.node(), "pid": os.getpid()}
    entries = []
    counted = [row for row in profile.operators if row.flops]
    if counted:
        total, seconds, peak = sum(row.flops for row in counted), sum(row.cost for row in counted) / 1e9, _peak(profile)
        contents |= {"flops": total, "peak_flops": peak}
        text = translate(
            "{total:.4g} floating-point operations of matrix products, convolutions and attention; these operators reach {share:.1%} of "
            "the float32 peak that was measured on this {device}."
        )
        entries.append(text.format(total=total, share=total / max(seconds, 1e-12) / peak, device=profile.device))
    if selection.counters:
        contents["aic_metrics"] = counters.meaning(selection.counters)
        entries.append(counters.meaning(selection.counters))
    contents["facts"] = [*entries, *profile.notes]
    return contents


def _peak(profile: ProfileData) -> float:
    return flop_counts.peak(bool(profile.kernels))


def _chosen(operators: Sequence[Operator], selection: FileSelection) -> list[Operator]:
    return [
        row for row in operators
        if row.kind not in selection.without_kinds and (not selection.only_kinds or row.kind in selection.only_kinds)
        and (selection.subgraph == "all" or (selection.subgraph == "Gradients") == row.name.startswith("Gradients/"))
    ]


def of_steps(profile: ProfileData, numbers: frozenset[int]) -> ProfileData:
    """Return the part of a profile that belongs to the steps of these numbers; all of it if there are none."""
    if not numbers:
        return profile
    chosen = [step for step in profile.steps if step.number in numbers]

    def is_inside(at: int) -> bool:
        return any(step.start <= at < step.end for step in chosen)

    return replace(
        profile,
        steps=chosen,
        operators=[row for row in profile.operators if is_inside(row.start)],
        stretches=[row for row in profile.stretches if is_inside(row.start)],
        kernels=[row for row in profile.kernels if is_inside(row.start)],
        allocations=[row for row in profile.allocations if is_inside(row.at)],
    )


def _fresh(folder: Path, worker: str | None) -> Path:
    """Create a folder that no other process uses."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in itertools.count():
        now = time.time()
        stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(now)) + f"{int(now * 1000) % 1000:03d}"
        target = folder / f"{worker or f'{platform.node()}_{os.getpid()}'}_{stamp}{f'_{number}' if number else ''}_ascend_ms"
        with contextlib.suppress(FileExistsError):
            target.mkdir()
            return target
    raise AssertionError


# FRAMEWORK -------------------------------------------------------------------------------------------------------------------------------

def _framework(folder: Path, rows: list[Operator], profile: ProfileData) -> None:
    total, steps = sum(row.cost for row in rows) or 1, max(len(profile.steps), 1)
    _table(folder / "cpu_op_detail_info_0.csv", (
        "op_side", "op_type", "op_name", "full_op_name", "op_occurrences", "op_total_time(ms)", "op_avg_time(ms)", "total_proportion",
        "subgraph", "pid",
    ), [
        ("Device" if row.device_span else "Host", row.kind, row.name.rpartition("/")[2], row.name, row.count, _ms(row.span), _ms(row.mean),
         f"{row.span / total:.6g}", "Gradients" if row.name.startswith("Gradients/") else "Default", os.getpid()) for row in by_name(rows)
    ])
    _table(folder / "cpu_op_type_info_0.csv", (
        "op_type", "type_occurrences", "execution_frequency(per-step)", "total_compute_time", "avg_time(ms)", "percent",
    ), [(row.name, row.count, f"{row.count / steps:g}", _ms(row.span), _ms(row.mean), f"{row.span / total:.6g}") for row in by_kind(rows)])
    shapes, runs = dict[str, str](), dict[str, list[str]]()
    for row in rows:
        known = enumerate(zip(row.inputs, row.dtypes), 1)
        inputs = "".join(f"input_{n}:{shape if shape or dtype else 'NoShape'};" for n, (shape, dtype) in known)
        shapes.setdefault(row.name, f"{row.kind};{row.name.rpartition('/')[2]};{row.thread};{inputs}")
        runs.setdefault(row.name, []).append(f"{row.start},{_ms(row.span)},{row.thread}")
    write_atomically(folder / "cpu_framework_0.txt", "".join(f"{line}\n" for line in shapes.values()))
    lines = "".join(f"{name};HostCpuOps;{' '.join(each)} \n" for name, each in runs.items())
    write_atomically(folder / "cpu_op_execute_timestamp_0.txt", lines)


# ASCEND_PROFILER_OUTPUT ------------------------------------------------------------------------------------------------------------------

_STATISTIC = (
    "Device_id", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)", "Max Time(us)", "Ratio(%)",
)
_FLOPS = ("Name", "Type", "Phase", "Calls", "FLOPs", "FLOPs/s", "Share of Peak(%)")
_KERNELS = ("Device_id", "Stream ID", "Name", "Operator", "Start Time(us)", "Duration(us)")
_STEP_TIME = (
    "Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Stage", "Bubble",
    "Communication(Not Overlapped and Exclude Receive)", "Preparing", "Forward", "Backward", "Update",
)
_MEMORY_RECORD = (
    "Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)", "Stream Ptr", "Device Type",
)
_OPERATOR_MEMORY = (
    "Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Active Release Time(us)", "Duration(us)", "Active Duration(us)",
    "Allocation Total Allocated(MB)", "Allocation Total Reserved(MB)", "Allocation Total Active(MB)", "Release Total Allocated(MB)",
    "Release Total Reserved(MB)", "Release Total Active(MB)", "Stream Ptr", "Device Type",
)


def _statistic(rows: list[Operator], profile: ProfileData) -> list[Sequence[Any]]:
    total, core = sum(row.cost for row in rows) or 1, "GPU" if profile.kernels else "CPU"
    return [
        (0, row.name, core if row.device_span or not profile.kernels else "CPU", row.count, _us(row.span), _us(row.least),
         _us(round(row.mean)), _us(row.most), f"{row.span / total * 100:.3f}") for row in by_kind(rows)
    ]


def _flops(rows: list[Operator], profile: ProfileData) -> list[Sequence[Any]]:
    counted = [row for row in by_name(rows) if row.flops]
    peak = _peak(profile) if counted else 1.0
    return [
        (row.name, row.kind, row.phase, row.count, row.flops, f"{row.rate():.6g}", f"{row.rate() / peak * 100:.3f}") for row in counted
    ]


def _step_time(profile: ProfileData) -> Iterable[Sequence[Any]]:
    """Microseconds: computing is forward, backward and update; what waits for data is free; before the first operator is preparing."""
    for step in profile.steps:
        phases = step.phases
        computing, sync = phases["forward"] + phases["backward"] + phases["update"], phases["sync"]
        yield (step.number, _us(computing), _us(sync), 0, _us(sync), _us(phases["data"]), _us(step.total), 0, _us(sync),
               _us(max(0, step.forward_start - step.start)), _us(phases["forward"]), _us(phases["backward"]), _us(phases["update"]))


def _operator_memory(profile: ProfileData) -> Iterable[Sequence[Any]]:
    """Each allocation with the release that took it back: the next one of its size on its device, for torch does not name blocks."""
    waiting: dict[tuple[str, int], list[Allocation]] = {}
    released: dict[int, Allocation] = {}
    for row in profile.allocations:
        if row.bytes > 0:
            waiting.setdefault((row.device, row.bytes), []).append(row)
        elif waiting.get((row.device, -row.bytes)):
            released[id(waiting[(row.device, -row.bytes)].pop())] = row
    for taken in [row for row in profile.allocations if row.bytes > 0]:
        back = released.get(id(taken))
        held_text, after = _mb(taken.bytes_in_use), _mb(back.bytes_in_use) if back else ""
        at, span = (_us(back.at), _us(back.at - taken.at)) if back else ("", "")
        yield (
            taken.operator,
            taken.bytes / 1024,
            _us(taken.at),
            at,
            at,
            span,
            span,
            held_text,
            held_text,
            held_text,
            after,
            after,
            after,
            "",
            taken.device,
        )


# 1.x -------------------------------------------------------------------------------------------------------------------------------------

def _step_ticks(profile: ProfileData) -> tuple[Sequence[str], list[Sequence[Any]]]:
    """The columns and rows of the step trace, in ticks from the machine's start; the last row has the means."""
    trains = any(step.backward_end for step in profile.steps)
    most = max((len(step.reductions) for step in profile.steps), default=0)
    names = [f"stream_0_{number}_reduce_{part}" for number in range(most) for part in ("start_point", "end_point")]
    head = ["step_num", "start_point", "end_point", "total", "fp_point", *(["bp_point"] if trains else []), "iteration_interval",
            *(["fp_and_bp", "tail"] if trains else ["fp"]), *names]
    rows: list[Sequence[Any]] = []
    for step in profile.steps:
        first, last = step.forward_start, step.backward_end or step.end
        parts = [first - step.start, last - first, step.end - last] if trains else [first - step.start, step.end - first]
        points = [first, *([last] if trains else [])]
        reductions = [moment for _, start, end in step.reductions for moment in (start, end)]
        rows.append([step.number, *(value // _TICK for value in (step.start, step.end, step.total, *points, *parts, *reductions)),
                     *([0] * (len(names) - len(reductions)))])
    if rows:
        means = [round(sum(column) / len(rows)) for column in zip(*rows)]
        moments = {column for column, name in enumerate(head) if name.endswith("point")}
        rows.append(["-", *(0 if column in moments else mean for column, mean in enumerate(means) if column)])
    return head, rows


def _compute_time(rows: list[Operator]) -> str:
    """The text of output_op_compute_time: a line for each operator, the longest first, and their sum."""
    totals = by_name(rows)
    width = max([len(row.name) for row in totals] + [20])
    lines = ["op compute time".center(width + 32, "="), f"{'op_name':{width}}  {'compute_time(ms)':>18}  {'stream_id':>9}",
             "-" * width + "  " + "-" * 18 + "  " + "-" * 9]
    lines += [f"{row.name:{width}}  {row.mean / 1e6:>18.6f}  {0:>9}" for row in totals]
    lines.append(f"{'total op':{width}}  {sum(row.mean for row in totals) / 1e6:>18.6f}  {0:>9}")
    return "\n".join(lines) + "\n"


def _table(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    write_atomically(path, text.getvalue())


def _us(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e3:.3f}" if nanoseconds < 1 << 50 else f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.6g}"


def _mb(count: int) -> str:
    return f"{count / 2**20:.6f}"


__all__ = ["FileSelection", "facts", "of_steps", "write", "write_input", "write_older"]
