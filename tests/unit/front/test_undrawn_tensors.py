"""Initial values are drawn on the host, bit for bit as MindSpore 2.10 draws them, at the first use of a Tensor."""
from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common import initializer as init
from mindspore.common.initializer import Normal, initializer


def first_number() -> float:
    np.random.seed(3)
    return float(initializer(Normal(), (2,)).init_data().asnumpy()[0])


@pytest.mark.parametrize(("name", "values"), [
    ("dense", [0.33661935, -0.2950237, 0.20274945, -0.43335572]),
    ("normal", [0.00653037, 0.01509193, 0.00264736]),
    ("truncated", [0.0081171, -0.00691894, 0.00455391]),
    ("he_normal", [0.5332025, 1.2322507, 0.21615627]),
])
def test_the_values_are_those_of_mindspore(name: str, values: list[float]) -> None:
    ms.set_seed(1)
    if name == "dense":
        drawn = nn.Dense(3, 2).weight
    else:
        kind = {"normal": init.Normal, "truncated": init.TruncatedNormal, "he_normal": init.HeNormal}[name]()
        drawn = initializer(kind, [2, 3]).init_data()
    np.testing.assert_allclose(drawn.asnumpy().ravel()[:len(values)], values, rtol=1e-5, atol=0)


def test_a_tensor_that_is_not_used_draws_nothing() -> None:
    np.random.seed(3)
    tensor = initializer(Normal(), (2,))
    assert type(tensor).__name__ == "Tensor" and isinstance(tensor, Tensor) and tensor.has_init
    state = np.random.get_state()[2]
    assert state == 624


@pytest.mark.parametrize("use", [
    lambda t: t.asnumpy()[0], lambda t: (t + 0).asnumpy()[0], lambda t: Parameter(t).asnumpy()[0], lambda t: copy.deepcopy(t).asnumpy()[0],
    lambda t: copy.copy(t).asnumpy()[0], lambda t: pickle.loads(pickle.dumps(t)).asnumpy()[0], lambda t: (-ops.neg(t)).asnumpy()[0],
    lambda t: t[0].asnumpy(), lambda t: float(t.sum().asnumpy() - t.asnumpy()[1]), lambda t: t.shape and t.asnumpy()[0],
    lambda t: t.to_tensor().asnumpy()[0], lambda t: nn.ReLU()(t).asnumpy() is not None and t.asnumpy()[0],
])
def test_each_use_draws_the_values_once(use: Any) -> None:
    expected = first_number()
    np.random.seed(3)
    tensor = initializer(Normal(), (2,))
    assert abs(float(use(tensor)) - expected) < 1e-8
    assert type(tensor) is Tensor and not tensor.has_init and tensor.init is None
    assert float(tensor.asnumpy()[0]) == expected


def test_a_copy_before_the_use_has_the_same_values() -> None:
    tensor = initializer(Normal(), (2,))
    assert (copy.deepcopy(tensor).asnumpy() == tensor.asnumpy()).all()


def test_two_threads_draw_a_tensor_once() -> None:
    for _ in range(20):
        tensor, seen = initializer(Normal(), (1000,)), []
        barrier = threading.Barrier(2)

        def read(tensor: Any = tensor, seen: list[bytes] = seen, barrier: Any = barrier) -> None:
            barrier.wait()
            seen.append(tensor.asnumpy().tobytes())

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 2 and seen[0] == seen[1]


class UsesUndrawn(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.value = initializer(Normal(), (2,))

    def construct(self, x: Any) -> Any:
        return x + self.value


def test_a_graph_draws_the_values_of_a_tensor_that_it_reads_first(mode: int) -> None:
    np.random.seed(3)
    net = UsesUndrawn()
    x = Tensor(np.zeros(2, np.float32))
    results = [net(x).asnumpy()[0] for _ in range(3)]
    after = np.random.randint(1 << 30)
    expected = first_number()
    assert results == [np.float32(expected)] * 3 and after == np.random.randint(1 << 30)


class CountsCalls(init.Initializer):
    calls = 0

    def _initialize(self, arr: Any) -> None:
        type(self).calls += 1
        raise RuntimeError("no values")


def test_an_error_of_an_initializer_comes_again_at_the_next_use() -> None:
    tensor = initializer(CountsCalls(), (2, 3))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no values"):
            tensor.init_data()
    assert CountsCalls.calls == 2 and tensor.has_init


def test_large_tensors_are_drawn_by_threads_with_the_same_values() -> None:
    from torchspore.engine.random import philox

    large, small = np.empty(600_000, np.float32), np.empty(600_000, np.float32)
    distributions = (philox.fill_normal, (0.0, 1.0)), (philox.fill_uniform, (-1.0, 2.0)), (philox.fill_truncated_normal, (-2, 2, 0, 1))
    for fill, arguments in distributions:
        fill(large, 5, *arguments)
        words = philox.words(5, 5, 0, 150_000)
        assert len(words) == 600_000
        for start in range(0, 600_000, 120_000):
            part = np.empty(start + 120_000, np.float32)
            fill(part, 5, *arguments)
            small[start:start + 120_000] = part[start:]
        assert (large == small).all()


def test_graph_seeds_change_from_use_to_use() -> None:
    ms.set_seed(0)
    pairs = [init._get_graph_seed(0, "a") for _ in range(2)]
    assert pairs == [(87654321, 0), (87654321, 533697028)]
    assert init._get_graph_seed(None, "b") == (87654321, 0)
