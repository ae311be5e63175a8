"""The transformer library's shares of data and model: over simulated ranks beside one device, in float16 as it computes."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.parallel import _transformer as library

source = np.random.default_rng(0)
IDS, MASK = source.integers(0, 64, (4, 8)).astype(np.int32), np.tril(np.ones((4, 8, 8))).astype(np.float16)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = ms.get_context("mode")
    yield
    ms.reset_auto_parallel_context()
    ms.set_context(mode=before)


class Net(nn.Cell):
    def __init__(self, data: int, model: int, experts: int) -> None:
        super().__init__()
        shares = {"data_parallel": data, "model_parallel": model, "vocab_emb_dp": experts > 1}
        self.words = library.VocabEmbedding(64, 32, parallel_config=library.EmbeddingOpParallelConfig(**shares))
        self.encoder = library.TransformerEncoder(
            4, 1, 32, 64, 8, 4, attention_dropout_rate=0.0, hidden_dropout_rate=0.0,
            moe_config=library.MoEConfig(expert_num=experts, capacity_factor=4.0),
            parallel_config=library.TransformerOpParallelConfig(**shares, expert_parallel=2 if experts > 1 and data > 1 else 1),
        )

    def construct(self, ids: Any, mask: Any) -> Any:
        return self.encoder(self.words(ids)[0], mask)[0]


class Step(nn.Cell):
    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net
        weights = ops.cos(ops.arange(1024).astype(ms.float32)).reshape(4, 8, 32)
        self.gradients = ms.value_and_grad(lambda ids, mask: (net(ids, mask) * weights).sum(), None, net.trainable_params())

    def construct(self, ids: Any, mask: Any) -> Any:
        return self.gradients(ids, mask)


def stepped(data: int, model: int, experts: int) -> tuple[float, list[Any], Any]:
    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE)
    step = Step(Net(data, model, experts)).set_train()
    loss, gradients = step(Tensor(IDS), Tensor(MASK))
    return float(loss.asnumpy()), [gradient.asnumpy() for gradient in gradients], step


@pytest.mark.parametrize("experts", [1, 4])
def test_an_encoder_is_cut_by_its_shares(experts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loss, gradients, _ = stepped(1, 1, experts)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    data, model = (2, 4) if experts == 1 else (2, 2)
    result, others, step = stepped(data, model, experts)
    assert abs(result - loss) < 1e-3
    for expected, other in zip(others, gradients):
        np.testing.assert_allclose(expected, other, rtol=0.05, atol=0.02 * float(np.abs(other).max()) + 2e-3)
    layouts = {name.removeprefix("net.encoder.blocks.0."): layout[2] for name, layout in step.parameter_layout_dict.items()}
    assert layouts["attention.dense1.weight"] == [32 // model, 32] and layouts["attention.projection.weight"] == [32 // model, 32]
    if experts == 1:
        assert layouts["output.mapping.weight"] == [32, 16] and layouts["output.projection.bias"] == [32]
        assert layouts["net.words.embedding_table"] == [16, 32]
    else:
        assert layouts["output.ffn.mapping.weight"] == [2, 32, 32] and layouts["output.ffn.projection.weight"] == [2, 32, 32]


def test_strategies_of_its_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindspore.parallel._transformer import layers

    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.SequentialCell([layers._LayerNorm((16,)), layers._Linear(16, 32, activation="gelu", compute_dtype=ms.float32)])
    x = Tensor(source.standard_normal((8, 16)).astype(np.float32))
    alone = net(x).asnumpy()
    net[0].shard(((2, 1),))
    net[1].shard(strategy_matmul=((2, 1), (4, 1)), strategy_bias=((2, 4), (4,)), strategy_activation=((2, 4),))
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    np.testing.assert_allclose(net(x).asnumpy(), alone, rtol=1e-5, atol=1e-6)
    assert net.parameter_layout_dict["1.weight"][2] == [8, 16] and net.parameter_layout_dict["1.bias"][2] == [8]
    with pytest.raises(ValueError, match="normalised"):
        net[0].shard(((1, 2),))
