"""On a real GPU: training in mixed precision, jit levels, no hidden waits, operators that run ahead of Python."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

MIXED = """
ms.set_context(mode={mode}, device_target="GPU")
for name, level, dtype in (("float32", "O0", ms.float16), ("float16 O2", "O2", ms.float16), ("float16 auto", "auto", ms.float16),
                           ("bfloat16 auto", "auto", ms.bfloat16)):
    network = amp.auto_mixed_precision(net(), level, dtype)
    scaler, optimizer = amp.DynamicLossScaler(1024, 2, 100), nn.Momentum(network.trainable_params(), 0.05, 0.9)
    loss_of = nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: scaler.scale(loss_of(network(x), y)), None, network.trainable_params())
    losses = []
    for x, y in batches(8):
        loss, grads = gradient(x, y)
        grads = scaler.unscale(grads)
        if amp.all_finite(grads):
            optimizer(grads)
        losses.append(float(scaler.unscale(loss)))
    results[name] = losses
"""


@pytest.mark.parametrize("mode", [1, 0])
def test_mixed_precision_trains_as_float32_does(run_program: Callable[[str], Any], mode: int) -> None:
    losses = run_program(MIXED.format(mode=mode))
    for name, values in losses.items():
        assert values == pytest.approx(losses["float32"], rel=0.05, abs=0.05), name


LEVEL = """
ms.set_context(mode=0, device_target="GPU")
for level in ("O0", "{level}"):
    ms.set_context(jit_config={{"jit_level": level}})
    step = train_step(net(), lambda parameters, rate: nn.Momentum(parameters, rate, 0.9))
    results[level] = [float(step(x, y)) for x, y in batches(5)]
"""


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("level", ["O1", "O2"])
def test_levels_give_the_numbers_of_o0(run_program: Callable[[str], Any], level: str) -> None:
    results = run_program(LEVEL.format(level=level))
    assert results[level] == pytest.approx(results["O0"], abs=2e-3)


WAITS = """
ms.set_context(mode={mode}, device_target="GPU", jit_config={{"jit_level": "{level}"}})
step, data = train_step(net(), nn.Adam), batches(6)
for x, y in data[:4]:
    step(x, y)                                   # choices of kernels and compilation may wait
torch.cuda.synchronize()
torch.cuda.set_sync_debug_mode("error")          # a wait inside of torch raises
losses = [step(x, y) for x, y in data[4:]]
torch.cuda.set_sync_debug_mode("default")
results["losses"] = [float(loss) for loss in losses]
"""


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize(("mode", "level"), [(1, "O0"), (0, "O0"), (0, "O1"), (0, "O2")])
def test_a_training_step_waits_for_nothing(run_program: Callable[[str], Any], mode: int, level: str) -> None:
    assert all(0 < loss < 10 for loss in run_program(WAITS.format(mode=mode, level=level))["losses"])


AHEAD = """
import time
ms.set_context(mode=1, device_target="GPU")
x = floats(4096, 4096)
ops.matmul(x, x)
ms.hal.synchronize()
started = time.perf_counter()
for _ in range(50):
    y = ops.matmul(x, x)
results["queued"] = time.perf_counter() - started
ms.hal.synchronize()
results["finished"] = time.perf_counter() - started
"""


@pytest.mark.usefixtures("cuda")
def test_operators_run_ahead_of_python(run_program: Callable[[str], Any]) -> None:
    seconds = run_program(AHEAD)
    assert seconds["queued"] < seconds["finished"] / 3

BPROP = """
import threading
ms.set_context(device_target="GPU")
threads = set()
class Chosen(nn.Cell):
    def construct(self, x):
        return x * 2
    def bprop(self, x, out, dout):
        threads.add(threading.get_ident() == threading.main_thread().ident)
        if (x.sum() > 0).all():
            return (dout * 5,)
        return (dout * 7,)
class Gradient(nn.Cell):
    def __init__(self):
        super().__init__()
        self.network = Chosen()
    def construct(self, x):
        return ops.grad(self.network)(x)
for mode in (1, 0):
    ms.set_context(mode=mode)
    gradient = Gradient()
    results[mode] = [gradient(Tensor(np.full(2, sign, np.float32))).asnumpy().tolist() for sign in (1, -1, 1)]
results["graphs"], results["threads"] = len(gradient._graphs_), list(threads)
"""


def test_a_bprop_runs_in_the_thread_of_the_program_and_in_its_graph(run_program: Callable[[str], Any]) -> None:
    results = run_program(BPROP)
    assert results["1"] == results["0"] == [[5, 5], [7, 7], [5, 5]]
    assert results["graphs"] == 1 and results["threads"] == [True]
