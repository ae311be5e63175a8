"""The optimizer of second order.

MindSpore 2.10's own CPU has no kernel for two of its operators; the numbers below are what 2.10 gives with these two computed by NumPy
(the inverse of a Cholesky factor, and the product of three matrices) and everything else its own.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.train import ConvertModelUtils, ConvertNetUtils, Model

FIRST = {
    0.0: [[0.9767111, 0.7966666, 0.45785525], [0.97409195, 0.7932801, 0.45227438], [0.9719951, 0.7911684, 0.44037893],
          [0.99588525, 0.82507086, 0.45016888]],
    0.1: [[0.9669249, 0.788675, 0.45324045], [0.9458811, 0.7703357, 0.43905267]],
}
LOSSES = [3.8864934, 1.5707647, 0.19644791, 0.8748447]
RATES, DAMPING = (Tensor(np.full(10, value, np.float32)) for value in (0.1, 0.3))


def problem() -> Any:
    """A net of two dense layers with data."""
    random = np.random.RandomState(0)
    x, y = random.rand(4, 3).astype(np.float32), random.rand(4, 2).astype(np.float32)
    weights = [Tensor(random.rand(4, 3).astype(np.float32)), Tensor(random.rand(2, 4).astype(np.float32))]
    net = nn.SequentialCell(nn.Dense(3, 4, weights[0], "zeros"), nn.ReLU(), nn.Dense(4, 2, weights[1], "zeros"))
    return net, Tensor(x), Tensor(y)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_numbers_of_mindspore(mode: int, decay: float) -> None:
    net, x, y = problem()
    optimizer = nn.thor(net, RATES, DAMPING, 0.9, weight_decay=decay, batch_size=4)
    assert type(net[0]) is nn.DenseThor and [p.name for p in optimizer.parameters] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    for number, expected in enumerate(FIRST[decay]):
        step.add_flags_recursive(thor=number % 2 == 0)
        loss = step(x, y)
        if not decay:
            np.testing.assert_allclose(loss.asnumpy(), LOSSES[number], rtol=5e-3)
        np.testing.assert_allclose(net[0].weight.asnumpy()[0], expected, rtol=2e-3)             # the layers are in float16
    np.testing.assert_allclose(net[0].matrix_a.asnumpy(), x.asnumpy().T @ x.asnumpy() / 3, rtol=2e-3)


@pytest.mark.parametrize("form", [{"stride": 2, "pad_mode": "valid"}, {"pad_mode": "same"}, {"pad_mode": "pad", "padding": 1}])
def test_matrices_of_a_convolution(form: dict[str, Any]) -> None:
    """The mean products of all pieces that the kernel sees, and of the gradients of all places."""
    net = nn.SequentialCell(nn.Conv2d(2, 3, 3, **form))
    ConvertNetUtils().convert_to_thor_net(net)
    assert type(net[0]) is nn.Conv2dThor
    plain = nn.Conv2d(2, 3, 3, **form)
    plain.weight.set_data(net[0].weight)
    net.add_flags_recursive(thor=True)
    x = np.random.RandomState(0).rand(2, 2, 5, 6).astype(np.float32)
    out = net(Tensor(x))
    np.testing.assert_allclose(out.asnumpy(), plain(Tensor(x)).asnumpy(), rtol=1e-2, atol=1e-2)
    ms.grad(lambda t: (net(t) * 0.5).sum())(Tensor(x))
    pad = {"valid": ((0, 0), (0, 0)), "same": ((1, 1), (1, 1)), "pad": ((1, 1), (1, 1))}[form["pad_mode"]]
    wide, stride = np.pad(x, ((0, 0), (0, 0), *pad)), form.get("stride", 1)
    height, width = out.shape[2:]
    pieces = np.stack([
        wide[n, :, i * stride: i * stride + 3, j * stride: j * stride + 3].reshape(-1)
        for n in range(2) for i in range(height) for j in range(width)
    ])
    np.testing.assert_allclose(net[0].matrix_a.asnumpy(), pieces.T @ pieces / len(pieces), rtol=1e-2, atol=2e-3)
    np.testing.assert_allclose(net[0].matrix_g.asnumpy(), 0.25, rtol=1e-2)


def test_embeddings(mode: int) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.other, self.dense = nn.Embedding(5, 3), nn.EmbeddingLookup(5, 3), nn.Dense(3, 2)

        def construct(self, ids: Any) -> Any:
            return self.dense(self.table(ids) + self.other(ids))

    net = Net()
    optimizer = nn.thor(net, RATES, DAMPING, 0.9, batch_size=4)
    assert type(net.table) is nn.EmbeddingThor and type(net.other) is nn.EmbeddingLookupThor
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    step.add_flags_recursive(thor=True)
    ids, label = Tensor([0, 1, 1, 3], ms.int32), Tensor(np.ones((4, 2), np.float32))
    losses = [float(step(ids, label).asnumpy()) for _ in range(8)]
    assert net.table.matrix_a.asnumpy().tolist() == [1, 2, 0, 1, 0] and losses[-1] < losses[0] / 2


def test_an_embedding_lookup_with_its_arguments() -> None:
    table = nn.EmbeddingLookupThor(5, 3, "ones")
    assert table(Tensor([0, 4], ms.int32)).asnumpy().tolist() == [[1, 1, 1]] * 2


def test_large_matrices_are_inverted_in_blocks() -> None:
    from mindspore.nn.optim.thor import _inverse

    random = np.random.RandomState(0)
    wide = random.rand(200, 300).astype(np.float32)
    matrix = wide @ wide.T / 300
    array = _inverse(Tensor(matrix), Tensor(0.5)).asnumpy()
    for piece in (slice(0, 128), slice(128, 200)):
        np.testing.assert_allclose(array[piece, piece], np.linalg.inv(matrix[piece, piece] + 0.5 * np.eye(len(matrix[piece]))), atol=1e-3)
    assert not array[:128, 128:].any()


def test_a_model(mode: int) -> None:
    net, x, y = problem()
    optimizer = nn.thor(net, RATES, DAMPING, 0.9, batch_size=4, frequency=2)
    loss = nn.MSELoss()
    model = ConvertModelUtils.convert_to_thor_model(Model(net, loss, optimizer), net, loss, optimizer)
    data = ms.dataset.NumpySlicesDataset((x.asnumpy(), y.asnumpy()), shuffle=False).batch(4)
    model.train(4, data)
    np.testing.assert_allclose(net[0].weight.asnumpy()[0], FIRST[0.0][3], rtol=5e-3)
    other = Model(net, loss, nn.SGD(net.trainable_params(), 0.1))
    assert ms.ConvertModelUtils().convert_to_thor_model(other, net, loss, None) is other


@pytest.mark.parametrize(("call", "kind"), [
    (lambda net: nn.thor(net, 0.1, DAMPING, 0.9), TypeError), (lambda net: nn.thor(net, RATES, DAMPING, "a"), TypeError),
    (lambda net: nn.thor(net, RATES, DAMPING, -1.0), ValueError), (lambda net: nn.thor(net, RATES, DAMPING, 0.9, frequency=1), ValueError),
    (lambda net: nn.thor(net, RATES, DAMPING, 0.9, loss_scale=0.0), ValueError),
    (lambda net: nn.thor(net, RATES, DAMPING, 0.9, use_nesterov=3), TypeError),
    (lambda net: nn.thor(net, RATES, DAMPING, 0.9, split_indices=3), TypeError),
    (lambda net: nn.thor(net, RATES, DAMPING, 0.9, enable_clip_grad=True), ValueError),
    (lambda net: ConvertNetUtils().convert_to_thor_net(3), TypeError),
    (lambda net: ConvertModelUtils.convert_to_thor_model(3, net), TypeError),
])
def test_what_does_not_fit(call: Callable[[Any], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call(problem()[0])
