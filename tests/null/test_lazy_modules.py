"""Modules that are imported on first use: which name the module takes, failed and interrupted imports, several threads."""
from __future__ import annotations

import builtins
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from torchspore.base.lazy_modules import LazyModule, import_lazily

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module of this text; returns its name."""
    folder = tmp_path / "site-packages" / "torch"          # where no code is the program's, so that signals wait
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names: list[str] = []

    def write_module(text: str) -> str:
        names.append(f"lazy_module_{os.getpid()}_{len(names)}")
        (folder / f"{names[-1]}.py").write_text(text, encoding="utf-8")
        return names[-1]

    yield write_module
    for name in names:
        sys.modules.pop(name, None)


def test_the_first_use_imports_the_module_and_replaces_the_proxy(write: Write) -> None:
    name = write("value = 1")
    importer: dict[str, Any] = {}
    import_lazily(importer, name)
    proxy = importer[name]
    assert name not in sys.modules
    assert proxy.value == 1
    assert importer[name] is sys.modules[name]
    assert proxy.value == 1


def test_another_value_of_the_variable_stays(write: Write) -> None:
    name = write("value = 1")
    importer: dict[str, Any] = {}
    import_lazily(importer, name)
    proxy, importer[name] = importer[name], 3
    assert proxy.value == 1
    assert importer == {name: 3}


def test_the_proxy_sets_and_deletes_attributes_of_the_module(write: Write) -> None:
    proxy: Any = LazyModule(write("value = 1"))
    proxy.value = 2
    proxy.other = 3
    del proxy.other
    module = sys.modules[vars(proxy)["_name"]]
    assert module.value == 2
    assert not hasattr(module, "other")
    assert not hasattr(proxy, "other")


def test_a_failed_import_is_tried_again(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    name = write("import builtins\nif not hasattr(builtins, 'lazy_module_may_load'): raise ImportError('not yet')\nvalue = 1")
    importer: dict[str, Any] = {}
    import_lazily(importer, name)
    with pytest.raises(ImportError, match="not yet"):
        _ = importer[name].value
    assert type(importer[name]) is LazyModule
    assert name not in sys.modules
    monkeypatch.setattr(builtins, "lazy_module_may_load", True, raising=False)
    assert importer[name].value == 1


def test_a_use_in_the_import_of_the_module_itself_receives_what_is_defined(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    name = write("import builtins\nvalue = 1\nseen = builtins.lazy_module_importer[__name__].value\n"
                 "if not hasattr(builtins, 'lazy_module_may_load'): raise ImportError('not yet')")
    importer: dict[str, Any] = {}
    import_lazily(importer, name)
    monkeypatch.setattr(builtins, "lazy_module_importer", importer, raising=False)
    with pytest.raises(ImportError):
        _ = importer[name].value
    assert type(importer[name]) is LazyModule              # and not the module whose import failed
    monkeypatch.setattr(builtins, "lazy_module_may_load", True, raising=False)
    assert importer[name].seen == 1


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process")
def test_ctrl_c_waits_until_the_import_has_ended(write: Write) -> None:
    name = write(f"import os, signal\nos.kill({os.getpid()}, signal.SIGINT)\nfor _ in range(1000): pass\nvalue = 1")
    importer: dict[str, Any] = {}
    import_lazily(importer, name)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _ = importer[name].value
    finally:
        signal.signal(signal.SIGINT, before)
    assert sys.modules[name].value == 1
    assert importer[name].value == 1


def test_threads_wait_for_one_import(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    name = write("import time\nimport builtins\nbuiltins.lazy_module_loads.append(1)\ntime.sleep(0.2)\nvalue = 1")
    importer: dict[str, Any] = {}
    import_lazily(importer, name)
    loads: list[int] = []
    monkeypatch.setattr(builtins, "lazy_module_loads", loads, raising=False)
    values: list[Any] = []
    start = threading.Barrier(4)

    def use() -> None:
        start.wait()
        values.append(importer[name].value)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [1, 1, 1, 1]
    assert loads == [1]
    assert isinstance(importer[name], ModuleType)
