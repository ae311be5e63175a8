"""A program and the commands with the standard library of Windows (`support.as_on_windows`): nothing that Windows lacks is needed."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support import as_on_windows
from support.processes import environment

PROGRAM = """
import os, tempfile
import mindspore as ms, numpy as np
from mindspore import dataset as ds, nn, ops
from mindspore.mindrecord import FileWriter
from mindspore.train import CheckpointConfig, LossMonitor, ModelCheckpoint

os.chdir(tempfile.mkdtemp())

def batches():
    rows = np.random.RandomState(0)
    data = ds.NumpySlicesDataset({"x": rows.randn(32, 4).astype(np.float32), "y": rows.randint(0, 2, 32).astype(np.int32)})
    return data.map(lambda x: x * 2, "x", num_parallel_workers=2, python_multiprocessing=True).batch(8)

for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
    ms.set_context(mode=mode, op_timeout=60, print_file_path="printed")
    net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
    model = ms.Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), nn.Adam(net.trainable_params()), {"acc"})
    model.train(1, batches(), [LossMonitor(), ModelCheckpoint("net", "saved", CheckpointConfig(save_checkpoint_steps=2))])
    assert 0 <= model.eval(batches())["acc"] <= 1
    ms.save_checkpoint(net, "net.ckpt", enc_key=b"0123456789abcdef", enc_mode="AES-GCM")
    ms.load_checkpoint("net.ckpt", net, dec_key=b"0123456789abcdef", dec_mode="AES-GCM")
    ms.export(net, ms.Tensor(np.zeros((1, 4), np.float32)), file_name="net", file_format="MINDIR")
    ops.Print()(ms.Tensor([1.0]))
    ms.set_context(memory_offload="ON")
    ms.set_offload_context({"offload_path": os.path.abspath("out"), "offload_param": "disk"})
    model.train(1, batches())
    ms.set_context(memory_offload="OFF")

class Branching(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 3)

    def construct(self, x):
        if x.sum() > 0:
            x = x + 1
        return self.dense(x)

branching = Branching()
assert branching(ms.Tensor(np.ones((2, 3), np.float32))).shape == (2, 3)
try:
    branching(ms.Tensor(np.ones((2, 4), np.float32)))
except ValueError as error:
    print("refused at", str(error).partition(": ")[0])

writer = FileWriter("rows.mindrecord")
writer.add_schema({"x": {"type": "int32"}, "data": {"type": "bytes"}})
writer.write_raw_data([{"x": number, "data": b"\\r\\n\\x1a" * 3} for number in range(5)])
writer.commit()
rows = ds.MindDataset("rows.mindrecord", ["x"], shuffle=False).create_tuple_iterator(output_numpy=True, num_epochs=1)
assert [int(x) for (x,) in rows] == list(range(5))
generated = ds.GeneratorDataset(lambda: ((np.int32(i),) for i in range(6)), ["i"], python_multiprocessing=True)
assert [int(i) for (i,) in generated.create_tuple_iterator(output_numpy=True, num_epochs=1)] == list(range(6))
print("well done")
"""


def line_of(text: str) -> int:
    """Return the number of the first line of PROGRAM with this text."""
    return next(number for number, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, as_on_windows.__file__, *words], capture_output=True, text=True, cwd=folder, timeout=240,
        env=environment({"TORCHSPORE_WAIT": ""}))


def test_a_program_runs(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    out = run(tmp_path, "-m", "torchspore", "run", "--explain", "train.py")
    assert "well done" in out.stdout, out.stderr[-3000:]
    report = out.stdout + out.stderr
    assert "Traceback" not in report, report[-3000:]
    assert "this system has no signals for it" in report, "op_timeout must say why it has no effect"
    assert "Python functions run in threads, because this system has no fork" in report
    assert "Branching(Float32[2, 3]): " in report, "the call is no graph: torchspore's own frames count as the program's"
    assert f"refused at train.py:{line_of('return self.dense(x)')}" in out.stdout


def test_the_commands_run(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import mindspore as ms\nfrom mindspore import nn\nms.set_context(mode=0)\nprint(nn.Dense(2, 2)(ms.Tensor([[1.0, 2.0]])).shape)\n",
        encoding="utf-8")
    commands = ["doctor", "env", "context", "check net.py", "plan --devices 2 net.py", "--version", "workers -n 2 net.py"]
    (tmp_path / "all.py").write_text(
        f"from torchspore.cli.main import main\nprint([main(words.split()) for words in {commands}])\n", encoding="utf-8")
    out = run(tmp_path, "all.py")
    assert "Traceback" not in out.stderr + out.stdout, out.stderr[-2000:]
    codes = out.stdout.rstrip().splitlines()[-1]
    assert codes == "[0, 0, 0, 0, 1, 0, 2]", codes                     # a plan needs semi_auto_parallel, and no job starts
    assert "expected Linux or macOS" in out.stderr
