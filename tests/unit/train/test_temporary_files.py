"""Temporary files that killed processes leave: the next save into the folder removes them, whatever their names."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import mindspore as ms
import pytest
from mindspore import nn

from torchspore.base import files


@pytest.mark.parametrize("waits", [True, False], ids=["reaped", "zombie"])
def test_the_next_save_removes_the_files_of_a_killed_process(tmp_path: Path, waits: bool) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom torchspore.base.files import atomic_file\n"
        f"with atomic_file(Path({str(tmp_path)!r}, 'step_5.safetensors')) as file:\n"
        "    file.write(b'x')\n    file.flush()\n    print('half', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        ms.save_checkpoint(nn.Dense(1, 1), str(tmp_path / "other.ckpt"))
        assert len(list(tmp_path.glob(".*.tmp"))) == 1, "the file of a running process stays"
        process.send_signal(signal.SIGKILL)
        if waits:
            process.wait()
        else:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        ms.save_checkpoint(nn.Dense(1, 1), str(tmp_path / "step_6.ckpt"))
        assert not list(tmp_path.glob(".*.tmp"))


def test_files_of_another_machine_and_of_others_stay(tmp_path: Path) -> None:
    names = (".net.ckpt.0badcafe-1.abcdefgh.tmp", f".net.{files._machine()}-1.tmp", "net.tmp", ".hidden.tmp")
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    files.write_atomically(tmp_path / "file", b"x")
    assert {path.name for path in tmp_path.iterdir()} == {*names, "file"}
