"""`torchspore diff`: pair the operators of two dumps and name the first one whose result differs."""
from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torchspore.base.columns import pad
from torchspore.base.text import consecutive_spans
from torchspore.blackbox.record_reader import visible
from torchspore.cli.dump_comparison import dump_pairs, dumps
from torchspore.cli.dump_comparison.dumps import Dump, Pair, TensorComparison
from torchspore.cli.grammar import USAGE_ERROR, Parser, returns_exit_code
from torchspore.translations import english, translatable, translate

DIFFERENT = 1
_SHOWN = 5
_STATES = {"departs": translatable("differs: "), "alone": translatable("alone: "), "unused": translatable("unused: ")}
_TOGETHER = {"scope": translatable("the last of their scope"), "layer": translatable("the operators of one layer")}
_SIDES = {
    "input": translatable("input"), "output": translatable("output"), "first": translatable("first"), "second": translatable("second"),
}


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore diff",
        description="Compares two dumps of operators (enable_dump, MINDSPORE_DUMP_CONFIG; of torchspore or of MindSpore) and names the "
                    "first operator whose results differ. The exit code is 1 if they differ, 2 if one can't be read.",
        examples=["torchspore diff dump_a dump_b"],
    )
    command.add_argument("first", type=Path, metavar="DUMP_A")
    command.add_argument("second", type=Path, metavar="DUMP_B")
    command.add_argument("--rtol", type=float, default=1e-3, help="relative difference that counts as equal (default: 0.001)")
    command.add_argument("--atol", type=float, default=1e-5, help="absolute difference that counts as equal (default: 0.00001)")
    command.add_argument("--all", action="store_true", help="lists every operator that differs")
    command.add_argument("--json", action="store_true", help="one JSON object instead of text")
    return command


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if the dumps differ, 2 if one can't be read or the command line is wrong."""
    options = parser().parse_args(list(words))
    with english(options.json):
        return _compare(options)


def _compare(options: Any) -> int:
    try:
        first, second = dumps.read(options.first), dumps.read(options.second)
    except (dumps.Unreadable, OSError) as error:
        print(visible(f"torchspore diff: {error}"), file=sys.stderr)
        return USAGE_ERROR
    pairs = dump_pairs.compare_dumps(first, second, options.rtol, options.atol)
    if not pairs:
        text = translate("torchspore diff: no operator of {first} has one of its name and iteration in {second}.")
        print(text.format(first=options.first, second=options.second), file=sys.stderr)
        return USAGE_ERROR
    departing = next((pair for pair in pairs if pair.departs), None)
    inputs = [] if departing is None or departing.by != "name" else dumps.compare(
        departing.first, departing.second, "input", options.rtol, options.atol)
    troubles = [*first.troubles, *second.troubles]
    show = _as_json if options.json else _as_text
    print(show(first, second, pairs, departing, inputs, troubles, options))
    return DIFFERENT if departing is not None or troubles else 0


def _states(pairs: list[Pair]) -> dict[str, int]:
    counts = Counter("departs" if pair.departs else "equal" if _is_equal(pair) else "close" for pair in pairs)
    return {name: counts[name] for name in ("equal", "close", "departs")}


def _is_equal(pair: Pair) -> bool:
    return all(result.state in ("equal", "alone", "unused") for result in pair.results)


def _members(operators: Iterable[dumps.Operator]) -> set[int]:
    """Return the ids of operators and of the operators that they represent."""
    return {id(member) for operator in operators for member in (operator, *operator.members)}


def _unpaired(dump: Dump, taken: set[int], common: set[int]) -> list[str]:
    """Return the operators without a partner, of the iterations that both dumps have."""
    operators = (operator for iteration, listed in dump.iterations.items() if iteration in common for operator in listed)
    return [operator.full_name for operator in operators if id(operator) not in taken]


