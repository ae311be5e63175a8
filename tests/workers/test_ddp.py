"""`DistributedDataParallel`: means of gradients over processes, added up until they are cleared."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest

ROWS, STEPS = 8, 4


def _net() -> Any:
    from mindspore import Parameter, Tensor, nn, ops

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            random = np.random.default_rng(1)
            self.one, self.two = (Parameter(Tensor(random.standard_normal(s).astype(np.float32)), name=n)
                                  for s, n in (((4, 6), "one"), ((6, 2), "two")))
            self.seldom = Parameter(Tensor(np.ones((2,), np.float32)), name="seldom")
            self.frozen = Parameter(Tensor(np.ones((2,), np.float32)), name="frozen", requires_grad=False)

        def construct(self, x: Any, rare: bool = True) -> Any:
            out = ops.matmul(ops.tanh(ops.matmul(x, self.one)), self.two) * self.frozen
            return (out * self.seldom if rare else out), x

    return Net()


def _trained(alone: bool, **options: Any) -> list[Any]:
    """The weights after steps of AdamW over two halves of a batch each, the first half without messages."""
    from mindspore import Tensor, mint
    from mindspore.communication import get_rank, init
    from mindspore.parallel.distributed import DistributedDataParallel

    init()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    rank, net = get_rank(), _net()
    if rank == 1:
        for parameter in net.get_parameters():
            parameter.set_data(parameter * 3)
    if not alone:
        net = DistributedDataParallel(net, **options)
    weights = net.trainable_params()
    step = ms.value_and_grad(lambda x, y: ((net(x)[0] - y) ** 2).mean(), None, weights)
    optimizer = mint.optim.AdamW(weights, lr=0.01)
    random = np.random.default_rng(2)
    for _ in range(STEPS):
        x, y = (random.standard_normal((2, ROWS, width)).astype(np.float32) for width in (4, 2))
        if alone:
            results = [step(Tensor(a), Tensor(b))[1] for a, b in zip(x, y)]
            optimizer(tuple(gradient + other for gradient, other in zip(*results)))
            continue
        x, y = (array[:, rank * ROWS // 2:(rank + 1) * ROWS // 2] for array in (x, y))
        with net.no_sync():
            _, before = step(Tensor(x[0]), Tensor(y[0]))
        _, gradients = step(Tensor(x[1]), Tensor(y[1]))
        for tensor, other, weight in zip(before, gradients, weights):
            assert np.shares_memory(tensor.asnumpy(), other.asnumpy()) or options.get("static_graph")
            np.testing.assert_array_equal(weight.grad.asnumpy(), other.asnumpy())
        optimizer(gradients)
        net.zero_grad()
        assert not any(weight.grad.asnumpy().any() for weight in weights)
    return [weight.asnumpy() for weight in net.get_parameters()]


@pytest.mark.parametrize("options", [{}, {"average_in_collective": True, "static_graph": True, "bucket_cap_mb": 1}])
def test_weights_are_those_of_one_process(workers: Any, options: dict[str, Any]) -> None:
    alone, = workers(1, _trained, True)
    for result in workers(2, _trained, False, **options) if not options else workers(2, _with_options, options):
        for output, other in zip(result, alone, strict=True):
            np.testing.assert_allclose(output, other, rtol=3e-6)


def _with_options(options: dict[str, Any]) -> list[Any]:
    return _trained(False, **options)


def _unused(finds: bool) -> Any:
    from mindspore import Tensor
    from mindspore.communication import get_rank, init
    from mindspore.parallel.distributed import DistributedDataParallel

    init()
    rank = get_rank()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net = DistributedDataParallel(_net(), find_unused_parameters=finds)
    step = ms.grad(lambda x: net(x, rank == 1)[0].sum(), None, net.trainable_params())
    arrays = [gradient.asnumpy() for gradient in step(Tensor(np.ones((2, 4), np.float32)))]
    ms.set_context(mode=ms.GRAPH_MODE)
    with pytest.raises(RuntimeError, match="DistributedDataParallel in a graph: expected PyNative mode"):
        net(Tensor(np.ones((2, 4), np.float32)))
    return arrays


def test_a_parameter_that_one_process_does_not_use(workers: Any) -> None:
    first, second = workers(2, _unused, True)
    assert all(np.array_equal(expected, other) for expected, other in zip(first, second)) and first[2].any()
    first, _ = workers.ended(2, _unused, False, seconds=20)
    assert first.error == "RuntimeError" and "a backward pass without gradients of seldom: expected gradients of all" in first.text, first
