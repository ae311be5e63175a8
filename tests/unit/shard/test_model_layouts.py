"""What `Model` tells of layouts before it trains or predicts, and that the settings of an AutoParallel act in all that it does."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, train
from mindspore.parallel.auto_parallel import AutoParallel

from torchspore.graph import dispatch

ROWS = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)


def batches(rows: int = 16) -> Any:
    return ms.dataset.NumpySlicesDataset((ROWS[:rows], ROWS[:rows, :4].copy()), shuffle=False).batch(8)


def net() -> Any:
    ms.set_seed(1)
    cell = nn.SequentialCell([nn.Dense(16, 32), nn.Tanh(), nn.Dense(32, 4)])
    cell[0].matmul.shard(((2, 1), (4, 1)))
    cell[2].matmul.shard(((2, 4), (1, 4)))
    return cell


def model(network: Any) -> Any:
    return train.Model(network, nn.MSELoss(), nn.Momentum(network.trainable_params(), 0.05, 0.9), metrics={"loss"})


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")


def alone(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    with monkeypatch.context() as patch:
        patch.delenv("TORCHSPORE_SIMULATE")
        train_model = model(net())
        train_model.train(2, batches())
        return train_model.train_network, train_model.eval(batches())["loss"]


@pytest.mark.parametrize("is_wrapped", [pytest.param(False, marks=pytest.mark.slow), True])
def test_layouts_are_known_before_anything_runs(is_wrapped: bool, eight: None, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, loss = alone(monkeypatch)
    network = net()
    if is_wrapped:
        network = AutoParallel(network)
        network.dataset_strategy("full_batch")
    else:
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    train_model = model(network)
    before = [p.asnumpy().copy() for p in train_model.train_network.get_parameters()]
    result = train_model.infer_train_layout(batches())
    assert (result["0.weight"][0], result["0.weight"][2], result["0.weight"][6]) == ([2, 4], [8, 16], [32, 16])
    assert (result["2.weight"][2], result["moments.2.weight"][2]) == ([4, 8], [4, 8])
    assert train_model.infer_predict_layout(Tensor(ROWS))["0.weight"][2] == [8, 16]
    for p, was in zip(train_model.train_network.get_parameters(), before):
        np.testing.assert_array_equal(p.asnumpy(), was)
    graphs = len(dispatch.graphs(train_model.train_network))
    train_model.train(2, batches())
    assert len(dispatch.graphs(train_model.train_network)) == graphs == 1           # the one that was captured is the one that ran
    assert dispatch.graphs(train_model.train_network)[0].split.local.mesh.count == 8
    np.testing.assert_allclose(train_model.eval(batches())["loss"], loss, rtol=1e-5)
    for p, parameter in zip(train_model.train_network.get_parameters(), expected.get_parameters()):
        np.testing.assert_allclose(p.asnumpy(), parameter.asnumpy(), rtol=1e-5, atol=1e-6)
    assert ms.get_auto_parallel_context("parallel_mode") == ("stand_alone" if is_wrapped else "semi_auto_parallel")


@pytest.mark.slow
def test_build_captures_what_training_and_evaluation_run(eight: None) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    train_model = model(net())
    train_model.build(batches(), batches(), epoch=2)
    cells = train_model.train_network, train_model.eval_network
    counts = [len(dispatch.graphs(cell)) for cell in cells]
    train_model.fit(2, batches(), batches())
    assert counts == [len(dispatch.graphs(cell)) for cell in cells] == [1, 1]


def test_settings_of_a_pipeline_reach_the_context(eight: None) -> None:
    wrapped = AutoParallel(net())
    wrapped.pipeline(2, interleave=True, scheduler="gpipe")
    with wrapped._acting():
        assert ms.get_auto_parallel_context("pipeline_stages") == 2
        assert ms.get_auto_parallel_context("pipeline_config") == {"pipeline_interleave": True, "pipeline_scheduler": "gpipe"}
    assert ms.get_auto_parallel_context("pipeline_stages") == 1


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda m: m.infer_train_layout(batches(), dataset_sink_mode=False), ValueError, "dataset_sink_mode=False"),
    (lambda m: m.infer_train_layout(batches(), sink_size=0), ValueError, "sink_size=0"),
    (lambda m: m.infer_train_layout(3), TypeError, "a Dataset"),
    (lambda m: m.infer_predict_layout(ROWS), TypeError, "Model.infer_predict_layout of ndarray"),
    (lambda m: m.build(), ValueError, "train_dataset, valid_dataset, or both"),
    (lambda m: m.build(batches(), epoch=0), ValueError, "epoch"),
])
def test_what_does_not_fit(call: Any, kind: type[Exception], text: str, eight: None) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    with pytest.raises(kind, match=text):
        call(model(net()))


def test_modes_that_split_nothing(graph_mode: None) -> None:
    train_model = model(net())
    for call in (lambda: train_model.infer_train_layout(batches()), lambda: train_model.infer_predict_layout(Tensor(ROWS))):
        with pytest.raises(RuntimeError, match="in parallel_mode='stand_alone': expected 'semi_auto_parallel' or 'auto_parallel'"):
            call()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
    with pytest.raises(RuntimeError, match="in PYNATIVE_MODE: expected GRAPH_MODE"):
        train_model.infer_predict_layout(Tensor(ROWS))
