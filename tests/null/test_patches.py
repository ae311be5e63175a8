"""Tests of several processes replace attributes by `support.patches.replace`, which refuses a name that does not exist."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.patches import replace

WORKERS = Path(__file__).resolve().parents[1] / "workers"
_PATCHED_PACKAGES = ("torchspore", "support", "torch", "mindspore")


def plain_patches(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, assigned attribute) of plain assignments to attributes of imported modules and classes."""
    tree = ast.parse(source)
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _PATCHED_PACKAGES:
            imported |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            imported |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _first_name(node) in imported:
            yield node.lineno, ast.unparse(node)


def _first_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def test_the_search_sees_each_form() -> None:
    source = "import torch\nfrom torchspore.graph import pipeline\npipeline.a = 1\npipeline.b, x = 2, 3\ntorch.c.d = 4\nself.e = 5\n"
    assert [name for _, name in sorted(plain_patches(source))] == ["pipeline.a", "pipeline.b", "torch.c.d"]


def test_no_test_of_several_processes_assigns_to_a_module() -> None:
    patches = [
        f"{path.name}:{line}: {name}: write replace(...)"
        for path in sorted(WORKERS.glob("*.py")) for line, name in plain_patches(path.read_text(encoding="utf-8"))
    ]
    assert not patches, "\n".join(patches)


def test_replace_refuses_a_name_that_does_not_exist() -> None:
    owner = SimpleNamespace(present=1)
    replace(owner, present=2)
    assert owner.present == 2
    with pytest.raises(AttributeError, match="SimpleNamespace has no 'absent': the name was changed or removed"):
        replace(owner, absent=3)
