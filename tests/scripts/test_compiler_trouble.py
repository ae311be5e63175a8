"""A machine without a C++ compiler, one whose compiler breaks, and Ctrl-C while it works: said once, nothing broken is left."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.processes import environment, python

PROGRAM = """
import sys, numpy as np, mindspore as ms
from mindspore import nn, ops
from torchspore.graph.backend import fusion
import torchspore
fusion.SHORTEST = fusion.SHARE = 0.0          # tries to compile every cluster, however small
ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O1"})

class Net(nn.Cell):
    def construct(self, x):
        return ops.softmax(ops.gelu(x) * 2 + ops.sigmoid(x))

x = ms.Tensor(np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64))
print("started", flush=True)
for net in (Net(), Net()):
    print(f"{float(net(x)[3, 5]):.6f}")
print(f"{float(Net().construct(x)[3, 5]):.6f}")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text("import torchspore\ntorchspore.install()\n" + PROGRAM)
    return tmp_path


def settings(folder: Path, **extra: str) -> dict[str, str]:
    return {"TORCHINDUCTOR_CACHE_DIR": str(folder / "kernels"), "TORCHSPORE_LOG": "graph", **extra}


def compiler(folder: Path, text: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def our_lines(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("torchspore: ")]


def test_without_a_compiler_it_is_reported_once_and_graphs_run(folder: Path) -> None:
    ended = python("program.py", cwd=folder, extra=settings(folder, CXX="/nowhere/g++"))
    assert ended.code == 0 and len(set(ended.out.split()[1:])) == 1, ended.err
    assert our_lines(ended.err) == [
        f"torchspore: {folder}/program.py:18: jit_level O1 and O2 generate kernels, and the C++ compiler is missing (g++ or what "
        "CXX names); graphs run without them.",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("text", [
    "case \"$*\" in *' -o '*) kill -9 $$;; *) echo 12;; esac", "case \"$*\" in *' -o '*) exit 3;; *) echo 12;; esac",
])
def test_a_compiler_that_breaks_is_reported_once_and_leaves_nothing(folder: Path, text: str) -> None:
    ended = python("program.py", cwd=folder, extra=settings(folder, CXX=compiler(folder, text)))
    assert ended.code == 0 and len(set(ended.out.split()[1:])) == 1, ended.err
    assert len(our_lines(ended.err)) == 1 and "the C++ compiler failed" in our_lines(ended.err)[0]
    assert not [path for path in (folder / "kernels").rglob("*.so*") if path.is_file()]


def _below(pid: int) -> list[int]:
    """The processes whose command line names our folder's compiler, or that descend from `pid`."""
    results = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            if int(text.rpartition(")")[2].split()[1]) == pid and text.rpartition(")")[2].split()[0] != "Z":
                results += [int(entry.name), *_below(int(entry.name))]
    return results


@pytest.mark.slow
def test_an_interrupt_ends_the_compiler_too(folder: Path) -> None:
    mark = folder / "works"
    slow = compiler(folder, f"case \"$*\" in *' -o '*) touch {mark}; sleep 60 & wait;; *) echo 12;; esac")
    process = subprocess.Popen(
        [sys.executable, "program.py"], cwd=folder, env=environment(settings(folder, CXX=slow)), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )
    deadline = time.monotonic() + 60
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    helpers = _below(process.pid)
    assert helpers
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in err and process.returncode != 0
    time.sleep(0.3)
    assert not [pid for pid in helpers if Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]]
    assert not list((folder / "kernels").rglob("*.so"))
