#!/usr/bin/env python3
"""The first part of docs/performance.md: a chart of ratios to torch eager, and the rows where torchspore is not first.

`python benchmarks/summary.py` derives both from the tables of the page; `benchmarks/report.py` calls it after each benchmark.
"""
from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from unicodedata import east_asian_width

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
CHART = PAGE.parent / "guides" / "images" / "performance.svg"
BEGIN, END = "<!-- summary begins -->", "<!-- summary ends -->"
OTHERS = ("torch", "jax", "ONNX", "MindSpore", "DDP", "FSDP2", "gloo")
"""The first words of contenders that are not torchspore."""
REFERENCE = "torch eager"
COLOURS = {
    "torch.compile": "#7f7f7f", "jax.jit": "#c49c00", "MindSpore 2.10 graph": "#d62728",
    "torchspore PyNative": "#9ecae1", "torchspore O0": "#3182bd", "torchspore O1": "#08306b",
}
"""The contenders in the chart."""


@dataclass(frozen=True)
class Comparison:
    """One table: the median ratio of each contender to the reference, or the times of one row; smaller is faster."""

    title: str
    ratios: dict[str, float]

    def best(self, is_torchspore: bool) -> tuple[str, float] | None:
        """Return the fastest contender of a side, with its ratio."""
        side = {name: ratio for name, ratio in self.ratios.items() if is_of_torchspore(name) is is_torchspore}
        return min(side.items(), key=lambda item: item[1]) if side else None


def is_of_torchspore(contender: str) -> bool:
    """Return whether a contender is torchspore in one of its modes."""
    return contender.startswith("torchspore") or not contender.startswith(OTHERS)


def main() -> None:
    """Write the chart and the first part of the page."""
    text = PAGE.read_text(encoding="utf-8")
    CHART.write_text(chart(comparisons(text)), encoding="utf-8")
    PAGE.write_text(with_summary(text), encoding="utf-8")


def with_summary(text: str) -> str:
    """Return the page with a current summary in front of its first table."""
    head, _, rest = re.sub(f"{BEGIN}.*?{END}\n+", "", text, flags=re.DOTALL).partition("<!-- ")
    return f"{head}{BEGIN}\n{summary(comparisons(rest))}{END}\n\n<!-- {rest}"


def summary(tables: list[Comparison]) -> str:
    """Return the link to the chart and the table of the rows in which another contender is faster than torchspore."""
    pairs = [(table, ours, other) for table in tables if (ours := table.best(True)) and (other := table.best(False))]
    behind = sorted(
        ((ours[1] / other[1], table.title, ours[0], other[0]) for table, ours, other in pairs if ours[1] > other[1]), reverse=True,
    )
    rows = "".join(f"| {title} | {ours} | {other} | {ratio:.2f} |\n" for ratio, title, ours, other in behind)
    return (
        f"![The time of a step as a ratio to torch eager](guides/images/{CHART.name})\n\n"
        "The chart shows ratios to torch eager from 0.25 to 32; a mark at 32 means 32 or more. Smaller is faster.\n\n"
        f"torchspore is first in {len(pairs) - len(behind)} of {len(pairs)} comparisons of this page. It is not first in:\n\n"
        "| comparison | the fastest of torchspore | the fastest of the others | times as long |\n|---|---|---|---:|\n" + rows
    )


def comparisons(text: str) -> list[Comparison]:
    """Return the comparisons of torchspore with others that the tables of the page contain."""
    title, tables, header = "", [], [""]
    results: dict[str, float] = {}
    for line in [*text.splitlines(), "## end"]:
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells and results:
            tables.append(Comparison(title, results))
            results = {}
        if line.startswith("## "):
            title = line.removeprefix("## ")
        if cells[:1] in (["contender"], ["operator"], ["pipeline"]):
            header = cells
        elif cells and header[0] == "contender" and (column := _ratio_column(header)) < len(cells) and (ratio := _number(cells[column])):
            results[cells[0]] = ratio
        elif cells and header[0] == "operator" and len(cells) > 3 and (ratio := _number(cells[3])):
            tables.append(Comparison(f"{title}: {cells[0]}", {"torch": 1.0, "torchspore": ratio}))
        elif cells and header[0] == "pipeline" and cells[1].startswith("torchspore"):
            tables += [Comparison(f"data set `{cells[0]}`, {count}", {"MindSpore and torch": ratio, "torchspore": 1.0})
                       for count, ratio in zip(header[2:-1], _numbers(cells[-1]))]
        if not cells:
            header = [""]
    return tables


def _ratio_column(header: list[str]) -> int:
    """Return the first column of ratios; beyond the last column if there is none."""
    return next((at for at, text in enumerate(header) if "ratio to" in text), len(header))


def _number(cell: str) -> float | None:
    """Return the first number of a cell."""
    return next(_numbers(cell), None)


def _numbers(cell: str) -> Iterator[float]:
    return map(float, re.findall(r"\d+\.\d+", cell))


def _narrowed(text: str, width: int) -> str:
    """Return the attributes that fit a text of 13 pixels into this width; none if it fits without them."""
    pixels = sum(13 if east_asian_width(character) in "WF" else 5.6 for character in text)
    return f' textLength="{width}" lengthAdjust="spacingAndGlyphs"' if pixels > width else ""


def chart(tables: list[Comparison]) -> str:
    """Return an SVG picture: a row for each comparison with torch eager, a mark for each contender, on a logarithmic axis."""
    rows: dict[str, Comparison] = {}
    for table in tables:
        if REFERENCE in table.ratios and COLOURS.keys() & table.ratios.keys() - {"torch.compile"}:
            rows.setdefault(table.title, table)
    left, width, top, step = 380, 480, 70, 26
    low, high = math.log2(0.25), math.log2(32)

    def at(ratio: float) -> float:
        return left + (min(max(math.log2(ratio), low), high) - low) / (high - low) * width

    height = top + step * len(rows) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 30} {height}" font-family="sans-serif" font-size="13">',
        "<title>The time of a step as a ratio to torch eager; smaller is faster</title>",
        f'<rect width="{left + width + 30}" height="{height}" fill="white"/>',
    ]
    key = 14.0
    for name, colour in COLOURS.items():
        parts += [f'<circle cx="{key:g}" cy="18" r="5" fill="{colour}"/>', f'<text x="{key + 10:g}" y="22">{escape(name)}</text>']
        key += 36 + 7.5 * len(name)
    for power in range(int(low), int(high) + 1):
        x, colour = at(2.0**power), "#333" if power == 0 else "#ddd"
        parts += [f'<line x1="{x:.1f}" y1="{top - 16}" x2="{x:.1f}" y2="{height - 16}" stroke="{colour}"/>',
                  f'<text x="{x:.1f}" y="{top - 22}" text-anchor="middle">{2.0**power:g}</text>']
    for row, table in enumerate(rows.values()):
        y = top + step * row
        parts.append(f'<text x="{left - 14}" y="{y + 4}" text-anchor="end"{_narrowed(table.title, left - 20)}>{escape(table.title)}</text>')
        for name, colour in COLOURS.items():
            if name in table.ratios:
                hint = f"<title>{escape(name)}: {table.ratios[name]:.2f}</title>"
                parts.append(f'<circle cx="{at(table.ratios[name]):.1f}" cy="{y}" r="5" fill="{colour}">{hint}</circle>')
    return "\n".join((*parts, "</svg>", ""))


if __name__ == "__main__":
    main()
