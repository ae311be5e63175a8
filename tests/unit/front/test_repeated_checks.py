"""Checks of arguments that were accepted before: an equal value of another kind is still refused."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from mindspore import Tensor, nn, ops

IMAGE, KERNEL = Tensor(np.ones((1, 1, 5, 5), np.float32)), Tensor(np.ones((1, 1, 3, 3), np.float32))


@pytest.mark.parametrize("wrong", [1.0, True, (1.0, 1.0), (True, 1), "1", (1, 0)])
def test_a_stride_that_equals_an_accepted_one(wrong: Any) -> None:
    for accepted in (1, (1, 1)):
        ops.conv2d(IMAGE, KERNEL, stride=accepted)
        ops.conv2d(IMAGE, KERNEL, None, accepted)
    for call in (lambda: ops.conv2d(IMAGE, KERNEL, stride=wrong), lambda: ops.conv2d(IMAGE, KERNEL, None, wrong)):
        with pytest.raises((TypeError, ValueError)):
            call()


def test_a_number_that_equals_an_accepted_one() -> None:
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert ops.topk(x, 1)[0].asnumpy().tolist() == [[2.0], [5.0]]
    for wrong in (True, 1.0):
        with pytest.raises((TypeError, ValueError)):
            ops.topk(x, wrong)
    assert ops.topk(x, 2)[0].asnumpy().tolist() == [[2.0, 1.0], [5.0, 4.0]]


def test_a_list_that_changes_after_it_was_accepted() -> None:
    sizes = [2, 2]
    assert ops.adaptive_avg_pool2d(IMAGE, sizes).shape == (1, 1, 2, 2)
    sizes[0] = 3
    assert ops.adaptive_avg_pool2d(IMAGE, sizes).shape == (1, 1, 3, 2)
    sizes[0] = -1
    with pytest.raises((TypeError, ValueError)):
        ops.adaptive_avg_pool2d(IMAGE, sizes)


@pytest.mark.parametrize("pad_mode", ["same", "valid", "pad"])
def test_paddings_are_stored_by_shape_and_arguments(pad_mode: str) -> None:
    rows = np.random.default_rng(0)
    nets = [nn.Conv2d(2, 3, kernel, stride, pad_mode=pad_mode, padding=1 if pad_mode == "pad" else 0, weight_init="ones")
            for kernel in (2, 3) for stride in (1, 2)]
    for length in (5, 6, 5):
        x = rows.standard_normal((1, 2, length, length)).astype(np.float32)
        for net in nets:
            out, again = net(Tensor(x)).asnumpy(), net(Tensor(x)).asnumpy()
            kernel, stride = net.kernel_size[0], net.stride[0]
            total = {"same": max((-(-length // stride) - 1) * stride + kernel - length, 0), "valid": 0, "pad": 2}[pad_mode]
            padded = np.pad(x[0].sum(0), (total // 2, total - total // 2))
            windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel))[::stride, ::stride].sum((2, 3))
            np.testing.assert_allclose(out[0, 0], windows, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(out, again)


def test_a_primitive_without_arguments_has_its_defaults_each_time() -> None:
    first, second = ops.Softmax(), ops.Softmax()
    assert first.axis == second.axis == -1
    assert ops.Softmax(0).axis == 0 and ops.Softmax().axis == -1
    with pytest.raises(TypeError):
        ops.Gather(0, 0, 0)
    first.add_prim_attr("axis", 5)
    assert ops.Softmax().axis == -1


def test_a_moved_name_follows_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindspore.ops import functional as F

    assert F.cast is ops.cast
    monkeypatch.setitem(vars(sys.modules["torchspore.mindspore.ops"]), "cast", "another")
    assert F.cast == "another"


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_mirrored_ends_of_some_axes(mode: str) -> None:
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    for pads in (((0, 0), (0, 0), (1, 2), (2, 1)), ((0, 0), (1, 0), (0, 0), (0, 3)), ((0, 0),) * 4):
        out = ops.MirrorPad(mode)(Tensor(x), Tensor(np.array(pads, np.int32)))
        np.testing.assert_array_equal(out.asnumpy(), np.pad(x, pads, mode.lower()))
    source = Tensor(x)
    out = ops.MirrorPad(mode)(source, Tensor(np.zeros((4, 2), np.int32)))
    out[0] = 0.0
    assert source.asnumpy().tolist() == x.tolist(), "the result has memory of its own"
