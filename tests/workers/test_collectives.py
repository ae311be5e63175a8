"""Exchanges on torch tensors between 2 and 4 processes, against values worked out by hand; and their gradients."""
from __future__ import annotations

from typing import Any

import pytest
from support.patches import replace


def _exchanged() -> Any:
    return {name: _outcome_and_gradient(name) for name in NAMES}


def _outcome_and_gradient(name: str) -> Any:
    import torch

    from torchspore.distributed.comm import collectives, groups

    world = groups.start()
    x = (torch.arange(8.0).reshape(4, 2) + 10 * world.rank).requires_grad_()
    out = {
        "sum": lambda: collectives.all_reduce(x, "sum", world), "max": lambda: collectives.all_reduce(x, "max", world),
        "min": lambda: collectives.all_reduce(x, "min", world), "avg": lambda: collectives.all_reduce(x, "avg", world),
        "prod": lambda: collectives.all_reduce(x, "prod", world),
        "gather": lambda: collectives.all_gather(x, world), "gather1": lambda: collectives.all_gather(x, world, 1),
        "scatter": lambda: collectives.reduce_scatter(x, "sum", world),
        "to_all": lambda: collectives.all_to_all(x, world, 0, 1),
        "broadcast": lambda: collectives.broadcast(x, 1, world),
        "deal": lambda: collectives.scatter(x, 1, world), "collect": lambda: collectives.gather(x, 1, world),
    }[name]()
    weight = torch.arange(float(out.numel())).reshape(out.shape) + 100 * world.rank
    (gradient,) = torch.autograd.grad(out, x, weight)
    return out.detach().numpy(), gradient.numpy()


def _by_hand(name: str, count: int) -> list[tuple[Any, Any]]:
    """What each rank gets, and the gradient of it."""
    import numpy as np

    inputs = [np.arange(8.0, dtype=np.float32).reshape(4, 2) + 10 * rank for rank in range(count)]
    share = 4 // count
    outs: list[Any] = {
        "sum": lambda: [sum(inputs)] * count, "avg": lambda: [sum(inputs) / count] * count, "max": lambda: [inputs[-1]] * count,
        "min": lambda: [inputs[0]] * count, "prod": lambda: [np.prod(inputs, 0)] * count,
        "gather": lambda: [np.concatenate(inputs)] * count, "gather1": lambda: [np.concatenate(inputs, 1)] * count,
        "scatter": lambda: [sum(inputs)[rank * share:(rank + 1) * share] for rank in range(count)],
        "to_all": lambda: [np.concatenate([x[rank * share:(rank + 1) * share] for x in inputs], 1) for rank in range(count)],
        "broadcast": lambda: [inputs[1]] * count,
        "deal": lambda: [inputs[1][rank * share:(rank + 1) * share] for rank in range(count)],
        "collect": lambda: [np.concatenate(inputs) * (rank == 1) for rank in range(count)],
    }[name]()
    weights = [np.arange(float(out.size)).reshape(out.shape) + 100 * rank for rank, out in enumerate(outs)]
    zero, total = np.zeros((4, 2)), sum(weights)
    gradients: list[Any] = {
        "sum": lambda: [total] * count, "avg": lambda: [total / count] * count,
        "max": lambda: [total if rank == count - 1 else zero for rank in range(count)],
        "min": lambda: [total if rank == 0 else zero for rank in range(count)],
        "prod": lambda: [total * outs[0] / np.where(x == 0, np.nan, x) for x in inputs],
        "gather": lambda: [total[rank * 4:rank * 4 + 4] for rank in range(count)],
        "gather1": lambda: [total[:, rank * 2:rank * 2 + 2] for rank in range(count)],
        "scatter": lambda: [np.concatenate(weights)] * count,
        "to_all": lambda: [np.concatenate([w[:, rank * 2:rank * 2 + 2] for w in weights]) for rank in range(count)],
        "broadcast": lambda: weights,
        "deal": lambda: [np.concatenate(weights) if rank == 1 else zero for rank in range(count)],
        "collect": lambda: [weights[1][rank * 4:rank * 4 + 4] for rank in range(count)],
    }[name]()
    return list(zip(outs, gradients))


