#!/usr/bin/env python3
"""Compares Chinese pages with the English sections that they translate.

    tools/translations.py                    lists the translations, and the sections that are stale
    tools/translations.py --check            the same, and fails if a section is stale
    tools/translations.py --mark PAGE...     records that these translations match the English pages as they are now

A translation ends with a comment that names its English page and records a hash of each section. Figures between `<!-- names -->` or
`<!-- seconds -->` marks, which tools write, do not count. Translate a changed section first, then mark the page.
"""
from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FIGURES = re.compile(r"<!-- (names|seconds) -->.*?<!-- \1 -->", re.S)
HEADING = re.compile(r"^#+ ", re.M)
RECORD = re.compile(r"\n<!-- translation of (\S+); tools/translations.py --mark writes this:\n(.*?)\n-->\n\Z", re.S)


class Section(NamedTuple):
    """A heading of an English page, and the hash of its text."""

    heading: str
    digest: str


def pages(root: Path = ROOT) -> Iterator[tuple[Path, Path]]:
    """Yield (translation, English page) of each Chinese page."""
    yield root / "README.zh-CN.md", root / "README.md"
    for path in sorted((root / "docs/zh").rglob("*.md")):
        yield path, root / "docs" / path.relative_to(root / "docs/zh")


def sections(text: str) -> list[Section]:
    """Return the sections of a page, in order. A line of a code block that begins with `#` starts no section."""
    parts: list[list[str]] = []
    is_code = False
    for line in FIGURES.sub("", text).split("\n"):
        if line.startswith("```"):
            is_code = not is_code
        if not parts or (not is_code and HEADING.match(line)):
            parts.append([])
        parts[-1].append(line.rstrip())
    texts = ["\n".join(part).strip() for part in parts]
    return [Section(_heading(part), hashlib.sha256(part.encode()).hexdigest()[:12]) for part in texts if part]


def _heading(section: str) -> str:
    """Return the heading of a section; the text before the first heading has none. A record with its comment would end early."""
    return section.partition("\n")[0] if section.startswith("#") else "(before the first heading)"


def recorded_sections(text: str) -> list[Section] | None:
    """Return the sections that a translation has recorded, or None if it was never marked."""
    match = RECORD.search(text)
    return None if match is None else [Section(line[13:], line[:12]) for line in match[2].split("\n")]


def stale_sections(recorded: Sequence[Section] | None, current: Sequence[Section]) -> list[str]:
    """Describe the differences of the English sections from the recorded ones."""
    if recorded is None:
        return ["never marked"]
    before, now = {section.heading: section for section in recorded}, {section.heading: section for section in current}
    differences = [f"changed: {heading}" for heading, section in now.items() if heading in before and before[heading] != section]
    differences += [f"new: {heading}" for heading in now if heading not in before]
    differences += [f"removed: {heading}" for heading in before if heading not in now]
    if not differences and list(recorded) != list(current):
        differences.append("the order of sections, or a heading that occurs twice")
    return differences


def mark(translation: Path, original: Path, root: Path = ROOT) -> None:
    """Record the present sections of the English page at the end of its translation."""
    name = original.relative_to(root).as_posix()
    text = marked(translation.read_text(encoding="utf-8"), original.read_text(encoding="utf-8"), name)
    translation.write_text(text, encoding="utf-8")


def marked(translation: str, original: str, name: str) -> str:
    """Return the text of a translation with a record of the present sections of the English page `name`."""
    lines = "\n".join(f"{section.digest} {section.heading}" for section in sections(original))
    record = f"<!-- translation of {name}; tools/translations.py --mark writes this:\n{lines}\n-->\n"
    return f"{RECORD.sub('', translation).rstrip()}\n\n{record}"


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command; return 1 if `--check` finds a stale section, 2 for an unknown page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--mark", nargs="+", metavar="PAGE", type=Path, default=[])
    arguments = parser.parse_args(words)
    originals = dict(pages(root))
    for path in arguments.mark:
        if (translation := path.absolute()) not in originals:
            print(f"{path}: expected a translation: {', '.join(page.relative_to(root).as_posix() for page in originals)}", file=sys.stderr)
            return 2
        mark(translation, originals[translation], root)
    is_stale = False
    for translation, original in originals.items():
        recorded = recorded_sections(translation.read_text(encoding="utf-8"))
        differences = stale_sections(recorded, sections(original.read_text(encoding="utf-8")))
        is_stale |= bool(differences)
        state = f"stale, compare {original.relative_to(root).as_posix()}" if differences else "up to date"
        print(f"{translation.relative_to(root).as_posix()}: {state}")
        for line in differences:
            print(f"  {line}")
    return int(is_stale and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
