"""The tool that runs the tests with other versions, as far as it installs nothing, and the page of its results."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
import versions
from generators import versions_page

ROOT = Path(__file__).resolve().parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_calls_of_pytest_are_those_of_make_test() -> None:
    assert versions.calls((ROOT / "Makefile").read_text(encoding="utf-8")) == [["-q", "-m", "not slow and not gpu"], ["-q", "-m", "sample"]]


def test_the_combinations_have_the_oldest_versions_and_each_extra() -> None:
    rows = versions.COMBINATIONS
    oldest = [re.search(rf'{name}>=([\d.]+)"', PROJECT)[1] for name in ("torch", "numpy")]  # type: ignore[index]
    assert rows["oldest"].python == re.search(r'requires-python = ">=([\d.]+)"', PROJECT)[1]  # type: ignore[index]
    assert rows["oldest"].torch.startswith(oldest[0]) and rows["oldest"].numpy.startswith(f"numpy=={oldest[1]}")
    assert not rows["oldest"].extras
    assert set(rows["newest"].extras) == set(versions.EXTRAS)
    optional = set(re.findall(r"^(\w+) = \[", PROJECT.partition("[project.optional-dependencies]")[2].partition("\n[")[0], re.MULTILINE))
    assert optional - {"dev", "tools"} == set(versions.EXTRAS)
    for extra in versions.EXTRAS:
        assert set(rows[f"no-{extra}"].extras) == set(versions.EXTRAS) - {extra}
        assert all((ROOT / file).exists() for file in rows[f"no-{extra}"].files)
    assert all((ROOT / file).exists() for file in versions.SAMPLE_FILES)


def test_what_is_installed() -> None:
    alone = versions._requirements(versions.COMBINATIONS["oldest"], Path("/tree"))
    assert alone == ["torch==2.11.0", "numpy==1.26.4", "pytest>=8", "pytest-xdist>=3.6", "--editable", "/tree"]
    full = versions._requirements(versions.COMBINATIONS["no-video"], Path("/tree"))
    assert full[-1] == "/tree[completion,export,encryption,server,summary,text]" and any(text.startswith("mypy") for text in full)
    assert not any(text.startswith("torchspore") for text in full)


def test_outcomes_are_read_from_the_report(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.unit.test_a" name="good"/>'
        '<testcase classname="tests.unit.test_a" name="bad"><failure message="no"/></testcase>'
        '<testcase classname="tests.unit.test_a" name="broken"><error message="setup"/></testcase>'
        '<testcase classname="tests.unit.test_a" name="left"><skipped message="needs av"/></testcase>'
        '<testcase name="collection"><error message="import"/></testcase></testsuite></testsuites>')
    assert versions._outcomes(report) == {
        "tests/unit/test_a.py::good": ("passed", ""), "tests/unit/test_a.py::bad": ("failed", "no"),
        "tests/unit/test_a.py::broken": ("failed", "setup"), "tests/unit/test_a.py::left": ("skipped", "needs av"),
        ".py::collection": ("failed", "import"),
    }


def test_an_interpreter_that_is_not_there_is_named() -> None:
    with pytest.raises(RuntimeError) as caught:
        versions._interpreter("3.99", None)
    assert str(caught.value) == "there is no Python 3.99 here: tools/debian_python.sh 3.99 .versions/python3.99 may bring it"


def part(passed: int, *failed: str, commit: str = "abc", **skipped: int) -> dict[str, object]:
    return {"passed": passed, "failed": list(failed), "skipped": skipped, "seconds": 60, "cpu_seconds": 120,
            "commit": commit, "date": "2026-11-28"}


def test_the_page_counts_all_parts_or_the_sample(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(versions_page, "RESULTS", tmp_path / "versions.json")
    monkeypatch.setattr(versions_page, "PAGE", tmp_path / "versions.md")
    chosen = {"python": "3.12.1", "torch": "2.14.1", "numpy": "2.5.5"}
    entry = {"versions": chosen, "extras": [], "complete": ["1/2", "2/2"], "install_seconds": 9,
             "parts": {"sample": part(5, "tests/a.py::b"), "1/2": part(10)}}
    versions_page.save({"x": entry})
    page = (tmp_path / "versions.md").read_text(encoding="utf-8")
    assert "| x | 3.12.1 | 2.14.1 | 2.5.5 | none | sample | 5 | 1 | 0 | 1 | 2 | abc | 2026-11-28 |" in page
    assert "| x | `tests/a.py::b` |" in page
    entry["parts"]["2/2"] = part(20, commit="def", absent=3)  # type: ignore[index]
    versions_page.save({"x": entry})
    page = (tmp_path / "versions.md").read_text(encoding="utf-8")
    assert "| x | 3.12.1 | 2.14.1 | 2.5.5 | none | all | 30 | 0 | 3 | 2 | 4 | abc, def | 2026-11-28 |" in page
    assert "## Failures\n\nNone." in page and "| absent | x (3) |" in page
    entry["parts"]["2/2"]["repeated"] = "fed"  # type: ignore[index]
    versions_page.save({"x": entry})
    assert "| abc, def (fed) |" in (tmp_path / "versions.md").read_text(encoding="utf-8")


def test_failures_are_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tree = tmp_path / "x" / "tree"
    for file in ("tests/test_a.py", "tests/test_b.py"):
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).touch()
    (tree / "Makefile").write_text("test:\n\tpython -m pytest -q -n 2 -m quick\n", encoding="utf-8")
    calls: list[list[str]] = []

    def run(python: Path, tree: Path, words: list[str], workers: int, output: Path) -> dict[str, tuple[str, str]]:
        calls.append(words)
        return {"tests/test_a.py::passes": ("passed", ""), "tests/test_b/TestB.py::fails": ("failed", "no"),
                "tests/test_b.py::skips": ("skipped", "absent"), "tests/test_b.py::others": ("passed", "")}

    monkeypatch.setattr(versions, "WORK", tmp_path)
    monkeypatch.setattr(versions, "_pytest", run)
    row = versions.Combination("x", "3.12", "2.14.1", "numpy")
    before = part(10, "tests/test_a.py::passes", "tests/test_b/TestB.py::fails", "tests/test_b.py::skips", "tests/test_b.py::crashes",
                  "pytest -q ended with 3")
    after = versions._repeat_failed(row, before, Path("python"), 1)
    assert calls == [["-q", "-m", "quick", "tests/test_a.py::passes", "tests/test_b.py::TestB::fails", "tests/test_b.py::crashes",
                      "tests/test_b.py::skips"]]
    assert (after["passed"], after["failed"]) == (11, ["tests/test_b.py::crashes", "tests/test_b/TestB.py::fails"])
    assert after["skipped"] == {"absent": 1}
    with pytest.raises(SystemExit, match="x: the stored failures name no tests of this commit; --again repeats whole parts"):
        versions._repeat_failed(row, part(10, "pytest -q ended with 3"), Path("python"), 1)
