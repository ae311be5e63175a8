"""Equal bits: over processes, over modes, over data workers; what can't give them is named."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import mindspore as ms
import pytest
import torch
from support.processes import Run

# Convolution, embedding, attention, scatter-add and segment sums, with random numbers in the data, the initial values and the net.
PROGRAM = """
import hashlib, sys
import numpy as np, mindspore as ms, mindspore.dataset as ds
from mindspore import nn, ops
from mindspore.dataset import vision
ms.set_seed(7)
ms.set_context(mode=int(sys.argv[1]), deterministic="ON")
class Rows:
    def __len__(self): return 32
    def __getitem__(self, number):
        return np.random.RandomState(number).randint(0, 255, (12, 12, 3)).astype(np.uint8), np.int32(number % 4)
transforms = [vision.RandomCrop(8), vision.RandomHorizontalFlip(), vision.ToTensor()]
data = ds.GeneratorDataset(Rows(), ["image", "label"], shuffle=True)
data = data.map(transforms, "image", num_parallel_workers=int(sys.argv[2]), python_multiprocessing=sys.argv[3] == "processes").batch(8)
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.embedding = nn.Conv2d(3, 8, 3, weight_init="he_normal"), nn.Embedding(50, 16)
        self.attention, self.dropout, self.out = nn.MultiheadAttention(16, 2, batch_first=True), nn.Dropout(p=0.1), nn.Dense(16, 4)
    def construct(self, x):
        h = ops.relu(self.conv(x))
        token = ops.cast(ops.clip_by_value(ops.abs(h.reshape((h.shape[0], -1))[:, :64]) * 20, 0, 49), ms.int32)
        e = self.embedding(token)
        e = e + self.attention(e, e, e)[0]
        rows, flat = token.reshape(-1) % 8, self.dropout(e).reshape((-1, 16))
        sums = ops.tensor_scatter_add(ops.zeros((8, 16), ms.float32), rows.reshape((-1, 1)), flat) + ops.unsorted_segment_sum(flat, rows, 8)
        sums = sums + ops.index_add(ms.Parameter(ops.zeros((8, 16), ms.float32)), rows[:4], flat[:4], 0) if PYNATIVE else sums
        return self.out(e.mean(1) + h.mean((1, 2, 3)).reshape((-1, 1)) + sums.mean(0) * 0.01)
PYNATIVE = False
net = Net()
loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(True, "mean"))
step = nn.TrainOneStepCell(loss, nn.Adam(net.trainable_params(), 0.003)).set_train()
digest = hashlib.sha256()
for epoch in range(2):
    for image, label in data.create_tuple_iterator():
        digest.update(step(image, label).asnumpy().tobytes())
for parameter in net.get_parameters():
    digest.update(parameter.asnumpy().tobytes())
print(digest.hexdigest(), ops.standard_normal((2,)), np.random.rand(), __import__("random").random())
"""
LACKS = """
import sys, numpy as np, mindspore as ms
from mindspore import ops
ms.set_context(mode=int(sys.argv[1]), deterministic="ON")
def unpooled(x):
    out, places = ops.max_pool2d(x, 2, 2, return_indices=True)
    return ops.max_unpool2d(out, places, 2, 2)
unpooled = ms.jit(unpooled) if sys.argv[1] == "0" else unpooled
for _ in range(3):
    unpooled(ms.Tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)))
"""


def digests(run: Callable[..., Run], tmp_path: Path, *cases: tuple[int, int, str]) -> set[str]:
    (tmp_path / "train.py").write_text(PROGRAM)
    ran = [run("run", "train.py", *map(str, case)) for case in cases]
    assert [run_result.code for run_result in ran] == [0] * len(ran), ran[0].err
    return {run_result.out for run_result in ran}


def test_equal_bits_over_modes_and_workers(run: Callable[..., Run], tmp_path: Path) -> None:
    assert len(digests(run, tmp_path, (1, 1, "threads"), (0, 2, "processes"))) == 1


@pytest.mark.slow
def test_equal_bits_over_five_runs_and_workers(run: Callable[..., Run], tmp_path: Path) -> None:
    cases = [(1, 1, "threads")] * 5 + [(1, 2, "threads"), (1, 2, "processes"), (0, 1, "threads"), (0, 2, "threads")]
    assert len(digests(run, tmp_path, *cases)) == 1


def test_off_leaves_warnings_as_they_were() -> None:
    before = warnings.showwarning
    ms.set_context(deterministic="ON")
    assert warnings.showwarning is not before
    ms.set_context(deterministic="OFF")
    assert warnings.showwarning is before
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("mode", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_an_operator_without_a_deterministic_kernel_is_named_once(mode: int, run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "lacks.py").write_text(LACKS)
    ran = run("explain", "lacks.py", str(mode))
    assert (ran.err.count("has no deterministic kernel"), ran.err.count("implementation")) == (1, 0), ran.err
    assert ("lacks.py:7: UserWarning: deterministic='ON': MaxUnpool2D (max_unpooling2d_forward_out) has no deterministic kernel here; it "
            "runs, and may give other bits in another run.") in ran.err
    assert "deterministic\n  lacks.py:7: MaxUnpool2D (max_unpooling2d_forward_out) has no deterministic kernel here" in ran.out.replace(
        str(tmp_path) + "/", "")
