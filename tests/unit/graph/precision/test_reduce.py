"""`enable_reduce_precision`: operators that this device has no kernel for in the dtype that they are asked in."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, ops

from torchspore.context import effects
from torchspore.errors import LacksKernel

A = np.array([[4.0, 1.0], [2.0, 3.0]], np.float16)


@pytest.fixture(autouse=True)
def after() -> Iterator[None]:
    yield
    ms.set_context(enable_reduce_precision=True)


def inverse(x: Tensor) -> Tensor:
    return ops.inverse(x)


def test_there_is_no_such_kernel_on_the_cpu() -> None:
    with pytest.raises(RuntimeError):
        torch.inverse(torch.from_numpy(A))


def test_a_cast_is_put_in(mode: int) -> None:
    call = ms.jit(inverse) if mode == ms.GRAPH_MODE else inverse
    out = call(Tensor(A))
    assert out.dtype == ms.float16
    np.testing.assert_array_equal(out.asnumpy(), np.linalg.inv(A.astype(np.float32)).astype(np.float16))
    lines = [line for line in effects.notes()["operators without a kernel in their dtype"] if "Float16" in line]
    assert lines


def test_both_modes_round_alike() -> None:
    def chain(x: Any) -> Any:
        return ops.inverse(ops.inverse(x)) + x

    plain = chain(Tensor(A)).asnumpy()
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        assert (ms.jit(chain)(Tensor(A)).asnumpy() == plain).all()
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_the_graph_shows_the_casts() -> None:
    from torchspore.engine.torch_internals.torch_private import make_fx
    from torchspore.graph.passes.precision import reduce

    module = make_fx(lambda x: [torch.cdist(x, x) * 2], tracing_mode="fake")(torch.rand(3, 4).half())
    before = str(module.graph)
    assert "_to_copy" not in before
    reduce.cast_unsupported(module, True)
    kinds = [str(node.meta["val"].dtype) for node in module.graph.nodes if node.target is torch.ops.aten._cdist_forward.default or
             node.target is torch.ops.aten._euclidean_dist.default]
    assert kinds and set(kinds) == {"torch.float32"}
    assert next(iter(reversed(module.graph.nodes))).args[0][0].meta["val"].dtype is torch.float16
    x = torch.rand(3, 4)
    np.testing.assert_allclose(module(x.half())[0].float(), torch.cdist(x.half().float(), x.half().float()) * 2, rtol=2e-3)


def test_without_the_switch_it_is_an_error(mode: int) -> None:
    ms.set_context(enable_reduce_precision=False)
    call = ms.jit(inverse) if mode == ms.GRAPH_MODE else inverse
    with pytest.raises(TypeError) as error:
        call(Tensor(A))
    text = str(error.value)
    assert isinstance(error.value, LacksKernel) and __file__ in text
    assert text.partition(": ")[2] == (
        "inverse(input: Float16[2, 2]): this device has no kernel for Float16, and enable_reduce_precision=False forbids a cast."
        "\n\nhint: write x.astype(mindspore.float32) for its input, or set_context(enable_reduce_precision=True)."
    )


def test_the_graph_refuses_before_it_runs() -> None:
    from torchspore.engine.torch_internals.torch_private import make_fx
    from torchspore.graph.passes.precision import reduce

    module = make_fx(lambda x: [torch.cdist(x, x)], tracing_mode="fake")(torch.rand(3, 4).half())
    with pytest.raises(LacksKernel, match="this device has no kernel for Float16"):
        reduce.cast_unsupported(module, False)


def test_other_errors_stay_as_they_are() -> None:
    with pytest.raises(Exception, match="square"):
        ops.inverse(Tensor(np.ones((2, 3), np.float16)))
    with pytest.raises(TypeError, match="expected one dtype"):
        ops.matmul(Tensor(A), Tensor(A.astype(np.float32)))


def test_gradients_pass_the_casts(mode: int) -> None:
    def total(x: Any) -> Any:
        return ops.inverse(x).sum()

    grad = ms.grad(total)
    out = (ms.jit(lambda x: grad(x)) if mode == ms.GRAPH_MODE else grad)(Tensor(A))
    inv = np.linalg.inv(A.astype(np.float64))
    assert out.dtype == ms.float16
    np.testing.assert_allclose(out.asnumpy(), -(inv.T @ np.ones((2, 2)) @ inv.T), rtol=5e-3)

