"""`init_param_in_compile`: each process draws its own part of the initial values, with the bits of a start that draws all of them."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

WIDTH = 128


class Net(nn.Cell):
    """Layers with several Initializers; one weight is shared, and one product is split by columns."""

    def __init__(self) -> None:
        super().__init__()
        kinds = ("he_uniform", "normal", "ones", "truncated_normal", "orthogonal", "xavier_uniform", "zeros")
        self.layers = nn.CellList([nn.Dense(WIDTH, WIDTH, weight_init=kind) for kind in kinds])
        self.layers[0].matmul.shard(((1, 2), (1, 2)))
        self.layers[3].weight = self.layers[1].weight
        self.table = nn.Embedding(WIDTH, WIDTH)
        self.scale = ms.Parameter(ms.common.initializer.initializer("uniform", [127, WIDTH]), name="scale")

    def construct(self, x: Any) -> Any:
        x = x + self.table(ops.arange(8)) * self.scale.sum()
        for layer in self.layers:
            x = x + ops.tanh(layer(x))
        return x


def _context(delayed: bool, level: str = "level3", **others: Any) -> None:
    from mindspore.communication import init

    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.reset_auto_parallel_context()
    others |= {"init_param_in_compile": True} if delayed else {}
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", enable_parallel_optimizer=True,
        parallel_optimizer_config={"optimizer_level": level, "parallel_optimizer_threshold": 0}, **others,
    )


def _before(what: str, net: Any, folder: str) -> None:
    """What a program does between the creation of a network and its first step."""
    from mindspore.communication import get_rank

    if what == "read on one rank" and get_rank() == 0:
        net.layers[1].weight.asnumpy()
    elif what == "checkpoint":
        values = {p.name: ms.Parameter(Tensor(np.full(p.shape, 0.01, np.float32)), name=p.name) for p in net.get_parameters()}
        ms.load_param_into_net(net, values)
    elif what == "written":
        ops.assign(net.layers[1].weight, Tensor(np.full((WIDTH, WIDTH), 0.02, np.float32)))
        net.scale.set_data(Tensor(np.full((127, WIDTH), 0.5, np.float32)))
    elif what == "init_data":
        for parameter in net.get_parameters():
            parameter.init_data()


def _trained(delayed: bool, what: str, level: str, folder: str) -> Any:
    """The numbers of delayed Parameters before the first step, the losses, and all values afterwards, also those of a checkpoint."""
    from torchspore.context import effects
    from torchspore.context.options import OPTIONS
    from torchspore.engine.tensors.delayed_values import is_delayed

    _context(delayed, level)
    if what == "unseeded":
        np.random.seed(ms.communication.get_rank() + 17)
    else:
        ms.set_seed(3)
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    _before(what, net, folder)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
    parameters = list({id(p): p for p in (*net.get_parameters(), *optimizer.get_parameters())}.values())
    count = sum(is_delayed(p._t) for p in parameters)
    x = Tensor(np.random.RandomState(1).rand(8, WIDTH).astype(np.float32))
    losses = [float(step(x, x)) for _ in range(3)]
    path = str(Path(folder) / f"{delayed}{ms.communication.get_rank()}.ckpt")
    ms.save_checkpoint(net, path, integrated_save=True)
    saved = {name: p.asnumpy() for name, p in ms.load_checkpoint(path).items()}
    outcome = str(effects.outcome_of(OPTIONS["auto_parallel.init_param_in_compile"], True)) if delayed else ""
    return count, losses, [p.asnumpy() for p in parameters], saved, sum(is_delayed(p._t) for p in parameters), outcome


@pytest.mark.parametrize("what, level", [
    ("nothing", "level3"), ("read on one rank", "level1"), ("unseeded", "level2"),
    *[pytest.param(what, "level3", marks=pytest.mark.slow) for what in ("checkpoint", "written", "init_data", "unseeded")],
])
def test_a_delayed_start_has_equal_bits(workers: Any, tmp_path: Path, what: str, level: str) -> None:
    at_once, delayed = (workers(2, _trained, is_delayed, what, level, str(tmp_path)) for is_delayed in (False, True))
    for rank in range(2):
        assert at_once[rank][0] == 0 and delayed[rank][0] > (0 if what == "init_data" else 10), delayed[rank][0]
        assert at_once[rank][1] == delayed[rank][1] == at_once[0][1]
        for expected, value in zip(at_once[rank][2], delayed[rank][2], strict=True):
            np.testing.assert_array_equal(value, expected)
        for name, expected in at_once[rank][3].items():
            np.testing.assert_array_equal(delayed[rank][3][name], expected)
        assert delayed[rank][4] == 0
    if what == "nothing":
        assert delayed[0][5] == "applied: each process draws its own part of the initial values of 20 Parameters"


def _peaks(delayed: bool) -> list[float]:
    """By how many MiB the memory of a process grows at most while a network and its optimizer are created, and compiled."""
    import ctypes

    ctypes.CDLL(None).mallopt(-3, 65536)                         # M_MMAP_THRESHOLD: freed memory returns to the system at once
    _context(delayed)

    def resident(name: str) -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(name + ":"))) / 1024

    def build(width: int) -> Any:
        net = nn.SequentialCell([nn.Dense(width, width, has_bias=False) for _ in range(16)])
        optimizer = nn.Adam(net.trainable_params(), 1e-3)
        return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()

    small = build(16)
    small(Tensor(np.ones((2, 16), np.float32)), Tensor(np.ones((2, 16), np.float32)))
    x = Tensor(np.ones((2, 1024), np.float32))
    peaks = []
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    step = build(1024)
    peaks.append(resident("VmHWM") - before)
    step.compile(x, x)
    peaks.append(resident("VmHWM") - before)
    assert np.isfinite(float(step(x, x)))
    return peaks


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of a process is read from /proc")
def test_no_process_has_all_weights_in_memory(workers: Any) -> None:
    """16 weights of 4 MiB: 64 MiB, 16 MiB of them on each of four processes, with twice as much state."""
    at_once, delayed = (max(workers(4, _peaks, is_delayed, seconds=120.0)) for is_delayed in (False, True))
    assert delayed[0] < 8 and at_once[0] > 60, (at_once, delayed)
    assert delayed[1] < 60 < at_once[1], (at_once, delayed)      # 16 MiB of weights and 32 MiB of state


def _pipelined(delayed: bool) -> Any:
    from mindspore.communication import init

    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.reset_auto_parallel_context()
    others = {"init_param_in_compile": True} if delayed else {}
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=2, **others)
    ms.set_seed(4)
    net = nn.SequentialCell([nn.Dense(WIDTH, WIDTH, weight_init="normal") for _ in range(4)])
    for index, layer in enumerate(net):
        layer.pipeline_stage = index // 2
    net = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2)
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-2)).set_train()
    x = Tensor(np.random.RandomState(1).rand(8, WIDTH).astype(np.float32))
    return [float(step(x, x)) for _ in range(3)]


def test_stages_of_a_pipeline(workers: Any) -> None:
    assert workers(2, _pipelined, True) == workers(2, _pipelined, False)


def _in_pynative_mode() -> Any:
    """Without a graph that is split, Parameters are drawn at their first use."""
    _context(True)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_seed(3)
    net = nn.Dense(WIDTH, WIDTH)
    return float(net(Tensor(np.ones((1, WIDTH), np.float32))).sum()), float(net.weight.sum())


def test_pynative_mode(workers: Any) -> None:
    ms.set_seed(3)
    net = nn.Dense(WIDTH, WIDTH)
    expected = float(net(Tensor(np.ones((1, WIDTH), np.float32))).sum()), float(net.weight.sum())
    assert workers(2, _in_pynative_mode) == [expected] * 2
