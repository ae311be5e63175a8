"""Rows of tables and classes that are cut among devices: what nobody has is refused, and the sum of the rows goes the short way."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.ops import operations as P

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.graph import dispatch


class Words(nn.Cell):
    """A table cut by rows, a layer of which each device has some classes."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        source = np.random.default_rng(0)
        self.table = Parameter(Tensor(source.standard_normal((8, 4)).astype(np.float32)), name="table")
        self.weight = Parameter(Tensor(source.standard_normal((4, 6)).astype(np.float32)), name="weight")
        self.gather = P.Gather().shard(((2, 1), (1,)))
        self.product = P.MatMul().shard(((1, 1), (1, classes)))
        self.norm, self.loss = nn.LayerNorm((4,)), nn.CrossEntropyLoss()

    def construct(self, x: Any, y: Any) -> Any:
        return self.loss(self.product(self.norm(ops.tanh(self.gather(self.table, x, 0))), self.weight), y)


def _step(cell: Any) -> Any:
    return nn.TrainOneStepCell(cell, nn.Momentum(cell.trainable_params(), 0.1, 0.9)).set_train()


def _split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "2")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")


@pytest.mark.parametrize("targets", [[1, 5, 3, 0], [1, -100, 3, 0], [-100] * 3 + [5]])
def test_numbers(targets: list[int], monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    x, y = Tensor([0, 7, 3, 4], ms.int32), Tensor(targets, ms.int32)
    alone = _step(Words())
    expected = [float(alone(x, y)) for _ in range(3)]
    _split(monkeypatch)
    step = _step(Words())
    np.testing.assert_allclose([float(step(x, y)) for _ in range(3)], expected, rtol=1e-6)
    for split, parameter in zip(step.get_parameters(), alone.get_parameters()):
        np.testing.assert_allclose(split.asnumpy(), parameter.asnumpy(), rtol=1e-5, atol=1e-7, err_msg=split.name)


@pytest.mark.parametrize(("rows", "targets"), [([0, 8], [1, 2]), ([0, -1], [1, 2]), ([0, 7], [1, 6]), ([0, 7], [1, -1])])
def test_what_no_device_has_is_refused(rows: list[int], targets: list[int], monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    _split(monkeypatch)
    step = _step(Words())
    with pytest.raises((IndexError, ValueError)):
        step(Tensor(rows, ms.int32), Tensor(targets, ms.int32))


def test_the_sum_of_rows_has_the_layout_of_its_reader(monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    """Read whole it is one sum over devices; MindSpore would scatter it and gather what comes of it again."""
    _split(monkeypatch)
    step = _step(Words())
    step(Tensor([0, 7, 3, 4], ms.int32), Tensor([1, 2, 3, 4], ms.int32))
    sent = [node.target for node in dispatch.graphs(step)[0].split.local.module.graph.nodes if node.target in nodes.SENDING]
    # Rows, the greatest score, the sum of powers, the picked score; the gradient of the rows.
    assert sent == [nodes.all_reduce] * 5


def test_the_gradient_of_a_split_loss_is_written_once(monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    """What a gradient of the picked scores alone would be is not made beside that of the scores."""
    _split(monkeypatch)
    step = _step(Words())
    step(Tensor([0, 7, 3, 4], ms.int32), Tensor([1, 2, 3, 4], ms.int32))
    operators = [getattr(node.target, "_opname", "") for node in dispatch.graphs(step)[0].split.local.module.graph.nodes]
    assert operators.count("scatter_add") == 1


class Spoken(nn.Cell):
    """The loss of a sequence of classes whose places nobody knows."""

    def __init__(self, rows: int, reduction: str) -> None:
        super().__init__()
        self.dense, self.loss = nn.Dense(5, 6), nn.CTCLoss(reduction=reduction)
        self.dense.matmul.shard(((rows, 1), (1, 1)))

    def construct(self, x: Any, y: Any, times: Any, lengths: Any) -> Any:
        return self.loss(ops.log_softmax(ops.transpose(self.dense(x), (1, 0, 2)), 2), y, times, lengths).sum()


@pytest.mark.parametrize(("rows", "reduction"), [(2, "mean"), (2, "none"), (1, "sum")])
def test_the_batch_of_ctc_is_cut(rows: int, reduction: str, monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    source = np.random.default_rng(1)
    tensors = [Tensor(array) for array in (
        source.standard_normal((4, 9, 5)).astype(np.float32), source.integers(1, 6, (4, 3)).astype(np.int32),
        np.array([9, 7, 8, 9], np.int32), np.array([3, 1, 2, 2], np.int32),
    )]

    def trained() -> tuple[Any, list[float]]:
        ms.set_seed(1)
        step = _step(Spoken(rows, reduction))
        return step, [float(step(*tensors)) for _ in range(3)]

    alone, expected = trained()
    _split(monkeypatch)
    step, result = trained()
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    for split, parameter in zip(step.get_parameters(), alone.get_parameters()):
        np.testing.assert_allclose(split.asnumpy(), parameter.asnumpy(), rtol=1e-5, atol=2e-6, err_msg=split.name)
    nodes_of = dispatch.graphs(step)[0].split.local.module.graph.nodes
    lengths = {name: node.args[at].meta["val"].shape[1] for node in nodes_of for name, at in (("ctc_losses", 0), ("ctc_gradient", 1))
            if getattr(node.target, "_opname", "") == name}
    assert lengths == {"ctc_losses": 4 // rows, "ctc_gradient": 4 // rows}
