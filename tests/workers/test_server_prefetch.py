"""Rows of the next batch are requested while the servers apply a step: the numbers stay those of one process."""
from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from support import server_jobs

pytest.importorskip("grpc")
ALONE = dict.fromkeys(("RANK", "WORLD_SIZE", "MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM"), "<unset>")
ROWS, STEPS = 60, 6


def _run(workers: int, servers: int, port: int, arguments: tuple[Any, ...]) -> Any:
    return server_jobs.run_role(workers, servers, port, _train, *arguments)


def _train(mode: int, optimizer: str, is_reversed: bool) -> tuple[dict[str, np.ndarray], int, int]:
    """Train on a data set whose columns are looked up; return the values, the rows that were prefetched, and those that were not.

    `is_reversed`: the program changes some of the numbers at odd steps, so that only some requests fit.
    """
    import mindspore as ms
    from mindspore import Tensor, nn

    from torchspore.distributed.parameter_server.operators import CONNECTION

    ms.set_context(mode=mode, device_target="CPU")
    if "MS_ROLE" in os.environ:
        ms.set_ps_context(enable_ps=True)
    ms.set_seed(3)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.user = nn.EmbeddingLookup(ROWS, 3, target="DEVICE", vocab_cache_size=20)
            self.item = nn.EmbeddingLookup(ROWS, 3, target="CPU")
            self.dense = nn.Dense(3, 1)

        def construct(self, user: Any, item: Any) -> Any:
            return self.dense(self.user(user).sum(1) * self.item(item))

    net = Net()
    if "MS_ROLE" in os.environ:
        net.set_param_ps()
    step = nn.TrainOneStepCell(nn.WithLossCell(_pair(net), nn.MSELoss()), getattr(nn, optimizer)(net.trainable_params(), 0.05))
    random, rank = np.random.RandomState(0), int(os.environ.get("MS_NODE_ID", 0))
    count = int(os.environ.get("MS_WORKER_NUM", 1))
    user = np.array_split(random.randint(0, ROWS, (STEPS, 8, 2)).astype(np.int32), count, 1)[rank]
    item = np.array_split(random.randint(0, ROWS, (STEPS, 8)).astype(np.int64), count, 1)[rank]
    label = np.array_split(random.randn(STEPS, 8, 1).astype(np.float32), count, 1)[rank]
    data = ms.dataset.NumpySlicesDataset((user, item, label), ["user", "item", "label"], shuffle=False)
    for number, (users, items, labels) in enumerate(data.create_tuple_iterator()):
        if is_reversed and number % 2:
            users, items = Tensor(np.where([True, False], 7, users.asnumpy())), Tensor(items.asnumpy() % 50)
        step((users, items), labels)
    values = {parameter.name: parameter.asnumpy() for parameter in net.get_parameters()}
    client = CONNECTION.client
    return values, client.prefetcher.count if client else 0, sum(cache.misses for cache in client.caches.values()) if client else 0


def _pair(net: Any) -> Any:
    """Return a Cell that takes both columns as one input."""
    from mindspore import nn

    class Pair(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def construct(self, columns: Any) -> Any:
            return self.net(*columns)

    return Pair()


@pytest.mark.parametrize(("mode", "optimizer", "is_reversed"), [
    (0, "LazyAdam", False), (1, "LazyAdam", False),
    pytest.param(1, "LazyAdam", True, marks=pytest.mark.slow), pytest.param(1, "Adam", False, marks=pytest.mark.slow),
    pytest.param(0, "Adam", True, marks=pytest.mark.slow), pytest.param(1, "FTRL", True, marks=pytest.mark.slow),
])
def test_rows_of_the_next_batch_arrive_with_the_step(workers: Any, mode: int, optimizer: str, is_reversed: bool) -> None:
    alone, _, _ = workers(1, _train, mode, optimizer, is_reversed, **ALONE)[0]
    results = workers(5, _run, 2, 2, server_jobs.free_port(), (mode, optimizer, is_reversed))
    for values, prefetched, fetched in results[:2]:
        for name, value in alone.items():
            np.testing.assert_allclose(values[name], value, rtol=1e-5, atol=2e-6, err_msg=name)
        assert 0 < prefetched < fetched
        if not is_reversed:                                # 12 rows at most in each of the steps before the first request
            assert fetched - prefetched <= 2 * 12
