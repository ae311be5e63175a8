"""Compiled kernels come back in another process without Inductor, and damaged ones don't."""
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from support import kernel_compilers

from torchspore.engine.torch_internals import torch_private
from torchspore.graph.backend import inductor
from torchspore.graph.compile_cache import autotune_cache, kernel_store


class Shelf:
    """A store that lives in memory, where the next process would read."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    def find(self, key: str) -> str | None:
        return self.held.get(key)

    def keep(self, key: str, choice: str) -> None:
        self.held[key] = choice


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    new_shelf = Shelf()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    autotune_cache.forget()
    with autotune_cache.stored_in(new_shelf):
        yield new_shelf
    autotune_cache.forget()


def cluster() -> torch.fx.GraphModule:
    """relu(x) * 2 + y as a graph with stand-ins."""
    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    relu = graph.call_function(torch.ops.aten.relu.default, (x,))
    graph.output([graph.call_function(torch.ops.aten.add.Tensor, (graph.call_function(torch.ops.aten.mul.Tensor, (relu, 2.0)), y))])
    with torch_private.FakeTensorMode():
        for node in (x, y):
            node.meta["val"] = torch.empty(8, 16)
    return torch.fx.GraphModule({}, graph)


@pytest.mark.slow
def test_a_kernel_comes_back_without_inductor(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    first = inductor.kernel(cluster(), "O1")
    assert first is not None and len(shelf.held) == 1
    expected = first(x, y)[0]
    assert torch.equal(expected, torch.relu(x) * 2 + y)
    autotune_cache.forget()
    with inductor.compiled_by(kernel_compilers.nobody):
        second_kernel = inductor.kernel(cluster(), "O1")
    assert second_kernel is not None and torch.equal(second_kernel(x, y)[0], expected)
    with pytest.raises(AssertionError):                     # it still looks at the shapes that it was made for
        second_kernel(torch.randn(4, 16), y)
    ((library, _),) = json.loads(next(iter(shelf.held.values())))["libraries"].values()
    (tmp_path / "other").write_bytes(b"no library")
    os.replace(tmp_path / "other", tmp_path / library)      # the library itself is in use
    autotune_cache.forget()
    assert kernel_store.find(next(iter(shelf.held))) is None


SOURCE = """
class Runner:
    def call(self, args):
        x, = args
        args.clear()
        out = empty_strided_cpu((8,), (1,), torch.float32)
        cpp_fused_0(x, out)
        return (out, )
"""


@pytest.fixture
def library(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "kernel.so").write_bytes(b"a library")
    return {"cpp_fused_0": str(tmp_path / "kernel.so")}


def test_kernels_without_inductor_are_stored(shelf: Shelf, library: dict[str, str]) -> None:
    kernel_store.keep("key", SOURCE, library)
    assert "empty_strided_cpu" in shelf.held["key"] and "kernel.so" in shelf.held["key"]


@pytest.mark.parametrize(
    ("part", "other"), [("empty_strided_cpu(", "extern_kernels.mm("), ("cpp_fused_0(", "cpp_fused_9("), ("call", "run")],
)
def test_kernels_of_another_name_are_not_stored(shelf: Shelf, library: dict[str, str], part: str, other: str) -> None:
    kernel_store.keep("key", SOURCE.replace(part, other), library)
    assert not shelf.held


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"text": "def call(", "libraries": {}}', '{"text": "x = 1", "libraries": {}}'])
def test_what_is_no_kernel_is_not_loaded(shelf: Shelf, content: str) -> None:
    shelf.held["key"] = content
    assert kernel_store.find("key") is None
