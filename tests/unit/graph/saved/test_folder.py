"""Where the files go, and what happens where they can't go there."""
from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mindspore as ms
import pytest
from support.processes import Run
from unit.graph.saved.conftest import Saving
from unit.graph.saved.nets import Deciding, Net, X

from torchspore.base import paths
from torchspore.graph.save_graphs import folder as folders

PROGRAM = """
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn
{before}
ms.set_context(mode=ms.GRAPH_MODE{options})
net = nn.Dense(4, 2)
print(net(Tensor(np.ones((3, 4), np.float32))).shape)
"""


def program(path: Path, options: str = "", before: str = "") -> Path:
    file = path / "main.py"
    file.write_text(PROGRAM.format(options=options, before=before))
    return file


def test_a_directory_that_cannot_be_created_is_refused_when_it_is_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    before = ms.get_context("save_graphs"), ms.get_context("save_graphs_path")
    with pytest.raises(NotADirectoryError) as caught:
        ms.set_context(save_graphs=2, save_graphs_path=str(tmp_path / "file" / "graphs"))
    assert str(caught.value).endswith("\n\nhint: name a directory that you may write to.") and "cannot be created" in str(caught.value)
    assert (ms.get_context("save_graphs"), ms.get_context("save_graphs_path")) == before


def test_a_directory_that_another_process_makes_meanwhile_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, exists = tmp_path / "graphs", Path.exists

    def late(self: Path) -> bool:
        result = exists(self)
        if self == target:
            target.mkdir(exist_ok=True)
        return result

    monkeypatch.setattr(Path, "exists", late)
    assert paths.make_directory(str(target)) == [] and target.is_dir()


def test_one_that_is_gone_later_is_reported_once_and_the_program_goes_on(saving: Saving) -> None:
    folder = saving(2)
    Net()(X)
    contents = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
    moved = folder.rename(folder.with_name("moved"))
    folder.write_text("a file where the directory was")
    with pytest.warns(UserWarning) as caught:
        results = [Net()(X), Deciding()(X)]
    assert [result.shape for result in results] == [(3, 2), (3, 2)]
    (warning,) = caught
    assert str(warning.message) == (
        f"save_graphs: {folder} can't be written (File exists); the program continues, and what was saved before stays.\n\n"
        "hint: set save_graphs_path to a directory that can be written."
    )
    assert warning.filename == __file__
    assert {path.name: path.read_text() for path in moved.iterdir() if path.is_file()} == contents
    folder.unlink()
    moved.rename(folder)


def test_a_full_disk_is_reported_with_what_to_do(saving: Saving, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saving(1)
    replace, count = os.replace, iter(range(100))

    def full(source: str, target: str) -> None:
        if next(count) >= 4:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(UserWarning, match="No space left on device") as caught:
        Net()(X)
    assert str(caught[0].message).endswith("\n\nhint: free some space.")
    names = sorted(path.name[:-8] for path in folder.iterdir())
    assert names == ["00_bootstrap", "01_type_inference", "02_gradient", "03_control_flow"]
    assert all(path.read_text().startswith("# ") for path in folder.iterdir())


def test_a_warning_that_is_an_error_is_one(saving: Saving) -> None:
    folder = saving(1)
    folder.rmdir()
    folder.write_text("a file where the directory was")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="can't be written"):
            Net()(X)
    folder.unlink()
    folder.mkdir()


def test_a_file_that_is_broken_off_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: str, target: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError):
        folders.write_atomically(tmp_path / "a.ir", "text")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_environment_turns_it_on(tmp_path: Path, run: Callable[..., Run]) -> None:
    extra = {"MS_DEV_SAVE_GRAPHS": "1", "MS_DEV_SAVE_GRAPHS_PATH": "elsewhere"}
    done = run("run", program(tmp_path), extra=extra)
    assert done.code == 0, done.err
    assert (tmp_path / "elsewhere" / "index.html").exists() and len(list((tmp_path / "elsewhere").glob("*.ir"))) == 10


@pytest.mark.slow
def test_without_a_path_they_go_to_the_current_directory(tmp_path: Path, run: Callable[..., Run]) -> None:
    done = run("explain", program(tmp_path, ", save_graphs=1"))
    assert done.code == 0, done.err
    assert len(list(tmp_path.glob("*.ir"))) == 10
    assert any(row.startswith("save_graphs ") and " applied: level 1" in row for row in done.out.splitlines()), done.out


@pytest.mark.slow
def test_several_processes_have_a_directory_each(tmp_path: Path, run: Callable[..., Run]) -> None:
    begin = (
        "import sys, torch.distributed as dist\n"
        f"dist.init_process_group('gloo', init_method='file://{tmp_path}/store', rank=int(sys.argv[1]), world_size=2)\n"
    )
    file = program(tmp_path, ", save_graphs=1, save_graphs_path='graphs'", begin)
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda rank: run("run", file, str(rank), extra={"GLOO_SOCKET_IFNAME": "lo"}, timeout=60), range(2)))
    assert [run_result.code for run_result in done] == [0, 0], done
    assert sorted(path.name for path in (tmp_path / "graphs").iterdir()) == ["rank_0", "rank_1"]
    assert [len(list((tmp_path / "graphs" / f"rank_{rank}").glob("*.ir"))) for rank in range(2)] == [10, 10]


@pytest.mark.slow
def test_a_warm_compile_cache_swallows_nothing(tmp_path: Path, run: Callable[..., Run]) -> None:
    options = ", save_graphs=3, save_graphs_path=__import__('sys').argv[1], enable_compile_cache=True, jit_config={'jit_level': 'O1'}"
    file = program(tmp_path, options)
    for folder in ("cold", "warm"):
        done = run("run", file, folder, timeout=300)
        assert done.code == 0, done.err
    cold, warm = ({path.name: path.read_text() for path in (tmp_path / name).rglob("*.ir")} for name in ("cold", "warm"))
    assert cold == warm and len(cold) > 10
