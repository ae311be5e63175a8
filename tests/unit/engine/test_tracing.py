"""What captures must not do: write real Tensors, bake in random numbers, assume a layout."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from torchspore.graph import dispatch

outside = Tensor([1.0, 2.0])


class WritesOutside(nn.Cell):
    def construct(self, x):
        ops.assign_add(outside, x)
        return outside * 1


def test_a_tensor_of_a_closure_is_not_written_by_a_capture() -> None:
    outside[:] = Tensor([1.0, 2.0])
    net = WritesOutside()
    net.compile(Tensor([1.0, 1.0]))
    assert outside.asnumpy().tolist() == [1, 2]


def test_a_tensor_of_a_closure_is_written_once_a_call(mode: int) -> None:
    outside[:] = Tensor([1.0, 2.0])
    net = WritesOutside()
    assert [net(Tensor([1.0, 1.0])).asnumpy().tolist() for _ in range(3)] == [[2, 3], [3, 4], [4, 5]]


class Reshapes(nn.Cell):
    def construct(self, x):
        return x.reshape(6) * 2


def test_a_capture_on_a_contiguous_input_serves_no_transposed_one(mode: int) -> None:
    net = Reshapes()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(net(Tensor(x)).asnumpy(), x.reshape(6) * 2)
    np.testing.assert_array_equal(net(Tensor(x.T.copy()).T).asnumpy(), x.reshape(6) * 2)
    view = Tensor(x).T
    np.testing.assert_array_equal(net(view).asnumpy(), x.T.reshape(6) * 2)


def test_attention_is_the_same_in_both_modes() -> None:
    class Attends(nn.Cell):
        def construct(self, q):
            return ops.matmul(ops.softmax(ops.matmul(q, q.swapaxes(-1, -2))), q)

    x, net, results = Tensor(np.random.RandomState(1).randn(2, 3, 4).astype(np.float32)), Attends(), []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        results.append([net(x).asnumpy(), ms.grad(net)(x).asnumpy()])
    ms.set_context(mode=ms.PYNATIVE_MODE)
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)
    assert len(dispatch.graphs(net)) == 1
