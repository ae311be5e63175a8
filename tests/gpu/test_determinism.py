"""On a real GPU: `deterministic='ON'` gives equal bits in five runs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.processes import USES_STAND_IN

pytestmark = pytest.mark.gpu
RUNS = 2 if USES_STAND_IN else 5

EQUAL = """
ms.set_context(mode={mode}, device_target="GPU", deterministic="ON")
step = train_step(net())
results["losses"] = [step(x, y).asnumpy().tobytes().hex() for x, y in batches(5)]
rows, indices = Tensor(np.random.RandomState(1).randn(100000).astype(np.float32)), Tensor(np.random.RandomState(2).randint(0, 7, 100000))
total = ops.tensor_scatter_elements(Tensor(np.zeros(7, np.float32)), indices, rows, 0, "add")
results["sum"] = total.asnumpy().tobytes().hex()
"""


@pytest.mark.parametrize("mode", [1, 0])
def test_deterministic_gives_equal_bits_in_five_runs(run_program: Callable[[str], Any], mode: int) -> None:
    first, *others = (run_program(EQUAL.format(mode=mode)) for _ in range(RUNS))
    assert others == [first] * (RUNS - 1)
