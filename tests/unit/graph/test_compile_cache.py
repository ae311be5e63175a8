"""The compile cache: what it holds, when it is used, and what happens when it can't be."""
from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support import processes
from support.processes import Run

import torchspore
from torchspore.cli import explain
from torchspore.context import effects
from torchspore.engine.random import random_state
from torchspore.graph import compile_cache
from torchspore.graph.compile_cache import autotune_cache, folder
from torchspore.graph.fx import serialize
from torchspore.graph.passes.layout import dump_layouts, load_layouts, record_strides

Program = Callable[..., Run]

NET = """
from mindspore import nn, ops
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(64, 64, weight_init="ones", bias_init="zeros")
    def construct(self, x):
        return ops.gelu(self.dense(x) * 2).sum()
"""
MAIN = """
import numpy as np, time
import mindspore as ms
from mindspore import Tensor
ms.set_context(mode=ms.GRAPH_MODE, {options})
from net import Net
print(float(Net()(Tensor(np.full((256, 64), 0.01, np.float32)))))
"""
CACHE_FOLDER = "cache/rank_0/graph_cache"
FIRST = 'nothing is stored for Net.construct of {net}'
HIT = 'Net.construct of {net} is in'
CHANGED = '{net} has changed since Net.construct of {net} was stored'


class Small(nn.Cell):
    def construct(self, x):
        return ops.relu(x) * 2 + 1


X = Tensor(np.arange(-2, 2, dtype=np.float32))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


ON = "enable_compile_cache=True, compile_cache_path='cache'"


def once(run: Program, program: Path, options: str = ON, **extra: str) -> tuple[str, str]:
    """What the program printed, and what the cache said in the log."""
    (program / "main.py").write_text(MAIN.format(options=options))
    ran = run("run", "main.py", extra=extra, timeout=300)
    assert ran.code == 0, ran.err
    return ran.out.strip(), "\n".join(line.partition("compile cache: ")[2] for line in ran.err.splitlines() if "compile cache: " in line)


def with_net_path(text: str, program: Path) -> str:
    return text.format(net=program / "net.py")


def test_the_three_moments_are_in_the_log(run: Program, program: Path) -> None:
    out, message = once(run, program)
    assert message.startswith(with_net_path(FIRST, program))
    assert re.fullmatch(r"[0-9a-f]{64}", (program / CACHE_FOLDER / "compile_dependency.hash").read_text())
    before = (program / CACHE_FOLDER / "compile_dependency.hash").read_text()
    assert once(run, program)[0] == out
    assert once(run, program)[1].startswith(with_net_path(HIT, program))
    (program / "net.py").write_text(NET.replace("* 2", "* 3"))
    changed, message = once(run, program)
    assert message.startswith(with_net_path(CHANGED, program)) and float(changed) > float(out)
    assert (program / CACHE_FOLDER / "compile_dependency.hash").read_text() != before
    assert once(run, program)[1].startswith(with_net_path(HIT, program))


@pytest.mark.slow
def test_the_environment_switches_it_on(run: Program, program: Path) -> None:
    once(run, program, "", MS_COMPILER_CACHE_ENABLE="1", MS_COMPILER_CACHE_PATH="elsewhere")
    assert (program / "elsewhere/rank_0/graph_cache/compile_dependency.hash").exists()
    once(run, program, "enable_compile_cache=True")
    assert (program / "rank_0/graph_cache/compile_dependency.hash").exists()


@pytest.mark.slow
def test_load_takes_the_graph_as_it_was_stored(run: Program, program: Path) -> None:
    save, load = "save_compile_cache=True, compile_cache_path='cache'", "load_compile_cache=True, compile_cache_path='cache'"
    out, _ = once(run, program, save)
    (program / "net.py").write_text(NET.replace("* 2", "* 3"))
    old, message = once(run, program, load)
    assert old == out and "runs as it is stored" in message
    new, _ = once(run, program, save)
    assert new != out
    assert once(run, program, load)[0] == new
    assert once(run, program, ON, MS_DEV_FORCE_USE_COMPILE_CACHE="1")[0] == new


