#!/usr/bin/env python3
"""Creates the pictures of the documentation in English and Chinese: pages in headless Chromium, and terminal sessions.

    tools/pictures.py                    writes docs/guides/images/{graphs-*,trace,report,curves}.png, {terminal,explain}.svg, and zh/ with
                                         the Chinese ones of graphs-*, trace, terminal and explain
    tools/pictures.py --only terminal    writes those of one kind: graphs, pages or terminal
    tools/pictures.py --check            writes nothing; fails if a new picture has another size or shows another text

Numbers, which differ between runs, are not compared. The charts are written by benchmarks/summary.py and benchmarks/predicted.py.
"""
from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import picture_graphs
import picture_pages
import picture_terminal
from picture_graphs import ROOT, chromium
from PIL import Image

IMAGES = ROOT / "docs" / "guides" / "images"
LANGUAGES = {"en": IMAGES, "zh": IMAGES / "zh"}
KINDS = ("graphs", "pages", "terminal")
MACHINE = re.compile("^(environment|versions|machine|device)|profile/|/tmp/|/python")
"""A line of a page about the machine, with its paths and names."""
FOLDER = re.compile(r"/tmp/pictures-\w*")
"""A temporary folder, whose end a narrow column may cut off."""
MOST_BYTES = 1.5
"""A new picture may be this many times as large as the one that git has, or as small."""


def write_pictures(kind: str, language: str, into: Path) -> list[Path]:
    """Write the pictures of a kind in a language into a folder. Return their paths."""
    into.mkdir(parents=True, exist_ok=True)
    before = os.environ.get("TORCHSPORE_LANG")
    os.environ["TORCHSPORE_LANG"] = language
    try:
        with tempfile.TemporaryDirectory(prefix="pictures-") as folder:
            if kind == "terminal":
                return picture_terminal.write(into, Path(folder))
            browser = chromium.executable()
            if browser is None:
                raise SystemExit("no Chromium is found.\n\nhint: install one (`make browser` on Debian), or name it in CHROMIUM.")
            if kind == "graphs":
                return picture_graphs.write(into, Path(folder), browser)
            return picture_pages.write(into, Path(folder), browser, ("trace",) if language == "zh" else tuple(picture_pages.PAGES))
    finally:
        os.environ.pop("TORCHSPORE_LANG")
        if before is not None:
            os.environ["TORCHSPORE_LANG"] = before


def content(path: Path) -> tuple[tuple[int, int] | str, list[str]]:
    """Return the size of a picture in pixels, and its lines of text without numbers."""
    if path.suffix == ".svg":
        return "", [FOLDER.sub("/tmp", line) for line in picture_terminal.shown_lines(path.read_text(encoding="utf-8"))]
    with Image.open(path) as image:
        image.load()
        lines = str(image.info.get("Content", "")).splitlines()
        return image.size, [line for line in lines if not MACHINE.search(line)]


def differences(new: Path, committed: Path) -> Iterator[str]:
    """Yield a line for each difference of a new picture from the one that git has."""
    name = committed.relative_to(ROOT)
    if not committed.exists():
        yield f"{name} is absent"
        return
    (new_size, new_lines), (old_size, old_lines) = content(new), content(committed)
    if new_size != old_size:
        yield f"{name} has {old_size} pixels, a new one {new_size}"
    ratio = new.stat().st_size / committed.stat().st_size
    if not 1 / MOST_BYTES <= ratio <= MOST_BYTES:
        yield f"{name} has {committed.stat().st_size} bytes, a new one {new.stat().st_size}"
    yield from (f"{name} lacks: {line}" for line in new_lines if line not in old_lines)
    yield from (f"{name} shows, a new one not: {line}" for line in old_lines if line not in new_lines)


def check(kind: str, language: str) -> list[str]:
    """Return the differences of new pictures of a kind in a language from those that git has."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_pictures(kind, language, Path(folder))
        return [line for path in paths for line in differences(path, LANGUAGES[language] / path.name)]


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if `--check` sees a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--only", choices=KINDS, help="the kind of pictures")
    arguments = parser.parse_args(words)
    problems = []
    for kind in [arguments.only] if arguments.only else KINDS:
        for language, folder in LANGUAGES.items():
            if arguments.check:
                problems += check(kind, language)
            else:
                print(*(f"{path}: {path.stat().st_size // 1024} KB" for path in write_pictures(kind, language, folder)), sep="\n")
    for line in problems:
        print(line, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
