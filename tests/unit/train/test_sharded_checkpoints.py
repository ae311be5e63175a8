"""`format='dcp'`: checkpoints in a folder, by processes whose parts lie differently; damaged, hostile and killed ones; conversion."""
from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, train
from support import full_disk
from support.resharded import FULL, parts_of_process, strategy, write_checkpoints
from torch.distributed.checkpoint import HuggingFaceStorageReader, load

from torchspore.cli import ckpt
from torchspore.distributed.checkpoints import index as index_file
from torchspore.distributed.checkpoints import saving, torch_engine
from torchspore.distributed.checkpoints.loading import Checkpoint
from torchspore.distributed.checkpoints.local_parts import LocalPart
from torchspore.distributed.checkpoints.saving import Contents
from torchspore.errors import CommunicationError, FileFormatError

Part = tuple[tuple[int, ...], np.ndarray]


# Simulated processes ---------------------------------------------------------------------------------------------------------------------


def position(name: str, part: np.ndarray) -> tuple[int, ...]:
    """Where a part begins: all values of FULL are different."""
    return tuple(int(at[0]) for at in np.nonzero(FULL[name] == part.ravel()[0]))


def parts_of_processes(count: int) -> list[dict[str, Part]]:
    return [{name: (position(name, part), part) for name, part in parts_of_process(rank, count).items()} for rank in range(count)]


def saved_by(path: Path, count: int, names: Callable[[int], list[str]] = lambda rank: list(FULL)) -> Path:
    """A checkpoint of as many simulated processes, through the planner and the storage that torch calls; the first holder saves."""
    taken: set[tuple[str, tuple[int, ...]]] = set()
    together = []
    for rank, parts in enumerate(parts_of_processes(count)):
        mine = {}
        for name, (offsets, part) in parts.items():
            if (name, offsets) not in taken:
                taken.add((name, offsets))
                elements = torch.from_numpy(np.ascontiguousarray(part))
                mine[name] = LocalPart(elements, offsets, FULL[name].shape, (rank,), True)
        together.append(Contents(path, (*names(rank), "epoch"), {"epoch": "3"}, mine))
    planners = [torch_engine.Planner(mine) for mine in together]
    storages = [torch_engine.Storage(mine) for mine in together]
    plans, metadata = planners[0].create_global_plan([planner.create_local_plan() for planner in planners])
    plans = storages[0].prepare_global_plan(plans)
    results = [storage.write_data(plan, planner).value() for storage, plan, planner in zip(storages, plans, planners)]
    storages[0].finish(metadata, results)
    return path


@pytest.mark.parametrize("saving_count", [8, 4, 2])
@pytest.mark.parametrize("loading_count", [8, 4, 2, 1])
def test_any_number_of_processes_reads_what_others_saved(tmp_path: Path, saving_count: int, loading_count: int) -> None:
    checkpoint = Checkpoint(saved_by(tmp_path / "n.dcp", saving_count))
    loaded = parts_of_processes(loading_count) if loading_count > 1 else [{name: ((0,) * full.ndim, full) for name, full in FULL.items()}]
    for parts in loaded:
        for name, (offsets, part) in parts.items():
            slices = [slice(start, start + size) for start, size in zip(offsets, part.shape)]
            np.testing.assert_array_equal(checkpoint.read(name, slices).numpy(), part)
    assert checkpoint.values["epoch"] == "3"


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_each_element_is_in_one_file_and_torch_reads_them(tmp_path: Path) -> None:
    path = saved_by(tmp_path / "n.dcp", 8)
    index = json.loads((path / "checkpoint.json").read_text())
    sizes = [size for _, size in index["files"]]
    elements = sum(full.nbytes for full in FULL.values())
    assert elements <= sum(sizes) < elements + 2048 * len(sizes)
    largest_parts = max(sum(part.nbytes for _, part in parts.values()) for parts in parts_of_processes(8))
    assert max(sizes) < largest_parts + 2048                                 # no process writes more than its parts
    state = {name: torch.zeros(full.shape) for name, full in FULL.items()}
    load(state, storage_reader=HuggingFaceStorageReader(str(path / index["folder"])), no_dist=True)
    for name, full in FULL.items():
        np.testing.assert_array_equal(state[name].numpy(), full)


