"""`Cell.offload`: the values of chosen Cells leave memory until the backward pass needs them, with equal bits, in both modes."""
from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.context.public import scope, set_offload_context
from torchspore.engine.memory import backing_stores, offload

ROWS = np.random.RandomState(0).randn(256, 64).astype(np.float32)


@pytest.fixture(autouse=True)
def no_cell_before_and_after() -> Iterator[None]:
    with offload.without_cell_requests():
        yield


class Net(nn.Cell):
    """Three blocks, of which some are offloaded."""

    def __init__(self, chosen: int, *ahead: Any) -> None:
        super().__init__()
        ms.set_seed(2)
        self.blocks = nn.SequentialCell(*[nn.SequentialCell(nn.Dense(64, 128), nn.GELU(), nn.Dense(128, 64)) for _ in range(3)])
        for block in list(self.blocks)[:chosen]:
            block.offload(*ahead)

    def construct(self, x: Any) -> Any:
        return (self.blocks(x) ** 2).mean()


def ran(chosen: int, *ahead: Any) -> tuple[int, list[bytes]]:
    """How many bytes moved out in a step, and the bits of the loss and the gradients."""
    net = Net(chosen, *ahead)
    before = backing_stores.totals.out, backing_stores.totals.back
    loss, gradients = ms.value_and_grad(net, None, net.trainable_params())(Tensor(ROWS))
    moved = backing_stores.totals.out - before[0]
    assert backing_stores.totals.back - before[1] == moved
    return moved, [loss.asnumpy().tobytes(), *[gradient.asnumpy().tobytes() for gradient in gradients]]


@pytest.mark.parametrize("mode", [0, 1], ids=["graph", "pynative"])
def test_the_values_of_chosen_cells_move_and_bits_stay(mode: int, tmp_path: Path) -> None:
    with scope(mode=mode):
        set_offload_context({"offload_path": str(tmp_path), "enable_aio": False})
        none, bits = ran(0)
        losses, bits_of_one = ran(1)
        all_, bits_of_all = ran(3, 0)
        outcome = effects.outcome_of(OPTIONS["offload.offload_config.offload_path"], str(tmp_path))
    assert str(outcome) == f"applied: a file without a name in {tmp_path}"
    assert none == 0 and 0 < losses < all_ and bits == bits_of_one == bits_of_all
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_compiled_levels_say_that_nothing_moves() -> None:
    with scope(mode=0, jit_config={"jit_level": "O1"}):
        moved, _ = ran(1)
    assert moved == 0
    assert any("Cell.offload moves nothing: values move between operators" in line for line in effects.notes()["memory of graphs"])


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ("auto", ValueError, "Dense.offload(backward_prefetch='auto'): expected 'Auto' or an int, 0 or more."),
    (-1, ValueError, "Dense.offload(backward_prefetch=-1): expected 'Auto' or an int, 0 or more."),
    (1.5, TypeError, "Dense.offload(backward_prefetch=1.5): expected 'Auto' or an int, got float."),
    (True, TypeError, "Dense.offload(backward_prefetch=True): expected 'Auto' or an int, got bool."),
])
def test_wrong_arguments(arguments: Any, error: type[Exception], text: str) -> None:
    cell = nn.Dense(2, 2)
    with pytest.raises(error) as caught:
        cell.offload(arguments)
    assert str(caught.value) == text and cell(ops.ones((1, 2))).shape == (1, 2)
