"""Imports while a graph is traced: torch loads modules lazily, and the loaders of other packages (pytest's, for one) open files."""
from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.context import effects

NAME = "module_that_a_trace_imports"


class _Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Reads a module with `open`, as the loader of pytest does that rewrites assertions."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Answer for one module."""
        return importlib.util.spec_from_loader(NAME, self) if fullname == NAME else None

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module's text."""
        with open(self.path, encoding="utf-8") as source:
            exec(compile(source.read(), str(self.path), "exec"), vars(module))


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Path]:
    """The file of the module. The notes of `explain` start empty, because those of other tests in the process mention files as well."""
    path, finder = tmp_path / f"{NAME}.py", _Loader(tmp_path / f"{NAME}.py")
    sys.meta_path.insert(0, finder)
    with effects.fresh():
        yield path
    sys.meta_path.remove(finder)
    sys.modules.pop(NAME, None)


class Net(nn.Cell):
    """Imports the module in its first call."""

    def construct(self, x: Any) -> Any:
        """Adds a number of the module."""
        import module_that_a_trace_imports as module  # type: ignore[import-not-found]
        return ops.relu(x) + module.VALUE


def test_a_loader_may_open_files(source: Path) -> None:
    source.write_text("VALUE = 2\n")
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    for _ in range(2):
        assert net(Tensor(np.float32([-1, 3]))).asnumpy().tolist() == [2, 5]
    assert not any("opens a file" in line for lines in effects.notes().values() for line in lines)


def test_a_module_that_opens_a_file_is_no_part_of_a_graph(source: Path) -> None:
    source.write_text(f"with open({str(source)!r}) as text:\n    VALUE = len(text.readline())\n")
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    for _ in range(2):
        assert net(Tensor(np.float32([-1, 3]))).asnumpy().min() == len(source.read_text().splitlines()[0]) + 1
    assert any("opens a file" in line for lines in effects.notes().values() for line in lines)