def test_processes_that_save_other_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommunicationError, match="rank 3 saves other names than rank 0"):
        saved_by(tmp_path / "n.dcp", 4, lambda rank: list(FULL) if rank != 3 else ["w"])
    assert not (tmp_path / "n.dcp").exists()


@pytest.mark.parametrize(("shape", "parts", "is_covered"), [
    ((4, 6), [((0, 0), (4, 3)), ((0, 3), (4, 3))], True),
    ((4, 6), [((0, 0), (4, 3))], False),
    ((4, 6), [((0, 0), (4, 3)), ((0, 0), (4, 3))], False),
    ((4, 6), [((0, 0), (4, 4)), ((0, 3), (4, 3))], False),
    ((4, 6), [((0, 0), (2, 3)), ((2, 3), (2, 3)), ((0, 3), (2, 3)), ((2, 0), (2, 3))], True),
    ((4, 6), [((0, 0), (2, 3)), ((2, 3), (2, 3)), ((0, 3), (2, 3))], False),
    ((4,), [((1,), (3,))], False), ((4,), [((0,), (5,))], False), ((4,), [((0, 0), (4, 1))], False), ((4,), [], False),
    ((), [((), ())], True), ((), [], False), ((0, 3), [((0, 0), (0, 3))], True),
])
def test_parts_that_cover_a_shape(shape: Any, parts: Any, is_covered: bool) -> None:
    assert index_file.is_covered(shape, parts) == is_covered


# One process -----------------------------------------------------------------------------------------------------------------------------


class Net(nn.Cell):
    def __init__(self, value: float = 1.0) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 3)
        self.fc.weight.set_data(Tensor(np.full((3, 2), value, np.float32)))
        self.counter = ms.Parameter(Tensor(np.int64(7)), name="counter", requires_grad=False)
        self.half = ms.Parameter(Tensor(np.arange(4, dtype=np.float32)).astype(ms.bfloat16), name="half")


def saved(folder: Path, value: float = 1.0) -> Path:
    ms.save_checkpoint(Net(value), str(folder / "n"), format="dcp", append_dict={"step": 3, "text": "é", "flag": True})
    return folder / "n.dcp"


def loaded(path: Path) -> dict[str, Any]:
    return ms.load_checkpoint(str(path), format="dcp")


def test_one_process_gets_back_what_it_saved(tmp_path: Path) -> None:
    path = saved(tmp_path, 2.5)
    content = loaded(path)
    assert list(content) == [*(parameter.name for parameter in Net().get_parameters()), "step", "text", "flag"]
    assert content["text"] == "é" and int(content["step"]) == 3 and bool(content["flag"]) and str(content["half"].dtype) == "BFloat16"
    net = Net()
    assert ms.load_param_into_net(net, content, strict_load=True)[0] == []
    assert net.fc.weight.asnumpy().tolist() == [[2.5] * 2] * 3 and net.half.astype(ms.float32).asnumpy().tolist() == [0, 1, 2, 3]
    other = Net()
    ms.load_checkpoint(str(path), other, format="dcp", crc_check=True)
    assert float(other.fc.weight.sum()) == 15.0
    assert list(ms.load_checkpoint(str(path), format="dcp", specify_prefix="fc.")) == ["fc.weight", "fc.bias"]


