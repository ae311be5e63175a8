"""On a real GPU: training in mixed precision, CUDA graphs at O2, no hidden waits, equal bits, memory and time limits.

Each program runs in a process of its own: limits, devices and algorithms hold for a process.
"""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from running import Run

pytestmark = pytest.mark.gpu

HEAD = """
import json, sys, numpy as np, torch, mindspore as ms
from mindspore import Tensor, amp, nn, ops
told = {}
rng = np.random.RandomState(0)
floats = lambda *shape: Tensor(rng.randn(*shape).astype(np.float32))
ints = lambda high, *shape: Tensor(rng.randint(0, high, shape).astype(np.int32))
def net():
    ms.set_seed(1)
    return nn.SequentialCell(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(8 * 64, 10))
def cell(made, optimizer=nn.SGD):
    step = nn.TrainOneStepCell(nn.WithLossCell(made, nn.CrossEntropyLoss()), optimizer(made.trainable_params(), 0.001))
    return step.set_train()
def batches(count):
    global rng
    rng = np.random.RandomState(0)
    return [(floats(16, 3, 16, 16), ints(10, 16)) for _ in range(count)]
"""


def told(run: Callable[..., Run], text: str) -> Any:
    ended = run("-c", HEAD + text + "\nprint(json.dumps(told))\n")
    assert ended.code == 0, ended.err[-3000:]
    return json.loads(ended.out.splitlines()[-1])


MIXED = """
ms.set_context(mode={mode}, device_target="GPU")
for name, level, dtype in (("float32", "O0", ms.float16), ("float16 O2", "O2", ms.float16), ("float16 auto", "auto", ms.float16),
                           ("bfloat16 auto", "auto", ms.bfloat16)):
    made = amp.auto_mixed_precision(net(), level, dtype)
    scaler, optimizer = amp.DynamicLossScaler(1024, 2, 100), nn.Momentum(made.trainable_params(), 0.05, 0.9)
    loss_of = nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: scaler.scale(loss_of(made(x), y)), None, made.trainable_params())
    losses = []
    for x, y in batches(8):
        loss, grads = gradient(x, y)
        grads = scaler.unscale(grads)
        if amp.all_finite(grads):
            optimizer(grads)
        losses.append(float(scaler.unscale(loss)))
    told[name] = losses
"""


@pytest.mark.parametrize("mode", [1, 0])
def test_mixed_precision_trains_as_float32_does(run: Callable[..., Run], mode: int) -> None:
    losses = told(run, MIXED.format(mode=mode))
    for name, own in losses.items():
        assert own == pytest.approx(losses["float32"], rel=0.05, abs=0.05), name


WAITS = """
ms.set_context(mode={mode}, device_target="GPU", jit_config={{"jit_level": "{level}"}})
step, given = cell(net(), nn.Adam), batches(6)
for x, y in given[:4]:
    step(x, y)                                   # choices of kernels and compilation may wait
torch.cuda.synchronize()
torch.cuda.set_sync_debug_mode("error")          # a wait inside of torch raises
kept = [step(x, y) for x, y in given[4:]]
torch.cuda.set_sync_debug_mode("default")
told["losses"] = [float(loss) for loss in kept]
"""


@pytest.mark.parametrize(("mode", "level"), [(1, "O0"), (0, "O0"), (0, "O1"), (0, "O2")])
def test_a_training_step_waits_for_nothing(run: Callable[..., Run], mode: int, level: str) -> None:
    assert all(0 < loss < 10 for loss in told(run, WAITS.format(mode=mode, level=level))["losses"])


AHEAD = """
import time
ms.set_context(mode=1, device_target="GPU")
x = floats(4096, 4096)
ops.matmul(x, x)
ms.hal.synchronize()
started = time.perf_counter()
for _ in range(50):
    y = ops.matmul(x, x)
handed = time.perf_counter() - started
ms.hal.synchronize()
told["handed"], told["done"] = handed, time.perf_counter() - started
"""


def test_operators_run_ahead_of_python(run: Callable[..., Run]) -> None:
    times = told(run, AHEAD)
    assert times["handed"] < times["done"] / 3


GRAPHS = """
replays = []
own = torch.cuda.CUDAGraph.replay
torch.cuda.CUDAGraph.replay = lambda self: (replays.append(1), own(self))[1]
ms.set_context(mode=0, device_target="GPU")
for level in ("O0", "O2"):
    ms.set_context(jit_config={"jit_level": level})
    step = cell(net())
    told[level] = [float(step(x, y)) for x, y in batches(8)]
told["replays"] = len(replays)
"""


def test_o2_replays_cuda_graphs_with_o0_s_numbers(run: Callable[..., Run]) -> None:
    found = told(run, GRAPHS)
    assert found["O2"] == pytest.approx(found["O0"], rel=1e-3) and found["replays"] > 0


