"""What `torchspore check` and the reference say of a name is what `import` says."""
from __future__ import annotations

import importlib

import pytest

from torchspore.public_names import listing, lookup


def is_there(module: str, name: str) -> bool:
    """Whether a program can import the name."""
    try:
        scope: dict[str, object] = {}
        exec(f"from {module} import {name}", scope)
    except ImportError:
        return False
    return True


def names(step: int) -> list[tuple[str, str]]:
    """Every so many-th public name of MindSpore 2.10."""
    results = sorted((module, name) for module, names in listing.mindspore().items() for name in names)
    return results[::step]


def wrong(step: int) -> list[str]:
    return [
        f"{module}.{name}" for module, name in names(step)
        if lookup.is_offered(f"{module}.{name}") != is_there(module, name)
    ]


def test_a_sample_of_names() -> None:
    assert len(names(400)) > 30
    assert wrong(400) == []


@pytest.mark.slow
def test_every_name() -> None:
    assert wrong(1) == []


def test_what_is_one_file_here_may_have_modules_there() -> None:
    for path in ("mindspore.ops.composite.multitype_ops.zeros_like_impl", "mindspore.ops.composite.base", "mindspore.nn.optim.adam"):
        assert importlib.import_module(path)
        assert lookup.is_offered(path)
    with pytest.raises(ImportError, match=r"mindspore\.ops\.composite\.nothing is not in torchspore"):
        importlib.import_module("mindspore.ops.composite.nothing")
    assert lookup.is_offered("mindspore.parallel.Layout")
    assert not lookup.is_offered("mindspore.graph.api.ARG_SPECIFIED"), "a module that moved has the names of its homes alone"


def test_what_a_module_takes_for_its_own_use_is_not_offered() -> None:
    offered = listing.offered()
    assert "mindspore.mint.shared" not in offered and "mindspore.ops.collectives.synchronized" not in offered
    assert not {"constant", "as_index", "sizes"} & offered["mindspore.mint"]
    assert not {"bridged", "error_boundary", "missing", "mint", "primitive_class"} & offered["mindspore.ops.auto_generate"]