def test_a_later_save_replaces_an_earlier_one(tmp_path: Path) -> None:
    saved(tmp_path)
    leftover = tmp_path / "n.dcp" / "save-0000000000000000"
    leftover.mkdir()
    (leftover / "shard-00001-model-00001-of-00001.safetensors").write_bytes(b"of a killed program")
    (tmp_path / "n.dcp" / "notes.txt").write_text("the user's")
    path = saved(tmp_path, 4.0)
    assert float(loaded(path)["fc.weight"].sum()) == 24.0
    assert len(list(path.iterdir())) == 3 and (path / "notes.txt").exists()


def test_a_thread_writes_while_the_program_continues(tmp_path: Path) -> None:
    net = Net()
    ms.save_checkpoint(net, str(tmp_path / "n.dcp"), format="dcp", async_save=True)
    net.fc.weight.set_data(net.fc.weight * 0)
    assert float(loaded(tmp_path / "n.dcp")["fc.weight"].sum()) == 6.0


def test_model_checkpoint_keeps_as_many_folders_as_it_shall(tmp_path: Path) -> None:
    net = nn.Dense(2, 1)
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    data = ms.dataset.NumpySlicesDataset((np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)), shuffle=False).batch(2)
    config = train.CheckpointConfig(keep_checkpoint_max=2, format="dcp", append_info=["step_num"])
    model.train(1, data, callbacks=[train.ModelCheckpoint("m", str(tmp_path), config)])
    assert sorted(child.name for child in tmp_path.iterdir()) == ["m-1_3.dcp", "m-1_4.dcp"]
    assert int(loaded(tmp_path / "m-1_4.dcp")["step_num"]) == 4


@pytest.mark.parametrize(("call", "text"), [
    pytest.param(lambda path: ms.save_checkpoint(Net(), path, format="dcp", enc_key=b"0" * 16), "only these files are encrypted",
                 marks=pytest.mark.needs("cryptography")),
    (lambda path: ms.save_checkpoint({"c": Tensor(np.ones(2, np.complex128))}, path, format="dcp"), "a type of safetensors"),
    (lambda path: ms.save_checkpoint(Net(), path, format="dpc"), "'ckpt', 'safetensors' or 'dcp'"),
    (lambda path: ms.load_checkpoint(path, format="dcp"), "ends with .dcp"),
    (lambda path: ms.load_checkpoint(path + ".dcp", format="dcp"), "a file that exists"),
])
def test_calls_that_are_refused(tmp_path: Path, call: Callable[[str], Any], text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=text):
        call(str(tmp_path / "n"))


# Damage ----------------------------------------------------------------------------------------------------------------------------------


def shard(path: Path) -> Path:
    return next(path.glob("save-*/*.safetensors"))


