"""Every public callable that is offered is used by a parity case or a unit test: a name that only resolves is worth nothing."""
from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from torchspore.names import listing

TESTS = Path(__file__).resolve().parent.parent
USING = ("null", "parity", "unit", "scripts", "workers", "gpu")
MODULES = (
    "mindspore",
    "mindspore.common.initializer",
    "mindspore.dataset",
    "mindspore.dataset.transforms",
    "mindspore.dataset.vision",
    "mindspore.nn",
    "mindspore.ops",
    "mindspore.train",
)


@cache
def used_words() -> frozenset[str]:
    """Every identifier that tests use, and every word of their texts: tables of cases name what they call."""
    words: set[str] = set()
    for folder in USING:
        for path in (TESTS / folder).rglob("*.py"):
            if path != Path(__file__).resolve():
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    words |= words_of(node)
    return frozenset(words)


def words_of(node: ast.AST) -> set[str]:
    """The words of one node of a test's syntax tree."""
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.ImportFrom):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 4000:
        return set(re.findall(r"\w+", node.value))
    return set()


@pytest.mark.parametrize("module", MODULES)
def test_every_callable_is_used(module: str) -> None:
    home = importlib.import_module(module)
    names = sorted(listing.offered().get(module, ()))
    callables = [name for name in names if callable(getattr(home, name)) and not isinstance(getattr(home, name), ModuleType)]
    unused = [name for name in callables if name not in used_words()]
    assert not unused, f"{len(unused)} of {len(callables)} names of {module} have no test: {' '.join(unused)}"
