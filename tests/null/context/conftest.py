"""Each test finds the context at its defaults, an empty folder, and no variables that the context reads."""
from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchspore.context import effects
from torchspore.context.store import STORE


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Takes back what a test sets. The engine counts as not loaded, so that no effect runs."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith(("MS_", "TORCHSPORE_", "DEVICE_ID"))]:
        monkeypatch.delenv(variable)
    with effects.fresh(is_loaded=False):
        yield
        for api in ("context", "auto_parallel", "ps", "offload"):
            STORE.reset(api)
