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
    made = nn.SequentialCell([nn.Dense(16, 32), nn.Tanh(), nn.Dense(32, 4)])
    made[0].matmul.shard(((2, 1), (4, 1)))
    made[2].matmul.shard(((2, 4), (1, 4)))
    return made


def model(network: Any) -> Any:
    return train.Model(network, nn.MSELoss(), nn.Momentum(network.trainable_params(), 0.05, 0.9), metrics={"loss"})


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch, graph_mode: None) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")


def alone(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    with monkeypatch.context() as patch:
        patch.delenv("TORCHSPORE_SIMULATE")
        own = model(net())
        own.train(2, batches())
        return own.train_network, own.eval(batches())["loss"]


@pytest.mark.parametrize("is_wrapped", [pytest.param(False, marks=pytest.mark.slow), True])
def test_layouts_are_told_before_anything_runs(is_wrapped: bool, eight: None, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, loss = alone(monkeypatch)
    network = net()
    if is_wrapped:
        network = AutoParallel(network)
        network.dataset_strategy("full_batch")
    else:
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    own = model(network)
    before = [p.asnumpy().copy() for p in own.train_network.get_parameters()]
    found = own.infer_train_layout(batches())
    assert (found["0.weight"][0], found["0.weight"][2], found["0.weight"][6]) == ([2, 4], [8, 16], [32, 16])
    assert (found["2.weight"][2], found["moments.2.weight"][2]) == ([4, 8], [4, 8])
    assert own.infer_predict_layout(Tensor(ROWS))["0.weight"][2] == [8, 16]
    for p, was in zip(own.train_network.get_parameters(), before):
        np.testing.assert_array_equal(p.asnumpy(), was)
    graphs = len(dispatch.graphs(own.train_network))
    own.train(2, batches())
    assert len(dispatch.graphs(own.train_network)) == graphs == 1           # the one that was captured is the one that ran
    assert dispatch.graphs(own.train_network)[0].split.local.mesh.count == 8
    np.testing.assert_allclose(own.eval(batches())["loss"], loss, rtol=1e-5)
    for p, one in zip(own.train_network.get_parameters(), wanted.get_parameters()):
        np.testing.assert_allclose(p.asnumpy(), one.asnumpy(), rtol=1e-5, atol=1e-6)
    assert ms.get_auto_parallel_context("parallel_mode") == ("stand_alone" if is_wrapped else "semi_auto_parallel")


@pytest.mark.slow
def test_build_captures_what_training_and_evaluation_run(eight: None) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    own = model(net())
    own.build(batches(), batches(), epoch=2)
    cells = own.train_network, own.eval_network
    counts = [len(dispatch.graphs(cell)) for cell in cells]
    own.fit(2, batches(), batches())
    assert counts == [len(dispatch.graphs(cell)) for cell in cells] == [1, 1]


def test_settings_of_a_pipeline_reach_the_context(eight: None) -> None:
    wrapped = AutoParallel(net())
    wrapped.pipeline(2, interleave=True, scheduler="gpipe")
    with wrapped._acting():
        assert ms.get_auto_parallel_context("pipeline_stages") == 2
        assert ms.get_auto_parallel_context("pipeline_config") == {"pipeline_interleave": True, "pipeline_scheduler": "gpipe"}
    assert ms.get_auto_parallel_context("pipeline_stages") == 1


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda own: own.infer_train_layout(batches(), dataset_sink_mode=False), ValueError, "dataset_sink_mode=False"),
    (lambda own: own.infer_train_layout(batches(), sink_size=0), ValueError, "sink_size=0"),
    (lambda own: own.infer_train_layout(3), TypeError, "a Dataset"),
    (lambda own: own.infer_predict_layout(ROWS), TypeError, "Model.infer_predict_layout of ndarray"),
    (lambda own: own.build(), ValueError, "train_dataset, valid_dataset, or both"),
    (lambda own: own.build(batches(), epoch=0), ValueError, "epoch"),
])
def test_what_does_not_fit(call: Any, kind: type[Exception], text: str, eight: None) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    with pytest.raises(kind, match=text):
        call(model(net()))


def test_modes_that_split_nothing(graph_mode: None) -> None:
    own = model(net())
    for call in (lambda: own.infer_train_layout(batches()), lambda: own.infer_predict_layout(Tensor(ROWS))):
        with pytest.raises(RuntimeError, match="in parallel_mode='stand_alone': expected 'semi_auto_parallel' or 'auto_parallel'"):
            call()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
    with pytest.raises(RuntimeError, match="in PYNATIVE_MODE: expected GRAPH_MODE"):
        own.infer_predict_layout(Tensor(ROWS))
