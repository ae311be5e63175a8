"""`torchspore diff`: lines up two dumps of operators and names the first one whose result departs."""
from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torchspore.base import dump_pairs, dumps
from torchspore.base.dumps import Compared, Dump, Pair
from torchspore.blackbox.reading import visible

DIFFERENT, USAGE_ERROR = 1, 2
_SHOWN = 5


def run(words: Sequence[str]) -> int:
    """The command; gives 1 where the dumps differ, 2 where one can't be read or the line is wrong."""
    parser = argparse.ArgumentParser(
        prog="torchspore diff",
        description="Compares two dumps of operators (enable_dump, MINDSPORE_DUMP_CONFIG; of torchspore or of MindSpore) and names the "
                    "first operator whose result departs. The exit code is 1 where they differ, 2 where one can't be read.",
    )
    parser.add_argument("first", type=Path, metavar="DUMP_A")
    parser.add_argument("second", type=Path, metavar="DUMP_B")
    parser.add_argument("--rtol", type=float, default=1e-3, help="relative difference that counts as none (default: 0.001)")
    parser.add_argument("--atol", type=float, default=1e-5, help="absolute difference that counts as none (default: 0.00001)")
    parser.add_argument("--all", action="store_true", help="lists every operator that departs")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    options = parser.parse_args(list(words))
    try:
        first, second = dumps.read(options.first), dumps.read(options.second)
    except (dumps.Unreadable, OSError) as error:
        print(visible(f"torchspore diff: {error}"), file=sys.stderr)
        return USAGE_ERROR
    found = dump_pairs.compared(first, second, options.rtol, options.atol)
    if not found:
        print(f"torchspore diff: no operator of {options.first} has one of its name and iteration in {options.second}.", file=sys.stderr)
        return USAGE_ERROR
    departing = next((pair for pair in found if pair.departs), None)
    inputs = [] if departing is None or departing.by != "name" else dumps.compare(
        departing.first, departing.second, "input", options.rtol, options.atol)
    troubles = [*first.troubles, *second.troubles]
    show = _as_json if options.json else _as_text
    print(show(first, second, found, departing, inputs, troubles, options))
    return DIFFERENT if departing is not None or troubles else 0


def _states(found: list[Pair]) -> dict[str, int]:
    counts = Counter("departs" if pair.departs else "equal" if _is_equal(pair) else "close" for pair in found)
    return {name: counts[name] for name in ("equal", "close", "departs")}


def _is_equal(pair: Pair) -> bool:
    return all(one.state in ("equal", "alone", "unused") for one in pair.results)


def _members(operators: Iterable[dumps.Operator]) -> set[int]:
    """The identities of operators and of those that they stand for."""
    return {id(one) for operator in operators for one in (operator, *operator.members)}


def _alone(dump: Dump, taken: set[int], common: set[int]) -> list[str]:
    """The operators that have no partner, of the iterations that both have."""
    return [one.full_name for iteration, listed in dump.iterations.items() if iteration in common for one in listed if id(one) not in taken]


def _as_text(
    first: Dump, second: Dump, found: list[Pair], departing: Pair | None, inputs: list[Compared], troubles: list[str], options: Any,
) -> str:
    states, common = _states(found), first.iterations.keys() & second.iterations.keys()
    shown = sorted(common)
    lines = [
        f"{len(found)} operators of {len(shown)} iterations ({_spans(shown)}) compared: {states['equal']} equal in every bit, "
        f"{states['close']} within rtol {options.rtol:g} and atol {options.atol:g}, {states['departs']} depart."
    ]
    for dump, others in ((first, second), (second, first)):
        missing = sorted(dump.iterations.keys() - others.iterations.keys())
        if missing:
            lines.append(f"iterations of {dump.root} alone: {_spans(missing)}")
    for dump, taken in ((first, _members(pair.first for pair in found)), (second, _members(pair.second for pair in found))):
        alone = _alone(dump, taken, set(common))
        if alone:
            named = ", ".join([*alone[:_SHOWN], *["…"] * (len(alone) > _SHOWN)])
            lines.append(f"operators of {dump.root} alone: {len(alone)} ({named})")
    lines += [f"trouble: {one}" for one in troubles]
    if departing is not None:
        lines += ["", *_told(departing, inputs)]
    if options.all:
        lines += ["", "all that depart:", *[f"  iteration {pair.iteration}: {pair.first.full_name}" for pair in found if pair.departs]]
    return "\n".join(map(visible, lines))


def _told(pair: Pair, inputs: list[Compared]) -> list[str]:
    one, other = pair.first, pair.second
    together = {"scope": "the last of their scope", "layer": "the operators of one layer"}
    named = one.full_name if pair.by == "name" else f"{one.full_name} and {other.full_name}, {together[pair.by]}"
    lines = [f"first to depart: iteration {pair.iteration}, {named}"]
    lines += [f"  at {line}" for line in dict.fromkeys((one.line, other.line)) if line]
    lines += [f"  {which}: {operator.note}" for which, operator in (("first", one), ("second", other)) if operator.note]
    for result in (*pair.results, *inputs):
        state = f"{result.state}: " if result.state in ("departs", "alone", "unused") else ""
        lines.append(f"  {result.side} {result.slot}: {state}{result.text}")
        if result.state == "departs":
            both = (("first", result.first), ("second", result.second))
            lines += [f"    {name:7}{_figures(figures)}" for name, figures in both if figures]
    if inputs:
        bad = [result for result in inputs if result.state in ("departs", "unreadable")]
        lines.append("  its inputs agree: this operator itself gives another result." if not bad else
                     f"  input {bad[0].slot} differs already, and no operator before it made that: it is data, a Parameter, or not dumped.")
    return lines


def _figures(figures: dict[str, Any]) -> str:
    if "nan" not in figures:
        return ", ".join(f"{key} {value}" for key, value in figures.items())
    number = {key: "-" if figures[key] is None else f"{figures[key]:.6g}" for key in ("min", "max", "mean")}
    return (f"{figures['dtype']} {tuple(figures['shape'])}: min {number['min']}, max {number['max']}, mean {number['mean']}, "
            f"{figures['nan']} NaN, {figures['inf']} infinite, {figures['zero']} zero")


def _spans(numbers: Sequence[int]) -> str:
    """0, 1, 2, 5 as '0-2, 5'."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _as_json(
    first: Dump, second: Dump, found: list[Pair], departing: Pair | None, inputs: list[Compared], troubles: list[str], options: Any,
) -> str:
    common = set(first.iterations.keys() & second.iterations.keys())

    def pair(one: Pair) -> dict[str, Any]:
        return {"iteration": one.iteration, "operator": one.first.full_name, "other": one.second.full_name, "paired_by": one.by,
                "line": one.first.line or one.second.line, "results": [asdict(result) for result in one.results]}

    named = None if departing is None else {**pair(departing), "inputs": [asdict(one) for one in inputs]}
    made = {
        "compared": len(found), **_states(found), "iterations": sorted(common), "rtol": options.rtol, "atol": options.atol,
        "only_first": _alone(first, _members(pair.first for pair in found), common),
        "only_second": _alone(second, _members(pair.second for pair in found), common), "troubles": troubles, "first_departing": named,
    }
    if options.all:
        made["departing"] = [pair(one) for one in found if one.departs]
    return json.dumps(_finite(made), indent=2)


def _finite(value: Any) -> Any:
    """With texts in the places of infinities and NaN, which JSON does not have."""
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
