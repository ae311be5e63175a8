"""The tables as text, and docs/packages.md."""
from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "packages.md"
HEAD = """<!-- Written by tools/packages --write; run it again instead of editing. -->

# Packages, unmodified

Packages of MindSpore's ecosystem, unmodified, as published on PyPI. `.venv/bin/python tools/packages --write` runs them on torchspore's
CPU. The time of a row includes building the model, running it and, where stated, training it. MindSpore computed its logits with the same
weights, which a `.ckpt` file transferred.
"""


def table(package: str, rows: dict[str, dict[str, Any]]) -> str:
    """Return the table: a line for each group of rows, and one for each row that failed."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.values():
        groups[row["group"]].append(row)
    compared = any(row.get("apart") is not None for row in rows.values())
    lines = [f"| {package} | tests | pass | seconds, median and longest |" + (" largest difference of logits |" if compared else "")]
    lines.append("|---|---:|---:|---|" + ("---|" if compared else ""))
    for group, members in groups.items():
        times = sorted(row["seconds"] for row in members)
        line = f"| {group} | {len(members)} | {sum(not row['error'] for row in members)} | {times[len(times) // 2]:.1f}, {times[-1]:.1f} |"
        if compared:
            apart = [row["apart"] for row in members if row.get("apart") is not None]
            line += f" {max(apart):.1e} |" if apart else " |"
        lines.append(line)
    good = sum(not row["error"] for row in rows.values())
    lines.append(f"\n{good} of {len(rows)} rows pass.\n")
    for row in rows.values():
        if row["error"]:
            lines.append(f"- `{row['name']}`: {row['error']}")
    for row in rows.values():
        if row["told"] and not row["error"]:
            lines.append(f"- `{row['name']}`: {row['told']}")
    return "\n".join(lines).rstrip() + "\n"


def write(results: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Put the tables of these packages into the document, and leave those of others unchanged."""
    text = DOCUMENT.read_text() if DOCUMENT.exists() else HEAD
    text = HEAD + text.partition("`.ckpt` file transferred.\n")[2]
    for package, rows in results.items():
        section = f"\n## {package}\n\n{table(package, rows)}"
        pattern = re.compile(rf"\n## {package}\n.*?(?=\n## |\Z)", re.DOTALL)
        text = pattern.sub(lambda _: section, text) if pattern.search(text) else text + section  # noqa: B023
    DOCUMENT.write_text(text)
