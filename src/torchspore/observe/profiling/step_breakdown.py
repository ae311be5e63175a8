"""The division of a step's time. A step ends with its update; each phase lasts until another begins, so that no time remains."""
from __future__ import annotations

import difflib
from collections.abc import Iterator

from torchspore.observe.profiling.profile_data import BACKWARD, DATA, FORWARD, OTHER, PHASES, SYNC, UPDATE, Operator, ProfileData, Step

_Segment = tuple[int, int, str]


def divide(
    profile: ProfileData, explicit: list[tuple[int, int]], calls: list[tuple[int, int]], threads: set[int], forward_point: str,
    backward_point: str,
) -> None:
    """Finds the steps of a profile. They are those that the program marked, else each ends with an update, else with a Cell's call."""
    segments = list(_segments(profile, threads))
    if not segments:
        return
    chosen = {"fp_point": forward_point, "bp_point": backward_point}
    for option, point in chosen.items():
        if point and not any(_is_at(row, point) for row in profile.operators):
            names = sorted({name for row in profile.operators for name in (row.kind, row.name)})
            nearest = difflib.get_close_matches(point, names, n=3, cutoff=0.0)
            profile.unknown_points[option] = f"no operator named {point!r} ran; the nearest names are {', '.join(nearest)}"
            chosen[option] = ""
    bounds = _explicit(explicit, segments) or list(_bounds(segments, calls))
    at = 0
    rows = [row for row in profile.operators if row.phase]
    for number, (start, end) in enumerate(bounds, 1):
        inside: list[_Segment] = []
        while at < len(segments) and segments[at][0] < end:
            inside.append(segments[at])
            at += 1
        if inside:
            start = start if number > 1 or explicit else inside[0][0]
            step_rows = [row for row in rows if start <= row.start < end]
            profile.steps.append(_step(number, start, end, inside, step_rows, chosen["fp_point"], chosen["bp_point"]))
    if profile.steps:
        first = profile.steps[0]
        step_rows = [row for row in rows if first.start <= row.start < first.end]
        profile.forward_point = chosen["fp_point"] or next((row.name for row in step_rows if row.phase == FORWARD), "")
        profile.backward_point = chosen["bp_point"] or next((row.name for row in reversed(step_rows) if row.phase == BACKWARD), "")


def _is_at(row: Operator, point: str) -> bool:
    return point in (row.name, row.kind) or row.name.endswith("/" + point)


def _segments(profile: ProfileData, threads: set[int]) -> Iterator[_Segment]:
    """Yield the activities in order of time: waits for data, and operators where they computed. A wait during computing does not count."""
    segments: list[_Segment] = []
    for row in profile.operators:
        if row.phase and (row.thread in threads or row.phase in (BACKWARD, SYNC) or not threads):
            start, end = (row.device_start, row.device_end) if row.device_span else (row.start, row.start + row.span)
            segments.append((start, end, row.phase))
    kinds = {DATA: DATA, "compile": OTHER}
    segments += [
        (stretch.start, stretch.start + stretch.span, kinds[stretch.kind]) for stretch in profile.stretches if stretch.kind in kinds
    ]
    busy = 0
    for start, end, phase in sorted(segments):
        if phase == DATA:
            start = max(start, busy)
            if start >= end:
                continue
        else:
            busy = max(busy, end)
        yield start, end, phase


def _explicit(marked: list[tuple[int, int]], segments: list[_Segment]) -> list[tuple[int, int]]:
    """The steps that the program marked: each lasts until the next one begins."""
    marked = sorted(marked)
    last = max(end for _, end, _ in segments)
    return [(start, following) for (start, _), (following, _) in zip(marked, [*marked[1:], (max(last, marked[-1][1] if marked else 0), 0)])]


def _bounds(segments: list[_Segment], calls: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """(Start, end) of each step. An update makes a step only if something was computed before it."""
    start, until, has_computed = segments[0][0], 0, False
    waits = any(phase == DATA for _, _, phase in segments)
    opens = (DATA,) if waits else (DATA, FORWARD)
    updates = any(phase == UPDATE for _, _, phase in segments)
    if not updates:
        for _, end in sorted(calls) or [(start, max(end for _, end, _ in segments))]:
            if end > start:
                yield start, end
                start = end
        return
    for begin, end, phase in segments:
        if until and phase in opens and has_computed:
            yield start, until
            start, until, has_computed = until, 0, False
        has_computed = has_computed or phase in (FORWARD, BACKWARD)
        if phase == UPDATE:
            until = max(until, end)
        elif until and begin >= until and phase != UPDATE:
            continue
    if until and has_computed:
        yield start, until


def _step(number: int, start: int, end: int, inside: list[_Segment], rows: list[Operator], forward_point: str, backward_point: str) -> Step:
    phases = dict.fromkeys(PHASES, 0)
    for (begin, _, phase), (following, _, _) in zip(inside, [*inside[1:], (end, end, "")]):
        phases[phase] += max(0, min(following, end) - max(begin, start))
    first = max(0, inside[0][0] - start)
    # The time before the first event is the program's own, on its way to the next data.
    phases[inside[0][2] if inside[0][2] != FORWARD else DATA] += first
    forward = [row for row in rows if (_is_at(row, forward_point) if forward_point else row.phase == FORWARD)]
    backward = [row for row in rows if (_is_at(row, backward_point) if backward_point else row.phase == BACKWARD)]
    forward_start = min((row.device_start or row.start for row in forward), default=start)
    backward_end = max((row.device_end or row.start + row.span for row in backward), default=0)
    if forward_point and forward:
        # The time before the point counts as waiting for it.
        moved = _part(inside, start, forward_start, end, FORWARD)
        phases[FORWARD], phases[DATA] = phases[FORWARD] - moved, phases[DATA] + moved
    if backward_point and backward:
        moved = _part(inside, backward_end, end, end, BACKWARD)
        phases[BACKWARD], phases[UPDATE] = phases[BACKWARD] - moved, phases[UPDATE] + moved
    reductions = [(row.name, row.device_start or row.start, row.device_end or row.start + row.span) for row in rows if row.phase == SYNC]
    return Step(number, start, end, phases, forward_start, backward_end, reductions)


def _part(inside: list[_Segment], low: int, high: int, end: int, kind: str) -> int:
    """Return how much of a phase lies between two times."""
    total = 0
    for (begin, _, phase), (following, _, _) in zip(inside, [*inside[1:], (end, end, "")]):
        if phase == kind:
            total += max(0, min(following, high) - max(begin, low))
    return total
