"""`torchspore plan --alternatives`: the plan of the program beside plans with other choices, each from a separate process.

First each combination of memory switches is planned. The best of them is planned with other numbers of pipeline stages, and the best of
these with other numbers of micro batches: one process for each row, not for each combination.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torchspore.base.columns import pad, width
from torchspore.translations import translatable, translate

RECOMPUTE, MICRO_BATCHES, STAGES = "--recompute-blocks", "--micro-batches", "--stages"
_SHARDS = "TORCHSPORE_FORCE_AUTO_PARALLEL_ENABLE_PARALLEL_OPTIMIZER"
_LEVEL = "TORCHSPORE_FORCE_AUTO_PARALLEL_PARALLEL_OPTIMIZER_CONFIG_OPTIMIZER_LEVEL"
_HEADS = (translatable("choices"), translatable("step ms"), translatable("exchange ms"), translatable("bytes received"),
          translatable("memory of a device"))


@dataclass(frozen=True)
class Alternative:
    """Choices that one process plans with: their names, and the options and environment variables that make them."""

    names: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()

    def with_option(self, name: str, option: str, value: int) -> Alternative:
        """Return these choices and one more."""
        return Alternative((*self.names, name), (*self.options, option, str(value)), self.environment)


@dataclass(frozen=True)
class _Row:
    """A row of the table: choices, and their plan or the error of the process."""

    choices: Alternative
    plan: dict[str, Any]
    error: str = ""

    def order(self) -> tuple[bool, bool, float]:
        """Return the key by which the best row is the smallest: the fastest plan that fits, or else the one with the least memory."""
        if self.error:
            return True, True, 0.0
        fits = bool(self.plan["fits"])
        return False, not fits, float(self.plan["step_seconds"] if fits else self.plan["memory_bytes"]["total"])


def compare(options: Sequence[str], program: Sequence[str]) -> int:
    """Print a table with a row for each alternative; return 1 if the program's own plan fails.

    `options` are those of the command that change a plan, `program` the script with its arguments.
    """
    def plan(choices: Alternative) -> _Row:
        command = [sys.executable, "-m", "torchspore", "plan", "--json", *options, *choices.options, *program]
        result = subprocess.run(command, env={**os.environ, **dict(choices.environment)}, capture_output=True, text=True)
        summary = None if result.returncode else _last_object(result.stdout)
        return _Row(choices, summary or {}, "" if summary else _reason(result.stderr))

    first = plan(Alternative())
    if first.error:
        print(first.error, file=sys.stderr)
        return 1
    rows = [first, *map(plan, _memory_switches())]
    for following in (_stage_counts, _micro_batch_counts):
        rows += map(plan, following(first.plan, min(rows, key=_Row.order), options))
    print("\n".join(_table(rows)))
    return 0


def _memory_switches() -> list[Alternative]:
    """Return recomputed blocks, split optimizers (ZeRO), and both."""
    blocks = translate("recompute() of repeated blocks")
    levels = [(f"enable_parallel_optimizer=True, optimizer_level={level!r}", ((_SHARDS, "True"), (_LEVEL, level)))
              for level in ("level1", "level3")]
    plain = [Alternative((name,), environment=environment) for name, environment in levels]
    return [Alternative((blocks,), (RECOMPUTE,)), *plain,
            *(Alternative((blocks, name), (RECOMPUTE,), environment) for name, environment in levels)]


def _stage_counts(plan: dict[str, Any], best: _Row, options: Sequence[str]) -> list[Alternative]:
    """Return the choices of the best row with the smaller numbers of stages that divide that of the program."""
    if _is_set(STAGES, options):
        return []
    counts = [count for count in range(1, plan["stages"]) if plan["stages"] % count == 0]
    names = {count: translate("1 stage") if count == 1 else translate("{count} stages").format(count=count) for count in counts}
    return [best.choices.with_option(names[count], STAGES, count) for count in counts]


def _micro_batch_counts(plan: dict[str, Any], best: _Row, options: Sequence[str]) -> list[Alternative]:
    """Return the choices of the best row with half, twice and four times the micro batches of the program."""
    if _is_set(MICRO_BATCHES, options):
        return []
    present = plan["micro_batches"]
    counts = [*(() if present % 2 else (present // 2,)), 2 * present, 4 * present]
    several = translate("{count} micro batches")
    names = [translate("1 micro batch") if count == 1 else several.format(count=count) for count in counts]
    return [best.choices.with_option(name, MICRO_BATCHES, count) for name, count in zip(names, counts)]


def _is_set(option: str, options: Sequence[str]) -> bool:
    return any(word.partition("=")[0] == option for word in options)


def _reason(text: str) -> str:
    """Return the last line of an error output that is not a hint."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("hint: ")]
    return lines[-1] if lines else "?"


def _last_object(text: str) -> dict[str, Any] | None:
    """Return the plan in an output, a JSON object in a line; None if there is none. The program may print before and after it."""
    for line in reversed(text.splitlines()):
        if not line.startswith("{"):
            continue
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and "step_seconds" in value:
            return value
    return None


def _table(rows: Sequence[_Row]) -> Iterator[str]:
    """Yield the lines of the table; an asterisk marks the fastest plan that fits into the memory of a device."""
    fastest = min(rows, key=_Row.order)
    has_fitting = not fastest.error and fastest.plan["fits"]
    lines = [("", *map(translate, _HEADS))]
    for row in rows:
        name = ", ".join(row.choices.names) or translate("as the program says")
        if row.error:
            lines.append(("", name, translate("fails: {reason}").format(reason=row.error[:80]), "", "", ""))
            continue
        plan = row.plan
        total = f"{plan['memory_bytes']['total']:,}" + ("" if plan["fits"] else translate(" (too much)"))
        lines.append(("*" if has_fitting and row is fastest else "", name, f"{plan['step_seconds'] * 1e3:.3f}",
                      f"{plan['exchange_seconds'] * 1e3:.3f}", f"{plan['received_bytes']:,}", total))
    yield ""
    yield translate("other choices (* is the fastest plan that fits into the memory of a device):")
    widths = [max(map(width, column)) for column in zip(*lines)]
    for line in lines:
        yield "  ".join(pad(cell, columns) for cell, columns in zip(line, widths)).rstrip()
    if not has_fitting:
        yield translate("none of them fits: use more devices")
