"""`support_binary`: a program compiled to .pyc or .so carries its source, so that GRAPH_MODE converts its branches and loops."""
from __future__ import annotations

import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run, python

Program = Callable[..., Run]

NET = '''"""A net whose branch a Tensor decides, a function that it calls, and one under jit."""
import mindspore as ms
from mindspore import nn


def grown(x, n):
    while x.sum() < n:
        x = x * 2
    return x


@ms.jit
def sign(x):
    if x.sum() > 0:
        return x
    return -x


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.scale = 3.0

    def construct(self, x):
        if x.sum() > 10:
            return x * self.scale
        return grown(x, 10.0)
'''
MAIN = """
import mindspore as ms
from mindspore import Tensor
ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
import net
made = net.Net()
print([float(made(Tensor([value]))) for value in (1.5, 20.0)], float(net.sign(Tensor([-2.0]))), net.__file__.rpartition(".")[2])
"""
ANSWER = "[12.0, 60.0] 2.0"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "main.py").write_text(MAIN)
    return tmp_path


def run_saving(run: Program, program: Path, **extra: str) -> Run:
    ran = run("run", "main.py", extra={"MS_SUPPORT_BINARY": "1", **extra})
    assert (ran.code, ran.out) == (0, f"{ANSWER} py\n"), ran.err
    return ran


def test_the_source_is_appended_once(run: Program, program: Path) -> None:
    run_saving(run, program)
    text = (program / "net.py").read_text()
    assert text.startswith(NET)
    names = [line.partition("setattr(")[2].partition(",")[0] for line in text.splitlines() if line.startswith("setattr(")]
    assert sorted(names) == ["Net.construct", "grown", "sign.__wrapped__"]
    assert "setattr(Net.construct, 'source', (['    def construct(self, x):\\n'," in text
    run_saving(run, program)
    assert (program / "net.py").read_text() == text
    assert not [path for path in program.iterdir() if path.name.endswith(".new")]


@pytest.mark.slow
def test_a_changed_function_has_its_line_renewed(run: Program, program: Path) -> None:
    run_saving(run, program)
    text = (program / "net.py").read_text()
    (program / "net.py").write_text(text.replace("            return x * self.scale\n", "            return self.scale * x\n", 1))
    run_saving(run, program)
    text = (program / "net.py").read_text()
    assert text.count("setattr(Net.construct,") == 1 and "'            return self.scale * x\\n'" in text


@pytest.mark.slow
def test_a_pyc_runs_without_its_source(run: Program, program: Path) -> None:
    run_saving(run, program)
    py_compile.compile(str(program / "net.py"), cfile=str(program / "net.pyc"))
    (program / "net.py").unlink()
    ran = run("run", "main.py")
    assert (ran.code, ran.out) == (0, f"{ANSWER} pyc\n"), ran.err


def test_a_pyc_that_carries_no_source_is_refused(run: Program, program: Path) -> None:
    py_compile.compile(str(program / "net.py"), cfile=str(program / "net.pyc"))
    (program / "net.py").unlink()
    ran = run("run", "main.py")
    assert ran.code == 1 and ": Net reads the values of a Tensor on the host" in ran.err


def test_a_file_that_can_not_be_written_is_reported_once(run: Program, program: Path) -> None:
    # What os.access says is all that a read-only file changes, also for root.
    (program / "sitecustomize.py").write_text(
        "import os\nreal = os.access\nos.access = lambda p, m: not str(p).endswith('net.py') and real(p, m)\n"
    )
    ran = run_saving(run, program, PYTHONPATH=str(program))
    assert ran.err.count("support_binary: the source of graphs can't be stored in") == 1
    assert "hint: make the file writable, run it once, and then compile it." in ran.err
    assert (program / "net.py").read_text() == NET


@pytest.mark.slow
def test_explain_and_strict_mode(run: Program, program: Path) -> None:
    explained = run("explain", "main.py", extra={"MS_SUPPORT_BINARY": "1"})
    assert f"the source of 1 functions was stored in {program}/net.py" in explained.out or "applied: each graph's source" in explained.out
    plain = MAIN.replace("GRAPH_MODE, jit_syntax_level=ms.STRICT", "PYNATIVE_MODE").replace("net.sign(Tensor([-2.0]))", "2.0")
    (program / "main.py").write_text(plain)
    refused = run("run", "main.py", extra={"MS_SUPPORT_BINARY": "1", "TORCHSPORE_STRICT": "1"})
    assert refused.code == 1 and "support_binary: no effect here: PYNATIVE_MODE compiles no graph" in refused.err


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("Cython") is None or shutil.which("gcc") is None, reason="needs Cython and gcc")
def test_a_shared_library_built_by_cython_runs(run: Program, program: Path) -> None:
    run_saving(run, program)
    built = python("-m", "cython", "-3", "net.py", "-o", "net.c", cwd=program)
    assert built.code == 0, built.err
    library = program / f"net{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = sysconfig.get_paths()["include"]
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", f"-I{include}", "net.c", "-o", str(library)], cwd=program, check=True)
    (program / "net.py").unlink()
    ran = run("run", "main.py", extra={"PYTHONPATH": os.pathsep.join(sys.path)})
    assert (ran.code, ran.out) == (0, f"{ANSWER} so\n"), ran.err