NAMES = ("sum", "max", "min", "avg", "prod", "gather", "gather1", "scatter", "to_all", "broadcast", "deal", "collect")


@pytest.mark.parametrize("count", [2, 4])
def test_exchanges_and_their_gradients(workers: Any, count: int) -> None:
    import numpy as np

    results = workers(count, _exchanged)
    for name in NAMES:
        for rank, (expected, slope) in enumerate(_by_hand(name, count)):
            out, gradient = results[rank][name]
            np.testing.assert_allclose(out, expected, err_msg=name)
            np.testing.assert_allclose(gradient, slope, rtol=1e-6, err_msg=name)


def _pairs() -> Any:
    import torch

    from torchspore.distributed.comm import collectives, groups

    world = groups.start()
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    x = torch.full((2, 3), float(world.rank), requires_grad=True)
    (out,) = collectives.exchange([x], [right], [(2, 3)], [left], x, world)
    (gradient,) = torch.autograd.grad(out, x, torch.full((2, 3), 10.0 + world.rank))
    return float(out.mean()), float(gradient.mean())


def test_a_ring(workers: Any) -> None:
    assert workers(4, _pairs) == [(3.0, 11.0), (0.0, 12.0), (1.0, 13.0), (2.0, 10.0)]


def _uneven() -> Any:
    import torch

    from torchspore.distributed.comm import collectives, groups

    world = groups.start()
    x = (torch.arange(3.0) + 10 * world.rank).requires_grad_()
    sent, received = ((1, 2), (1, 2)) if world.rank == 0 else ((2, 1), (2, 1))
    out = collectives.all_to_all_uneven(x, world, received, sent)
    (gradient,) = torch.autograd.grad(out, x, torch.arange(float(len(out))) + 100 * world.rank)
    return out.tolist(), gradient.tolist()


def test_uneven_shares(workers: Any) -> None:
    assert workers(2, _uneven) == [([0.0, 10.0, 11.0], [0.0, 100.0, 101.0]), ([1.0, 2.0, 12.0], [1.0, 2.0, 102.0])]


def _sets() -> Any:
    import torch

    from torchspore.distributed.comm import collectives, groups

    world = groups.start()
    mine = groups.of_ranks((0, 2) if world.rank % 2 == 0 else (1, 3))
    if world.rank == 0:
        groups.create("first", [0, 1])                # unequal counts of groups in the processes
    if world.rank == 1:
        groups.create("first", [0, 1])
    last = groups.create("last", [0, 1, 2, 3])
    groups.destroy("last")
    group_of_all = groups.create("last", [3, 1, 0, 2])
    x = torch.tensor([float(world.rank)])
    return (
        mine.size, mine.rank, collectives.all_reduce(x, "sum", mine).item(), last.key != group_of_all.key, group_of_all.rank,
        collectives.all_gather(x, group_of_all).tolist(), groups.local_rank(mine), groups.local_size(mine),
    )


def test_groups(workers: Any) -> None:
    results = workers(4, _sets)
    assert [result[:3] for result in results] == [(2, 0, 2.0), (2, 0, 4.0), (2, 1, 2.0), (2, 1, 4.0)]
    assert all(result[3] and result[5] == [3.0, 1.0, 0.0, 2.0] for result in results) and [result[4] for result in results] == [2, 1, 3, 0]
    assert [result[6:] for result in results] == [(0, 2), (0, 2), (1, 2), (1, 2)]


DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64",
)


def _dtypes() -> Any:
    import torch

    from torchspore.distributed.comm import collectives, groups

    world, outputs = groups.start(), {}
    for name in DTYPES:
        x = (torch.tensor([3, 5]) + world.rank).to(getattr(torch, name))
        other = 1 - world.rank
        results = [
            *(collectives.all_reduce(x, kind, world) for kind in collectives.KINDS), collectives.all_gather(x, world),
            collectives.reduce_scatter(x, "sum", world), collectives.all_to_all(x, world), collectives.broadcast(x, 1, world),
            collectives.gather(x, 0, world), collectives.scatter(x, 0, world),
            *collectives.exchange([x], [other], [(2,)], [other], x, world),
        ]
        assert all(result.dtype == x.dtype for result in results), name
        outputs[name] = [result.tolist() for result in results]
    return outputs


