"""What every test may use. `import mindspore` is torchspore in all of them."""
from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
from support import context_guard, processes

import torchspore
from torchspore.cli.doctor import EXTRAS
from torchspore.engine.native import operators

os.environ["TORCHSPORE_WAIT"] = "1"                                     # O1 and O2 run their own forms from the first call on
os.environ.pop("TORCHSPORE_LANG", None)                                # tests read English messages
torchspore.install()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:                   # a shell starts `command &` so, and children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def failed_graphs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Lets the graphs of failed compiles go elsewhere than to the current directory."""
    os.environ["MS_OM_PATH"] = str(tmp_path_factory.mktemp("failed"))


@pytest.fixture(autouse=True, scope="session")
def private_cache_key(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Lets the compile cache keep its key elsewhere than in the home folder. The C++ short paths of operators are available there too."""
    folder = tmp_path_factory.mktemp("cache")
    if operators.is_loaded() and not operators.is_bundled():
        library = Path(operators._library.__file__)
        target = folder / "torchspore" / "native"
        target.mkdir(mode=0o700, parents=True)
        target.parent.chmod(0o700)
        shutil.copy2(library, target / library.name)
    os.environ["XDG_CACHE_HOME"] = str(folder)
    os.environ[operators.BUILDS_AT_END] = "0"


_RESTORED = {
    "torchspore.engine.random.random_state": ("SEED", "value", None), "torchspore.mindspore.dataset.core.config": ("_SEED", "value", None),
    "torchspore.graph.report.provenance": ("_REQUESTS", "records_all", False),
}
"""By module, an object with state that a program sets for the rest of the process, the attribute, and its initial value."""


@pytest.fixture(autouse=True)
def restored_state() -> Iterator[None]:
    """Restores what a test sets for the rest of the process, because the result of another test may depend on it."""
    before = {
        module: getattr(getattr(sys.modules[module], holder), name) if module in sys.modules else value
        for module, (holder, name, value) in _RESTORED.items()
    }
    yield
    for module, value in before.items():
        if module in sys.modules:
            holder, name, _ = _RESTORED[module]
            setattr(getattr(sys.modules[module], holder), name, value)


@pytest.fixture(autouse=True)
def restored_context() -> Iterator[None]:
    """Restores the options of the context that a test changes: its mode, its devices, how it is parallel."""
    restore = context_guard.keep()
    yield
    restore()


@pytest.fixture(autouse=True)
def no_watcher_stays_on() -> Iterator[None]:
    """Names the test that leaves something on that watches every operator: a recorder, a dump, a profiler."""
    before = _active_watchers()
    yield
    left = _active_watchers() - before
    assert not left, f"this test leaves on: {', '.join(left)}"


def _active_watchers() -> set[str]:
    loaded = {name: sys.modules.get(f"torchspore.{name}") for name in (
        "engine.tensors.tensor", "engine.execution.pynative", "engine.torch_internals.torch_private", "observe.debug.black_box",
        "engine.execution.current_operator", "observe.debug.recorded_steps", "graph.save_graphs.session")}
    private = loaded["engine.torch_internals.torch_private"]
    results = {
        # who waits for the first operator is no leftover, where this test was the first to load torch and ran none
        "a frame or a follower of operators": (
            getattr(loaded["engine.tensors.tensor"], "active", 0) - getattr(loaded["engine.execution.pynative"], "awaits_first", False)),
        "a mode of torch's": private is not None and private.modes_of_now(),
        "the black box": getattr(getattr(loaded["observe.debug.black_box"], "RECORDER", None), "box", None),
        "a dump": getattr(loaded["engine.execution.current_operator"], "followers", 0),
        "a keeper of steps": getattr(getattr(loaded["observe.debug.recorded_steps"], "ACTIVE", None), "runner", None),
        "a keeper of graphs": getattr(loaded["graph.save_graphs.session"], "keeper", None),
    }
    return {name for name, value in results.items() if value}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., processes.Run]:
    """Runs `python -m torchspore ARGUMENTS` in an empty folder."""
    return partial(processes.torchspore, cwd=tmp_path)


SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").splitlines())
"""The tests that were measured as slow (`tools/slow_tests.py`), beside those whose authors say so."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", default="1/1", help="run one of several equal parts of the tests: 2/4 is the second of four")


def select_shard(names: list[str], shard: str) -> list[bool]:
    """Whether each test is in a shard such as "2/4". Raises UsageError for other texts.

    A hash of its name decides, so that each run of a shard, in each process, has the same tests.
    """
    match = re.fullmatch(r"(\d+)/(\d+)", shard)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise pytest.UsageError(f"--shard {shard}: expected the number of a part and the number of parts, such as 2/4.")
    return [zlib.crc32(name.encode()) % int(match[2]) == int(match[1]) - 1 for name in names]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Selects the tests of a shard, marks what was measured as slow, and skips what needs an accelerator where there is none."""
    is_selected = select_shard([item.nodeid for item in items], config.getoption("--shard"))
    config.hook.pytest_deselected(items=[item for item, selected in zip(items, is_selected) if not selected])
    items[:] = [item for item, selected in zip(items, is_selected) if selected]
    for item in items:
        if item.nodeid in SLOW:
            item.add_marker(pytest.mark.slow)
        for package in (name for mark in item.iter_markers("needs") for name in mark.args if find_spec(name) is None):
            _, command = EXTRAS.get(package, ("", f"pip install {package}"))
            item.add_marker(pytest.mark.skip(reason=f"needs {package}: {command}"))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.accelerator.is_available() and not processes.USES_STAND_IN:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no accelerator here"))
