"""Level O0 runs the kernels that PyNative runs, in no more memory."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from torch.profiler import ProfilerActivity, profile

_QUIET = ("view", "reshape", "detach", "as_strided", "alias", "empty", "resize", "expand", "permute", "transpose", "::t", "select", "slice",
          "unsqueeze", "squeeze", "result_type", "to", "_to_copy", "copy_", "fill_", "zero_", "ones_like", "zeros", "clone", "item",
          "_local_scalar_dense", "contiguous", "lift_fresh", "is_nonzero", "unbind", "split", "narrow", "_unsafe_view", "full", "ones",
          "flatten", "chunk", "_reshape_alias", "requires_grad_", "arange", "unflatten", "numpy_T", "new_zeros", "zeros_like", "full_like",
          "new_empty_strided", "empty_strided", "empty_like")

pytestmark = pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")      # torch 2.11 warns of each profile


@pytest.fixture(autouse=True)
def pynative_after() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Net(nn.Cell):
    """Convolution, norm, pooling, attention, dense."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.pool = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.MaxPool2d(2, 2)
        self.dense, self.layer, self.fc = nn.Dense(8, 8), nn.LayerNorm((8,)), nn.Dense(8, 4)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        x = x.reshape(x.shape[0], 8, -1).transpose(0, 2, 1)
        x = self.layer(x + ops.matmul(ops.softmax(ops.matmul(self.dense(x), x.transpose(0, 2, 1))), x))
        return self.fc(ops.gelu(x).mean(1))


def step() -> Callable[[], Any]:
    ms.set_seed(1)
    net = Net()
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    cell.set_train()
    x, y = Tensor(np.ones((4, 3, 16, 16), np.float32)), Tensor(np.zeros(4, np.int32))
    return lambda: cell(x, y)


def kernels(run: Callable[[], Any]) -> Counter[str]:
    run()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        run()
    return Counter({event.key: event.count for event in seen.key_averages()
                    if event.key.startswith("aten::") and event.key.removeprefix("aten::") not in _QUIET and event.self_cpu_time_total > 0})


HEAVY = ("mkldnn_convolution", "convolution_backward", "addmm", "mm", "bmm", "native_batch_norm", "native_batch_norm_backward",
         "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "native_layer_norm", "native_layer_norm_backward", "_softmax",
         "_softmax_backward_data", "gelu", "gelu_backward", "_log_softmax", "nll_loss_forward", "_fused_sgd_", "threshold_backward")


def test_o0_runs_pynative_s_kernels() -> None:
    run = step()
    eager = kernels(run)
    ms.set_context(mode=ms.GRAPH_MODE)
    captured = kernels(run)
    assert {name: eager[f"aten::{name}"] for name in HEAVY} == {name: captured[f"aten::{name}"] for name in HEAVY}
    assert eager["aten::_fused_sgd_"] == 1 and not set(captured) - set(eager) - {
        "aten::relu_", "aten::clamp_min_", "aten::add_", "aten::_foreach_copy_",     # the last puts running statistics aside, see undo.py
    }


def peak(run: Callable[[], Any]) -> int:
    """The most bytes that operators of one step held at once beyond what was there before."""
    run()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    now = most = 0
    for event in sorted(seen.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return most


def test_the_captured_step_needs_no_more_memory() -> None:
    run = step()
    eager = peak(run)
    ms.set_context(mode=ms.GRAPH_MODE)
    aside = 2 * 8 * 4                  # the running statistics of 8 channels, put aside until the step can't fail any more
    assert 0 < peak(run) <= eager + aside
