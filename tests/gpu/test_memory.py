"""On a GPU: `max_device_memory` holds, offloading and recomputation lower the peak with equal bits."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.processes import USES_STAND_IN

pytestmark = pytest.mark.gpu
WIDTH, ROWS = (128, 512) if USES_STAND_IN else (1024, 4096)

LIMIT = """
ms.set_context(device_target="GPU", max_device_memory="0.25GB")
weights = ops.ones((16, 1024, 1024), ms.float32)
try:
    ops.ones((64, 1024, 1024), ms.float32) + 1
except (RuntimeError, MemoryError) as error:
    results["message"] = str(error)
results["peak"] = ms.runtime.max_memory_allocated()
results["allocated"] = ms.hal.memory_allocated("GPU")
"""


def training(mode: int, switch: str = "", recompute: str = "") -> str:
    return TRAINING.format(mode=mode, switch=switch, recompute=recompute, width=WIDTH, rows=ROWS)


def test_max_device_memory_holds(run_program: Callable[[str], Any]) -> None:
    results = run_program(LIMIT)
    assert "max_device_memory" in results["message"] and results["allocated"] >= 2**26 and results["peak"] <= 2**28


TRAINING = """
ms.set_context(mode={mode}, device_target="GPU", deterministic="ON")
{switch}
ms.set_seed(1)
layers = [nn.SequentialCell(nn.Dense({width}, {width}), nn.GELU()) for _ in range(12)]
{recompute}
step = train_step(nn.SequentialCell(layers + [nn.Dense({width}, 10)]), nn.Adam)
ms.runtime.reset_peak_memory_stats()
x, y = Tensor(np.random.RandomState(0).randn({rows}, {width}).astype(np.float32)), Tensor(np.arange({rows}, dtype=np.int32) % 10)
results["losses"] = [step(x, y).asnumpy().tobytes().hex() for _ in range(3)]
results["peak"] = ms.runtime.max_memory_allocated()
results["allocated"] = ms.hal.memory_allocated("GPU")
"""
_plain: dict[int, Any] = {}
"""The results of the training without a switch, by mode."""
OFFLOAD = "ms.set_context(memory_offload='ON')"
STATE = OFFLOAD + "\nms.context.set_offload_context({'offload_param': 'cpu'})"
RECOMPUTE = "for layer in layers: layer.recompute()"


def plain_results(run_program: Callable[[str], Any], mode: int) -> Any:
    if mode not in _plain:
        _plain[mode] = run_program(training(mode))
    return _plain[mode]


@pytest.mark.parametrize("mode", [1, 0])
@pytest.mark.parametrize(("switch", "recompute"), [(OFFLOAD, ""), ("ms.set_context(memory_optimize_level='O1')", ""), ("", RECOMPUTE)],
                         ids=["memory_offload", "memory_optimize_level", "recompute"])
def test_the_peak_falls_with_equal_bits(run_program: Callable[[str], Any], mode: int, switch: str, recompute: str) -> None:
    if mode == 1 and "optimize" in switch:
        pytest.skip("memory_optimize_level plans graphs; PyNative mode has none")
    plain = plain_results(run_program, mode)
    changed = run_program(training(mode, switch, recompute))
    assert changed["losses"] == plain["losses"] and changed["peak"] < 0.9 * plain["peak"]


def test_offload_param_moves_the_state_of_optimizers_to_the_host(run_program: Callable[[str], Any]) -> None:
    plain = plain_results(run_program, 1)
    changed = run_program(training(1, STATE))
    assert changed["losses"] == plain["losses"] and changed["allocated"] < 0.7 * plain["allocated"]