COMPILER = """#!/bin/sh
case "$*" in *--version*|*-dump*) ;; *) echo "$*" >> {log} ;; esac
exec {compiler} "$@"
"""
"""Does what the machine's compiler does, and notes what it was asked for."""


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "compiles"), [
    ("enable_compile_cache", "enable_compile_cache", False), ("save_compile_cache", "load_compile_cache", False),
    ("save_compile_cache", "save_compile_cache", True),
])
def test_the_second_process_starts_no_compiler(run: Program, program: Path, first: str, second: str, compiles: bool) -> None:
    file_path = shutil.which("g++")
    if file_path is None:
        pytest.skip("no compiler here")
    (program / "bin").mkdir()
    (program / "bin/g++").write_text(COMPILER.format(log=program / "compiled", compiler=file_path))
    (program / "bin/g++").chmod(0o755)
    path = f"{program / 'bin'}{os.pathsep}{os.environ['PATH']}"
    options = "compile_cache_path='cache', graph_kernel_flags='--opt_level=1', {}=True".format
    out, message = once(run, program, options(first), PATH=path)
    assert (program / "compiled").exists()
    (program / "compiled").unlink()
    second_out, message = once(run, program, options(second), PATH=path)
    assert second_out == out and (program / "compiled").exists() is compiles, message
    assert ("is compiled again" in message) is compiles


TWO = """
from mindspore import nn, ops
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.one = nn.Dense(64, 64, weight_init="ones", bias_init="zeros")
        self.two = nn.Dense(64, 64, weight_init="zeros", bias_init="ones")
    def construct(self, x):
        return ops.relu(self.one(x) * 2 + self.two(x)).sum()
"""


@pytest.mark.slow
def test_load_takes_no_graph_whose_parameters_came_in_another_order(run: Program, program: Path) -> None:
    (program / "net.py").write_text(TWO)
    once(run, program, "save_compile_cache=True, compile_cache_path='cache'")
    (program / "net.py").write_text(TWO.replace("self.one(x) * 2 + self.two(x)", "self.two(x) * 2 + self.one(x)"))
    out, message = once(run, program, "load_compile_cache=True, compile_cache_path='cache'")
    assert message.startswith("no graph of Net.construct")
    assert out == once(run, program, "")[0]


@pytest.mark.slow
def test_load_without_a_graph_that_fits_compiles(run: Program, program: Path) -> None:
    options = "load_compile_cache=True, compile_cache_path='cache'"
    out, message = once(run, program, options)
    assert message.startswith("no graph of Net.construct")
    once(run, program, "save_compile_cache=True, compile_cache_path='cache'")
    (program / "net.py").write_text(NET.replace(".sum()", ""))
    (program / "main.py").write_text(MAIN.format(options=options))
    assert float(out) != 0
    ran = run("run", "main.py")
    assert ran.code == 1 and "no graph of Net.construct" in ran.err  # the new result is no number, so that float fails


@pytest.fixture
def cached(tmp_path: Path) -> Iterator[Path]:
    autotune_cache.forget()
    ms.set_context(mode=ms.GRAPH_MODE, enable_compile_cache=True, compile_cache_path=str(tmp_path))
    yield tmp_path / CACHE_FOLDER.removeprefix("cache/")
    ms.set_context(mode=ms.PYNATIVE_MODE, enable_compile_cache=False, compile_cache_path="", save_compile_cache=False)
    autotune_cache.forget()


def entries(index: Path, part: str = "graphs") -> list[Path]:
    return [path for path in (index / part).rglob("*") if path.is_file() and not path.name.startswith(".")]


def notes() -> list[str]:
    return effects.notes().get("compile cache", [])


def test_explain_says_where(cached: Path) -> None:
    Small()(X)
    rows = {row[0]: row[3] for row in explain.rows()}
    assert rows["enable_compile_cache"] == rows["compile_cache_path"] == f"applied: graphs and kernels are stored in {cached}"


def test_a_tried_folder_holds_nothing_of_the_trial(cached: Path) -> None:
    Small()(X)
    assert [path.name for path in (cached / "graphs").iterdir()] == [folder.surroundings()]


