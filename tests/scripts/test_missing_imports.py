"""Imports of missing names: they succeed with one warning unless the program handles the ImportError; the first use raises."""
from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run

from torchspore.errors import NotOffered
from torchspore.public_names.placeholders import MissingName

RunFixture = Callable[..., Run]

UNUSED = """from mindspore.nn import Conv7d, ReLU
from mindspore.nn import Conv7d as again
import mindspore.nowhere.deep
from mindspore.nowhere import anything
table = {"conv": Conv7d, "thing": anything}
class Sub(Conv7d): pass
def build(kind: Conv7d | None = None) -> "Conv7d":
    return table
build()
print("ran")
"""

GUARDS = """import contextlib
try:
    from mindspore.nn import Conv7d
except ImportError:
    print("plain")
try:
    from mindspore.nn import Conv7d
except (ValueError, Exception):
    print("tuple")
try:
    import helper
except ModuleNotFoundError:
    print("in another file")
with contextlib.suppress(ImportError):
    from mindspore.nn import Conv7d
    print("not reached")
def late():
    import mindspore.nowhere
try:
    late()
except ImportError:
    print("in a function")
try:
    late()
except Exception:
    print("not reached")
try:
    try:
        from mindspore.nn import Conv7d
    except ValueError:
        pass
except ImportError:
    print("outer")
MISSING = (ImportError, AttributeError)
try:
    from mindspore.nn import Conv7d
except MISSING:
    print("named group")
try:
    from mindspore.nn import Conv8d
except ImportError as error:
    raise RuntimeError("upgrade") from error
print("raised again: unguarded")
try:
    pass
except ImportError:
    from mindspore.nn import Conv9d
print("in a handler: unguarded")
"""


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)


def test_a_missing_name_that_is_never_used_stops_nothing(run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "old.py", UNUSED)
    ended = run("run", "old.py")
    assert (ended.code, ended.out) == (0, "ran\n")
    assert [line for line in ended.err.splitlines() if "UserWarning" in line] == [
        f"old.py:{line}: UserWarning: {path} is not in torchspore yet, and MindSpore 2.10 has no such name. The import "
        "succeeds, and the first use of the name raises an error."
        for line, path in ((1, "mindspore.nn.Conv7d"), (3, "mindspore.nowhere"), (3, "mindspore.nowhere.deep"))
    ]


def test_a_guarded_import_raises(run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "helper.py", "from mindspore.nn import Conv7d\n")
    write(tmp_path, "old.py", GUARDS)
    ended = run("run", "old.py")
    assert ended.out.splitlines() == [
        "plain", "tuple", "in another file", "in a function", "outer", "named group", "raised again: unguarded",
        "in a handler: unguarded",
    ]


@pytest.mark.parametrize("operation", ["x + 1", "2 * x", "-x", "x < 3", "3 >= x", "1 in x", "int(x)", "x @ x", "x ** 2"])
def test_an_operation_on_a_missing_constant_names_it(operation: str) -> None:
    constant = MissingName("mindspore.nn.LIMIT", "mindspore.nn.LIMIT is missing")
    with pytest.raises(NotOffered, match=r"^mindspore\.nn\.LIMIT is missing"):
        eval(operation, {"x": constant})


@pytest.mark.slow
@pytest.mark.parametrize("use", [
    "Conv7d(1)", "Conv7d.pad", "isinstance(1, Conv7d)", "Conv7d[0]", "Conv7d.x = 1", "class Sub(Conv7d): pass\nSub()", "bool(Conv7d)",
    "list(Conv7d)",
])
def test_every_use_raises(use: str, run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "old.py", f"from mindspore.nn import Conv7d\nprint('imported')\n{use}\n")
    ended = run("run", "old.py")
    assert (ended.code, ended.out) == (1, "imported\n")
    assert "NotOffered: mindspore.nn.Conv7d is not in torchspore yet, and MindSpore 2.10 has no such name." in ended.err


def test_strict_imports_raise_and_name_the_option(run: RunFixture, tmp_path: Path) -> None:
    write(tmp_path, "old.py", UNUSED)
    ended = run("run", "--strict-imports", "old.py")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.endswith(
        "hint: the nearest name here is mindspore.nn.Conv3d; `torchspore run --lenient` raises this error only where the name is first "
        "used.\n"
    )


def test_a_suite_under_the_plugin_is_collected(tmp_path: Path) -> None:
    write(tmp_path, "test_old.py", "from mindspore.nn import Conv7d\ndef test_one(): pass\ndef test_two(): Conv7d()\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "torchspore.pytest", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "1 failed, 1 passed" in ended.stdout, ended.stdout
    assert "NotOffered: mindspore.nn.Conv7d is not in torchspore yet" in ended.stdout
