"""Native libraries of a platform wheel: only a library for this torch, this Python and these sources, and with its digest, is loaded."""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import processes

from torchspore.cli import doctor
from torchspore.engine.devices import machine
from torchspore.engine.native import bundled_libraries, operators
from torchspore.engine.native.bundled_libraries import Library
from torchspore.engine.native.native_build import Source
from torchspore.translations import language

NATIVE = Path(operators.__file__).parent
TARGET = bundled_libraries.this_target()
needs_library = pytest.mark.skipif(not operators.is_loaded(), reason="`torchspore doctor --build` builds the short paths")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the wheel's libraries, empty; the user's cache has none either."""
    path = tmp_path / "bundled"
    path.mkdir()
    monkeypatch.setattr(bundled_libraries, "FOLDER", path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return path


def source() -> Source:
    return Source(NATIVE / "operators.cpp", is_module=True)


def write(folder: Path, contents: bytes = b"a library", **changes: Any) -> Path:
    """Write a library and its row of the list; `changes` replace fields of the row, or of its target."""
    library = folder / "operators.so"
    library.write_bytes(contents)
    target = TARGET._replace(**{name: value for name, value in changes.items() if name in TARGET._fields})
    row = Library(library.name, "operators.cpp", source().digest(), hashlib.sha256(contents).hexdigest(), target)
    bundled_libraries.write_list(folder, [row._replace(**{name: value for name, value in changes.items() if name in row._fields})])
    return library


def test_the_library_for_this_process(folder: Path) -> None:
    library = write(folder)
    native = source()
    assert native.bundled() == native.library() == native.build() == library and native.why_not_bundled() == ""


def test_a_pure_wheel_has_none() -> None:
    native = source()
    assert native.bundled() is None and native.why_not_bundled() == "" and "bundled" not in str(native.library())


@pytest.mark.parametrize(("changes", "reason"), [
    ({"torch": "2.0.1"}, f"the wheel has them for torch 2.0.1, not for torch {TARGET.torch}"),
    ({"torch_build": "0" * 40}, f"the wheel has them for another build of torch {TARGET.torch}"),
    ({"torch_build": f"{TARGET.torch_build} debug"}, f"the wheel has them for another build of torch {TARGET.torch}"),
    ({"python": "cpython-36m-x86_64-linux-gnu"}, f"the wheel has them for cpython-36m-x86_64-linux-gnu, not for {TARGET.python}"),
    ({"python": f"{TARGET.python}t"}, f"the wheel has them for {TARGET.python}t, not for {TARGET.python}"),
    ({"sources": "0" * 64}, "the wheel has them for other source files"),
    ({"sha256": "0" * 64}, "the wheel's library operators.so is damaged"),
    ({"file": "absent.so"}, "the wheel's library absent.so is damaged"),
])
def test_another_library_is_not_used(folder: Path, changes: dict[str, str], reason: str) -> None:
    write(folder, **changes)
    native = source()
    assert native.bundled() is None and native.why_not_bundled() == reason


@pytest.mark.parametrize("text", [
    "", "[", "{}", "[1]", "null", '[{"file": "a"}]', '[{"target": 1}]', '[{"target": {"torch": "2"}}]', "[" * 200_000,
])
def test_a_damaged_list(folder: Path, text: str) -> None:
    write(folder)
    (folder / bundled_libraries.LIST).write_text(text, encoding="utf-8")
    native = source()
    assert native.bundled() is None
    assert native.why_not_bundled() == "the wheel's list of libraries is damaged"


@pytest.mark.parametrize("changes", [
    {"file": 5}, {"file": None}, {"file": "a\0b"}, {"file": "../out.so"}, {"file": "/tmp/out.so"}, {"file": ""}, {"file": "."},
    {"sha256": None}, {"target": {"torch": None, "torch_build": "", "python": ""}},
    {"target": {"torch": "", "torch_build": [], "python": 5}},
])
def test_a_row_of_other_values(folder: Path, changes: dict[str, Any]) -> None:
    write(folder)
    path = folder / bundled_libraries.LIST
    path.write_text(json.dumps([{**row, **changes} for row in json.loads(path.read_text(encoding="utf-8"))]), encoding="utf-8")
    native = source()
    assert native.bundled() is None
    assert native.why_not_bundled() == "the wheel's list of libraries is damaged"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir], ids=["pipe", "link", "folder"])
def test_what_is_no_regular_file_is_not_read(folder: Path, make: Callable[[Path], object]) -> None:
    library = write(folder)
    library.unlink()
    make(library)
    assert source().bundled() is None and "is damaged" in source().why_not_bundled()


def test_a_source_without_a_library(folder: Path) -> None:
    write(folder, source="another.cpp")
    assert source().why_not_bundled() == "the wheel has no library of operators.cpp"


def test_one_wrong_byte(folder: Path) -> None:
    library = write(folder, b"a" * 1000)
    library.write_bytes(b"a" * 500 + b"b" + b"a" * 499)
    assert source().bundled() is None


def test_a_changed_header_is_another_source(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "native"
    shutil.copytree(NATIVE, copy, ignore=shutil.ignore_patterns("__pycache__", "bundled"))
    write(folder)
    (copy / "graph_calls.h").write_text("// changed\n", encoding="utf-8")
    assert Source(copy / "operators.cpp", is_module=True).why_not_bundled() == "the wheel has them for other source files"


@needs_library
def test_the_short_paths_of_the_wheel_are_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    library = write(folder, Path(operators._library.__file__).read_bytes())
    monkeypatch.setattr(operators, "_SOURCE", source())
    module, reason = operators._load()
    assert module.__file__ == str(library) and reason == ""
    monkeypatch.setattr(operators, "_library", module)
    assert operators.is_bundled() and operators.missing() == "" and machine._short_paths() == "in use, from the wheel"
    assert doctor._short_paths() == doctor.Finding("✓", "C++ short paths of operators", "from the wheel, for this Python and torch")


@needs_library
def test_what_is_no_library_is_not_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, b"no library")
    native = source()
    monkeypatch.setattr(operators, "_SOURCE", native)
    assert operators._load() == (None, operators.NOT_BUILT)
    assert native.why_not_bundled().startswith("the wheel's library cannot be loaded: ") and "bundled" not in str(native.library())


def test_doctor_explains_it(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(folder, torch="2.0.1")
    monkeypatch.setattr(operators, "_SOURCE", source())
    monkeypatch.setattr(operators, "_library", None)
    monkeypatch.setenv("CXX", str(tmp_path / "nowhere"))
    assert doctor._short_paths().result == (
        f"none; the wheel has them for torch 2.0.1, not for torch {TARGET.torch}; there is no C++ compiler (g++)")
    with language("zh"):
        assert doctor._short_paths().result.startswith(f"无；wheel中的库适用于torch 2.0.1，不适用于torch {TARGET.torch}；")


PROGRAM = """
import torchspore
torchspore.install()
from collections.abc import Callable
from pathlib import Path
from torchspore.engine.native import bundled_libraries
bundled_libraries.FOLDER = Path({folder!r})
import mindspore as ms
from torchspore.engine.native import operators
print(operators.is_bundled(), operators.is_loaded(), (ms.Tensor([1.0]) + 1).asnumpy().tolist())
"""


@needs_library
def test_a_program_without_a_compiler_uses_it(folder: Path, tmp_path: Path) -> None:
    write(folder, Path(operators._library.__file__).read_bytes())
    variables = {"PYTHONPATH": str(NATIVE.parents[2]), "XDG_CACHE_HOME": str(tmp_path / "cache"), "CXX": "/nowhere/g++"}
    code = PROGRAM.format(folder=str(folder))
    assert processes.python("-c", code, cwd=tmp_path, extra=variables).out == "True True [2.0]\n"
    assert processes.python("-c", code, cwd=tmp_path, extra={**variables, "TORCHSPORE_NO_NATIVE": "1"}).out == "False False [2.0]\n"
    rows = json.loads((folder / bundled_libraries.LIST).read_text(encoding="utf-8"))
    rows[0]["target"]["torch"] = "2.0.1"
    (folder / bundled_libraries.LIST).write_text(json.dumps(rows), encoding="utf-8")
    assert processes.python("-c", code, cwd=tmp_path, extra=variables).out == "False False [2.0]\n"


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("g++") is None, reason="needs g++ on Linux")
def test_no_library_needs_a_new_glibc(tmp_path: Path) -> None:
    header = NATIVE / "glibc_symbols.h"
    code = tmp_path / "a.cpp"
    code.write_text("#include <memory>\nstd::shared_ptr<int> f(std::shared_ptr<int> a) { return a; }\n", encoding="utf-8")
    words = ["g++", "-O2", "-std=c++20", "-fPIC", "-c", str(code), "-o", str(tmp_path / "a.o"), "-include", str(header)]
    subprocess.run(words, check=True)
    assert b"__libc_single_threaded" not in (tmp_path / "a.o").read_bytes()
