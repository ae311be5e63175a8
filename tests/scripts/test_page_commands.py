"""The commands of README.md, docs/commands.md and the guides: all have known options, and those of pages without a test of their own run.

`test_guide_commands.py`, `test_graph_guide.py`, `test_debugging_guide.py`, `test_profiling_guide.py` and `test_documents.py` run the
others, `test_file_commands.py` those that read the files of other runs.
"""
from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.page_commands import PAGES, blocks_of, commands_of
from support.processes import Run, environment

from torchspore.cli import grammar

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "import mindspore as ms\nprint(float(ms.ops.ones((2, 2)).sum()))\n"
SEPARATE = ("workers", "msrun", "doctor", "--device", "--simulate", "--report")
"""Words of commands that need a new process: a warm one has read the device before it runs the command."""
RUN = {
    "README.md": ("run", "explain", "check", "workers", "doctor"),
    "docs/guides/start.md": ("run", "check"),
    "docs/guides/install.md": ("doctor", "env"),
    "docs/guides/context.md": ("run",),
    "docs/guides/devices.md": ("run",),
    "docs/commands.md": ("run", "explain", "workers", "msrun", "check", "context", "env", "completion", "ckpt"),
    "docs/guides/distribution.md": ("run", "workers", "msrun", "plan", "ckpt"),
}
"""The commands that run, by page; `test_file_commands.py` runs those that read a model of a library or files of another run."""
CHECKPOINTS = """
import mindspore as ms
net = ms.nn.Dense(2, 3)
ms.save_checkpoint(net, "net.ckpt")
for name in ("net.dcp", "last.dcp"):
    ms.save_checkpoint(net, name, format="dcp")
"""


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_are_known(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in commands_of(page):
        parser = grammar.command_parser(words[0])
        if parser.runs_program:
            assert grammar.split_program(parser, words[1:])[1], f"torchspore {shlex.join(words)}: no program"
        else:
            parser.parse_args(words[1:])


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_in_blocks_that_a_test_reads(page: str) -> None:
    """An indented block is not read, and a block without a language shows output below `$ command`."""
    text = "".join(re.split(r"^```.*?^```", (ROOT / page).read_text(encoding="utf-8"), flags=re.S | re.M))
    assert not re.findall(r"^ +(?:[A-Z_]+=\S+ )*(?:torchspore|python -m torchspore) [a-z].*", text, re.M)


def write_project(page: str, folder: Path) -> None:
    """Write the files that the commands name: the programs of the page, or a small one."""
    for name in ("train.py", "my_project/train.py", "src/train.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(PROGRAM, encoding="utf-8")
    cell = {"cell_type": "code", "source": PROGRAM.splitlines(keepends=True), "metadata": {}, "outputs": []}
    (folder / "tutorial.ipynb").write_text(json.dumps({"nbformat": 4, "cells": [cell]}), encoding="utf-8")
    for language, text in blocks_of(page):
        name = re.match(r"# (\w+\.py)\n", text) if language == "python" else None
        if name is not None:
            (folder / name[1]).write_text(text, encoding="utf-8")


def can_run(words: list[str], folder: Path) -> bool:
    """Return whether the files that a command reads exist, and it needs neither a second machine nor a model of a library."""
    files = words[2:3] if words[0] == "ckpt" else [word for word in words if re.search(r"\.(py|ipynb)$|/$", word)]
    return all((folder / name).exists() for name in files) and not {"--node_rank=0", "--like", "--strategy"} & {*words}


@pytest.mark.slow
@pytest.mark.parametrize("page", [
    page if page == "docs/guides/distribution.md" else pytest.param(page, marks=pytest.mark.sample) for page in RUN
])
def test_commands_run(page: str, warm: Callable[..., Run], run: Callable[..., Run], tmp_path: Path) -> None:
    write_project(page, tmp_path)
    if "ckpt" in RUN[page]:
        (tmp_path / "save.py").write_text(CHECKPOINTS, encoding="utf-8")
        assert warm("save.py", cwd=tmp_path).code == 0
    executed = set()
    for words in commands_of(page):
        if words[0] not in RUN[page] or not can_run(words, tmp_path):
            continue
        ended = run(*words, timeout=400) if any(word in words for word in SEPARATE) else warm(*words, cwd=tmp_path)
        assert ended.code == 0, f"torchspore {shlex.join(words)}: {ended.code}\n{ended.out}{ended.err}"
        executed.add(words[0])
    assert executed == set(RUN[page])


@pytest.mark.slow
@pytest.mark.sample
def test_the_plugin_runs_a_suite(tmp_path: Path) -> None:
    assert "pytest -p torchspore.pytest\n" in (ROOT / "docs/guides/start.md").read_text(encoding="utf-8")
    (tmp_path / "test_version.py").write_text("import mindspore\ndef test_it(): assert mindspore.__torchspore__\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "torchspore.pytest", "-q", str(tmp_path)]
    ended = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert ended.returncode == 0 and "1 passed" in ended.stdout, ended.stdout + ended.stderr
