"""Each test starts at the defaults and leaves them behind, effects included."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from support import processes

import torchspore.engine  # noqa: F401  (effects run)
from torchspore.context import effects
from torchspore.context.public import set_context
from torchspore.context.store import STORE


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with effects.fresh():
        yield
        set_context(deterministic="OFF", runtime_num_threads=0, pynative_synchronize=False)
        for api in ("context", "auto_parallel", "ps", "offload"):
            STORE.reset(api)


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., processes.Run]:
    """Runs a program's text by `torchspore run` in an empty folder; keyword arguments become environment variables."""

    def run(text: str, *options: str, **extra: str) -> processes.Run:
        (tmp_path / "train.py").write_text(text)
        return partial(processes.torchspore, "run", *options, "train.py", cwd=tmp_path, extra=extra)()

    return run
