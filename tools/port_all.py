#!/usr/bin/env python3
"""Ports the Cells of programs and compares them with the original: docs/reference/ports.md.

    tools/port_all.py                    tests/scripts/programs/models; prints the table
    tools/port_all.py FILE ...           these programs
    tools/port_all.py --mindcv FOLDER    a model of each family of MindCV; FOLDER contains the unpacked mindcv==0.3.0
    tools/port_all.py --rows FILE        saves each row, and reads those of an earlier run of the same commit that was interrupted
    tools/port_all.py --write            writes docs/reference/ports.md; without --mindcv the rows of MindCV stay unchanged

Each program runs in a child process, which inherits the imports.
"""
from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/scripts/programs"), str(ROOT / "tools")]
PAGE = ROOT / "docs/reference/ports.md"
SECONDS = 300


def port_program(path: str) -> dict[str, Any]:
    """Port and verify the Cells of a program, or of `FILE.py:function`. Return its row of the table."""
    from torchspore.port import complete_port

    path, _, function = path.partition(":")
    outcome = complete_port.port_file(path) if not function else _port_function(path, function)
    if not outcome.ported.classes and not function:          # a program without Cells: its training
        outcome = complete_port.port_file(path, with_script=True)
    ported = outcome.ported
    row: dict[str, Any] = {
        "program": function or Path(path).stem, "classes": ported.classes, "files": len(ported.files),
        "omitted_classes": {name: problem.text for name, problem in ported.omitted_classes.items()},
        "problems": [f"line {problem.line}: {problem.text}" for problem in ported.problems],
        "verdicts": [[each.name, each.forward, each.gradient, each.precision, each.reason, each.is_equal] for each in outcome.verdicts],
    }
    if not row["verdicts"] and not row["problems"]:
        row["problems"].append(outcome.why_not)
    return row


def _port_function(path: str, function: str) -> Any:
    """Port a function of MindCV and the Cells that it needs, with the smallest pictures that they accept."""
    from packages.with_mindcv import _sizes

    from torchspore.port import complete_port
    from torchspore.port.analysis.source import PortError

    for size in _sizes(function):
        try:
            return complete_port.port_file(path, [function], "num_classes=10", [f"2,3,{size},{size}"])
        except PortError:
            if size != _sizes(function)[0]:
                raise
    raise AssertionError


def families(folder: str) -> list[str]:
    """Return FILE.py:function of one model of each family of MindCV."""
    sys.path.insert(0, folder)
    from mindcv.models import model_entrypoint  # type: ignore[import-not-found]
    from packages.with_mindcv import rows

    names = [name for name, *_ in rows({"families": True, "ours": False, "work": Path()})]
    files = {name: model_entrypoint(name).__module__.replace(".", "/") + ".py" for name in names}
    return [f"{Path(folder, file)}:{name}" for name, file in files.items()]


def failed_row(path: str, problem: str) -> dict[str, Any]:
    """Return the row of a program without a result."""
    name = path.partition(":")[2] or Path(path).stem
    return {"program": name, "files": 0, "classes": [], "omitted_classes": {}, "problems": [problem], "verdicts": []}


def _in_child(path: str, result: str) -> None:
    warnings.simplefilter("ignore")
    try:
        row = port_program(path)
    except Exception as error:
        row = failed_row(path, f"{type(error).__name__}: {error}".splitlines()[0])
    Path(result).write_text(json.dumps(row), encoding="utf-8")


def port_all(paths: list[str], seconds: int, saved: Path | None) -> list[dict[str, Any]]:
    """Return the rows of the table; `saved` has those of an earlier run, and gets the new ones."""
    import torchspore

    torchspore.install()
    import mindspore  # noqa: F401
    import torch

    from torchspore.port import complete_port  # noqa: F401

    torch.set_num_threads(1)
    context, rows = multiprocessing.get_context("fork"), []
    known = json.loads(saved.read_text(encoding="utf-8")) if saved is not None and saved.exists() else {}
    for path in paths:
        if path in known:
            rows.append(known[path])
            continue
        with tempfile.TemporaryDirectory() as folder:
            result = os.path.join(folder, "row.json")
            child = context.Process(target=_in_child, args=(path, result))
            child.start()
            child.join(seconds)
            if child.is_alive():
                child.kill()
            child.join()
            text = Path(result).read_text(encoding="utf-8") if os.path.exists(result) else ""
        rows.append(json.loads(text) if text else failed_row(path, f"ended with {child.exitcode}"))
        print(describe(rows[-1]), flush=True)
        if saved is not None:
            known[path] = rows[-1]
            saved.write_text(json.dumps(known), encoding="utf-8")
    return rows


