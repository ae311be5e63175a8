"""On a real GPU: O2 records CUDA graphs and replays them with the numbers of O0."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("cuda")]

GRAPHS = """
replays = []
replay = torch.cuda.CUDAGraph.replay
torch.cuda.CUDAGraph.replay = lambda self: (replays.append(1), replay(self))[1]
ms.set_context(mode=0, device_target="GPU")
for level in ("O0", "O2"):
    ms.set_context(jit_config={"jit_level": level})
    step = train_step(net())
    results[level] = [float(step(x, y)) for x, y in batches(8)]
results["replays"] = len(replays)
"""


def test_o2_replays_cuda_graphs_with_the_numbers_of_o0(run_program: Callable[[str], Any]) -> None:
    results = run_program(GRAPHS)
    assert results["O2"] == pytest.approx(results["O0"], rel=1e-3) and results["replays"] > 0


STATE = """
class Counter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.total = ms.Parameter(Tensor(np.zeros(4, np.float32)), requires_grad=False)
    def construct(self, x):
        self.total += x
        return self.total * 2
ms.set_context(mode=0, device_target="GPU", jit_config={"jit_level": "O2"})
counter = Counter()
outputs = [counter(Tensor(np.full(4, float(number), np.float32))) for number in range(8)]
results["outputs"] = [float(output[0]) for output in outputs]
results["total"] = float(counter.total[0])
"""


def test_replays_keep_state_and_do_not_overwrite_earlier_outputs(run_program: Callable[[str], Any]) -> None:
    results = run_program(STATE)
    assert results == {"outputs": [0, 2, 6, 12, 20, 30, 42, 56], "total": 28}
