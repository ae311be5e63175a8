"""Figures of README.md and README.zh-CN.md are those of the pages and files that commands of the repository write."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.manifest import read_project

ROOT = Path(__file__).resolve().parents[2]
READMES = ("README.md", "README.zh-CN.md")


def text_of(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


def row_of(readme: str, command: str) -> str:
    """Return the row of the README's table whose last column names this command."""
    (row,) = [line for line in text_of(readme).splitlines() if line.startswith("| ") and command in line.rpartition(" | ")[2]]
    return row


def ratio(net: str, contender: str) -> float:
    """Return the median ratio to torch eager of a training step in docs/performance.md."""
    table = re.search(rf"^## {net}[^\n]*, training step\n(.*?)(?=^## |^<!--|\Z)", text_of("docs/performance.md"), re.S | re.M)
    assert table is not None, net
    (row,) = [line for line in table[1].splitlines() if line.startswith(f"| {contender} |")]
    return float(row.split("|")[3].split()[0])


@pytest.mark.parametrize("readme", READMES)
def test_speed(readme: str) -> None:
    """`benchmarks/graph.py` measures, `benchmarks/report.py` writes docs/performance.md."""
    row = row_of(readme, "make bench")
    without_names = re.sub(r"MindSpore 2\.10|LeNet-5|\bO1\b|\bO0\b", "", row, flags=re.ASCII)
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", without_names)]
    gpt, lenet = "GPT of four layers", "LeNet-5"
    expected = [ratio(gpt, "torchspore O1"), ratio(lenet, "torchspore O0"), ratio(gpt, "MindSpore 2.10 graph")]
    assert numbers == [*expected, round(ratio(lenet, "MindSpore 2.10 graph"))], row


@pytest.mark.parametrize("readme", READMES)
def test_complete_programs(readme: str) -> None:
    """`tools/whole_programs.py --write` writes docs/reference/programs.md."""
    counted = re.search(r"(\d+) programs of .*?; (\d+) of (\d+) runs", text_of("docs/reference/programs.md"), re.S)
    assert counted is not None
    programs, equal, runs = counted.groups()
    row = row_of(readme, "tools/whole_programs.py")
    assert sorted(re.findall(r"\d+", row)) == sorted([programs, equal, runs]), row


@pytest.mark.parametrize("readme", READMES)
def test_packages(readme: str) -> None:
    """`tools/packages --write` writes docs/packages.md."""
    names = re.search(r"\[([^]]+)\]\(docs/(?:zh/)?packages\.md\)", text_of(readme))
    assert names is not None
    assert {*re.split(r", |、", names[1])} <= {*re.findall(r"^## (\w+)$", text_of("docs/packages.md"), re.M)}


@pytest.mark.parametrize("readme", READMES)
def test_required_versions(readme: str) -> None:
    project = read_project()
    torch = re.search(r"torch>=([\d.]+)", " ".join(project["dependencies"]))
    line = next(line for line in text_of(readme).splitlines() if line.startswith("pip install ."))
    assert torch is not None
    assert re.findall(r"\d+\.\d+", line) == [project["requires-python"].removeprefix(">="), torch[1]]


@pytest.mark.parametrize("readme", READMES)
def test_minutes_of_the_tests(readme: str) -> None:
    minutes = re.search(r"`make test` takes (\d+) minutes", text_of("CONTRIBUTING.md"))
    line = next(line for line in text_of(readme).splitlines() if line.startswith("make test"))
    assert minutes is not None and re.findall(r"\d+", line) == [minutes[1]]
