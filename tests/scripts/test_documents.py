"""The Python blocks of the README and of the guides run, those of a page one after another."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import server_jobs
from support.processes import Run

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if ROOT / "docs/zh" not in path.parents)]
CHECKED_ELSEWHERE = {"docs/guides/debugging.md", "docs/guides/older-programs.md", "docs/guides/parameter-server.md"}
"""Pages with a test of their own: programs that fail, as they should, and one of several processes."""
PAGES = {
    name: blocks
    for path in DOCUMENTS
    if (name := str(path.relative_to(ROOT))) not in CHECKED_ELSEWHERE
    and (blocks := re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M))
}


def test_every_python_block_belongs_to_a_page_that_runs() -> None:
    """Blocks in lists are indented, and blocks in Chinese pages are those of the English pages (tests/null/test_translations.py)."""
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in DOCUMENTS}
    pages = {name for name, text in texts.items() if re.search(r"^ *(```|~~~) *\{?\.?(py|python)\b", text, re.M)}
    assert pages == {*PAGES, *CHECKED_ELSEWHERE}
    for name in PAGES:
        assert len(re.findall(r"^ *(?:```|~~~).*\bpy", texts[name], re.M)) == len(PAGES[name]) + texts[name].count("\n```ipython\n"), name


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run_one_after_another(page: str, warm: Callable[..., Run], tmp_path: Path) -> None:
    for block in PAGES[page]:
        named = re.match(r"# (\w+\.py)\n", block)
        if named:                             # later blocks may read it
            (tmp_path / named.group(1)).write_text(block, encoding="utf-8")
    (tmp_path / "blocks.py").write_text("\n".join(PAGES[page]), encoding="utf-8")
    ended = warm("blocks.py", cwd=tmp_path)
    assert ended.code == 0, ended.err


@pytest.mark.slow
@pytest.mark.sample
def test_the_commands_of_the_parameter_server_run(run: Callable[..., Run], tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    text = (ROOT / "docs" / "guides" / "parameter-server.md").read_text(encoding="utf-8")
    program = re.search(r"^```python\n(.*?)^```", text, re.S | re.M)
    assert program is not None and "torchspore workers -n 2 --servers 2 server_job.py" in text
    (tmp_path / "server_job.py").write_text(program[1], encoding="utf-8")
    ended = run("workers", "-n", "2", "--servers", "2", "--show", "all", "server_job.py", cwd=tmp_path)
    assert ended.code == 0, ended.out + ended.err
    values = re.findall(r"worker [01]: ([0-9.]+)", ended.out)
    assert len(values) == 2 and values[0] == values[1]
    commands = re.search(r"^```sh\n(export MS_WORKER_NUM.*?)^```", text, re.S | re.M)
    assert commands is not None
    script = commands[1].replace("torchspore run", f"{sys.executable} -m torchspore run").replace("8118", str(server_jobs.free_port()))
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("TORCHSPORE_", "MS_"))}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=180)
    assert "worker 0: " in done.stdout, done.stdout + done.stderr


def test_the_readme_shows_the_output_of_its_program(warm: Callable[..., Run], tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^```\n\$ torchspore run train.py\n(.*?\n)```", text, re.S | re.M)
    (tmp_path / "train.py").write_text(PAGES["README.md"][0], encoding="utf-8")
    ended = warm("train.py", cwd=tmp_path)
    assert shown is not None and ended.out == shown[1], ended.out + ended.err


def test_links_lead_somewhere() -> None:
    names = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/commands.md", "docs/architecture.md", "docs/reference/policy.md")
    pages = [ROOT / name for name in names]
    for path in [*DOCUMENTS, *pages]:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.relative_to(ROOT)}: {target}"