def rewritten(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    listed = path / "checkpoint.json"
    content = json.loads(listed.read_text())
    change(content)
    listed.chmod(0o600)
    listed.write_text(json.dumps(content))


@pytest.mark.parametrize("change", [
    lambda c: c.update(format="x"), lambda c: c.update(version=2), lambda c: c.pop("files"), lambda c: c.update(folder="../save-0"),
    lambda c: c.update(folder="/etc"), lambda c: c.update(folder=3), lambda c: c["files"].append(c["files"][0]),
    lambda c: c["files"].append(["../../etc/passwd", 3]), lambda c: c["files"][0].__setitem__(1, 3),
    lambda c: c["files"][0].__setitem__(1, -1),
    lambda c: c["files"][0].__setitem__(1, 1 << 60), lambda c: c.update(files={}), lambda c: c.update(values=[]),
    lambda c: c["values"].update({"fc.bias": ["Float32", [1 << 60], [[0, [0], [1 << 60], 0]]]}),
    lambda c: c["values"].update({"fc.bias": ["Float32", [1 << 40], [[0, [0], [1 << 40], 0]]]}),
    lambda c: c["values"].update({"fc.bias": ["Object", [3], [[0, [0], [3], 0]]]}),
    lambda c: c["values"].update({"fc.bias": ["Float32", [3], [[1, [0], [3], 0]]]}),
    lambda c: c["values"].update({"fc.bias": ["Float32", [3], [[0, [0], [2], 0]]]}),
    lambda c: c["values"].update({"fc.bias": ["Float32", [3], []]}), lambda c: c["values"].update({"fc.bias": ["Float32", [-3], []]}),
    lambda c: c["values"].update({"fc.bias": ["Float32", [True], [[0, [0], [1], 0]]]}), lambda c: c["values"].update({"fc.bias": 3}),
    lambda c: c["values"].update({"fc.bias": ["Float32", [1] * 40, [[0, [0] * 40, [1] * 40, 0]]]}),
    lambda c: c["values"].update({"fc.bias": ["Float32", [6], [[0, [0], [6], 0]]]}),                    # another shape than in the file
    lambda c: c["values"].update({"fc.bias": ["Int32", [3], [[0, [0], [3], 0]]]}),                      # another type
    lambda c: c["values"].update({"other": ["Float32", [3], [[0, [0], [3], 0]]]}),                      # not in the file
    lambda c: c["values"]["fc.bias"][2][0].__setitem__(3, 5),                                           # another checksum
], ids=range(27))
def test_an_index_that_does_not_fit_is_refused(tmp_path: Path, change: Callable[[Any], Any]) -> None:
    path = saved(tmp_path)
    rewritten(path, change)
    with pytest.raises(FileFormatError) as raised:
        loaded(path)
    assert str(path) in str(raised.value) and len(str(raised.value)) < 2000


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff\xfe", b"null", b'{"f": 1, "f": 2}', pickle.dumps({"a": 1})])
def test_an_index_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    path = saved(tmp_path)
    (path / "checkpoint.json").chmod(0o600)
    (path / "checkpoint.json").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"checkpoint\.json"):
        loaded(path)


def test_no_flipped_bit_is_loaded(tmp_path: Path) -> None:
    path, chance = saved(tmp_path), random.Random(0)
    file, before = shard(path), loaded(path)
    content_before = file.read_bytes()
    file.chmod(0o600)
    for _ in range(100):
        content = bytearray(content_before)
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        file.write_bytes(content)
        try:
            after = loaded(path)                                             # a flipped bit in torch's own metadata changes no value
        except FileFormatError:
            continue
        assert all(isinstance(value, str) or np.array_equal(value.astype(ms.float32).asnumpy(), before[name].astype(ms.float32).asnumpy())
                   for name, value in after.items())


def test_a_missing_or_short_file_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path)
    file = shard(path)
    content = file.read_bytes()
    file.chmod(0o600)
    file.write_bytes(content[:-4])
    with pytest.raises(FileFormatError, match=file.name):
        loaded(path)
    file.unlink()
    with pytest.raises(FileFormatError, match="missing"):
        loaded(path)
    os.mkfifo(file)                                                          # a read would wait for ever
    with pytest.raises(FileFormatError, match="missing"):
        loaded(path)


def test_a_pickle_of_torch_is_refused_and_does_not_run(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "ran"),)

    path = tmp_path / "t.dcp"
    path.mkdir()
    (path / ".metadata").write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(FileFormatError, match="a pickle, which could run code"):
        loaded(path)
    assert not (tmp_path / "ran").exists()
    (path / ".metadata").unlink()
    with pytest.raises(FileFormatError, match=r"without checkpoint\.json"):
        loaded(path)


# Killed programs, full disks -------------------------------------------------------------------------------------------------------------


def test_a_save_without_its_index_is_invisible(tmp_path: Path) -> None:
    path = tmp_path / "n.dcp"
    values = {"w": Tensor(np.ones(4, np.float32))}
    mine = saving.contents(path, values)
    saving.write_parts(mine, saving.new_folder(), 0)
    with pytest.raises(FileFormatError, match="incomplete"):
        loaded(path)
    saving.save(mine, None)
    saving.write_parts(saving.contents(path, {"w": Tensor(np.zeros(4, np.float32))}), saving.new_folder(), 0)
    assert loaded(path)["w"].asnumpy().tolist() == [1] * 4
    saving.remove(path)
    assert not path.exists()


