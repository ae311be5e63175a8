"""Files of the compile cache and of tuning that were made to do harm: nothing in them runs."""
from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import torch
from support import processes

from torchspore.base import trust
from torchspore.graph import pipeline
from torchspore.graph.autotune import deferred_run
from torchspore.graph.autotune import tuning_file as file
from torchspore.graph.compile_cache.folder import Folder
from torchspore.graph.fx import serialize
from torchspore.graph.fx.fingerprint import machine
from torchspore.graph.settings import Settings

VALUE = [[4], [1], "float32", "cpu"]


def graph(target: str, *args: Any, op: str = "call_function", name: str = "y", x: str = "x", **kwargs: Any) -> dict[str, Any]:
    """A graph of one node, as it stands in a file."""
    return {"nodes": [
        {"op": "placeholder", "name": x, "target": x, "args": [], "kwargs": {}, "val": VALUE},
        {"op": op, "name": name, "target": target, "args": list(args), "kwargs": kwargs, "val": VALUE},
        {"op": "output", "name": "output", "target": "output", "args": [["list", ["node", name]]], "kwargs": {}},
    ]}


X = ["node", "x"]
TOUCH = "__import__('os').system('touch RAN')"
ATTACKS = {
    "a function of the engine": graph("function torchspore.engine.torch_internals.torch_private:_run_compiler", "touch RAN", "."),
    "a module that the engine imports": graph("function torchspore.engine.torch_internals.torch_private:subprocess.call",
                                              ["list", "touch", "RAN"]),
    "another name in the same module": graph("function torchspore.graph.control_flow.execution:sys", "x"),
    "os.system": graph("function os:system", "touch RAN"),
    "a dunder way through torch.ops": graph("operator __class__.__init__.__globals__", X),
    "a dunder way through a namespace": graph("operator aten.__class__.__init__", X),
    "a dunder way through an operator": graph("operator aten.relu.__call__", X),
    "a longer path": graph("operator aten.relu.default.__init__", X),
    "torch.ops.load_library": graph("operator load_library", "evil.so"),
    "a library through a namespace": graph("operator load_library.__call__.__self__", "evil.so"),
    "a file as a tensor": graph("operator aten.from_file.default", "RAN", True, 4),
    "memory that nobody checked": graph("operator aten._sparse_coo_tensor_unsafe.default", X, X, ["list", 4]),
    "a storage": graph("operator aten.set_.source_Storage", X, X),
    "text on the screen": graph("operator aten._print.default", "hello"),
    "another namespace": graph("operator c10d.barrier.default", X),
    "a method": graph("tofile", X, "RAN", op="call_method"),
    "a module's forward": graph("relu", X, op="call_module"),
    "code in the place": graph("getitem", X, f"0] if {TOUCH} else x[0"),
    "code in a place of its own": graph("getitem", 0, 0),
    "code as a keyword": graph("operator aten.relu.default", X, **{f"self={TOUCH}, x": 1}),
    "code as a name": graph("operator aten.relu.default", X, name=f"y={TOUCH}"),
    "code as an input": graph("operator aten.relu.default", ["node", f"x={TOUCH}"], x=f"x={TOUCH}"),
    "a line in a name": graph("operator aten.relu.default", X, name=f"y\n{TOUCH}"),
    "a dtype that is a function": graph("operator aten._to_copy.default", X, dtype=["torch", "load"]),
    "no graph": {"nodes": 3},
    "an endless nest": graph("operator aten.relu.default", json.loads("[" * 900 + "]" * 900)),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_graph_in_a_file_names_operators_alone(attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"no |is no|takes|ends"):
        module = serialize.read(ATTACKS[attack])
        pipeline.compile_untuned(module, lambda: [torch.ones(4)], Settings(), frozenset())(torch.ones(4))
    assert not os.listdir(tmp_path)


def test_the_graph_that_the_attacks_were_derived_from_is_read() -> None:
    module = serialize.read(graph("operator aten.relu.default", X))
    assert [t.tolist() for t in module(torch.tensor([-1.0, 2.0]))] == [[0.0, 2.0]]


def tuning_file(folder: Path, entry: dict[str, Any], options: dict[str, Any]) -> Path:
    """A tuning file of this machine with one graph that waits."""
    (folder / "graphs").mkdir()
    (folder / "graphs/abc.json").write_text(json.dumps(options))
    job = {"net": "net.py:1", "status": "to do", "job": "1", "searches": ["GA"], "graph": "graphs/abc.json", "settings": {}, "held": [],
            "ranges": [None], **entry}
    where = folder / "tuning.json"
    where.write_text(json.dumps({"format": 1, "machine": machine(), "graphs": {"abc": job}}))
    return where


GOOD = graph("operator aten.relu.default", X)


@pytest.mark.parametrize("entry", [
    {"settings": {"kernels": {"level": 2, "blocking": [["cpp.cxx", ["touch RAN"]]]}}},
    {"settings": {"kernels": {"level": 2, "threads": "4); touch RAN"}}},
    {"settings": {"kernels": {"level": 2, "limit": "1"}}},
    {"settings": {"level": ["O1"]}},
    {"settings": {"tuning": {"job": "1"}}},
    {"settings": {"no_such": 1}},
    {"graph": "../../graphs/abc.json"},
    {"job": "__import__"},
    {"searches": ["__class__"]},
], ids=str)
def test_a_tuning_file_holds_no_code(tmp_path: Path, entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tuning").mkdir()
    (line,) = deferred_run.work_off(tuning_file(tmp_path / "tuning", entry, GOOD), pipeline.compile_untuned)
    assert "its graph can't be read" in line and not (tmp_path / "RAN").exists()


def test_the_command_passes_over_graphs_with_hostile_content(tmp_path: Path) -> None:
    tuning_file(tmp_path, {}, ATTACKS["a function of the engine"])
    ran = processes.torchspore("tune", tmp_path, cwd=tmp_path, extra={"OMP_NUM_THREADS": str(torch.get_num_threads())})
    assert "its graph can't be read" in ran.out and "is not an opera" in ran.out, ran.err
    assert not (tmp_path / "RAN").exists() and ran.code == 0


@pytest.mark.parametrize("plan", [
    {"chunk": "512); system(\"touch RAN\"); ("}, {"back end": "kernels", "vector bits": 77}, {"nothing": 1}, [1], {"threads": 1e9},
])
def test_a_plan_names_choices_alone(tmp_path: Path, plan: Any) -> None:
    from torchspore.graph.autotune import tuner

    assert tuner.built(serialize.read(GOOD), lambda: [torch.ones(4)], Settings(), frozenset(), "1", plan) is None


def test_an_entry_that_was_planted_is_not_used(tmp_path: Path) -> None:
    import hashlib

    folder = Folder(tmp_path / "cache")
    assert folder.prepare()
    folder.write("choices", "key", b"BLAS")
    assert folder.read("choices", "key") == b"BLAS"
    planted = b'{"text": "def call(self, args): ...", "libraries": {}}'
    folder.path("choices", "key").write_bytes(hashlib.sha256(b"key\n" + planted).hexdigest().encode() + b"\n" + planted)
    assert folder.read("choices", "key") is None and not folder.path("choices", "key").exists()


def test_an_entry_of_another_name_is_not_used(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "cache")
    folder.prepare()
    folder.write("graphs", "one", b"contents")
    folder.path("choices", "one").write_bytes(folder.path("graphs", "one").read_bytes())
    folder.path("graphs", "two").write_bytes(folder.path("graphs", "one").read_bytes())
    assert folder.read("choices", "one") is None and folder.read("graphs", "two") is None
    assert folder.read("graphs", "one") == b"contents"


def test_the_folder_is_created_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert Folder(tmp_path / "rank_0/cache").prepare() is False           # rank_0 itself came out for everybody
        assert Folder(tmp_path / "cache").prepare()
    finally:
        os.umask(before)
    folders = [tmp_path / "cache", *(path for path in (tmp_path / "cache").rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


@pytest.mark.parametrize("part", ["", "choices", "kernels"])
def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path, part: str) -> None:
    assert Folder(tmp_path / "cache").prepare()
    (tmp_path / "cache" / part).chmod(0o777)
    folder = Folder(tmp_path / "cache")
    assert not folder.prepare() and not folder.usable


@pytest.mark.parametrize("part", ["", "choices", "kernels"])
def test_a_folder_that_is_a_link_is_not_used(tmp_path: Path, part: str) -> None:
    (tmp_path / "planted").mkdir(mode=0o700)
    where = tmp_path / "cache" / part
    where.parent.mkdir(mode=0o700, exist_ok=True)
    where.symlink_to(tmp_path / "planted", target_is_directory=True)
    assert not Folder(tmp_path / "cache").prepare()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    assert Folder(tmp_path / "cache").prepare()
    os.chown(tmp_path / "cache", 12345, 12345)
    assert not Folder(tmp_path / "cache").prepare()


PROGRAM = """
import mindspore as ms
from mindspore import nn, ops
ms.set_context(mode=0, enable_compile_cache=True, compile_cache_path="cache")
class Net(nn.Cell):
    def construct(self, x):
        return ops.relu(x) + 1
print(Net()(ms.Tensor([1.0, -1.0])).asnumpy().tolist(), flush=True)
"""


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda home: (home / "torchspore").write_text(""), "can't be used"),
    (lambda home: ((home / "torchspore").mkdir(0o700), (home / "torchspore/key").write_bytes(b"short"), (home / "torchspore/key").chmod(0o600)),  # noqa: E501
     "is damaged"),
    (lambda home: ((home / "torchspore").mkdir(0o700), (home / "torchspore/key").write_bytes(b"k" * 32), (home / "torchspore/key").chmod(0o644)),  # noqa: E501
     "is not this user's alone"),
    (lambda home: ((home / "torchspore").mkdir(0o700), (home / "torchspore/key").symlink_to("/dev/zero")), "can't be used"),
    (lambda home: ((home / "torchspore").mkdir(), (home / "torchspore").chmod(0o777)), "can be written by other users"),
], ids=["no folder", "damaged key", "readable key", "key is a link", "open folder"])
def test_without_a_key_of_this_user_nothing_is_taken(tmp_path: Path, spoil: Any, message: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    spoil(home)
    (tmp_path / "main.py").write_text(PROGRAM)
    ran = processes.torchspore("run", "main.py", cwd=tmp_path, extra={"XDG_CACHE_HOME": str(home)})
    assert ran.code == 0 and ran.out.strip() == "[2.0, 1.0]", ran.err
    assert ran.err.count("graphs are compiled without it") == 1 and message in ran.err


def test_the_key_is_this_users_alone() -> None:
    key = Path(os.environ["XDG_CACHE_HOME"], "torchspore/key")
    assert trust.key() == key.read_bytes() and len(key.read_bytes()) == 32
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert {path.name for path in key.parent.iterdir()} <= {"key", "native"}      # the watch of operators is built there


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "cache")
    assert folder.prepare()
    folder.write("graphs", "a", b"kept")
    path = folder.path("graphs", "a")
    path.unlink()
    os.mkfifo(path)
    (folder.root / ".lock").unlink(missing_ok=True)
    os.mkfifo(folder.root / ".lock")
    assert folder.read("graphs", "a") is None
    with folder.locked() as got:
        assert got
    os.mkfifo(tmp_path / "tuning.json")
    with pytest.raises(file.Unusable, match="no plain file"):
        file.read(tmp_path / "tuning.json")
    assert deferred_run.threads_of(tmp_path / "tuning.json") is None
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(file.Unusable):
        file.read(tmp_path / "deep.json")
