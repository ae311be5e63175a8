"""`torchspore plan --alternatives`: the plan of the program beside plans with other memory switches, each from a separate process."""
from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torchspore.base.columns import pad, width
from torchspore.translations import translatable, translate

RECOMPUTE = "--recompute-blocks"
_SHARDS = "TORCHSPORE_FORCE_AUTO_PARALLEL_ENABLE_PARALLEL_OPTIMIZER"
_LEVEL = "TORCHSPORE_FORCE_AUTO_PARALLEL_PARALLEL_OPTIMIZER_CONFIG_OPTIMIZER_LEVEL"
_HEADS = (translatable("switches"), translatable("step ms"), translatable("exchange ms"), translatable("bytes received"),
          translatable("memory of a device"))


@dataclass(frozen=True)
class Alternative:
    """Switches that one process plans with."""

    name: str
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


_LEVELS = tuple((f"enable_parallel_optimizer=True, optimizer_level={level!r}", ((_SHARDS, "True"), (_LEVEL, level)))
                for level in ("level1", "level3"))
_BLOCKS = translatable("recompute() of repeated blocks")
ALTERNATIVES = (
    Alternative(translatable("as the program says")), Alternative(_BLOCKS, (RECOMPUTE,)),
    *(Alternative(name, environment=environment) for name, environment in _LEVELS),
    *(Alternative(f"{_BLOCKS}, {name}", (RECOMPUTE,), environment) for name, environment in _LEVELS),
)


def mark_repeated_blocks() -> None:
    """Call `recompute()` on the items of each SequentialCell or CellList that has several items of one class with Parameters.

    A list inside a marked item is left alone: its values are computed again with the item. All lists of the process are searched, because a
    step that is a function refers to its Cells by its variables.
    """
    from torchspore.mindspore.nn.cell import Cell
    from torchspore.mindspore.nn.layer.container import CellList, SequentialCell

    lists = [found for found in gc.get_objects() if isinstance(found, (CellList, SequentialCell))]
    blocks: dict[int, Cell] = {}
    for cells in lists:
        items = [item for item in cells.cells() if list(item.get_parameters())]
        repeated = [item for item in items if sum(type(other) is type(item) for other in items) > 1]
        blocks.update((id(item), item) for item in repeated)
    inner = {id(cell) for block in blocks.values() for _, cell in block.cells_and_names() if cell is not block}
    for number, block in blocks.items():
        if number not in inner:
            block.recompute()


def compare(options: Sequence[str], program: Sequence[str]) -> int:
    """Print a table with a row for each alternative; return 1 if the program's own plan fails.

    `options` are those of the command that change a plan, `program` the script with its arguments.
    """
    rows: list[tuple[str, dict[str, Any] | str]] = []
    for alternative in ALTERNATIVES:
        command = [sys.executable, "-m", "torchspore", "plan", "--json", *options, *alternative.options, *program]
        result = subprocess.run(command, env={**os.environ, **dict(alternative.environment)}, capture_output=True, text=True)
        plan = _last_object(result.stdout) if not result.returncode else None
        if plan is None and not rows:
            sys.stderr.write(result.stderr)
            return 1
        rows.append((alternative.name, plan if plan is not None else next(reversed(result.stderr.strip().splitlines()), "")))
    print("\n".join(_table(rows)))
    return 0


def _last_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that is the last line of an output; None if there is none. The program may print before it."""
    try:
        value = json.loads(next(reversed(text.strip().splitlines()), ""))
    except ValueError:
        return None
    return value if isinstance(value, dict) and "step_seconds" in value else None


def _name(name: str) -> str:
    return ", ".join(translate(part) if part == _BLOCKS else part for part in translate(name).split(", ", 1))


def _table(rows: Sequence[tuple[str, dict[str, Any] | str]]) -> Iterator[str]:
    """Yield the lines of the table; an asterisk marks the fastest plan that fits into the memory of a device."""
    plans = [plan for _, plan in rows if isinstance(plan, dict)]
    fitting = min((plan for plan in plans if plan["fits"]), key=lambda plan: float(plan["step_seconds"]), default=None)
    lines = [("", *map(translate, _HEADS))]
    for name, plan in rows:
        if isinstance(plan, str):
            lines.append(("", _name(name), translate("fails: {reason}").format(reason=plan[:80]), "", "", ""))
            continue
        total = f"{plan['memory_bytes']['total']:,}" + ("" if plan["fits"] else translate(" (too much)"))
        lines.append(("*" if plan is fitting else "", _name(name), f"{plan['step_seconds'] * 1e3:.3f}",
                      f"{plan['exchange_seconds'] * 1e3:.3f}", f"{plan['received_bytes']:,}", total))
    yield ""
    yield translate("other memory switches (* is the fastest plan that fits into the memory of a device):")
    widths = [max(map(width, column)) for column in zip(*lines)]
    for line in lines:
        yield "  ".join(pad(cell, columns) for cell, columns in zip(line, widths)).rstrip()
    if fitting is None:
        yield translate("none of them fits: use more devices")
