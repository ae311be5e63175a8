"""Sparse gradients: rows reach the optimizers that know them, in both modes, and no value of the table's size is made."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import COOTensor, RowTensor, Tensor, nn, ops
from mindspore.common import RowTensorInner
from support.memory_use import most

import torchspore
from torchspore.context import effects
from torchspore.context.public import scope

IDS = [np.array(ids, np.int32) for ids in ([[1, 2, 1], [4, 2, 1]], [[0, 0, 3], [3, 2, 5]], [[1, 1, 1], [6, 2, 5]])]
OPTIMIZERS = {
    "Adam": lambda p: nn.Adam(p, 0.1), "lazy": lambda p: nn.LazyAdam(p, 0.1, weight_decay=0.1, loss_scale=2.0),
    "FTRL": lambda p: nn.FTRL(p, learning_rate=0.1, l1=0.01), "proximal": lambda p: nn.ProximalAdagrad(p, learning_rate=0.1, l1=0.01),
}


class Net(nn.Cell):
    """A table, by EmbeddingLookup, Embedding, the function or a primitive, and a dense layer."""

    def __init__(self, kind: str = "lookup", rows: int = 7) -> None:
        super().__init__()
        table = Tensor(np.random.RandomState(0).randn(rows, 4).astype(np.float32))
        if kind == "lookup":
            self.table = nn.EmbeddingLookup(rows, 4, param_init=table)
        elif kind == "Embedding":
            self.table = nn.Embedding(rows, 4, embedding_table=table)
        else:
            self.rows = ms.Parameter(table, name="table")
            self.table = lambda ids: (
                ops.gather(self.rows, ids, 0) if kind == "gather" else ops.Gather()(self.rows, ids, 0) if kind == "Gather" else
                ops.SparseGatherV2()(self.rows, ids, 0) if kind == "SparseGatherV2" else ops.EmbeddingLookup()(self.rows, ids, 0)
            )
        self.head = nn.Dense(4, 1, weight_init="ones", has_bias=False)

    def construct(self, ids):
        return (self.head(self.table(ids)) ** 2).sum()


def trained(make: Any, kind: str = "lookup", ids: Any = None) -> tuple[list[float], dict[str, np.ndarray], Any]:
    net = Net(kind)
    optimizer = make(net.trainable_params())
    step = nn.TrainOneStepCell(net, optimizer).set_train()
    losses = [float(step(Tensor(batch))) for batch in ids or IDS]
    return losses, {p.name: p.asnumpy() for p in optimizer.get_parameters()}, step


def gradients(net: Any, ids: np.ndarray) -> Any:
    call = ops.GradOperation(get_by_list=True)(net, ms.ParameterTuple(net.trainable_params()))
    return call(Tensor(ids))


@pytest.mark.parametrize("kind", ["lookup", "SparseGatherV2", "EmbeddingLookup"])
def test_the_gradient_holds_the_rows_that_were_used(mode: int, kind: str) -> None:
    result = gradients(Net(kind), IDS[0])[0]
    assert isinstance(result, RowTensorInner)
    assert result.indices.asnumpy().tolist() == [1, 2, 1, 4, 2, 1] and result.values.shape == (6, 4) and result.dense_shape == (7, 4)
    with scope(enable_sparse=False):
        gradient = gradients(Net("Embedding"), IDS[0])[0]
    assert isinstance(gradient, Tensor)
    np.testing.assert_allclose(result.asnumpy(), gradient.asnumpy(), rtol=1e-6)


@pytest.mark.parametrize("kind", ["Embedding", "gather", "Gather"])
def test_the_switch_makes_gradients_of_gathers_sparse(mode: int, kind: str) -> None:
    assert isinstance(gradients(Net(kind), IDS[0])[0], Tensor)
    with scope(enable_sparse=True):
        result = gradients(Net(kind), IDS[0])[0]
    assert isinstance(result, RowTensorInner) and result.indices.shape == (6,)
    np.testing.assert_allclose(result.asnumpy(), gradients(Net(kind), IDS[0])[0].asnumpy(), rtol=1e-6)


def test_a_table_that_is_used_as_one_tensor_too_has_a_full_gradient(mode: int) -> None:
    class Both(Net):
        def construct(self, ids):
            return super().construct(ids) + (self.table.embedding_table ** 2).sum()

    result = gradients(Both(), IDS[0])[0]
    with scope(enable_sparse=False):
        expected = gradients(Net("Embedding"), IDS[0])[0].asnumpy() + 2 * Net().table.embedding_table.asnumpy()
    assert isinstance(result, Tensor)
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_both_modes_and_levels_agree(make: Any) -> None:
    losses, state, _ = trained(make)
    for config in ({}, {"jit_level": "O1"}):
        with scope(mode=ms.GRAPH_MODE, jit_config=config):
            again, others, step = trained(make)
        assert len(torchspore.graphs(step)) == 1
        np.testing.assert_allclose(again, losses, rtol=1e-5)
        for name, value in state.items():
            np.testing.assert_allclose(others[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_other_rows_stay_as_they_are(mode: int) -> None:
    start = Net().table.embedding_table.asnumpy()
    for name in ("lazy", "FTRL", "proximal"):
        _, state, _ = trained(OPTIMIZERS[name], ids=IDS[:1])
        table = state["table.embedding_table"]
        assert (table[[0, 3, 5, 6]] == start[[0, 3, 5, 6]]).all() and (table[[1, 2, 4]] != start[[1, 2, 4]]).all()
    _, state, _ = trained(OPTIMIZERS["Adam"], ids=IDS[:2])
    once = trained(OPTIMIZERS["Adam"], ids=IDS[:1])[1]["table.embedding_table"]
    assert (state["table.embedding_table"][4] != once[4]).all()      # row 4 moves on in the step that does not have it


@pytest.mark.parametrize("make", [
    lambda p: nn.Momentum(p, 0.1, 0.9), lambda p: nn.SGD(p, 0.1), lambda p: nn.AdamWeightDecay(p, 0.1),
], ids=["Momentum", "SGD", "AdamWeightDecay"])
def test_other_optimizers_get_the_full_gradient(mode: int, make: Any) -> None:
    losses, _, _ = trained(make)
    np.testing.assert_allclose(trained(make, "Embedding")[0], losses, rtol=1e-5)


def test_adam_with_rows_is_adam(mode: int) -> None:
    losses, state, _ = trained(lambda p: nn.Adam(p, 0.1, use_nesterov=True))
    others, weights, _ = trained(lambda p: nn.Adam(p, 0.1, use_nesterov=True), "Embedding")
    np.testing.assert_allclose(losses, others, rtol=1e-5)
    np.testing.assert_allclose(state["table.embedding_table"], weights["table.embedding_table"], rtol=1e-4, atol=1e-6)


def test_given_rows_and_coordinates_reach_the_optimizer(mode: int) -> None:
    def updated(gradient: Any) -> np.ndarray:
        table = ms.Parameter(Tensor(np.ones((5, 2), np.float32)), name="table")
        nn.LazyAdam([table], 0.1)((gradient,))
        return table.asnumpy()

    rows = updated(RowTensor(Tensor([3, 1, 3], ms.int32), Tensor(np.array([[1, 2], [3, 4], [5, 0]], np.float32)), (5, 2)))
    assert (rows[[0, 2, 4]] == 1).all() and (rows[[1, 3]] < 1).all()
    at = Tensor(np.array([[3, 0], [3, 1], [1, 0], [1, 1], [3, 0]]), ms.int32)
    assert np.array_equal(updated(COOTensor(at, Tensor([1.0, 2.0, 3.0, 4.0, 5.0]), (5, 2))), rows)


def test_gradients_are_divided_by_the_loss_scale(mode: int) -> None:
    def step(scale: float) -> np.ndarray:
        net = Net()
        cell = nn.TrainOneStepWithLossScaleCell(net, nn.LazyAdam(net.trainable_params(), 0.1), Tensor(scale, ms.float32)).set_train()
        cell(Tensor(IDS[0]))
        return net.table.embedding_table.asnumpy()

    np.testing.assert_allclose(step(1024.0), step(1.0), rtol=1e-5)


@pytest.mark.parametrize("name", ["lazy", "FTRL", "proximal"])
def test_memory_does_not_grow_with_the_table(mode: int, name: str, tmp_path: Path) -> None:
    results = []
    for rows in (1000, 100_000):
        net = Net(rows=rows)
        step = nn.TrainOneStepCell(net, OPTIMIZERS[name](net.trainable_params())).set_train()
        step(Tensor(IDS[0]))
        results.append(most(lambda step=step: step(Tensor(IDS[0])), tmp_path))
    assert results[1] < 1.2 * results[0] + 4096 < 100_000 * 4 * 4


def test_adam_makes_no_value_of_the_tables_size(mode: int, tmp_path: Path) -> None:
    net = Net(rows=400_000)
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 0.1)).set_train()
    step(Tensor(IDS[0]))
    assert most(lambda: step(Tensor(IDS[0])), tmp_path) < 400_000 * 4 * 4


def test_the_effect_of_the_switch_is_reported() -> None:
    with scope(mode=ms.GRAPH_MODE, enable_sparse=True):
        trained(OPTIMIZERS["lazy"], "Embedding")
        from torchspore.context.options import OPTIONS

        assert "RowTensors" in str(effects.outcome_of(OPTIONS["enable_sparse"], True))


def test_coordinates() -> None:
    tensor = COOTensor(Tensor([[0, 1], [1, 2], [0, 1]], ms.int32), Tensor([1.0, -2.0, 3.0]), (2, 3))
    assert tensor.to_dense().asnumpy().tolist() == [[0, 4, 0], [0, 0, -2]]
    assert (tensor.shape, tensor.ndim, tensor.size, tensor.itemsize, tensor.dtype) == ((2, 3), 2, 3, 4, ms.float32)
    assert tensor.abs().values.asnumpy().tolist() == [1, 2, 3] and (-tensor).values.asnumpy().tolist() == [-1, 2, -3]
    assert tensor.astype(ms.float16).dtype == ms.float16 and COOTensor(coo_tensor=tensor).to_tuple()[2] == (2, 3)
    with pytest.raises(ValueError, match=r"expected indices of shape \(n, 2\) and values of shape \(n,\)"):
        COOTensor(Tensor([0, 1], ms.int32), Tensor([1.0, 2.0]), (2, 3))
    assert (RowTensorInner(Tensor([1], ms.int32), Tensor([[1.0]]), (3, 1)) * 2).asnumpy().tolist() == [[0], [2], [0]]


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda p: nn.EmbeddingLookup(4, 2, sparse=False), ValueError,
     "EmbeddingLookup(sparse=False, target='CPU'): expected sparse=True, or target='DEVICE'."),
    (lambda p: nn.EmbeddingLookup(0, 2), ValueError, "EmbeddingLookup(vocab_size=0): expected an int above 0."),
    (lambda p: nn.EmbeddingLookup("4", 2), TypeError, "EmbeddingLookup(vocab_size='4'): expected an int, got str."),
    (lambda p: nn.EmbeddingLookup(4, 2, sparse=1), TypeError, "EmbeddingLookup(sparse=1): expected a bool, got int."),
    (lambda p: nn.EmbeddingLookup(4, 2, target="GPU"), ValueError, "EmbeddingLookup(target='GPU'): expected 'CPU' or 'DEVICE'."),
    (lambda p: nn.EmbeddingLookup(4, 2, slice_mode="rows"), ValueError,
     "EmbeddingLookup(slice_mode='rows'): expected 'batch_slice', 'field_slice', 'table_row_slice' or 'table_column_slice'."),
    (lambda p: nn.EmbeddingLookup(4, 2, max_norm=0.0), ValueError, "EmbeddingLookup(max_norm=0.0): expected a number above 0."),
    (lambda p: nn.FTRL(p, learning_rate=[0.1, 0.2]), ValueError, "FTRL(learning_rate=...): expected one rate for all steps and groups."),
    (lambda p: nn.ProximalAdagrad(p, use_locking=1), TypeError, "ProximalAdagrad(use_locking=1): expected a bool, got int."),
    (lambda p: setattr(nn.LazyAdam(p, 0.1), "target", 1), TypeError, "LazyAdam.target = 1: expected a str, got int."),
    (lambda p: setattr(nn.LazyAdam(p, 0.1), "unique", 1), TypeError, "LazyAdam.unique = 1: expected a bool, got int."),
    (lambda p: RowTensor(), TypeError, "RowTensor(): expected indices, values and shape."),
    (lambda p: RowTensor(row_tensor=3), TypeError, "RowTensor(row_tensor=...): expected a RowTensor, got int."),
    (lambda p: COOTensor(), TypeError, "COOTensor(): expected indices, values and shape."),
    (lambda p: COOTensor(coo_tensor=3), TypeError, "COOTensor(coo_tensor=...): expected a COOTensor, got int."),
    (lambda p: nn.FTRL(p, lr_power=0.5), ValueError, "FTRL(lr_power=0.5): expected a number up to 0."),
    (lambda p: nn.FTRL(p, l1=1), TypeError, "FTRL(l1=1): expected a float, got int."),
    (lambda p: nn.ProximalAdagrad(p, accum=-1.0), ValueError, "ProximalAdagrad(accum=-1.0): expected a number from 0 on."),
    (lambda p: setattr(nn.LazyAdam(p, 0.1), "target", "TPU"), ValueError, "LazyAdam.target = 'TPU': expected 'CPU', 'Ascend' or 'GPU'."),
])
def test_wrong_arguments(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as error:
        call([ms.Parameter(Tensor([1.0]), name="w")])
    assert str(error.value).partition("\n")[0] == text


@pytest.fixture(autouse=True)
def after() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_ftrl_of_full_gradients_is_that_of_rows() -> None:
    every = [np.array([[0, 1, 2, 3, 4, 5, 6]], np.int32)] * 3
    make = lambda p: nn.FTRL(p, learning_rate=0.1, l1=0.5)
    np.testing.assert_allclose(trained(make, "Embedding", every)[0], trained(make, "lookup", every)[0], rtol=1e-5)


def test_max_norm_clips_each_vector(mode: int) -> None:
    table = np.random.RandomState(0).randn(5, 4).astype(np.float32) * 3
    for target in ("CPU", "DEVICE"):
        net = nn.EmbeddingLookup(5, 4, param_init=Tensor(table), target=target, max_norm=1.0)
        out = net(Tensor(IDS[0])).asnumpy()
        lengths = np.linalg.norm(table[IDS[0]], axis=-1, keepdims=True)
        np.testing.assert_allclose(out, table[IDS[0]] / np.maximum(lengths, 1), rtol=1e-5)
