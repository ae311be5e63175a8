"""`precision_mode` and `enable_auto_mixed_precision`: the dtypes of operators in the graph, and what they do to the numbers."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from unit.graph.precision.nets import Net, X, dtypes, product, trained

import torchspore
from torchspore.context import effects
from torchspore.context.public import scope
from torchspore.context.store import STORE
from torchspore.engine.execution import precision
from torchspore.errors import OptionValueError

PRODUCTS = ("convolution", "convolution_backward", "addmm", "mm")
HALF, BRAIN, SINGLE = {"float16"}, {"bfloat16"}, {"float32"}


@pytest.fixture(autouse=True)
def after() -> Iterator[None]:
    yield
    STORE.reset("context")                       # which calls no effects
    precision.follow_mode("")
    precision.follow_auto_mixed(False)


def unchanged() -> list[float]:
    """The losses without a policy. A dictionary without the key would leave it as it is."""
    STORE.reset("context")
    return trained()[0]


def under(mode: str, **more: Any) -> tuple[list[float], dict[str, set[str]], Any, Any]:
    losses, step, net = trained(ascend_config={"precision_mode": mode}, **more)
    return losses, dtypes(step), step, net


@pytest.mark.parametrize(("mode", "kind"), [("allow_fp32_to_fp16", HALF), ("allow_fp32_to_bf16", BRAIN)])
def test_products_alone_are_cast(mode: str, kind: set[str]) -> None:
    losses, result, _, _ = under(mode)
    assert {name: result[name] for name in PRODUCTS} == dict.fromkeys(PRODUCTS, kind)
    others = ("native_batch_norm", "relu", "mul", "add", "mean", "_log_softmax", "threshold_backward", "native_batch_norm_backward")
    assert {name: result[name] - {"int32"} for name in others} == dict.fromkeys(others, SINGLE)
    assert losses != unchanged()


@pytest.mark.parametrize(("mode", "kind"), [
    ("allow_mix_precision", HALF), ("allow_mix_precision_fp16", HALF), ("allow_mix_precision_bf16", BRAIN),
])
def test_the_mixed_policies_go_by_lists(mode: str, kind: set[str]) -> None:
    _, result, _, _ = under(mode)
    for name in (*PRODUCTS, "relu", "threshold_backward", "mul"):
        assert result[name] == kind, name                    # `mul` follows the relu before it
    for name in ("native_batch_norm", "native_batch_norm_backward", "mean", "_log_softmax", "_log_softmax_backward_data"):
        assert result[name] == SINGLE, name


def test_force_fp16_casts_all_but_state() -> None:
    _, result, _, _ = under("force_fp16")
    for name in (*PRODUCTS, "relu", "mul", "mean", "_log_softmax", "_log_softmax_backward_data", "threshold_backward"):
        assert result[name] == HALF, name
    assert result["native_batch_norm"] == result["native_batch_norm_backward"] == SINGLE


@pytest.mark.parametrize("mode", ["force_fp16", "allow_fp32_to_fp16", "allow_mix_precision", "allow_fp32_to_bf16"])
@pytest.mark.parametrize("optimizer", [
    lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.01), lambda p: nn.Adam(p, 1e-2, weight_decay=0.01),
    lambda p: nn.Adam(p, 1e-2, use_nesterov=True), lambda p: nn.AdamWeightDecay(p, 1e-2),
], ids=["momentum", "adam", "nesterov", "weight decay"])
def test_parameters_state_and_results_keep_their_dtypes(mode: str, optimizer: Any) -> None:
    _, step, _ = trained(optimizer, ascend_config={"precision_mode": mode})
    assert {str(p.dtype) for p in step.get_parameters()} <= {"Float32", "Int32"}
    assert step(Tensor(X), Tensor(np.zeros(4, np.int32))).dtype == ms.float32
    assert all(np.isfinite(p.asnumpy()).all() for p in step.get_parameters())
    lines = [line for line in str(torchspore.graphs(step)[0]).splitlines() if "aten._fused" in line or "aten.lerp_" in line]
    assert lines and not any("float16" in line for line in lines)


def test_must_keep_origin_dtype_gives_the_bits_of_no_policy() -> None:
    assert under("must_keep_origin_dtype")[0] == unchanged()


def test_force_fp32_computes_products_of_float16_in_float32() -> None:
    rng = np.random.RandomState(0)
    a, b = (Tensor((rng.rand(64, 64) + 1).astype(np.float16)) for _ in range(2))
    call = ms.jit(product)
    ms.set_context(mode=ms.GRAPH_MODE, ascend_config={"precision_mode": "force_fp32"})
    out = call(a, b)
    assert out.dtype == ms.float16 and dtypes(call)["mm"] == SINGLE and dtypes(call)["mul"] == SINGLE
    exact = a.asnumpy().astype(np.float64) @ b.asnumpy() * 1.1 + 0.3
    error = np.abs(out.asnumpy() - exact).mean()
    STORE.reset("context")
    ms.set_context(mode=ms.GRAPH_MODE)
    other = ms.jit(lambda a, b: product(a, b))
    assert error < 0.9 * np.abs(other(a, b).asnumpy() - exact).mean()


def test_a_loss_scale_beyond_float16_stays_finite() -> None:
    @ms.jit
    def scaled(x: Tensor, scale: Tensor) -> Tensor:
        return ops.relu(x) * scale

    ms.set_context(mode=ms.GRAPH_MODE, ascend_config={"precision_mode": "force_fp16"})
    out = scaled(Tensor(np.full((2, 2), 1e-3, np.float32)), Tensor(2.0 ** 20, ms.float32))
    np.testing.assert_allclose(out.asnumpy(), 1048.576, rtol=1e-3)


def test_random_operators_draw_the_same_numbers() -> None:
    def masks(mode: str) -> np.ndarray:
        ms.set_context(mode=ms.GRAPH_MODE, ascend_config={"precision_mode": mode})
        ms.set_seed(5)
        net = nn.Dropout(p=0.5).set_train()
        return net(Tensor(np.ones((64, 64), np.float32))).asnumpy() > 0

    assert (masks("force_fp16") == masks("must_keep_origin_dtype")).all()


def test_the_policy_is_part_of_the_key() -> None:
    ms.set_context(mode=ms.GRAPH_MODE, ascend_config={"precision_mode": "allow_fp32_to_fp16"})
    ms.set_seed(1)
    net = Net().set_train(False)
    low = net(Tensor(X)).asnumpy()
    ms.set_context(ascend_config={"precision_mode": "must_keep_origin_dtype"})
    exact = net(Tensor(X)).asnumpy()
    assert 0 < np.abs(low - exact).max() < 1e-2
    assert len(torchspore.graphs(net)) == 2


def test_branches_on_tensors_are_cast_too() -> None:
    class Branch(nn.Cell):
        def construct(self, x, w):
            if x.sum() > 0:
                y = ops.matmul(x, w)
            else:
                y = ops.matmul(x * 2, w)
            return y

    rng = np.random.RandomState(0)
    x, w = (Tensor((rng.rand(32, 32)).astype(np.float32)) for _ in range(2))
    ms.set_context(mode=ms.GRAPH_MODE, ascend_config={"precision_mode": "allow_fp32_to_fp16"})
    low = Branch()(x, w)
    exact = x.asnumpy().astype(np.float64) @ w.asnumpy()
    assert low.dtype == ms.float32
    halves = (x.asnumpy().astype(np.float16) @ w.asnumpy().astype(np.float16)).astype(np.float64)
    assert np.abs(low.asnumpy() - exact).max() > 1e-4            # float32 would be nearer
    assert np.abs(low.asnumpy() - exact).max() <= 2 * np.abs(halves - exact).max()


@pytest.mark.parametrize("config", [{"infer_boost": "on"}, {"jit_level": "O1"}], ids=["boost", "O1"])
def test_other_levels_compute_in_the_same_dtypes(config: dict[str, str]) -> None:
    ms.set_context(mode=ms.GRAPH_MODE, ascend_config={"precision_mode": "allow_fp32_to_fp16"})
    ms.set_seed(1)
    net = Net().set_train(False)
    plain = net(Tensor(X)).asnumpy()
    ms.set_context(jit_config=config)
    np.testing.assert_allclose(net(Tensor(X)).asnumpy(), plain, rtol=2e-3, atol=2e-4)
    assert dtypes(net)["convolution"] == HALF


def test_auto_mixed_precision_is_the_mixed_policy_where_none_is_set() -> None:
    losses, step, _ = trained(enable_auto_mixed_precision=True)
    assert losses == under("allow_mix_precision", enable_auto_mixed_precision=False)[0]
    assert dtypes(step)["addmm"] == HALF
    assert under("must_keep_origin_dtype", enable_auto_mixed_precision=True)[1]["addmm"] == SINGLE


def test_casts_are_reported() -> None:
    under("allow_fp32_to_fp16")
    assert any("allow_fp32_to_fp16: 8 operators in float16" in line and "casts put in" in line for line in effects.notes()["precision"])


def test_an_unknown_mode_names_the_nearest() -> None:
    with pytest.raises(OptionValueError) as error:
        ms.set_context(ascend_config={"precision_mode": "force_fp61"})
    assert "precision_mode" in str(error.value) and "hint: write ascend_config={'precision_mode': 'force_fp16'}" in str(error.value)


def test_a_gradient_that_onednn_leaves_unwritten_stays_in_float32() -> None:
    class Small(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.wide, self.small = nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3, stride=2)

        def construct(self, x):
            return (self.wide(x)[:, :, :1, :1] + self.small(x[:, :, :1, :1])).sum()

    ms.set_context(mode=ms.GRAPH_MODE, ascend_config={"precision_mode": "allow_fp32_to_bf16"})
    net = Small()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1)).set_train()
    step(Tensor(np.ones((2, 8, 4, 4), np.float32)))
    assert dtypes(step)["convolution"] == BRAIN and dtypes(step)["convolution_backward"] == {"bfloat16", "float32"}


def test_a_graph_that_is_loaded_from_the_cache_is_cast_alike(tmp_path: Any) -> None:
    with scope(enable_compile_cache=True, compile_cache_path=str(tmp_path)):
        losses, result, _, _ = under("force_fp16")
    with scope(enable_compile_cache=True, compile_cache_path=str(tmp_path), load_compile_cache=True):
        reloaded, loaded, _, _ = under("force_fp16")
    assert reloaded == losses and loaded == result


def test_saved_graphs_show_the_dtypes(tmp_path: Any) -> None:
    with scope(save_graphs=1, save_graphs_path=str(tmp_path)):
        under("allow_fp32_to_fp16", steps=1)
    final = next(tmp_path.rglob("graph_build_*.ir")).read_text()
    results = [lines for lines in final.split("\n  %") if "= aten.addmm(" in lines]
    assert results and all("-> (<Tensor[Float16]" in lines for lines in results)
    assert all("-> (<Tensor[Float32]" in lines for lines in final.split("\n  %") if "= aten._log_softmax(" in lines)
