"""SyncBatchNorm: the numbers of batch norm over the batches of all processes of a group, which may be of different lengths."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest

CUTS = {2: (0, 5, 8), 4: (0, 1, 4, 6, 8)}


def _normed(kind: str, mode: int, groups: Any) -> dict[str, np.ndarray]:
    """Two steps with SGD, and what is normalised then by the running values; one process has the whole batch."""
    from mindspore import Tensor, mint, nn, ops
    from mindspore.communication import get_group_size, get_rank, init

    init()
    rank, size = get_rank(), get_group_size()
    ms.set_context(mode=mode)
    random = np.random.default_rng(3)
    x, y = (random.standard_normal((8, 3, 2, 2)).astype(np.float32) * 2 + 5 for _ in range(2))
    share = slice(CUTS[size][rank], CUTS[size][rank + 1]) if size > 1 else slice(None)
    norm = nn.BatchNorm2d(3) if size == 1 else nn.SyncBatchNorm(3, process_groups=groups)
    if kind == "mint":
        norm = mint.nn.BatchNorm2d(3, momentum=None) if size == 1 else mint.nn.SyncBatchNorm(3, momentum=None)
    net = nn.SequentialCell([nn.Conv2d(3, 3, 1, weight_init="normal", has_bias=False), norm])
    net[0].weight.set_data(Tensor(np.random.default_rng(5).standard_normal((3, 3, 1, 1)).astype(np.float32)))
    parameters = net.trainable_params()
    step = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).sum(), 0, parameters)
    results: dict[str, Any] = {}
    for at in range(2):
        net.set_train()
        _, (by_input, gradients) = step(Tensor(x[share]), Tensor(y[share]))
        if size > 1:
            gradients = [ops.AllReduce()(grad) for grad in gradients]
        for parameter, gradient in zip(parameters, gradients):
            ops.assign_sub(parameter, gradient * 0.01)
        results[f"input {at}"] = by_input.asnumpy()
    net.set_train(False)
    results["after"] = net(Tensor(x[share])).asnumpy()
    results |= {p.name: p.asnumpy() for p in net.get_parameters()}
    return results


@pytest.mark.parametrize("kind", ["nn", "mint"])
@pytest.mark.parametrize("mode", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_statistics_are_those_of_all_processes(workers: Any, kind: str, mode: int) -> None:
    alone, = workers(1, _normed, kind, mode, None)
    for rank, result in enumerate(workers(2, _normed, kind, mode, [[0, 1]] if mode else None)):
        for name, value in alone.items():
            expected = value[slice(CUTS[2][rank], CUTS[2][rank + 1])] if name == "after" or name.startswith("input") else value
            np.testing.assert_allclose(result[name], expected, rtol=2e-5, atol=2e-5 * np.abs(value).max(), err_msg=f"{name} of rank {rank}")


def _in_pairs() -> tuple[list[float], list[float]]:
    from mindspore import Tensor, nn
    from mindspore.communication import get_rank, init

    init()
    rank = get_rank()
    pairs, alone = (nn.SyncBatchNorm(1, momentum=0.0, process_groups=groups) for groups in ([[0, 3], [1, 2]], [[0, 1]]))
    x = Tensor(np.full((2, 1), rank, np.float32))
    for norm in (pairs, alone):
        norm.set_train()(x)
    return pairs.moving_mean.asnumpy().tolist(), alone.moving_mean.asnumpy().tolist()


def test_groups_of_processes(workers: Any) -> None:
    assert workers(4, _in_pairs) == [([1.5], [0.5]), ([1.5], [0.5]), ([1.5], [2.0]), ([1.5], [3.0])]


def _in_float16() -> tuple[list[float], list[float]]:
    from mindspore import Tensor, mint, nn
    from mindspore.communication import get_rank, init

    init()
    x = Tensor(np.full((2, 1, 2, 2), get_rank() + 1.0, np.float32))
    norms = nn.SyncBatchNorm(1, momentum=0.0), mint.nn.SyncBatchNorm(1, momentum=1.0)
    for norm in norms:
        nn.SequentialCell(norm).to_float(ms.float16).set_train()(x)
    return norms[0].moving_mean.asnumpy().tolist(), norms[1].running_mean.asnumpy().tolist()


def test_running_values_move_in_cells_that_compute_in_float16(workers: Any) -> None:
    assert workers(2, _in_float16) == [([1.5], [1.5])] * 2
