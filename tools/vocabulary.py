#!/usr/bin/env python3
"""Counts vague names and sentence patterns that are not plain English, and compares the shares with a budget.

    tools/vocabulary.py                  prints the shares of each root and the files with the most findings
    tools/vocabulary.py --list PATH...   prints each finding with its file and line
    tools/vocabulary.py --check          fails if a share exceeds the budget in tools/vocabulary.json
    tools/vocabulary.py --write          lowers the budget to the shares of now; it never raises a budget

A name counts if one of its words is in VAGUE: such a word does not say what the value contains. Each identifier counts once: functions,
classes, arguments, assigned variables and attributes, modules. Prose is the text of docstrings, comments and Markdown pages, without
code blocks and generated pages. Shares are findings in 1,000 identifiers, and in 1,000 lines of prose. CONTRIBUTING.md states the rule.
"""
from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "tools/vocabulary.json"
ROOTS = ("src", "tools", "benchmarks", "docs", "README.md", "CONTRIBUTING.md")
VAGUE = frozenset(
    "found given own made place places one wanted kept left whole held written told said asked known lies lie within beside again same"
    .split())
PATTERNS = {
    "a sentence opens with a clause of What": re.compile(r"^\s*(?:[-*|#]\s*)?What (?!is|are|does|do|happens)\w+"),
    "a sentence opens with Whether": re.compile(r"(?:^|[.!?] )\s*Whether\b"),
    "is no X": re.compile(r"\b(?:is|are|was) no (?!longer|more|way|need|reason|such|one|point|different|less|better)\w+"),
    "stands in, there": re.compile(r"\bstands? (?:in|there|here|at|on|beside|below|above)\b"),
    "lies in, there": re.compile(r"\b(?:lies|lie) (?:there|here|in|on|beside|elsewhere|otherwise)\b"),
    "hangs on": re.compile(r"\bhangs? on\b"),
    "beside": re.compile(r"\bBeside\b"),
    "so many": re.compile(r"\b(?:over|of|as|by|in) so many\b"),
    "is told": re.compile(r"\b(?:tells? of|(?:is|are|was) told)\b"),
    "all else": re.compile(r"\ball else\b"),
}


@dataclass(frozen=True)
class Finding:
    """A vague name, or a sentence that matches a pattern."""

    path: Path
    line: int
    kind: str
    text: str


@dataclass
class Counts:
    """Identifiers and lines of prose of a root, and the findings among them."""

    names: int = 0
    lines: int = 0
    vague: int = 0
    unplain: int = 0

    def share_of_names(self) -> float:
        """Return the vague names in 1,000 identifiers."""
        return round(1000 * self.vague / max(self.names, 1), 1)

    def share_of_prose(self) -> float:
        """Return the findings in 1,000 lines of prose."""
        return round(1000 * self.unplain / max(self.lines, 1), 1)


def words_of(name: str) -> list[str]:
    """Return the words of an identifier in lower case: `is_leftPart` has is, left and part."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each function, class, argument, assigned variable and assigned attribute."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def prose_of_python(tree: ast.AST, text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each line of docstrings and comments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from enumerate(node.value.value.split("\n"), node.lineno)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def prose_of_markdown(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each line outside of code blocks."""
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, line


def files_of(root: Path) -> Iterator[Path]:
    """Yield the Python files and pages of a root, without generated reference pages and translations."""
    for path in [root] if root.is_file() else sorted(root.rglob("*")):
        is_hidden = any(part.startswith(".") for part in path.parts)
        if path.suffix in (".py", ".md") and not is_hidden and not {"reference", "zh"}.intersection(path.parts):
            yield path


def findings_of(path: Path, counts: Counts) -> Iterator[Finding]:
    """Yield the findings of a file and add its identifiers and lines to `counts`."""
    text = path.read_text(encoding="utf-8")
    prose = prose_of_markdown(text)
    if path.suffix == ".py":
        tree = ast.parse(text)
        prose = prose_of_python(tree, text)
        for line, name in [*identifiers(tree), (0, path.stem)]:
            counts.names += 1
            if VAGUE.intersection(words_of(name)):
                counts.vague += 1
                yield Finding(path, line, "name", name)
    for line, sentence in prose:
        counts.lines += 1
        for kind, pattern in PATTERNS.items():
            if pattern.search(sentence):
                counts.unplain += 1
                yield Finding(path, line, kind, sentence.strip())


def main() -> int:
    """Print the shares, or the findings; return 1 if `--check` finds a share above its budget."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--list", nargs="+", metavar="PATH")
    options.add_argument("--check", action="store_true")
    options.add_argument("--write", action="store_true")
    arguments = options.parse_args()
    if arguments.list:
        for path in (file for root in arguments.list for file in files_of(Path(root))):
            for finding in findings_of(path, Counts()):
                print(f"{finding.path}:{finding.line}: {finding.kind}: {finding.text[:120]}")
        return 0
    budget = json.loads(BUDGET.read_text(encoding="utf-8"))
    is_over = False
    for root in ROOTS:
        counts = Counts()
        for path in files_of(ROOT / root):
            for _ in findings_of(path, counts):
                pass
        shares = {"names": counts.share_of_names(), "prose": counts.share_of_prose()}
        for kind, share in shares.items():
            limit = budget[root][kind]
            if share > limit:
                is_over = True
                print(f"{root}: {share} {kind} in 1,000, the budget is {limit}. `tools/vocabulary.py --list {root}` shows them.")
            budget[root][kind] = min(limit, share)
        if not arguments.check:
            print(f"{root}: {shares['names']} of 1,000 identifiers ({counts.vague} of {counts.names}), "
                  f"{shares['prose']} of 1,000 lines of prose ({counts.unplain} of {counts.lines})")
    if arguments.write:
        BUDGET.write_text(json.dumps(budget, indent=1) + "\n", encoding="utf-8")
    return int(is_over and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
