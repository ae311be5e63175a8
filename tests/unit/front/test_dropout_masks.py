"""After a seed, dropout on the CPU draws the masks of MindSpore 2.10, in both modes. The expected masks were printed by real MindSpore."""
from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops

ONES = Tensor(np.ones(8, np.float32))


def text(out: Any) -> str:
    """1 for each element that is kept."""
    return "".join(str(int(value > 0)) for value in out.asnumpy().ravel())


def test_masks_are_those_of_mindspore(mode: int) -> None:
    ms.set_seed(1)
    assert [text(ops.dropout(ONES, 0.5)) for _ in range(3)] == ["10000101", "11011101", "00001001"]
    ms.set_seed(1)
    first, second = nn.Dropout(p=0.5).set_train(), nn.Dropout(p=0.5).set_train()
    assert [text(first(ONES)) for _ in range(3)] == ["10000101", "11111011", "10011011"]
    assert [text(second(ONES)) for _ in range(3)] == ["11011101", "10001111", "10011110"]
    assert [text(first(ONES)) for _ in range(2)] == ["11011100", "00101110"]
    assert text(first(Tensor(np.ones(12, np.float32)))) == "100001011111"          # another shape begins anew
    assert text(first(ONES)) == "11110001"


class Two(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Dropout(p=0.4)
        self.other = nn.Dropout(keep_prob=0.7)
        self.primitive = ops.Dropout(0.5, 3, 4)

    def construct(self, x: Any) -> Any:
        y = self.layer(x) + self.other(x) * 2 + self.layer(x) * 4 + ops.dropout(x, 0.3) * 8
        return y + self.primitive(x)[0] * 16 + ops.dropout(x, 0.3, True, 5) * 32


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 + 5])
def test_both_modes_draw_the_same_masks(seed: int) -> None:
    seen = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(seed)
        net = Two().set_train()
        seen.append([net(Tensor(np.ones((3, 50), np.float32))).asnumpy() for _ in range(6)])
    ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_allclose(seen[0], seen[1], rtol=1e-6)
    assert len({values.tobytes() for values in seen[0]}) == 6


def test_the_share_and_the_scale(mode: int) -> None:
    ms.set_seed(2)
    for dtype in (ms.float32, ms.float16, ms.float64, ms.bfloat16):
        out = nn.Dropout(p=0.2).set_train()(ops.ones((100_000,), dtype)).float().asnumpy()
        assert abs((out > 0).mean() - 0.8) < 0.005 and np.allclose(out[out > 0], 1.25, rtol=4e-3)


def test_the_gradient_has_the_mask_of_the_forward_pass(mode: int) -> None:
    ms.set_seed(2)
    layer = nn.Dropout(p=0.5).set_train()
    out, gradient = ms.value_and_grad(lambda x: layer(x), 0)(Tensor(np.ones((40, 50), np.float32)))
    assert (out.asnumpy() == gradient.asnumpy()).all()


def test_recomputation_draws_once(mode: int) -> None:
    def run(recompute: bool) -> Any:
        ms.set_seed(2)
        cell = nn.SequentialCell(nn.Dense(20, 20), nn.Dropout(p=0.5), nn.Dense(20, 20), nn.Dropout(p=0.5)).set_train()
        if recompute:
            cell.recompute()
        x = Tensor(np.ones((4, 20), np.float32))
        return [ms.grad(lambda x: cell(x).sum())(x).asnumpy().tobytes() for _ in range(3)] + [cell(x).asnumpy().tobytes()]

    assert run(True) == run(False)


def test_copies_begin_anew_and_do_not_share_the_stream() -> None:
    ms.set_seed(1)
    layer = nn.Dropout(p=0.5).set_train()
    masks = [text(layer(ONES)) for _ in range(3)]
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert [text(other(ONES)) for _ in range(3)] == masks
    assert text(layer(ONES)) == "11011100"


def test_two_threads_draw_each_number_once() -> None:
    ms.set_seed(1)
    layer, seen = nn.Dropout(p=0.5).set_train(), []

    def draw() -> None:
        for _ in range(100):
            seen.append(text(layer(ONES)))

    threads = [threading.Thread(target=draw) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ms.set_seed(1)
    dropout = nn.Dropout(p=0.5).set_train()
    assert sorted(seen) == sorted(text(dropout(ONES)) for _ in range(200))


def test_without_a_seed_masks_differ_and_torch_stays(mode: int) -> None:
    from torchspore.engine.random import random_state

    random_state.SEED.value = None
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    x = Tensor(np.ones(200, np.float32))
    masks = {text(ops.dropout(x, 0.5)) for _ in range(4)} | {text(nn.Dropout(p=0.5).set_train()(x)) for _ in range(4)}
    assert len(masks) == 8 and torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize("level", ["O0", pytest.param("O1", marks=pytest.mark.slow), pytest.param("O2", marks=pytest.mark.slow)])
def test_compiled_code_and_its_measuring_draw_the_same_masks(level: str) -> None:
    def losses(mode: int) -> list[float]:
        ms.set_context(mode=mode)
        ms.set_seed(4)
        net = nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dropout(p=0.4), nn.Dense(32, 4), nn.Dropout(p=0.2))
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)).set_train()
        x, y = (Tensor(np.random.normal(0, 1, shape).astype(np.float32)) for shape in ((8, 16), (8, 4)))
        return [float(step(x, y).asnumpy()) for _ in range(5)]

    expected = losses(ms.PYNATIVE_MODE)
    ms.set_context(jit_config={"jit_level": level})
    try:
        np.testing.assert_allclose(losses(ms.GRAPH_MODE), expected, rtol=1e-5)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE, jit_config={"jit_level": "O0"})


def test_a_trial_leaves_no_mark_in_the_streams() -> None:
    from torchspore.engine.random import operator_streams

    ms.set_seed(1)
    layer = nn.Dropout(p=0.5).set_train()
    first = text(layer(ONES))
    with operator_streams.separate_generators():
        layer(ONES)
        ops.dropout(ONES, 0.5)
    assert [first, text(layer(ONES))] == ["10000101", "11111011"] and text(ops.dropout(ONES, 0.5)) == "11011101"


def test_states_go_through_json() -> None:
    import json

    from torchspore.engine.random import operator_streams

    ms.set_seed(1)
    layer = nn.Dropout(p=0.5).set_train()
    layer(ONES)
    streams = json.loads(json.dumps(operator_streams.as_json()))
    expected = [text(layer(ONES)), text(ops.dropout(ONES, 0.5))]
    operator_streams.restore_json(streams)
    assert [text(layer(ONES)), text(ops.dropout(ONES, 0.5))] == expected


def test_a_graph_of_a_layer_that_is_gone_is_an_error() -> None:
    from torchspore.engine.random import operator_streams

    with pytest.raises(RuntimeError, match="the stream of a layer that does not exist any more"):
        operator_streams.KEEP_MASK(10**9, [3], 0.5, torch.float32)
