"""The scripts of benchmarks/ name only what exists in each other. Each runs for minutes, so that the quick tests read them as text."""
from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}


def names_defined_in(path: Path) -> set[str]:
    """The names that a script's statements at module level bind."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def names_read_from_others(path: Path) -> set[tuple[str, str]]:
    """Pairs of another script and a name that this script reads from it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules: dict[str, str] = {}
    pairs: set[tuple[str, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names if alias.name in SCRIPTS}
        elif isinstance(node, ast.ImportFrom) and node.module in SCRIPTS:
            pairs |= {(node.module, alias.name) for alias in node.names}
    return pairs | {
        (modules[node.value.id], node.attr)
        for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules}


@pytest.mark.parametrize("script", SCRIPTS)
def test_names_of_other_scripts_exist(script: str) -> None:
    missing = {(other, name) for other, name in names_read_from_others(SCRIPTS[script]) if name not in names_defined_in(SCRIPTS[other])}
    assert not missing


def test_each_benchmark_gets_the_options_that_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    words = ["--oracle", "python", "--jax", "python", "--quick", "--rounds", "3", "--zoo", "models"]
    expected = {
        "graph": words[:-2], "whole": ["--oracle", "python", "--rounds", "2"],
        "whole_zoo": ["--oracle", "python", "--rounds", "2", "--zoo", "models"], "context": ["--oracle", "python"],
        "interop": ["--rounds", "3"], "zero": ["--ranks", "2"], "waiting": ["--rounds", "2"], "cache": ["branches"],
        "mlp": ["--oracle", "python", "--rounds", "3", "--no-compile"],
    }
    report = importlib.import_module("report")
    assert {name: report._options_of(name, words) for name in expected} == expected


def test_each_benchmark_of_a_page_exists_and_has_a_single_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    report = importlib.import_module("report")
    names = [name for page in report.PAGES.values() for name in page]
    assert len(names) == len(set(names)) and set(names) <= set(SCRIPTS)
    for page in report.PAGES:
        assert {report.page_of(part.partition("-")[0]) for part in report._parts(page)} == {page}
