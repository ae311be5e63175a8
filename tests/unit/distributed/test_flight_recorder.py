"""Dumps of torch's Flight Recorder, which `exchange_faults.py` recorded: what they say of a job, and that nothing in them runs."""
from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchspore.blackbox import flight_diagnosis, flight_dumps
from torchspore.blackbox.flight_dumps import DumpDamaged
from torchspore.cli import rdr
from torchspore.distributed.comm import launch, torch_diagnosis

RECORDED = Path(__file__).parent / "flight_recorder"
SCRIPT = "tests/support/exchange_faults.py"


def test_ranks_in_different_exchanges() -> None:
    assert flight_diagnosis.describe(RECORDED / "kind") == [
        "exchanges of ranks 0, 1, from torch's Flight Recorder:",
        "  world, exchange 2: the ranks differ",
        f"    rank 0: AllReduce of float32[4] at {SCRIPT}:27",
        f"    rank 1: AllGather of float32[2] at {SCRIPT}:23",
    ]


def test_a_rank_that_does_not_come() -> None:
    assert flight_diagnosis.describe(RECORDED / "late") == [
        "exchanges of ranks 0, 1, from torch's Flight Recorder:",
        "  world, exchange 2: rank 1 has not begun it",
        f"    rank 0: AllReduce of float32[4] at {SCRIPT}:27",
        f"    rank 1: its last one was AllReduce of float32[3], exchange 1 at {SCRIPT}:27",
    ]


# Jobs that no machine here can run: dumps as NCCL writes them, changed from a recorded one ---------------------------------------------


def entry(number: int, kind: str = "nccl:all_reduce", sizes: Any = ((4,),), state: str = "completed", **changes: Any) -> dict[str, Any]:
    recorded = pickle.loads((RECORDED / "kind" / "flight_recorder_rank_0").read_bytes())["entries"][0]
    return {**recorded, "collective_seq_id": number, "profiling_name": kind, "input_sizes": [list(size) for size in sizes], "state": state,
            **changes}


def written(folder: Path, by_rank: dict[int, list[dict[str, Any]]], count: int, prefix: str = flight_dumps.PREFIX) -> list[str]:
    folder.mkdir(exist_ok=True)
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(count)))}}
    for rank, entries in by_rank.items():
        content = {"version": "2.10", "entries": entries, "pg_config": config, "pg_status": {}, "comm_lib_version": "2.27"}
        (folder / f"{prefix}{rank}").write_bytes(pickle.dumps(content, protocol=2))
    return flight_diagnosis.describe(folder)


def test_one_of_many_ranks_sends_another_shape(tmp_path: Path) -> None:
    by_rank = {rank: [entry(7), entry(8, sizes=((4 + (rank == 700),),), state="started")] for rank in range(1000)}
    assert written(tmp_path, by_rank, 1000)[1:] == [
        "  world, exchange 8: the ranks differ",
        f"    ranks 0 to 699, 701 to 999: AllReduce of float32[4] at {SCRIPT}:27",
        f"    rank 700: AllReduce of float32[5] at {SCRIPT}:27",
    ]


def test_a_rank_without_a_dump_and_an_exchange_that_does_not_end(tmp_path: Path) -> None:
    lines = written(tmp_path, {rank: [entry(1), entry(2, state="started")] for rank in (0, 1, 3)}, 4)
    assert lines[1:] == [
        "  world: no dump of rank 2; it had ended, or wrote none",
        "  world, exchange 2: all ranks with a dump have begun it, and not all have completed it",
        f"    ranks 0, 1, 3: AllReduce of float32[4] (started) at {SCRIPT}:27",
    ]


@pytest.mark.parametrize(("kind", "is_refused"), [("nccl:all_to_all", False), ("nccl:_reduce_scatter_base", True)])
def test_shapes_of_each_rank_may_differ_in_some_exchanges(tmp_path: Path, kind: str, is_refused: bool) -> None:
    lines = written(tmp_path, {rank: [entry(1, kind, ((rank + 1,),))] for rank in range(2)}, 2)
    assert any("differ" in line for line in lines) == is_refused


def test_a_job_without_a_fault_and_a_buffer_that_lacks_old_entries(tmp_path: Path) -> None:
    lines = written(tmp_path, {0: [entry(number) for number in (3, 4, 5)], 1: [entry(number) for number in (4, 5)]}, 2, "nccl_trace_rank_")
    assert lines[1:] == ["  no rank waits in an exchange: all have begun the same ones, and these are completed"]


def test_groups_and_messages(tmp_path: Path) -> None:
    name = {"process_group": ("ranks_0-1:0-1:1", "ranks_0-1:0-1:1")}
    message = {"is_p2p": True, "p2p_seq_id": 4, "profiling_name": "nccl:send 0->1", "state": "started"}
    lines = written(tmp_path, {0: [entry(1, **name), entry(0, **message)], 1: [entry(1, "nccl:broadcast", **name)]}, 2)
    assert lines[1:] == [
        "  ranks_0-1, exchange 1: the ranks differ", f"    rank 0: AllReduce of float32[4] at {SCRIPT}:27",
        f"    rank 1: Broadcast of float32[4] at {SCRIPT}:27",
        "  messages between two ranks that are not completed", f"    rank 0: Send of float32[4] at {SCRIPT}:27",
    ]


