"""`torchspore run --simulate` and `torchspore plan`, from the command line."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn
from mindspore.communication import get_group_size, init
from mindspore.ops import operations as P

init()
ms.set_seed(1)
ms.set_context(mode=ms.GRAPH_MODE)
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
print("group of", get_group_size())


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(Tensor(np.ones((8, 8), np.float32)), name="weight")
        self.product = P.MatMul().shard(((2, 4), (FOUR, 1)))

    def construct(self, x):
        return self.product(x, self.weight)


net = Net()
print("sum", float(net(Tensor(np.arange(64).reshape(8, 8).astype(np.float32))).asnumpy().sum()))
print("cut", net.parameter_layout_dict)
"""


def ran(tmp_path: Path, *words: str, four: int = 4) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("FOUR", str(four)))
    command = [sys.executable, "-m", "torchspore", *words, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONUNBUFFERED": "1"})


def test_one_process_stands_for_eight(tmp_path: Path) -> None:
    result = ran(tmp_path, "run", "--simulate", "8")
    assert result.returncode == 0, result.stderr
    *messages, layouts = result.stdout.splitlines()
    assert messages == ["group of 8", "sum 16128.0"]
    assert layouts.startswith("cut {'weight': ([2, 4], [0, -1], [2, 8], ")


def test_a_strategy_that_does_not_fit_is_named_with_its_line(tmp_path: Path) -> None:
    result = ran(tmp_path, "run", "--simulate", "8", four=2)
    assert result.returncode == 1
    assert "program.py:22: MatMul of shapes (8, 8), (8, 8) with in_strategy ((2, 4), (2, 1)) on 8 devices: expected 4" in result.stderr


def test_plan(tmp_path: Path) -> None:
    result = ran(tmp_path, "plan", "--devices", "8")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[:2] == ["group of 8", "8 devices, a grid of 2 x 4"]
    product, sums = (next(line for line in lines if text in line) for text in ("MatMul", "all_reduce over 4"))
    assert "(2, 1) sum over 4" in product and "program.py:22" in product and "program.py:22" in sums
    assert lines[-1].startswith("memory of a device: 704 bytes: parameters 64, ")


def test_plan_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "alone.py"
    path.write_text("print('alone')")
    command = [sys.executable, "-m", "torchspore", "plan", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout) == (1, "alone\n")
    assert result.stderr.startswith("The program ended, and no call of it was split.")


COMPILED = """import numpy as np, mindspore as ms
from mindspore import nn, Tensor
ms.set_context(mode=0)
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
for width in (16, 32):
    net = nn.Dense(width, 8)
    net.matmul.shard(((2, 1), (2, 1)))
    net.compile(Tensor(np.ones((8, width), np.float32)))
print("compiled")
"""


def test_plan_of_a_program_that_only_compiles(tmp_path: Path) -> None:
    path = tmp_path / "compiled.py"
    path.write_text(COMPILED)
    command = [sys.executable, "-m", "torchspore", "plan", "--devices", "4", str(path)]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert completed.returncode == 0, completed.stderr
    lines = completed.stdout.splitlines()
    assert lines[:2] == ["compiled", "4 devices, a grid of 2 x 2"]
    assert "parameters 544," in lines[-1], lines[-1]                  # half of a weight of 32 x 8, and the bias


SEARCHED = """
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_auto_parallel_context(parallel_mode="auto_parallel", search_mode="recursive_programming", dataset_strategy="full_batch")
net = nn.SequentialCell([nn.Dense(64, 512), nn.ReLU(), nn.Dense(512, 64)])
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-3)).set_train()
x = Tensor(np.ones((64, 64), np.float32))
step(x, x)
"""


def printed_plan(tmp_path: Path, *words: str, program: str = SEARCHED) -> list[str]:
    path = tmp_path / "program.py"
    path.write_text(program)
    command = [sys.executable, "-m", "torchspore", "plan", "--devices", "2", *words, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_a_searched_plan_is_compared_with_others(tmp_path: Path) -> None:
    lines = printed_plan(tmp_path)
    start = next(at for at, line in enumerate(lines) if line.startswith("plans that the search compared"))
    heads, *rows = lines[start + 1:]
    assert heads.split("  ")[-1] == "memory of a device" and rows[0].split("  ")[1].strip() == "the program's strategies"
    assert sum(line.startswith("*") for line in rows) == 1 and rows[-1].split("  ")[1].endswith("enable_parallel_optimizer=True")
    assert not any(line.startswith("it does not fit") for line in lines)


def test_a_plan_that_does_not_fit_names_what_fills_the_memory_and_how_many_devices_suffice(tmp_path: Path) -> None:
    lines = printed_plan(tmp_path, "--capacity", "0.0004")
    text = next(line for line in lines if line.startswith("it does not fit"))
    assert "a device has 400,000 bytes; most of the memory are the state of optimizers (" in text
    devices = int(text.split("devices are too few, ")[1].split()[0])
    needed = int(text.split("suffice (")[1].split()[0].replace(",", ""))
    assert devices == 4 and needed <= 400_000
    lines = printed_plan(tmp_path, "--capacity", "0.00001")
    assert "no number up to 4096 suffices" in next(line for line in lines if line.startswith("it does not fit"))


def test_exported_strategies_give_the_printed_plan(tmp_path: Path) -> None:
    lines = printed_plan(tmp_path, "--strategies", str(tmp_path / "strategies.json"))
    assert lines[-1].startswith(f"the strategies are in {tmp_path / 'strategies.json'}")
    searched = next(line for line in lines if line.startswith("memory of a device"))
    files = f"strategy_ckpt_config={{'load_file': {str(tmp_path / 'strategies.json')!r}}}"
    searches = 'parallel_mode="auto_parallel", search_mode="recursive_programming"'
    reads = printed_plan(tmp_path, program=SEARCHED.replace(searches, f'parallel_mode="semi_auto_parallel", {files}'))
    assert searched in reads and " parameters 132,368, state of optimizers 264,704," in searched
    seconds = [float(text.split("a step takes ")[1].split()[0]) for text in ("\n".join(lines), "\n".join(reads))]
    assert seconds[1] <= seconds[0]
