"""docs/gpu.md: the results of the last run on a GPU. It is generated from docs/gpu.json, the summary of a result file."""
from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from on_gpu import results
from on_gpu.jobs import ROOT
from on_gpu.stages import STAGES

SUMMARY = ROOT / "docs" / "gpu.json"
PAGE = ROOT / "docs" / "gpu.md"
HEAD = """<!-- Written by tools/generate.py from docs/gpu.json; `tools/on_gpu.sh --publish FILE` writes that. -->

# On a GPU

`tools/on_gpu.sh` runs every check that needs a GPU, in eight minutes. [devices](guides/devices.md) says what the switches do there.
"""
NEVER = """
**Never run.** No machine with a GPU has run it yet. The stages below are ready, and `tools/on_gpu.sh --dry` runs a sample of each on the
CPU and on the stand-in accelerator.
"""


def summary(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the content of the page: the machine, counts of each stage, failures, reasons of skips, measurements."""
    machine: dict[str, Any] = next((line.get("values", {}) for line in lines if line["stage"] == results.MACHINE), {})
    report: dict[str, Any] = {"machine": machine, "stages": {}}
    for stage in STAGES:
        checks = [line for line in lines if line["stage"] == stage.letter]
        if not checks:
            continue
        report["stages"][stage.letter] = {
            "counts": dict(Counter(line["outcome"] for line in checks)),
            "failures": [{"check": line["check"], "outcome": line["outcome"], "detail": _short(line)}
                         for line in checks if line["outcome"] not in (results.PASSED, results.SKIPPED)],
            "skips": dict(Counter(_short(line) for line in checks if line["outcome"] == results.SKIPPED)),
            "measurements": [line["values"] for line in checks if "values" in line],
        }
    return report


def _short(line: dict[str, Any]) -> str:
    """Return one line of a detail: the first of a test, which names the error, or the last of a process."""
    lines = [text.strip() for text in line.get("detail", "").splitlines() if text.strip()]
    if not lines:
        return ""
    return str(lines[0 if line["outcome"] in (results.FAILED, results.SKIPPED) and "::" in line["check"] else -1])[:300]


def counts(lines: Sequence[dict[str, Any]]) -> str:
    """Return "12 passed, 1 failed" for result lines."""
    return _counts(Counter(line["outcome"] for line in lines))


def _counts(numbers: dict[str, int]) -> str:
    return ", ".join(f"{numbers[outcome]} {outcome}" for outcome in results.OUTCOMES if numbers.get(outcome)) or "no check"


def publish(file: Path) -> None:
    """Write docs/gpu.json and docs/gpu.md from a result file. Raises SystemExit for a dry run, which shows nothing about a GPU."""
    if not file.exists():
        raise SystemExit(f"{file}: there is no such file. Expected a results.jsonl that tools/on_gpu.sh wrote.")
    report = summary(results.read(file))
    if report["machine"].get("dry") or not report["machine"].get("card"):
        raise SystemExit(f"{file}: this is no run on a GPU. Expected a results.jsonl that tools/on_gpu.sh wrote on a machine with one.")
    # The copy of the working tree on the GPU machine has no commit; it was copied from this checkout.
    report["machine"]["commit"] = report["machine"].get("commit") or _commit()
    SUMMARY.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(render(report), encoding="utf-8")


def _commit() -> str:
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def page() -> str:
    """Return the text of docs/gpu.md."""
    return render(json.loads(SUMMARY.read_text(encoding="utf-8")) if SUMMARY.exists() else None)


def render(report: dict[str, Any] | None) -> str:
    """Return the page of a summary, or of no run."""
    lines = [HEAD.rstrip()]
    lines += _machine(report["machine"]) if report else [NEVER.rstrip()]
    lines += ["", "## Stages", "", "| stage | what it checks | seconds at most | result |", "|---|---|---:|---|"]
    by_letter = report["stages"] if report else {}
    for stage in STAGES:
        outcome = _counts(by_letter[stage.letter]["counts"]) if stage.letter in by_letter else "not run"
        lines.append(f"| {stage.letter} | {stage.title} | {stage.seconds:.0f} | {outcome} |")
    lines += _failures(by_letter) + _skips(by_letter) + _measurements(by_letter)
    return "\n".join(lines) + "\n"


def _machine(machine: dict[str, Any]) -> list[str]:
    names = {"cuda": "CUDA", "hip": "ROCm", "cudnn": "cuDNN", "python": "Python", "nvidia-nccl-cu13": "NCCL"}
    shown = [f"{names.get(key, key)} {value}" for key, value in machine.items()
             if key not in ("date", "commit", "card", "memory", "dry", "cores") and value is not None]
    card = f"{machine.get('card')}, {machine.get('memory')} GiB" if machine.get("card") else "no GPU"
    head = "**A dry run: nothing here ran on a GPU.** " if machine.get("dry") else ""
    return ["", f"{head}{machine.get('date')}, commit {machine.get('commit')}: {card}, {machine.get('cores')} cores.", "",
            ", ".join(shown) + "."]


def _failures(by_letter: dict[str, Any]) -> list[str]:
    rows = [f"| {letter} | `{failure['check']}` | {failure['outcome']} | {_cell(failure['detail'])} |"
            for letter, stage in by_letter.items() for failure in stage["failures"]]
    return ["", "## What did not pass", "", "| stage | check | outcome | error |", "|---|---|---|---|", *rows] if rows else []


def _skips(by_letter: dict[str, Any]) -> list[str]:
    rows = [f"| {letter} | {number} | {_cell(reason)} |"
            for letter, stage in by_letter.items() for reason, number in stage["skips"].items()]
    return ["", "## What was skipped", "", "| stage | checks | reason |", "|---|---:|---|", *rows] if rows else []


def _measurements(by_letter: dict[str, Any]) -> list[str]:
    nets = [values for stage in by_letter.values() for values in stage["measurements"]]
    lines = ["", "## Speed", "", "Contenders take turns in one process; a ratio is to torch eager in the same turn. A share is that of the",
             "fastest product of two matrices of the same dtype. Waits are synchronizations with the host in one step."] if nets else []
    for net in nets:
        lines += ["", f"**{net['title']}**, {net['dtype']}, {net['gflop']:.1f} GFLOP a step, at most {net['peak_tflops']:.1f} TFLOP/s", "",
                  "| contender | ms a step | ratio (least .. greatest) | share of peak | waits |", "|---|---:|---|---:|---:|"]
        for row in net["contenders"]:
            low, middle, high = row["ratio"]
            waits = "-" if row["waits"] is None else row["waits"]
            lines.append(f"| {row['name']} | {row['ms']:.3f} | {middle:.2f} ({low:.2f} .. {high:.2f}) | {row['share']:.1%} | {waits} |")
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