PROGRAM = """
import sys
import mindspore as ms, numpy as np
from mindspore import Tensor
for step in range(100_000):
    values = {f"w{at}": Tensor(np.full((64, 64), step, np.float32)) for at in range(8)}
    ms.save_checkpoint(values, sys.argv[1], format="dcp", append_dict={"step": step})
    print(step, flush=True)
"""


def test_a_program_that_is_killed_at_any_moment_leaves_a_complete_checkpoint(tmp_path: Path) -> None:
    path, chance = tmp_path / "n.dcp", random.Random(3)
    (tmp_path / "saves.py").write_text(PROGRAM)
    for _ in range(4):
        words = [sys.executable, "-m", "torchspore", "run", str(tmp_path / "saves.py"), str(path)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            program.stdout.readline()
            time.sleep(chance.random() * 0.1)
            program.send_signal(signal.SIGKILL)
        content = loaded(path)
        step = int(content.pop("step"))
        assert all(np.array_equal(value.asnumpy(), np.full((64, 64), step)) for value in content.values()) and len(content) == 8


def test_a_full_disk_leaves_the_earlier_checkpoint(tmp_path: Path) -> None:
    path = saved(tmp_path)
    big = {"w": Tensor(np.ones(100_000, np.float32))}
    with full_disk.takes(10_000), pytest.raises(OSError, match="shard-00001"):
        ms.save_checkpoint(big, str(path), format="dcp")
    assert "fc.weight" in loaded(path) and len(list(path.iterdir())) == 2


# Conversion ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [8, 4])
def test_folders_of_ranks_become_one_checkpoint_and_files_again(
    tmp_path: Path, count: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_checkpoints(tmp_path / "in", count)
    assert ckpt.run(["convert", folder, "n.dcp", "--source-strategy", strategy(tmp_path, count)]) == 0
    assert ckpt.run(["convert", "n.dcp", "n.ckpt"]) == 0
    assert ckpt.run(["convert", "n.ckpt", "m.dcp"]) == 0
    assert ckpt.run(["convert", "m.dcp", "n.safetensors"]) == 0
    for content in (ms.load_checkpoint("n.ckpt"), ms.load_checkpoint("n.safetensors", format="safetensors"), loaded(Path("m.dcp"))):
        assert all(np.array_equal(content[name].asnumpy(), full) for name, full in FULL.items()) and int(content["epoch_num"]) == 3
    assert ckpt.run(["convert", str(saved_by(tmp_path / "s.dcp", count)), "out", "--strategy", strategy(tmp_path, 2)]) == 0
    for rank in range(2):
        content = ms.load_checkpoint(f"out/rank_{rank}/checkpoint{rank}.ckpt")
        assert all(np.array_equal(content[name].asnumpy(), part) for name, part in parts_of_process(rank, 2).items())
    assert "written: " in capsys.readouterr().out
    assert ckpt.run(["diff", "n.dcp", "n.ckpt"]) == 0 and ckpt.run(["show", "n.dcp"]) == 0
    assert "checksum: fits" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "text"), [
    (["in", "n.dcp"], "--source-strategy FILE"), (["n.ckpt", "out"], "--strategy FILE"), (["n.dcp", "n.ckpt"], "a folder that exists"),
    (["n.ckpt", "n.dcp", "--strategy", "8.ckpt"], "OUTPUT n.dcp with --strategy"),
    (["in", "n.dcp", "--source-strategy", "no"], "an existing file"),
])
def test_conversions_that_are_refused(
    tmp_path: Path, words: list[str], text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    strategy(tmp_path, 8)
    assert ckpt.run(["convert", *words]) == 2
    assert text in capsys.readouterr().err
