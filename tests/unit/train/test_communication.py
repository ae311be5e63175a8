"""One process: rank 0 of 1; more are refused in words. And the messages of `mindspore.log`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import mindspore.communication as communication
import pytest
from mindspore import log


@pytest.fixture(autouse=True)
def without_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of the same worker may have called `init` or set variables of a launcher."""
    communication.release()
    monkeypatch.delenv("RANK_ID", raising=False)


def test_one_process() -> None:
    communication.init()
    assert (
        communication.get_rank(),
        communication.get_group_size(),
        communication.get_local_rank(),
        communication.get_local_rank_size(),
    ) == (0, 1, 0, 1)
    communication.create_group("mine", [0])
    assert communication.get_process_group_ranks("mine") == [0] and communication.get_comm_name("mine") == "mine"
    assert communication.get_world_rank_from_group_rank("mine", 0) == communication.get_group_rank_from_world_rank(0, "mine") == 0
    communication.destroy_group("mine")
    with pytest.raises(ValueError, match="expected a group that create_group made"):
        communication.get_rank("mine")
    assert communication.GlobalComm.INITED
    communication.release()
    assert not communication.GlobalComm.INITED


def test_one_of_several_must_say_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK_SIZE", "8")
    with pytest.raises(ValueError) as caught:
        communication.init("hccl")
    assert str(caught.value) == "init(): RANK_ID is not set: expected RANK_ID, which says which of the processes this is."
    monkeypatch.setenv("RANK_ID", "3")
    with pytest.raises(RuntimeError) as early:
        communication.get_rank()
    assert str(early.value) == "get_rank in one of 8 processes (RANK_ID, RANK_SIZE): expected init() before it."


def test_other_backends_are_refused() -> None:
    with pytest.raises(RuntimeError, match="expected 'hccl', 'nccl' or 'mccl'"):
        communication.init("gloo")
    with pytest.raises(TypeError):
        communication.init(3)


@pytest.fixture
def anew() -> Iterator[None]:
    """The log as a program begins with it."""
    with log._begun_anew():
        yield


def test_messages(anew: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GLOG_v", "1")
    log.debug("hidden")
    log.info("shown %d", 1)
    log.warning("shown %s", "too")
    log.error("also")
    log.critical("at last")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("]")[0] for line in lines] == ["[INFO", "[WARNING", "[ERROR", "[CRITICAL"]
    assert lines[0].endswith("shown 1") and "test_communication.py" in lines[0]
    assert log.get_level() == "1" and log.get_log_config() == {"GLOG_v": "1", "GLOG_logtostderr": "1"}
    monkeypatch.setenv("GLOG_v", "9")
    with log._begun_anew(), pytest.raises(ValueError, match="expected a number from 0"):
        log.info("refused")


def test_messages_go_into_files(
    anew: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in (("GLOG_v", "1"), ("GLOG_logtostderr", "0"), ("GLOG_log_dir", str(tmp_path)), ("GLOG_stderrthreshold", "3")):
        monkeypatch.setenv(name, value)
    for _ in range(2):
        log.info("%s", "one")
        log.error("two")
    (file,) = (tmp_path / "rank_0" / "logs").iterdir()
    assert file.name == f"mindspore.log.{os.getpid()}" and file.stat().st_mode & 0o777 == 0o600
    assert [line.rsplit("] ", 1)[1] for line in file.read_text().splitlines()] == ["one", "two"] * 2
    assert capsys.readouterr().err.count("two") == 2
    assert log.get_log_config() == {
        "GLOG_v": "1", "GLOG_logtostderr": "0", "GLOG_log_dir": str(file.parent), "logger_maxBytes": 50 * 2**20, "logger_backupCount": 30,
        "GLOG_stderrthreshold": "3",
    }
    for handler in log.GLOBAL_LOGGER.handlers:  # type: ignore[attr-defined]
        handler.close()


def test_what_torchspore_says_it_says_once(anew: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from torchspore.engine.front_end import FRONT

    for _ in range(3):
        FRONT.warn("the same again")
    assert capsys.readouterr().err.count("the same again") == 1
    monkeypatch.setenv("GLOG_logtostderr", "0")
    monkeypatch.setenv("GLOG_log_dir", "/proc/no")
    with log._begun_anew():
        log.warning("goes on")
    output = capsys.readouterr().err
    assert "can't be written" in output and "goes on" in output
