"""What one thread does to Tensors while it captures or differentiates is not seen by the others."""
from __future__ import annotations

import threading

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn

started, checked = threading.Event(), threading.Event()


class Waits(nn.Cell):
    """Lets the other thread look in the middle of its construct."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([1.0, 2.0]), name="w")

    def construct(self, x):
        out = self.w * x
        started.set()
        checked.wait(10)
        return out


def looking(run, look):
    """What `look` answers in this thread while `run` is under way in another."""
    started.clear(), checked.clear()
    results = []
    thread = threading.Thread(target=lambda: results.append(run()))
    thread.start()
    try:
        assert started.wait(10)
        seen = look()
    finally:
        checked.set()
        thread.join(20)
    return results[0], seen


def test_a_capture_leaves_parameters_real_for_others() -> None:
    net, x = Waits(), Tensor([3.0, 4.0])
    _, seen = looking(lambda: net.compile(x), lambda: (type(net.w.torch()).__name__, net.w.tolist(), (net.w * 2).tolist()))
    assert seen == ("Tensor", [1, 2], [2, 4])


def test_a_gradient_leaves_parameters_without_one_for_others() -> None:
    net, x = Waits(), Tensor([3.0, 4.0])
    gradient, seen = looking(lambda: ms.grad(net, None, net.w)(x), lambda: (net.w.torch().requires_grad, (net.w * 2).torch().requires_grad))
    assert seen == (False, False) and gradient.asnumpy().tolist() == [3, 4]


def test_a_new_thread_differentiates_like_any_other() -> None:
    results = []
    threads = [threading.Thread(target=lambda k=k: results.append(float(ms.grad(lambda x: x * x)(Tensor(float(k)))))) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 2, 4, 6]


def test_all_threads_run_one_cell(mode: int) -> None:
    net = nn.Dense(4, 4)
    x = Tensor(np.random.RandomState(0).randn(2, 4).astype(np.float32))
    expected, results = net(x).asnumpy(), []
    threads = [threading.Thread(target=lambda: results.extend(net(x).asnumpy() for _ in range(5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20 and all(np.array_equal(expected, f) for f in results)