def is_verified(row: dict[str, Any]) -> bool:
    """Return whether every Cell that the program calls was compared and agrees."""
    return bool(row["verdicts"]) and not row["problems"] and all(verdict[5] for verdict in row["verdicts"])


def describe(row: dict[str, Any]) -> str:
    """Return a line for the terminal."""
    forward, gradient = _largest(row)
    reasons = row["problems"] + [f"{verdict[0]}: {verdict[4] or 'differs'}" for verdict in row["verdicts"] if not verdict[5]]
    return f"{'verified' if is_verified(row) else 'FAILED':9}{row['program']:22}{forward:9.1e}{gradient:9.1e}  {'; '.join(reasons)}"


_MINDCV = "## MindCV"


def mindcv_section(rows: list[dict[str, Any]]) -> str:
    """Return the section about MindCV: a model of each family, with the modules that it needs."""
    count = sum(map(is_verified, rows))
    lines = [
        _MINDCV, "", "`tools/port_all.py --mindcv FOLDER` ports the function that creates a model, and the modules of MindCV 0.3.0 that it",
        f"needs, without manual edits: {count} of {len(rows)} models, one of each family, are verified.", "",
        "| model | verified | results | gradients | reason |", "|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(f"| {row['program']} | {'yes' if is_verified(row) else 'no'} | {_differences(row)} | {_reasons(row)} |")
    return "\n".join(lines) + "\n"


def _differences(row: dict[str, Any]) -> str:
    return " | ".join(f"{number:.0e}" if number == number else "" for number in _largest(row))


def _largest(row: dict[str, Any]) -> list[float]:
    """Return the largest differences of results and gradients, without comparisons that have a larger tolerance."""
    verdicts = [verdict for verdict in row["verdicts"] if "tolerance" not in verdict[3]] or row["verdicts"]
    return [max((verdict[index] for verdict in verdicts), default=float("nan")) for index in (1, 2)]


def _reasons(row: dict[str, Any]) -> str:
    reasons = row["problems"] + [f"{verdict[0]}: {verdict[4] or 'differs'}" for verdict in row["verdicts"] if not verdict[5]]
    return "; ".join([*reasons, *row["omitted_classes"]]).replace("|", "\\|")


def page(rows: list[dict[str, Any]]) -> str:
    """Return the text of docs/reference/ports.md up to MindCV."""
    count = sum(map(is_verified, rows))
    lines = [
        "# Ported programs", "",
        "<!-- generated by tools/port_all.py --write -->", "",
        f"`torchspore port` ports the Cells of {count} of {len(rows)} programs of `tests/scripts/programs/models` without manual edits,",
        "and verifies them: the same weights and inputs, results and gradients equal to 1e-5 of the largest value. Of a program without",
        "Cells the training is ported: losses and weights of three steps are compared. Elsewhere the Cells of the training",
        "(subclasses of `TrainOneStepCell`, Cells that compute gradients, schedules, metrics, callbacks) are left out.", "",
        "| program | verified | results | gradients | Cells | not ported |", "|---|---|---|---|---|---|",
    ]
    for row in rows:
        state = "yes" if is_verified(row) else "no"
        lines.append(f"| {row['program']} | {state} | {_differences(row)} | {len(row['classes'])} | {_reasons(row)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--mindcv", metavar="FOLDER", help="a folder with MindCV 0.3.0: one model of each family")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="save the rows here, and continue from them")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="the most that a program may take (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="write docs/reference/ports.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.mindcv:
        import torchspore

        torchspore.install()
    files = families(arguments.mindcv) if arguments.mindcv else arguments.files
    files = files or [str(path) for path in sorted((ROOT / "tests/scripts/programs/models").glob("*.py"))]
    rows = port_all(files, arguments.seconds, arguments.rows)
    print(f"{sum(map(is_verified, rows))} of {len(rows)} verified")
    if arguments.write:
        programs, _, mindcv = PAGE.read_text(encoding="utf-8").partition(_MINDCV)
        if arguments.mindcv:
            PAGE.write_text(programs + mindcv_section(rows), encoding="utf-8")
        else:
            PAGE.write_text(page(rows) + ("\n" + _MINDCV + mindcv if mindcv else ""), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
