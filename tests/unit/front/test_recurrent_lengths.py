"""Recurrent layers with `seq_length`: each sequence alone is the reference. Whatever is beyond its end, even NaN, has no effect."""
from __future__ import annotations

import itertools
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

LENGTHS = (6, 3, 1, 4)
KINDS = (("LSTM", {}), ("GRU", {}), ("RNN", {"nonlinearity": "tanh"}), ("RNN", {"nonlinearity": "relu"}))


def states(last: Any) -> tuple[Tensor, ...]:
    return last if isinstance(last, tuple) else (last,)


def loss_of(net: nn.Cell, *arguments: Any) -> Any:
    out, last = net(*arguments)
    return (out * out).sum() + sum((state * state).sum() for state in states(last))


@pytest.mark.parametrize(("kind", "bidirectional", "layers"), list(itertools.product(KINDS, (False, True), (1, 2))))
def test_sequences_of_different_lengths(kind: tuple[str, dict[str, Any]], bidirectional: bool, layers: int, mode: int) -> None:
    ms.set_context(mode=mode)
    rows = np.random.default_rng(0)
    net = getattr(nn, kind[0])(5, 7, num_layers=layers, bidirectional=bidirectional, **kind[1])
    x = rows.standard_normal((6, 4, 5)).astype(np.float32)
    alone = [Tensor(x[:length, index:index + 1]) for index, length in enumerate(LENGTHS)]
    for index, length in enumerate(LENGTHS):
        x[length:, index] = np.nan
    lengths = Tensor(np.array(LENGTHS, np.int32))
    out, last = net(Tensor(x), None, lengths)
    for index, sequence in enumerate(alone):
        expected, expected_last = net(sequence)
        np.testing.assert_allclose(out.asnumpy()[:LENGTHS[index], index], expected.asnumpy()[:, 0], rtol=1e-5, atol=1e-6)
        assert not out.asnumpy()[LENGTHS[index]:, index].any()
        for state, expected_state in zip(states(last), states(expected_last), strict=True):
            np.testing.assert_allclose(state.asnumpy()[:, index], expected_state.asnumpy()[:, 0], rtol=1e-5, atol=1e-6)
    weights = net.trainable_params()
    gradients = ms.grad(lambda x: loss_of(net, x, None, lengths), None, weights)(Tensor(x))
    expected_gradients = ms.grad(lambda *parts: sum(loss_of(net, part) for part in parts), None, weights)(*alone)
    for gradient, expected in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient.asnumpy(), expected.asnumpy(), rtol=1e-4, atol=1e-5)


def test_a_sequence_of_length_0_returns_its_first_state(mode: int) -> None:
    ms.set_context(mode=mode)
    rows = np.random.default_rng(1)
    h, c = (Tensor(rows.standard_normal((1, 2, 7)).astype(np.float32)) for _ in range(2))
    x = Tensor(rows.standard_normal((3, 2, 5)).astype(np.float32))
    out, (last_h, last_c) = nn.LSTM(5, 7)(x, (h, c), Tensor(np.array([0, 2], np.int32)))
    assert last_h.asnumpy()[0, 0].tolist() == h.asnumpy()[0, 0].tolist()
    assert last_c.asnumpy()[0, 0].tolist() == c.asnumpy()[0, 0].tolist()
    assert not out.asnumpy()[:, 0].any() and out.asnumpy()[:2, 1].all()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("has_lengths", [False, True])
def test_forward_mode_second_order_and_vmap(kind: str, has_lengths: bool) -> None:
    rows = np.random.default_rng(2)
    net = getattr(nn, kind)(4, 5)
    lengths = Tensor(np.array([3, 2], np.int32)) if has_lengths else None
    x, direction = (Tensor(rows.standard_normal((3, 2, 4)).astype(np.float32)) for _ in range(2))

    def loss(x: Tensor) -> Any:
        return (net(x, None, lengths)[0] ** 2).sum()

    gradient = ms.grad(loss)(x)
    np.testing.assert_allclose(float(ms.jvp(loss, (x,), (direction,))[1]), float((gradient * direction).sum()), rtol=1e-4)
    product = ms.grad(lambda x: (ms.grad(loss)(x) * direction).sum())(x).asnumpy()
    step = 1e-2
    nearby = [ms.grad(loss)(x + sign * step * direction).asnumpy() for sign in (1, -1)]
    np.testing.assert_allclose(product, (nearby[0] - nearby[1]) / (2 * step), rtol=0.05, atol=2e-3)
    both = ops.vmap(lambda x: net(x, None, lengths)[0])(ops.stack((x, direction)))
    for index, each in enumerate((x, direction)):
        np.testing.assert_allclose(both.asnumpy()[index], net(each, None, lengths)[0].asnumpy(), rtol=1e-5, atol=1e-6)
