"""The commands of guides run in the order of their page, in one folder, and print the lines that the page shows.

A Python block whose first line is `# name.py` becomes that file, a block of `ipython` a cell of `tutorial.ipynb`. A block of `text` below
a block of `sh` holds lines of its output; `…` stands for any text. `# exit code 1` behind a command says how it ends.
"""
from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.manifest import read_project
from support.processes import Run

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guides"
PAGES = ("checkpoints", "older-programs", "notebooks", "port", "troubleshooting")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)
COMMAND = re.compile(r"^((?:[A-Z_]+=\S+ )*)torchspore ([^#\n]*)(?:# exit code (\d+))?", re.M)
OUTSIDE = ("pip install ", "python -m pip install ", "git clone ", "make native-wheel", "docker ", "source ", "jupyter ", "pytest ", "cd ")
"""Commands that no test runs: they need a network, another machine or an interactive program."""


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Return the language and the text of each code block of a guide."""
    return BLOCK.findall((GUIDES / f"{page}.md").read_text(encoding="utf-8"))


def commands_of(block: str) -> Iterator[tuple[dict[str, str], list[str], int]]:
    """Yield (environment, arguments of torchspore, exit code) of each command of a block."""
    for line in block.splitlines():
        match = COMMAND.match(line)
        if match is None:
            assert not line or line.startswith(("#", *OUTSIDE)), f"no test runs this command: {line}"
            continue
        environment = dict(word.split("=", 1) for word in match[1].split())
        yield environment, shlex.split(match[2]), int(match[3] or 0)


def write_files(blocks: list[tuple[str, str]], folder: Path) -> None:
    """Write the programs and the notebook of a page."""
    for language, text in blocks:
        name = re.match(r"# ([\w-]+\.py)\n", text) if language == "python" else None
        if name is not None:
            (folder / name[1]).write_text(text, encoding="utf-8")
    cells = [text for language, text in blocks if language == "ipython"]
    code = [{"cell_type": "code", "source": text.splitlines(keepends=True), "metadata": {}, "outputs": []} for text in cells]
    (folder / "tutorial.ipynb").write_text(json.dumps({"nbformat": 4, "cells": code}), encoding="utf-8")


def assert_shown(text: str, output: str) -> None:
    """Check that each line of a block of `text` is in the output; spaces may differ."""
    compact = " ".join(output.split())
    for line in filter(None, map(str.strip, text.splitlines())):
        pattern = ".*?".join(re.escape(" ".join(part.split())) for part in line.split("…"))
        assert re.search(pattern, compact), f"not printed: {line}\n{output}"


@pytest.mark.slow
@pytest.mark.sample
@pytest.mark.parametrize("page", PAGES)
def test_commands_print_what_the_page_shows(page: str, warm: Callable[..., Run], run: Callable[..., Run], tmp_path: Path) -> None:
    blocks = blocks_of(page)
    write_files(blocks, tmp_path)
    if page == "checkpoints":                                    # its commands use files that its Python blocks write
        (tmp_path / "blocks.py").write_text("\n".join(text for language, text in blocks if language == "python"), encoding="utf-8")
        assert warm("blocks.py", cwd=tmp_path).code == 0
    output = ""
    for language, text in blocks:
        if language == "sh":
            output = ""
            for environment, arguments, code in commands_of(text):
                # A warm process has read the device before it runs the command.
                ended = run(*arguments) if "--device" in arguments else warm(*arguments, cwd=tmp_path, **environment)
                assert ended.code == code, f"torchspore {shlex.join(arguments)}: {ended.code}\n{ended.out}{ended.err}"
                output += ended.out + ended.err
        elif language == "text":
            assert_shown(text, output)


def test_every_extra_is_described_in_the_installation_guide() -> None:
    project = read_project()
    text = (GUIDES / "install.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `(\w+)` \|", text, re.M))
    assert described == set(project["optional-dependencies"]) - {"dev", "tools"}
    named = {name for names in re.findall(r"torchspore\[([\w,]+)\]", text) for name in names.split(",")}
    assert named <= described
    minimum = re.search(r"torch>=([\d.]+)", " ".join(project["dependencies"]))
    assert minimum is not None and f"torch {minimum[1]}" in text and project["requires-python"].removeprefix(">=") in text


def test_commands_of_the_installation_guide_are_known() -> None:
    for language, text in blocks_of("install"):
        if language == "sh":
            assert all(arguments[0] in ("doctor", "env", "run") for _, arguments, _ in commands_of(text))


def test_troubleshooting_answers_twenty_questions() -> None:
    text = (GUIDES / "troubleshooting.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^### ", text, re.M)) == 20