def test_a_path_without_the_switch_has_no_effect(cached: Path) -> None:
    ms.set_context(enable_compile_cache=False)
    Small()(X)
    assert not cached.exists()
    assert {row[0]: row[3] for row in explain.rows()}["compile_cache_path"] == "no effect here: enable_compile_cache is off"


def test_precompile_only_warms_it(cached: Path) -> None:
    ms.set_context(precompile_only=True)
    try:
        assert Small()(X) is None
    finally:
        ms.set_context(precompile_only=False)
    assert len(entries(cached)) == 1


def test_a_damaged_entry_is_reported_once_and_created_anew(cached: Path) -> None:
    Small()(X)
    (entry,) = entries(cached)
    content = entry.read_bytes()
    entry.write_bytes(content[: len(content) // 2])
    assert Small()(X).asnumpy().tolist() == [1, 1, 1, 3]
    assert any("is damaged; it is compiled again" in note for note in notes())
    assert entry.read_bytes() == content


def test_a_foreign_file_instead_of_an_entry_is_not_an_entry(cached: Path) -> None:
    Small()(X)
    (entry,) = entries(cached)
    contents = b"[1, 2]"
    digest = hashlib.sha256(entry.name.encode() + b"\n" + contents).hexdigest().encode()
    entry.write_bytes(digest + b"\n" + contents)
    assert Small()(X).asnumpy().tolist() == [1, 1, 1, 3]
    assert entry.read_bytes() != digest + b"\n" + contents


@pytest.mark.parametrize("change", [
    lambda: ms.set_context(deterministic="ON"), lambda: ms.set_context(jit_config={"jit_level": "O1"}),
])
def test_another_option_in_the_key_is_another_entry(cached: Path, change: Callable[[], None]) -> None:
    Small()(X)
    change()
    try:
        Small()(X)
    finally:
        ms.set_context(deterministic="OFF", jit_config={"jit_level": "O0"})
    assert len(entries(cached)) == 2


def test_another_dtype_or_shape_is_another_entry(cached: Path) -> None:
    for x in (X, X.astype(ms.float64), Tensor(np.ones((2, 2), np.float32))):
        Small()(x)
    assert len(entries(cached)) == 3


@pytest.mark.parametrize(("name", "value"), [("CXXFLAGS", "-O1"), ("CXX", "clang++"), ("TORCHINDUCTOR_FREEZING", "1")])
def test_another_compiler_or_flag_is_another_folder(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    before = folder.named(torch.__version__, folder.PACKAGE)
    assert folder.named(torch.__version__, folder.PACKAGE) == before
    monkeypatch.setenv(name, value)
    assert folder.named(torch.__version__, folder.PACKAGE) != before


def test_another_torch_or_torchspore_is_another_folder(tmp_path: Path) -> None:
    package_copy = tmp_path / "package"
    package_copy.mkdir()
    (package_copy / "one.py").write_text("1")
    before, other = (folder.named(version, tmp_path) for version in (torch.__version__, "2.99.0"))
    (package_copy / "one.py").write_text("12")
    assert len({before, other, folder.named(torch.__version__, tmp_path)}) == 3
    assert folder.surroundings() == folder.named(torch.__version__, Path(torchspore.__file__).parent)


def test_a_folder_that_cannot_be_created_is_reported_once(tmp_path: Path, cached: Path) -> None:
    (tmp_path / "taken").write_text("")
    ms.set_context(compile_cache_path=str(tmp_path / "taken"))
    for _ in range(2):
        assert Small()(X).shape == (4,)
    messages = [note for note in notes() if str(tmp_path / "taken") in note]
    assert len(messages) == 1 and messages[0].endswith("hint: set compile_cache_path to a folder that can be written.")
    assert {row[0]: row[3] for row in explain.rows()}["enable_compile_cache"].startswith("no effect here: ")


def test_a_full_disk_is_reported_once(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Small()(X)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    for shape in (2, 3):
        assert Small()(Tensor(np.ones(shape, np.float32))).shape == (shape,)
    messages = [note for note in notes() if "No space left on device" in note]
    assert len(messages) == 1 and messages[0].endswith("hint: free some space.")
    assert not list(cached.rglob(".new-*"))


def test_the_limit_holds(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in range(1, 9):
        Small()(Tensor(np.ones(size, np.float32)))
    assert len(entries(cached)) == 8
    times = sorted(entries(cached), key=lambda path: path.stat().st_mtime_ns)
    for age, path in enumerate(times):
        os.utime(path, (1000 + age, 1000 + age))
    total = sum(path.stat().st_size for path in entries(cached))
    monkeypatch.setenv("TORCHSPORE_CACHE_LIMIT", f"{total // 2}")
    Small()(Tensor(np.ones(9, np.float32)))
    left = entries(cached)
    assert sum(path.stat().st_size for path in left) <= total // 2 and 0 < len(left) < 8
    assert not set(times[:4]) & set(left), "those used longest ago go first"


@pytest.mark.parametrize(("text", "size"), [("500MB", 500 << 20), ("1.5 GB", 3 << 29), ("100", 100), ("", 4 << 30), ("lots", 4 << 30)])
def test_the_limit_is_a_size(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    monkeypatch.setenv("TORCHSPORE_CACHE_LIMIT", text)
    assert folder.limit() == size


def test_a_graph_comes_back_from_its_text(cached: Path) -> None:
    import torchspore

    random_state.restore({"seed": None, "counts": {}})               # a seeded Dropout draws by an operator that no file may name
    net = nn.SequentialCell(nn.Dense(4, 4), nn.BatchNorm1d(4), nn.Dropout(p=0.5))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params())).set_train()
    x = Tensor(np.ones((2, 4), np.float32))
    step(x, x)
    (graph,) = torchspore.graphs(step)

    def without_names_of_constants(module: torch.fx.GraphModule) -> list[dict[str, Any]]:
        return [{**node, "target": "" if "constant" in node else node["target"]} for node in serialize.write(module)["nodes"]]

    restored = serialize.read(serialize.write(graph.module))
    assert without_names_of_constants(restored) == without_names_of_constants(graph.module)
    assert serialize.write(serialize.read(serialize.write(restored))) == serialize.write(restored)


def test_strides_come_back_from_their_text() -> None:
    module = torch.fx.symbolic_trace(lambda x: torch.relu(x.transpose(0, 1)).sum(0))
    record_strides(module, [torch.ones(3, 4)])
    other = torch.fx.symbolic_trace(lambda x: torch.relu(x.transpose(0, 1)).sum(0))
    assert load_layouts(other, dump_layouts(module))
    assert [n.meta["val"].stride() for n in other.graph.nodes if "val" in n.meta] == [(4, 1), (1, 4), (1, 4), (1,), (1,)]
    assert not load_layouts(other, "[]") and not load_layouts(other, "no text of ours")


def test_graphs_with_open_lengths_pass_by(cached: Path) -> None:
    net = Small()
    net.set_inputs(Tensor(shape=[None], dtype=ms.float32))
    assert [net(Tensor(np.ones(length, np.float32))).shape for length in (2, 3)] == [(2,), (3,)]
    assert not entries(cached)


@pytest.mark.slow
def test_two_processes_share_a_folder(program: Path) -> None:
    (program / "main.py").write_text(MAIN.format(
        options="enable_compile_cache=True, compile_cache_path='cache', jit_config={'jit_level': 'O1'}",
    ))
    command = [sys.executable, "-m", "torchspore", "run", "main.py"]
    both = [
        subprocess.Popen(command, cwd=program, env=processes.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [(process.communicate(timeout=600), process.returncode) for process in both]
    assert [code for _, code in ended] == [0, 0], ended
    printed = float(ended[0][0][0])
    assert float(ended[1][0][0]) == pytest.approx(printed, rel=1e-6)
    assert not list((program / CACHE_FOLDER).rglob(".new-*"))
    warm = processes.torchspore("run", "main.py", cwd=program, extra={"TORCHSPORE_LOG": "graph"}, timeout=300)
    # A kernel that is taken from the folder is told as compiled too, so that only the measuring is looked at here.
    assert float(warm.out) == pytest.approx(printed, rel=1e-6) and "as measured before" in warm.err


def test_it_is_off_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert compile_cache.current() is None
    Small().compile(X)
    assert not list(tmp_path.iterdir())
