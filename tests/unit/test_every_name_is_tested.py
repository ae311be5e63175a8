"""Every public callable that is offered is used by a parity case or a unit test: a name that only resolves is worth nothing."""
from __future__ import annotations

import ast
import contextlib
import importlib
import textwrap
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from torchspore.public_names import listing

TESTS = Path(__file__).resolve().parent.parent
USING = ("null", "parity", "unit", "scripts", "workers", "gpu")
MODULES = (
    "mindspore",
    "mindspore.common.initializer",
    "mindspore.dataset",
    "mindspore.dataset.audio",
    "mindspore.dataset.text",
    "mindspore.dataset.transforms",
    "mindspore.dataset.vision",
    "mindspore.mint",
    "mindspore.mint.distributed",
    "mindspore.mint.linalg",
    "mindspore.mint.nn",
    "mindspore.mint.nn.functional",
    "mindspore.mint.optim",
    "mindspore.mint.special",
    "mindspore.nn",
    "mindspore.nn.probability.bijector",
    "mindspore.nn.probability.distribution",
    "mindspore.numpy",
    "mindspore.ops",
    "mindspore.train",
)


@cache
def used_names() -> frozenset[str]:
    """Every name that a test reads off a module or an object, or calls; a word in a text counts in no test but a table of names."""
    names: set[str] = set()
    for folder in USING:
        for path in (TESTS / folder).rglob("*.py"):
            if path != Path(__file__).resolve():
                names |= names_used_in(ast.parse(path.read_text(encoding="utf-8")))
    for path in TESTS.glob("*.py"):
        names |= names_used_in(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(names)


def names_used_in(tree: ast.Module) -> set[str]:
    """The names that one test file uses.

    `ops.relu` and `Conv2d(...)` are uses; importing a name is none. Where a file looks names up by `getattr(home, name)` with a
    variable or by `getattr(home, f"{name}Dataset")`, or runs a program that stands in it as text, the texts that are nothing but names,
    or are such programs, count too.
    """
    names: set[str] = set()
    texts: list[str] = []
    endings: list[str] = []
    looks_up = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            if isinstance(node.args[1], ast.Constant):
                names.add(node.args[1].value)
            looks_up |= not isinstance(node.args[1], ast.Constant)
            if isinstance(node.args[1], ast.JoinedStr) and isinstance(node.args[1].values[-1], ast.Constant):
                endings.append(node.args[1].values[-1].value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    for text in texts:
        if looks_up and all(word.isidentifier() for word in text.split()):
            names |= set(text.split())
            names |= {text + ending for ending in endings}
        elif "import mindspore" in text or "from mindspore" in text:
            with contextlib.suppress(SyntaxError):
                names |= names_used_in(ast.parse(textwrap.dedent(text)))
    return names


def test_a_word_in_a_text_is_no_use() -> None:
    assert names_used_in(ast.parse("from mindspore.ops import erf\ndef test():\n    'tan of sin'\n    assert 'cos'")) == set()
    assert names_used_in(ast.parse("ops.relu(x); sin(x); getattr(ops, 'cos')")) >= {"relu", "sin", "cos"}


@pytest.mark.parametrize("module", MODULES)
def test_every_callable_is_used(module: str) -> None:
    home = importlib.import_module(module)
    names = sorted(listing.offered().get(module, ()))
    callables = [name for name in names if callable(getattr(home, name)) and not isinstance(getattr(home, name), ModuleType)]
    unused = [name for name in callables if name not in used_names()]
    assert not unused, f"{len(unused)} of {len(callables)} names of {module} have no test: {' '.join(unused)}"