EQUAL = """
ms.set_context(mode={mode}, device_target="GPU", deterministic="ON")
step = cell(net())
told["losses"] = [step(x, y).asnumpy().tobytes().hex() for x, y in batches(5)]
rows, at = Tensor(np.random.RandomState(1).randn(100000).astype(np.float32)), Tensor(np.random.RandomState(2).randint(0, 7, 100000))
told["sum"] = ops.tensor_scatter_elements(Tensor(np.zeros(7, np.float32)), at, rows, 0, "add").asnumpy().tobytes().hex()
"""


@pytest.mark.parametrize("mode", [1, 0])
def test_deterministic_gives_equal_bits_run_for_run(run: Callable[..., Run], mode: int) -> None:
    first, second = (told(run, EQUAL.format(mode=mode)) for _ in range(2))
    assert first == second


def test_an_operator_that_hangs_ends_by_op_timeout(run: Callable[..., Run]) -> None:
    ended = run("-c", HEAD + """
ms.set_context(device_target="GPU", op_timeout=5, pynative_synchronize=True)
x = floats(8)
x + 1
torch.cuda._sleep(60 * torch.cuda.get_device_properties(0).clock_rate * 1000 if hasattr(torch.cuda.get_device_properties(0), "clock_rate")
                  else 10**11)
ops.relu(x)
print("not reached")
""")
    assert ended.code == 124 and "not reached" not in ended.out and "ReLU" in ended.err


def test_max_device_memory_holds(run: Callable[..., Run]) -> None:
    found = told(run, """
ms.set_context(device_target="GPU", max_device_memory="1GB")
kept = ops.ones((64, 1024, 1024), ms.float32)
try:
    ops.ones((256, 1024, 1024), ms.float32) + 1
except (RuntimeError, MemoryError) as error:
    told["said"] = str(error)
told["peak"] = ms.runtime.max_memory_allocated()
told["held"] = ms.hal.memory_allocated("GPU")
""")
    assert "max_device_memory" in found["said"] and found["held"] >= 2**28 and found["peak"] <= 2**30


OFFLOAD = """
ms.set_context(mode={mode}, device_target="GPU", memory_offload="{offload}")
made = nn.SequentialCell([nn.SequentialCell(nn.Dense(1024, 1024), nn.GELU()) for _ in range(12)] + [nn.Dense(1024, 10)])
ms.set_seed(1)
step = cell(made)
torch.cuda.reset_peak_memory_stats()
x, y = Tensor(np.random.RandomState(0).randn(4096, 1024).astype(np.float32)), Tensor(np.arange(4096, dtype=np.int32) % 10)
told["losses"] = [step(x, y).asnumpy().tobytes().hex() for _ in range(3)]
told["peak"] = ms.runtime.max_memory_allocated()
"""


@pytest.mark.parametrize("mode", [1, 0])
def test_memory_offload_lowers_the_peak_with_equal_bits(run: Callable[..., Run], mode: int) -> None:
    without, with_it = (told(run, OFFLOAD.format(mode=mode, offload=offload)) for offload in ("OFF", "ON"))
    assert with_it["losses"] == without["losses"] and with_it["peak"] < 0.8 * without["peak"]


def test_devices_streams_and_moves(run: Callable[..., Run]) -> None:
    found = told(run, """
ms.set_device("GPU", 0)
x = floats(2048, 2048)
begin, end, side = ms.hal.Event(enable_timing=True), ms.hal.Event(enable_timing=True), ms.hal.Stream()
begin.record()
with ms.hal.StreamCtx(side):
    side.wait_event(begin)
    y = ops.matmul(x, x)
    end.record()
ms.hal.current_stream().wait_event(end)
z = y.sum()
end.synchronize()
told["time"], told["done"] = begin.elapsed_time(end), end.query()
told["places"] = [x.device, x.move_to("CPU").device, x.to("CPU").to("GPU", ms.float16).device, (x.to("CPU") + x).device]
told["facts"] = [ms.hal.device_count("GPU") > 0, ms.hal.get_device_name(0, "GPU") != "",
                 ms.hal.get_device_properties(0, "GPU").total_memory > 0, ms.hal.memory_allocated("GPU") > 0,
                 ms.get_current_device().device_target]
try:
    ms.set_context(device_id=4000)
except TypeError as error:
    told["late"] = str(error).splitlines()[0]
""")
    assert found["time"] > 0 and found["done"] and found["places"] == ["GPU:0", "CPU", "GPU:0", "GPU:0"]
    assert found["facts"] == [True, True, True, True, "GPU"] and "too late" in found["late"]


def test_a_device_id_beyond_those_that_are_there(run: Callable[..., Run]) -> None:
    ended = run("-c", "import mindspore as ms\nms.set_context(device_target='GPU', device_id=4000)\nms.Tensor([1.0])\n")
    assert ended.code == 1 and "device_id=4000: this machine has" in ended.err
