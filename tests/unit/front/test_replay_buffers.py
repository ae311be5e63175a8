"""Memories of reinforcement learning: rings of rows, and buffers behind a handle."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn
from mindspore.ops import operations as P
from mindspore.ops.operations import _rl_inner_ops as inner

SHAPES, KINDS = [(4,), (2,)], [ms.float32, ms.int32]


def refused(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


class Ring(nn.Cell):
    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.count, self.head = (Parameter(Tensor(0, ms.int32), name=name) for name in ("count", "head"))
        self.data = (
            Parameter(Tensor(np.zeros((capacity, 4), np.float32)), name="state"),
            Parameter(Tensor(np.zeros((capacity, 2), np.int32)), name="action"),
        )
        self.append, self.item = P.BufferAppend(capacity, SHAPES, KINDS), P.BufferGetItem(capacity, SHAPES, KINDS)

    def construct(self, state: Tensor, action: Tensor, index: int) -> Any:
        self.append(self.data, (state, action), self.count, self.head)
        return self.item(self.data, self.count, self.head, index)


def row(value: int, *more: int) -> tuple[Tensor, Tensor]:
    rows = np.array([value]) if not more else np.array([[value], *([element] for element in more)])
    return tuple(Tensor(np.repeat(rows, width, -1).astype(kind)) for width, kind in ((4, np.float32), (2, np.int32)))


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_full_ring_loses_its_oldest_row(mode: int) -> None:
    ms.set_context(mode=mode)
    ring = Ring(5)
    for value in range(1, 8):
        state, action = ring(*row(value), 0)
    assert state.asnumpy().tolist() == [3] * 4 and action.asnumpy().tolist() == [3] * 2
    assert (int(ring.count), int(ring.head)) == (5, 2)
    ring(*row(10, 11), 0)
    assert ring.data[0].asnumpy()[:, 0].tolist() == [6, 7, 10, 11, 5] and int(ring.head) == 4


def test_rows_are_drawn_of_those_that_are_there() -> None:
    ring = Ring(50)
    ring(*row(*range(1, 11)), 0)
    drawn = P.BufferSample(50, 40, SHAPES, KINDS)(ring.data, ring.count, ring.head)
    assert drawn[0].shape == (40, 4) and set(drawn[0].asnumpy()[:, 0]) <= set(range(1, 11))
    assert (drawn[0].asnumpy()[:, 0] == drawn[1].asnumpy()[:, 0]).all()
    once = P.BufferSample(50, 10, SHAPES, KINDS, 3, True)(ring.data, ring.count, ring.head)
    assert sorted(once[1].asnumpy()[:, 0]) == list(range(1, 11))
    refused(lambda: P.BufferSample(50, 11, SHAPES, KINDS, 0, True)(ring.data, ring.count, ring.head), ValueError,
            "expected at least 11 rows to draw 11 different ones, got 10.")
    refused(lambda: P.BufferSample(50, 51, SHAPES, KINDS)(ring.data, ring.count, ring.head), ValueError,
            "batch_size=51: expected 50 at most, the capacity.")


def test_what_a_ring_refuses() -> None:
    ring = Ring(5)
    short, full_row = (row(1)[0],), row(1)
    refused(lambda: ring.append(ring.data, short, ring.count, ring.head), ValueError, "expected 2 Tensors as exp, got 1.")
    refused(lambda: ring.append(ring.data[:1], full_row, ring.count, ring.head), ValueError,
            "expected 2 Tensors, one for each shape and dtype, got 1, and 2 dtypes.")
    refused(lambda: P.BufferAppend(6, SHAPES, KINDS)(ring.data, full_row, ring.count, ring.head), ValueError,
            "expected Float32 of shape (6, 4), got Float32 of shape (5, 4).")
    refused(lambda: ring.append(ring.data, full_row[::-1], ring.count, ring.head), ValueError,
            "expected Float32 of shape (4,), or of up to 5 such rows, got Int32 of shape (2,).")


def test_priorities_say_what_is_drawn() -> None:
    handle = int(inner.PriorityReplayBufferCreate(8, 0.5, SHAPES, KINDS, 0, 42)())
    push = inner.PriorityReplayBufferPush(handle).add_prim_attr("side_effect_io", True)
    for value in range(10):
        push(row(value))
    sample = inner.PriorityReplayBufferSample(handle, 16, SHAPES, KINDS)
    indices, weights, states, actions = sample(1.0)
    assert indices.dtype == ms.int64 and (weights.asnumpy() == 1).all() and set(indices.asnumpy()) == set(range(8))
    rows_in_buffer = {0: 8, 1: 9, **{at: at for at in range(2, 8)}}                    # of the ten the first two are lost
    assert [rows_in_buffer[at] for at in indices.asnumpy()] == states.asnumpy()[:, 3].tolist() == actions.asnumpy()[:, 1].tolist()
    inner.PriorityReplayBufferUpdate(handle)(Tensor(np.arange(8)), Tensor(np.array([4, 1, 0, 0, 0, 0, 0, 0], np.float32) + 1e-12))
    indices, weights, *_ = inner.PriorityReplayBufferSample(handle, 300, SHAPES, KINDS)(0.5)
    assert set(indices.asnumpy()) == {0, 1} and (indices.asnumpy() == 0).sum() == pytest.approx(200, abs=2)
    likelier, other = (weights.asnumpy()[indices.asnumpy() == at][0] for at in (0, 1))
    assert other / likelier == pytest.approx(2**0.5, rel=1e-4)
    inner.PriorityReplayBufferDestroy(handle)()
    refused(lambda: sample(1.0), TypeError,
            f"handle={handle}: expected the handle of a PriorityReplayBufferCreate that was not destroyed.")


def test_a_reservoir_keeps_each_with_the_same_probability() -> None:
    counts = np.zeros(40)
    for seed in range(60):
        handle = int(inner.ReservoirReplayBufferCreate(10, SHAPES, KINDS, seed, 1)())
        for value in range(40):
            inner.ReservoirReplayBufferPush(handle)(row(value))
        states, actions = inner.ReservoirReplayBufferSample(handle, 10, SHAPES, KINDS)()
        assert len(set(states.asnumpy()[:, 0])) == 10 and (states.asnumpy()[:, 0] == actions.asnumpy()[:, 0]).all()
        counts[states.asnumpy()[:, 0].astype(int)] += 1
        inner.ReservoirReplayBufferDestroy(handle)()
    assert counts.sum() == 600 and abs(counts[:20].sum() - 300) < 60


def test_what_buffers_refuse() -> None:
    refused(lambda: inner.PriorityReplayBufferCreate(0, 1.0, SHAPES, KINDS, 0, 0)(), ValueError, "capacity=0: expected an int above 0.")
    refused(lambda: inner.PriorityReplayBufferCreate(8, 1.5, SHAPES, KINDS, 0, 0)(), ValueError,
            "alpha=1.5: expected a number from 0 to 1.")
    handle = int(inner.ReservoirReplayBufferCreate(10, SHAPES, KINDS, 0, 0)())
    refused(lambda: inner.ReservoirReplayBufferSample(handle, 2, SHAPES, KINDS)(), RuntimeError,
            "expected at least one pushed transition to draw 2, got none.")
    refused(lambda: inner.ReservoirReplayBufferPush(handle)(row(1)[:1]), ValueError, "expected 2 Tensors, got 1.")
    refused(lambda: inner.PriorityReplayBufferPush(handle)(row(1)), TypeError, "expected the handle of a PriorityReplayBufferCreate")
