"""`torchspore explain` tells what held the memory at its peak, in both modes; without it and without a limit nothing is counted."""
from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run

Program = Callable[..., Run]
TRAINING = """
import mindspore as ms
from mindspore import nn, ops
ms.set_context(mode={mode})
net = nn.SequentialCell(nn.Dense(512, 512, has_bias=False), nn.ReLU(), nn.Dense(512, 512, has_bias=False))
opt = nn.Adam(net.trainable_params(), 0.1)
x = ops.ones((2048, 512))

def main():
    grad = ms.value_and_grad(lambda x: (net(x) ** 2).sum(), None, opt.parameters)
    for _ in range(2):
        loss, gradients = grad(x)
        opt(gradients)

main()
"""


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("mode", [1, 0])
def test_the_peak_divides_into_its_holders(mode: int, run: Program, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING.format(mode=mode))
    ran = run("explain", "train.py")
    assert ran.code == 0, ran.err
    match = re.search(r"peak memory on the CPU: ([\d.]+) MiB in Tensors", ran.out)
    rows = re.findall(r"^ +(parameter|gradient|activation|optimizer state|workspace) +([\d.]+) (\w+) +\d+%$", ran.out, re.M)
    results = {name: float(size) / {"MiB": 1, "KiB": 1 << 10, "B": 1 << 20}[unit] for name, size, unit in rows}
    assert match is not None and len(results) == 5
    assert abs(sum(results.values()) - float(match[1])) < 0.3
    assert results["parameter"] == 2.0 and results["optimizer state"] == 4.0
    assert results["activation"] >= 8 and results["gradient"] >= 4      # values of 4 MiB: the input and what relu keeps; a gradient


@pytest.mark.usefixtures("counted")
def test_memory_that_an_operator_frees_itself_is_workspace(run: Program, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from mindspore import ops\nx = ops.ones((2048, 512))\nops.logsumexp(x, 1)\n")
    ran = run("explain", "train.py")
    size = re.search(r"^ +workspace +([\d.]+) MiB", ran.out, re.M)
    assert size is not None and float(size[1]) >= 4, ran.out


def test_operators_that_give_no_tensor_run_while_lines_are_noted(run: Program, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from mindspore import ops\nx = ops.ones((2, 2))\nprint(ops.dtype(x), ops.shape(x))\n")
    ran = run("explain", "train.py")
    assert ran.code == 0 and ran.out.startswith("Float32 (2, 2)"), ran.err


def test_nothing_is_counted_before_a_program_asks(run: Program, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("""
import sys
from mindspore import hal, ops, runtime
from torchspore.engine.tensors import tensor
from torchspore.engine.native import allocator as counter
assert tensor.active == 1                 # until the first operator has run
x = ops.ones((10, 10)) + 1
assert (tensor.active, counter.is_on, counter._library) == (0, False, None)
assert runtime.max_memory_allocated() == hal.memory_reserved("CPU") == 0
y = ops.ones((100, 100)) + 1              # 40,000 bytes each
print(runtime.max_memory_allocated() >= 80_000, 40_000 <= runtime.memory_allocated() < 80_000)
runtime.reset_peak_memory_stats()
print(runtime.max_memory_allocated() == runtime.memory_allocated(), hal.memory_stats("CPU")["total_idle_memory"])
del y
print(runtime.memory_allocated() < 40_000, "max_allocated_memory" in runtime.memory_summary())
for module in (runtime, hal):
    module.reset_max_memory_allocated(), module.reset_max_memory_reserved(), module.empty_cache()
    figures = {module.memory_allocated(), module.memory_reserved(), module.max_memory_allocated(), module.max_memory_reserved()}
    assert figures == {module.memory_stats()["total_allocated_memory"]} and "max_allocated_memory" in module.memory_summary()
hal.reset_peak_memory_stats()
""")
    ran = run("run", "train.py")
    assert (ran.code, ran.out) == (0, "True True\nTrue 0\nTrue True\n")
    assert ran.err.count("train.py:9: UserWarning: memory on the CPU is counted from here on") == 1
    assert ran.err.count("UserWarning") == 1


def test_where_memory_cant_be_counted_it_is_reported(run: Program, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("""
import mindspore as ms
ms.set_context(max_device_memory='1GB', mempool_block_size='2GB', variable_memory_max_size='6GB')
print((ms.ops.ones((2, 2)) + 1).sum())
""")
    ran = run("explain", "train.py", extra={"TORCHSPORE_NO_NATIVE": "1"})
    assert ran.code == 0, ran.err
    text = re.sub(" +", " ", ran.out)
    assert "train.py:3 no effect here: the CPU's memory can't be counted: TORCHSPORE_NO_NATIVE=1\n" in text
    assert "mempool_block_size 2.0 train.py:3 no effect here: the CPU has no pool: the C library allocates each value separately" in text
    assert "train.py:3 no effect here: max_device_memory sets the limit\n" in text
    assert " the memory of Tensors on the CPU is not counted: TORCHSPORE_NO_NATIVE=1\n" in text
    broken = run("explain", "train.py", extra={"CXX": "false", "XDG_CACHE_HOME": str(tmp_path)})
    assert broken.code == 0 and "the CPU's memory can't be counted: the C++ compiler failed\n" in broken.out
    strict = run("run", "train.py", extra={"TORCHSPORE_NO_NATIVE": "1", "TORCHSPORE_STRICT": "1"})
    assert strict.code == 1 and "max_device_memory: no effect here: the CPU's memory can't be counted" in strict.err
