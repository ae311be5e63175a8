"""On a real GPU: `op_timeout` ends a program whose kernel hangs, `pynative_synchronize` raises at the line of the failing operator."""
from __future__ import annotations

from collections.abc import Callable

import pytest
from support.processes import Run

pytestmark = pytest.mark.gpu

HANGING = """
import torch, mindspore as ms
from mindspore import ops
ms.set_context(device_target="GPU", op_timeout=5, pynative_synchronize=True)
x = ops.ones((8,))
x + 1
torch.cuda._sleep(10**11)                        # a kernel that runs for about a minute
ops.relu(x)
print("not reached")
"""

SYNCHRONIZED = """import mindspore as ms
from mindspore import ops
ms.set_context(device_target='GPU', pynative_synchronize=True)
table = ms.Tensor([[1.0], [2.0]])
ops.gather(table, ms.Tensor([7]), 0)
print('reached')
ops.relu(table).asnumpy()
"""


@pytest.mark.usefixtures("cuda")
def test_a_kernel_that_hangs_ends_by_op_timeout(run: Callable[..., Run]) -> None:
    ended = run("-c", HANGING)
    assert ended.code == 124 and "not reached" not in ended.out and "ReLU" in ended.err


def test_pynative_synchronize_raises_at_the_line_of_the_operator(run: Callable[..., Run]) -> None:
    ended = run("-c", SYNCHRONIZED)
    assert ended.code == 1 and "<string>:5" in ended.err and "reached" not in ended.out
