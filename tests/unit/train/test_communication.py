"""One process: rank 0 of 1; more are refused in words. And the messages of `mindspore.log`."""

from __future__ import annotations

import mindspore.communication as communication
import pytest
from mindspore import log


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


def test_several_processes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK_SIZE", "8")
    with pytest.raises(RuntimeError) as caught:
        communication.init("hccl")
    assert str(caught.value) == (
        "init() with RANK_SIZE=8: expected one process: several are not in torchspore yet.\n\n"
        "hint: unset RANK_SIZE to train in one process."
    )


def test_other_backends_are_refused() -> None:
    with pytest.raises(RuntimeError, match="expected 'hccl', 'nccl' or 'mccl'"):
        communication.init("gloo")
    with pytest.raises(TypeError):
        communication.init(3)


def test_messages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(log, "GLOBAL_LOGGER", None)
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
    monkeypatch.setattr(log, "GLOBAL_LOGGER", None)
    monkeypatch.setenv("GLOG_v", "9")
    with pytest.raises(ValueError, match="expected a number from 0"):
        log.info("refused")
