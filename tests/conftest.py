"""What every test may use. `import mindspore` is torchspore in all of them."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import running

import torchspore

torchspore.install()


@pytest.fixture(autouse=True, scope="session")
def failed_graphs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Lets the graphs of failed compiles go elsewhere than to the current directory."""
    os.environ["MS_OM_PATH"] = str(tmp_path_factory.mktemp("failed"))


@pytest.fixture(autouse=True, scope="session")
def own_key(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Lets the compile cache keep its key elsewhere than in the home folder."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


_SEEDS = ("torchspore.engine.random", "torchspore.mindspore.dataset.core.config")


@pytest.fixture(autouse=True)
def seeds() -> Iterator[None]:
    """Takes back the seed that a test sets: another one's answer may depend on whether there is one."""
    before = {name: getattr(sys.modules.get(name), "_seed", None) for name in _SEEDS}
    yield
    for name, seed in before.items():
        if name in sys.modules:
            sys.modules[name]._seed = seed       # type: ignore[attr-defined]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., running.Run]:
    """Runs `python -m torchspore ARGUMENTS` in an empty folder."""
    return partial(running.torchspore, cwd=tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what needs an accelerator where there is none."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.accelerator.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no accelerator here"))
