"""The bar of Model.train: on a terminal alone, with rows a second and the loss; what a program prints is the same with it and without."""
from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

from support import processes

PROGRAM = """
import time
import numpy as np
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn

class Slow(ms.train.Callback):
    def on_train_step_end(self, run_context):
        step = run_context.original_args().cur_step_num
        if step == 8:
            print("half of it")

def slow(x):
    time.sleep(0.03)
    return x

def rows():
    for _ in range(16):
        yield np.ones(4, np.float32), np.zeros(2, np.float32)

net = nn.Dense(4, 2)
data = ds.GeneratorDataset(rows, ["x", "y"], shuffle=False).map(slow, ["x"]).batch(2)
model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(3, data, callbacks=[Slow()], dataset_sink_mode=False)
print("done")
"""


def on_a_terminal(folder: Path, both: bool = False, **extra: str) -> tuple[str, str]:
    """(Standard output, what the terminal got) of the program with stderr on a terminal, and with `both` stdout too."""
    (folder / "train.py").write_text(PROGRAM)
    ours, theirs = pty.openpty()
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "torchspore", "run", "train.py"], cwd=folder, stdout=theirs if both else out, stderr=theirs,
            env=processes.environment({"TERM": "xterm", **extra}),
        )
        os.close(theirs)
        seen, end = b"", time.monotonic() + 100
        while time.monotonic() < end:
            try:
                part = os.read(ours, 4096)
            except OSError:                     # the terminal's other end is shut
                break
            if not part:
                break
            seen += part
        assert process.wait(30) == 0, seen
    os.close(ours)
    return (folder / "out").read_text(), seen.decode()


def test_the_bar(tmp_path: Path) -> None:
    printed, seen = on_a_terminal(tmp_path)
    assert printed == "half of it\ndone\n" * 1
    assert "epoch 1/3" in seen and "rows/s" in seen and "loss " in seen and "\x1b[32m" in seen and seen.endswith("\r\x1b[2K")


def test_without_colours_and_next_to_printed_lines(tmp_path: Path) -> None:
    _, seen = on_a_terminal(tmp_path, both=True, NO_COLOR="1")
    assert "rows/s" in seen and "\x1b[3" not in seen and "\x1b[0m" not in seen
    # Each line that the program prints begins where the bar was taken off, or at the edge.
    for line in ("half of it\r\n", "done\r\n"):
        before = seen[: seen.index(line)]
        assert before.endswith(("\r\x1b[2K", "\n")), before[-40:]


def test_none_is_requested(tmp_path: Path) -> None:
    printed, seen = on_a_terminal(tmp_path, TORCHSPORE_NO_PROGRESS="1")
    assert (printed, seen) == ("half of it\ndone\n", "")
