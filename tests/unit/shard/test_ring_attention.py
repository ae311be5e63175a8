"""Ring attention on simulated ranks beside one device: results, statistics, gradients; what is exchanged."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor
from support import ring_attention

import torchspore
from torchspore.errors import StrategyRefused

RING, GRID = ((1, 8, 1),) * 3, ((2, 2, 2),) * 3
MODES: dict[str, tuple[bool, dict[str, Any]]] = {
    "all keys": (False, {}), "mask": (True, {}), "window": (False, {"pre_tokens": 3, "next_tokens": 2}),
    "causal": (False, {"sparse_mode": 2}), "lower right": (False, {"sparse_mode": 3}),
    "sees nothing": (False, {"pre_tokens": 2, "next_tokens": -1}),
}


def compare(monkeypatch: pytest.MonkeyPatch, layout: str, strategy: Any, mode: str) -> None:
    mask, settings = MODES[mode]
    alone = ring_attention.results(layout, None, mask, **settings)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    for value, expected in zip(ring_attention.results(layout, strategy, mask, **settings), alone, strict=True):
        np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("mode", ["mask", pytest.param("all keys", marks=pytest.mark.slow), "window"])
def test_a_ring_of_eight_gives_the_numbers_of_one_device(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(monkeypatch, "BSH", RING, mode)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_batch_heads_and_sequence_are_split_together(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(monkeypatch, "BSH", GRID, mode)


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "strategy"), [
    ("SBH", ((4, 2, 1),) * 3), ("BNSD", ((1, 2, 4, 1),) * 3), ("BSND", ((2, 4, 1, 1),) * 3), ("BSH", ((1, 8, 1), (1, 1, 1), (1, 1, 1))),
])
def test_every_layout(layout: str, strategy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(monkeypatch, layout, strategy, "causal")


def test_blocks_are_passed_on_and_nothing_is_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy=((1, 8, 1),) * 3)
    net = ring_attention.Attention("BSH", RING, False, {})
    x = Tensor(np.ones((4, 16, 16), np.float32))
    net(x, x, x)
    (graph,) = torchspore.graphs(net)
    targets = [getattr(node.target, "__name__", str(node.target)) for node in graph.split.local.module.graph.nodes]
    last = max(at for at, target in enumerate(targets) if target == "rotated")
    assert targets.count("rotated") == 7 and "all_gather" not in targets[:last]
    blocks = [node.meta["val"][0].shape for node in graph.split.local.module.graph.nodes if "attention_block" in str(node.target)]
    assert len(blocks) == 8 and all(tuple(shape) == (4, 4, 2, 4) for shape in blocks)


def test_a_shift_of_scores_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindspore.ops.operations.nn_ops import FlashAttentionScore

    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    attention = FlashAttentionScore(4, scale_value=0.25)
    attention.shard((*RING, (1, 1, 1, 1)))
    attention.add_prim_attr("enable_ring_attention", True)
    x, shift = Tensor(np.ones((4, 16, 16), np.float32)), Tensor(np.ones((4, 4, 16, 16), np.float32))

    class Net(ms.nn.Cell):
        def construct(self, x, shift):
            return attention(x, x, x, shift)[3]

    with pytest.raises(StrategyRefused, match="enable_ring_attention: expected neither real_shift nor keep_prob below 1"):
        Net()(x, shift)


@pytest.mark.parametrize("layout,strategy", [
    ("BSH", ((2, 2, 2), (2, 1, 1), (2, 1, 1), (2, 2, 2, 1), (2, 1, 2, 1))),
    ("BNSD", ((2, 2, 2, 1), (2, 1, 1, 1), (2, 1, 1, 1), (2, 2, 2, 1), (2, 1, 2, 1))),
    ("SBH", ((2, 2, 2), (1, 2, 1), (1, 2, 1), (2, 2, 2, 1), (2, 1, 2, 1))),
])
def test_shared_heads_and_masks_are_split_as_the_scores(monkeypatch: pytest.MonkeyPatch, layout: str, strategy: Any) -> None:
    from mindspore.ops.operations.nn_ops import FlashAttentionScore

    def result(shards: Any) -> Any:
        ms.reset_auto_parallel_context()
        if shards:
            monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
            ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
        attention = FlashAttentionScore(4, scale_value=0.25, input_layout=layout)
        if shards:
            attention.shard(shards)

        class Net(ms.nn.Cell):
            def construct(self, q: Tensor, k: Tensor, v: Tensor, shift: Tensor, mask: Tensor) -> Tensor:
                return attention(q, k, v, shift, None, None, mask)[3]

        random = np.random.default_rng(0)
        wide, narrow = {"BSH": ((4, 8, 16), (4, 8, 4)), "BNSD": ((4, 4, 8, 4), (4, 1, 8, 4)), "SBH": ((8, 4, 16), (8, 4, 4))}[layout]
        q, k, v = (Tensor(random.normal(size=shape).astype(np.float32)) for shape in (wide, narrow, narrow))
        shift = Tensor(random.normal(size=(4, 4, 8, 8)).astype(np.float32))
        mask = Tensor((random.random((4, 1, 8, 8)) > 0.7).astype(np.uint8))
        return Net()(q, k, v, shift, mask).asnumpy()

    ms.set_context(mode=ms.GRAPH_MODE)
    assert np.allclose(result(strategy), result(None), atol=1e-5)


def attention_of(mask_shape: tuple[int, ...] | None) -> Any:
    """A function of query, key, value and a mask, on eight devices that each have two positions; the loss of its square."""
    from mindspore.ops.operations.nn_ops import FlashAttentionScore

    attention = FlashAttentionScore(4, scale_value=0.25)
    attention.shard((*RING, (1,) * len(mask_shape)) if mask_shape else RING)
    attention.add_prim_attr("enable_ring_attention", True)

    def loss(*inputs: Any) -> Any:
        return (attention(*inputs[:3], None, None, None, *inputs[3:])[3] ** 2).sum()

    return loss


def beside_one_device(monkeypatch: pytest.MonkeyPatch, function: Any, inputs: list[Tensor]) -> list[np.ndarray]:
    """What a function returns in semi_auto_parallel on one device and on eight."""
    results = []
    for count in ("", "8"):
        monkeypatch.setenv("TORCHSPORE_SIMULATE", count)
        ms.set_context(mode=ms.GRAPH_MODE)
        ms.reset_auto_parallel_context()
        if count:
            ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
        results.append(function(*inputs).asnumpy())
    return results


def random_inputs(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [Tensor(np.random.RandomState(seed).randn(*shape).astype(np.float32)) for seed, shape in enumerate(shapes)]


def test_second_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = ms.grad(attention_of(None), 0)
    second = ms.grad(lambda q, k, v: (gradient(q, k, v) ** 2).sum(), 1)
    alone, ring = beside_one_device(monkeypatch, second, random_inputs(*((2, 16, 8),) * 3))
    assert np.abs(alone).max() > 0.01
    np.testing.assert_allclose(ring, alone, rtol=2e-4, atol=2e-5)


def test_first_gradients_pass_blocks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    loss = attention_of(None)
    net = ms.nn.Cell()
    net.construct = lambda q, k, v: ms.grad(loss, (0, 1, 2))(q, k, v)
    net(*random_inputs(*((2, 16, 8),) * 3))
    (graph,) = torchspore.graphs(net)
    targets = [getattr(node.target, "__name__", str(node.target)) for node in graph.split.local.module.graph.nodes]
    assert targets.count("rotated") == 7 + 7 + 8


@pytest.mark.parametrize("shape", [(2, 1, 16, 1), pytest.param((1,), marks=pytest.mark.slow)])
def test_a_mask_with_one_column_hides_all_keys(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    mask = Tensor(np.random.RandomState(5).rand(*shape) < 0.5)
    alone, ring = beside_one_device(monkeypatch, ms.grad(attention_of(shape), 0), [*random_inputs(*((2, 16, 8),) * 3), mask])
    np.testing.assert_allclose(ring, alone, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("shape", [(16, 32), (32, 16)])
def test_a_mask_of_other_lengths_is_refused(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    net = ms.nn.Cell()
    net.construct = attention_of(shape)
    with pytest.raises(StrategyRefused, match=r"expected a shape that it broadcasts to: on axis [23] it has 32, not 16 and not 1"):
        net(*random_inputs(*((2, 16, 8),) * 3), Tensor(np.zeros(shape, np.uint8)))