def test_dtypes(workers: Any) -> None:
    first, second = workers(2, _dtypes)
    reduced = {"sum": [7, 11], "max": [4, 6], "min": [3, 5], "prod": [12, 30]}
    for name in DTYPES:
        mean = [3.5, 5.5] if "float" in name else [3, 5]
        assert first[name] == [*reduced.values(), mean, [3, 5, 4, 6], [7], [3, 4], [4, 6], [3, 5, 4, 6], [3], [4, 6]], name
        assert second[name] == [*reduced.values(), mean, [3, 5, 4, 6], [11], [5, 6], [4, 6], [0] * 4, [5], [3, 5]], name


def _rare_dtypes() -> Any:
    import torch

    from torchspore.distributed.comm import collectives, groups

    world = groups.start()
    high = torch.tensor([2**64 - 1 - world.rank, world.rank], dtype=torch.uint64)
    turned = torch.tensor([1j, 2 + world.rank, 1 - 1j * world.rank, 2], dtype=torch.complex64)
    return (
        [collectives.all_reduce(high, kind, world).tolist() for kind in ("max", "min", "sum")],
        [collectives.all_reduce(turned, kind, world).tolist() for kind in ("sum", "prod")],
        collectives.reduce_scatter(turned, "prod", world).tolist(),
    )


def test_unsigned_and_complex_numbers(workers: Any) -> None:
    first, second = workers(2, _rare_dtypes)
    last = 2**64 - 1
    assert first[:2] == second[:2] == ([[last, 1], [last - 1, 0], [last - 2, 1]], [[2j, 5, 2 - 1j, 4], [-1, 6, 1 - 1j, 4]])
    assert (first[2], second[2]) == ([-1, 6], [1 - 1j, 4])


@pytest.mark.parametrize(("dtype", "call", "text"), [
    ("complex64", "all_reduce(x, 'max', world)",
     "all_reduce(op='max') of a Tensor of complex64: expected op='sum', 'prod' or 'avg': complex numbers have no order."),
    ("float8_e4m3fn", "reduce_scatter(x, 'sum', world)",
     "reduce_scatter(op='sum') of a Tensor of float8_e4m3fn on the CPU: expected a wider dtype: x.astype(mindspore.float16)."),
])
def test_dtypes_that_are_refused_before_anything_is_sent(workers: Any, dtype: str, call: str, text: str) -> None:
    assert {(end.error, end.text) for end in workers.ended(2, _of_dtype, dtype, call, seconds=20)} == {("TypeError", text)}


def _of_dtype(dtype: str, call: str) -> Any:
    import torch

    from torchspore.distributed.comm import collectives, groups

    world = groups.start()
    return eval(f"collectives.{call}", {"collectives": collectives, "world": world, "x": torch.ones(4).to(getattr(torch, dtype))})


def _unequal_dtypes(refused: bool) -> Any:
    import torch

    from torchspore.distributed.comm import collectives, groups

    world = groups.start()
    if refused:                                      # what torch itself raises is an error of the exchange in every rank, and no wait
        replace(torch.distributed, all_reduce=lambda *words, **named: int("no number"))
    return collectives.all_reduce(torch.ones(2, dtype=torch.int16 if world.rank or refused else torch.int32), "sum", world).tolist()


def test_a_dtype_that_is_sent_as_another_one_is_compared_by_its_name(workers: Any) -> None:
    for end in workers.ended(2, _unequal_dtypes, False, seconds=20):
        assert end.error == "CommunicationError" and "int16[2]" in end.text and "int32[2]" in end.text, end


def test_an_error_of_any_kind_as_an_exchange_begins_is_reported_by_every_rank(workers: Any) -> None:
    for end in workers.ended(2, _unequal_dtypes, True, seconds=20):
        assert end.error == "CommunicationError" and end.text.endswith(
            "which failed: invalid literal for int() with base 10: 'no number'.",
        ), end
