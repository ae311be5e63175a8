"""These tests need no torch, and get none: importing it fails while one of them runs."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

import pytest


class NoTorch(MetaPathFinder):
    """Refuses to import torch."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] in ("torch", "torch_npu"):
            raise ImportError(f"tests/null runs without torch, and something imports {fullname}")
        return None


@pytest.fixture(autouse=True)
def no_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Blocks torch for one test, also where another test of this process has imported it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    finder = NoTorch()
    sys.meta_path.insert(0, finder)
    yield
    sys.meta_path.remove(finder)
