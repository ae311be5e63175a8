"""Pages that describe the code name files that exist."""
from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guides").glob("*.md"),
                *(ROOT / "docs/concept").glob("*.md")])
FILES = [path.relative_to(ROOT).as_posix() for folder in ("src", "tests", "tools", "benchmarks", "docs", "examples")
         for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".cpp", ".sh", ".json", ".md", ".txt")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = set(re.findall(r"`((?:\w+/)+[\w.]+\.(?:py|cpp|sh|json))`", page.read_text(encoding="utf-8")))
    named -= {name for name in named if name.startswith("rank_0/") or name == "docs/gpu.json"}          # files that a program writes
    missing = sorted(name for name in named if not any(file == name or file.endswith(f"/{name}") for file in FILES))
    assert not missing, f"{page.name} names files that do not exist: {', '.join(missing)}"


SCRIPTS = sorted(path.relative_to(ROOT).as_posix() for folder in ("tools", "benchmarks") for path in (ROOT / folder).glob("*.py")
                 if "__main__" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_runs_by_its_path_alone(script: str) -> None:
    """README and the pages write `tools/versions.py --list`, without an interpreter."""
    assert (ROOT / script).read_text(encoding="utf-8").startswith("#!/usr/bin/env python3\n"), "its first line is no shebang of Python"
    assert os.access(ROOT / script, os.X_OK), f"git update-index --chmod=+x {script}"


def test_modules_that_options_name_exist() -> None:
    from torchspore.context.options import OPTIONS

    names = {name.partition(":")[0] for option in OPTIONS.values() for name in (option.effect, option.read_by) if name}
    missing = sorted(name for name in names if not any(
        (ROOT / "src/torchspore" / name.replace(".", "/")).with_suffix(suffix).exists() for suffix in (".py", "")))
    assert not missing


def test_the_summary_of_the_benchmarks_is_derived_from_their_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import summary  # type: ignore[import-not-found]
    text = summary.PAGE.read_text(encoding="utf-8")
    assert summary.with_summary(text) == text
    assert summary.chart(summary.comparisons(text)) == summary.CHART.read_text(encoding="utf-8")
