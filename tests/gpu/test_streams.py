"""On a GPU: streams, events, moves between devices, and facts about the device."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

STREAMS = """
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
results["time"], results["finished"] = begin.elapsed_time(end), end.query()
results["close"] = bool(np.allclose(y.asnumpy(), x.asnumpy() @ x.asnumpy(), rtol=1e-2, atol=0.5))
"""


def test_an_event_orders_two_streams_and_measures_time(run_program: Callable[[str], Any]) -> None:
    results = run_program(STREAMS)
    assert results["time"] > 0 and results["finished"] and results["close"]


MOVES = """
ms.set_device("GPU", 0)
x = floats(4, 4)
results["devices"] = [x.device, x.move_to("CPU").device, x.to("CPU").to("GPU", ms.float16).device, (x.to("CPU") + x).device]
results["equal"] = bool((x.move_to("CPU").move_to("GPU", blocking=False) == x).all())
try:
    ms.set_context(device_id=4000)
except TypeError as error:
    results["late"] = str(error).splitlines()[0]
"""


def test_moves_and_a_late_change_of_the_device(run_program: Callable[[str], Any], device: str) -> None:
    results = run_program(MOVES)
    assert results["devices"] == [device, "CPU", device, device] and results["equal"] and "too late" in results["late"]


FACTS = """
ms.set_device("GPU", 0)
x = floats(2048, 2048)
results["facts"] = [ms.hal.device_count("GPU") > 0, ms.hal.get_device_name(0, "GPU") != "",
                    ms.hal.get_device_properties(0, "GPU").total_memory > 0, ms.hal.memory_allocated("GPU") >= 2**24,
                    ms.get_current_device().device_target]
"""


def test_facts_about_the_device(run_program: Callable[[str], Any], device: str) -> None:
    target = "Ascend" if device.startswith("Ascend") else "GPU"
    assert run_program(FACTS)["facts"] == [True, True, True, True, target]