@pytest.mark.parametrize(("file", "is_users"), [
    ("/home/a/train.py", True), ("/opt/lib/python3.12/site-packages/my_models/net.py", True),
    ("/work/torchspore/src/torchspore/cli/run.py", False),
    ("/opt/lib/python3.12/site-packages/torch/nn/module.py", False), ("/opt/lib/python3.12/threading.py", False), ("<frozen runpy>", False),
    ("/usr/lib/python3/dist-packages/torch_npu/a.py", False),
])
def test_the_line_is_the_programs(tmp_path: Path, file: str, is_users: bool) -> None:
    frames = [{"filename": file, "line": 3, "name": "f"}, {"filename": "/home/b/last.py", "line": 9, "name": "g"}]
    lines = written(tmp_path, {rank: [entry(1, state="started", frames=frames)] for rank in range(2)}, 2)
    assert lines[-1].endswith(f" at {file}:3" if is_users else " at /home/b/last.py:9")


# Hostile files ---------------------------------------------------------------------------------------------------------------------------


def read(folder: Path, content: bytes) -> Any:
    (folder / "flight_recorder_rank_0").write_bytes(content)
    return flight_dumps.read(folder / "flight_recorder_rank_0", 0)


def test_a_pickle_that_names_a_function_does_not_run(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "ran"),)

    for content in (pickle.dumps({"entries": Hostile()}), b"cos\nsystem\n(S'touch ran'\ntR.", pickle.dumps(os.getcwd), b"Pid\n."):
        with pytest.raises(DumpDamaged, match="flight_recorder_rank_0"):
            read(tmp_path, content)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("change", [
    lambda e: e.pop("frames") and e.update(frames=3), lambda e: e.update(process_group=3), lambda e: e.update(process_group=("a", 3)),
    lambda e: e.update(collective_seq_id=-1), lambda e: e.update(collective_seq_id="1"), lambda e: e.update(collective_seq_id=1 << 80),
    lambda e: e.update(profiling_name=None), lambda e: e.update(input_sizes=[["x"]]), lambda e: e.update(input_dtypes=[3]),
    lambda e: e.update(state=1), lambda e: e.pop("state"), lambda e: e.update(frames=[{"filename": "a.py", "line": "x"}]),
], ids=range(12))
def test_entries_of_another_form_are_refused(tmp_path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    changed = entry(1)
    change(changed)
    with pytest.raises(DumpDamaged):
        read(tmp_path, pickle.dumps({"entries": [changed], "pg_config": {}}))


def test_noise_is_read_or_named(tmp_path: Path) -> None:
    before, chance = (RECORDED / "kind" / "flight_recorder_rank_0").read_bytes(), random.Random(1)
    for _ in range(500):
        content = bytearray(before)
        for _ in range(chance.randrange(1, 8)):
            offset = chance.randrange(len(content))
            content[offset:offset + chance.randrange(4)] = chance.randbytes(chance.randrange(5))
        try:
            read(tmp_path, bytes(content))
        except DumpDamaged:
            pass


def test_texts_of_a_dump_do_not_reach_the_terminal(tmp_path: Path) -> None:
    lines = written(tmp_path, {rank: [entry(1, "nccl:\x1b[2J" + "a" * 10_000, state="started")] for rank in range(2)}, 2)
    assert "\x1b" not in "".join(lines) and len("".join(lines)) < 6000


# Commands and texts of torch -------------------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rdr.run(["exchanges", str(RECORDED / "kind")]) == 0
    assert "world, exchange 2: the ranks differ" in capsys.readouterr().out
    assert rdr.run(["exchanges", str(tmp_path)]) == 1 and "no dump of torch's Flight Recorder" in capsys.readouterr().err
    assert rdr.run(["exchanges"]) == 2 and "expected DIR" in capsys.readouterr().err
    (tmp_path / "flight_recorder_rank_0").write_bytes(b"noise")
    assert rdr.run(["exchanges", str(tmp_path)]) == 0 and "flight_recorder_rank_0: no dump" in capsys.readouterr().out


WRAPPER = (
    "Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=1, "
    "OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float, TensorDeviceTypes=TensorOptions("
    "dtype=float (default), device=cpu, layout=Strided (default), "
    "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))), but Rank 1 is running collective: "
    "CollectiveFingerPrint(SequenceNumber=1, OpType=_ALLGATHER_BASE, TensorShape=[2, 3], TensorDtypes=Half, "
    "TensorDeviceTypes=TensorOptions("
    "dtype=float (default), device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false (default), "
    "memory_format=(nullopt))).Collectives differ in the following aspects: \t Op type: ALLREDUCEvs _ALLGATHER_BASE"
)
"""What torch 2.13 said."""


@pytest.mark.parametrize(("text", "meaning"), [
    (WRAPPER, "rank 0 is in AllReduce of float32[4], and rank 1 is in AllGather of float16[2, 3]"),
    ("[Rank 0]: Ranks 1 failed to pass monitoredBarrier in 600000 ms", "rank 1 has not come to it"),
    ("[Rank 0]: Ranks 1, 5, 6 failed to pass monitoredBarrier in 600 ms", "ranks 1, 5, 6 have not come to it"),
    ("Timed out waiting 5000ms for recv operation to complete", None),
    ("Detected mismatch between collectives on ranks.", None), ("", None),
])
def test_errors_of_torch_have_a_meaning(text: str, meaning: str | None) -> None:
    assert torch_diagnosis.translated(text) == meaning


def test_variables_of_the_user_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_DUMP_ON_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "environ", {**os.environ, launch.LOG: str(tmp_path / "worker_0.log"), "TORCH_NCCL_TRACE_BUFFER_SIZE": "7",
                                        "TORCH_NCCL_DUMP_ON_TIMEOUT": "0"})
    torch_diagnosis.prepare()
    assert os.environ["TORCH_FR_DUMP_TEMP_FILE"] == str(tmp_path / "flight_recorder_rank_")
    assert os.environ["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "0"
    assert "TORCH_FR_BUFFER_SIZE" not in os.environ