def _as_text(
    first: Dump, second: Dump, pairs: list[Pair], departing: Pair | None, inputs: list[TensorComparison], troubles: list[str], options: Any,
) -> str:
    states, common = _states(pairs), first.iterations.keys() & second.iterations.keys()
    shown = sorted(common)
    text = translate("{count} operators of {number} iterations ({iterations}) compared: {equal} equal in every bit, {close} within rtol "
                     "{rtol:g} and atol {atol:g}, {departs} differ.")
    lines = [text.format(count=len(pairs), number=len(shown), iterations=_spans(shown), rtol=options.rtol, atol=options.atol, **states)]
    for dump, others in ((first, second), (second, first)):
        missing = sorted(dump.iterations.keys() - others.iterations.keys())
        if missing:
            lines.append(translate("iterations of {dump} alone: {iterations}").format(dump=dump.root, iterations=_spans(missing)))
    for dump, taken in ((first, _members(pair.first for pair in pairs)), (second, _members(pair.second for pair in pairs))):
        unpaired = _unpaired(dump, taken, set(common))
        if unpaired:
            named = ", ".join([*unpaired[:_SHOWN], *["…"] * (len(unpaired) > _SHOWN)])
            text = translate("operators of {dump} alone: {count} ({names})")
            lines.append(text.format(dump=dump.root, count=len(unpaired), names=named))
    lines += [translate("problem: {text}").format(text=trouble) for trouble in troubles]
    if departing is not None:
        lines += ["", *_describe_departure(departing, inputs)]
    if options.all:
        row = translate("  iteration {iteration}: {name}")
        lines += ["", translate("all that differ:"),
                  *[row.format(iteration=pair.iteration, name=pair.first.full_name) for pair in pairs if pair.departs]]
    return "\n".join(map(visible, lines))


def _describe_departure(pair: Pair, inputs: list[TensorComparison]) -> list[str]:
    first, second = pair.first, pair.second
    named = first.full_name if pair.by == "name" else translate("{first} and {second}, {reason}").format(
        first=first.full_name, second=second.full_name, reason=translate(_TOGETHER[pair.by]))
    lines = [translate("first difference: iteration {iteration}, {name}").format(iteration=pair.iteration, name=named)]
    lines += [translate("  at {line}").format(line=line) for line in dict.fromkeys((first.line, second.line)) if line]
    row = translate("  {name}: {text}")
    lines += [row.format(name=translate(_SIDES[side]), text=operator.note)
              for side, operator in (("first", first), ("second", second)) if operator.note]
    for result in (*pair.results, *inputs):
        state = translate(_STATES.get(result.state, ""))
        lines.append(row.format(name=f"{translate(_SIDES[result.side])} {result.slot}", text=state + result.text))
        if result.state == "departs":
            both = (("first", result.first), ("second", result.second))
            lines += [f"    {pad(translate(_SIDES[name]), 7)}{_figures(figures)}" for name, figures in both if figures]
    if inputs:
        bad = [result for result in inputs if result.state in ("departs", "unreadable")]
        lines.append(translate("  its inputs agree: this operator itself returns a different result.") if not bad else translate(
            "  input {slot} differs already, and no earlier operator produced it: it is data, a Parameter, or not dumped."
        ).format(slot=bad[0].slot))
    return lines


def _figures(figures: dict[str, Any]) -> str:
    if "nan" not in figures:
        return ", ".join(f"{key} {value}" for key, value in figures.items())
    number = {key: "-" if figures[key] is None else f"{figures[key]:.6g}" for key in ("min", "max", "mean")}
    text = translate("{dtype} {shape}: min {min}, max {max}, mean {mean}, {nan} NaN, {inf} infinite, {zero} zero")
    return text.format(**{**figures, **number, "shape": tuple(figures["shape"])})


def _spans(numbers: Sequence[int]) -> str:
    """Format 0, 1, 2, 5 as '0-2, 5'."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in consecutive_spans(numbers))


def _as_json(
    first: Dump, second: Dump, pairs: list[Pair], departing: Pair | None, inputs: list[TensorComparison], troubles: list[str], options: Any,
) -> str:
    common = set(first.iterations.keys() & second.iterations.keys())

    def pair(item: Pair) -> dict[str, Any]:
        return {"iteration": item.iteration, "operator": item.first.full_name, "other": item.second.full_name, "paired_by": item.by,
                "line": item.first.line or item.second.line, "results": [asdict(result) for result in item.results]}

    named = None if departing is None else {**pair(departing), "inputs": [asdict(result) for result in inputs]}
    document = {
        "compared": len(pairs), **_states(pairs), "iterations": sorted(common), "rtol": options.rtol, "atol": options.atol,
        "only_first": _unpaired(first, _members(pair.first for pair in pairs), common),
        "only_second": _unpaired(second, _members(pair.second for pair in pairs), common), "troubles": troubles, "first_departing": named,
    }
    if options.all:
        document["departing"] = [pair(item) for item in pairs if item.departs]
    return json.dumps(_finite(document), indent=2)


def _finite(value: Any) -> Any:
    """Replace infinities and NaN, which JSON does not have, by texts."""
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
