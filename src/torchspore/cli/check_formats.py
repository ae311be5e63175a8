"""The findings of `torchspore check` as SARIF, and as annotations of a GitHub workflow.

SARIF: "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", OASIS. Annotations: GitHub's workflow commands `::error` and
`::warning`.
"""
from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import torchspore
from torchspore.translations import translate

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "missing": "torchspore lacks a MindSpore name or option that the program uses",
    "older-spelling": "a call in the spelling of an older MindSpore release, which torchspore accepts",
}


@dataclass(frozen=True)
class Finding:
    """A name that a file uses and torchspore lacks; `cell` is the number of a notebook's cell."""

    file: str
    cell: int | None
    line: int
    name: str
    text: str
    is_accepted: bool = False

    def __str__(self) -> str:
        if self.cell is None:
            return f"{self.file}:{self.line}: {self.text}"
        text = translate("{file}, cell {cell}, line {line}: {text}")
        return text.format(file=self.file, cell=self.cell, line=self.line, text=self.text)


def sarif(missing: Sequence[Finding], accepted: Sequence[Finding]) -> str:
    """Return a SARIF log with an error for each missing name, and a note for each accepted call in an older spelling."""
    results = [_result(finding, "missing", "error") for finding in missing]
    results += [_result(finding, "older-spelling", "note") for finding in accepted]
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()]
    driver = {"name": "torchspore check", "version": torchspore.__version__, "rules": rules}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}, indent=2)


def _result(finding: Finding, rule: str, level: str) -> dict[str, Any]:
    line, text = _line_and_text(finding)
    location: dict[str, Any] = {"artifactLocation": {"uri": PurePath(finding.file).as_posix()}}
    if line is not None:
        location["region"] = {"startLine": line}
    return {"ruleId": rule, "level": level, "message": {"text": text}, "locations": [{"physicalLocation": location}]}


def _line_and_text(finding: Finding) -> tuple[int | None, str]:
    """Return the line to annotate, and the text. A notebook has no such line: its text names the cell and the line in the cell."""
    if finding.cell is None:
        return max(1, finding.line), finding.text
    return None, f"cell {finding.cell}, line {finding.line}: {finding.text}"


def github_annotations(missing: Sequence[Finding], accepted: Sequence[Finding]) -> Iterator[str]:
    """Yield a workflow command for each finding: an error for a missing name, a notice for an accepted call in an older spelling."""
    for kind, findings in (("error", missing), ("notice", accepted)):
        for finding in findings:
            line, text = _line_and_text(finding)
            location = f"file={_property(PurePath(finding.file).as_posix())}" + ("" if line is None else f",line={line}")
            yield f"::{kind} {location},title=torchspore check::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
