"""`communi_parallel_mode`: groups exchange at the same time, or one after the other."""
from __future__ import annotations

from typing import Any

import pytest
from support.patches import replace

DELAY = 1.0
"""Seconds that rank 1 comes late."""


def _gap(parallel_mode: str, graph: bool, machines: int) -> Any:
    """Sum in two groups; return whether the first sum was over when the second began on this rank, and the sums."""
    import socket
    import time

    import mindspore as ms
    import torch.distributed
    from mindspore import Tensor, nn, ops
    from mindspore.communication import create_group, get_rank, init

    from torchspore.context import effects
    from torchspore.context.options import OPTIONS
    from torchspore.distributed.comm import environment

    name = f"machine{environment.read().rank % machines}"
    replace(socket, gethostname=lambda: name)
    init()
    ms.set_auto_parallel_context(communi_parallel_mode=parallel_mode)
    create_group("a", [0, 1])
    create_group("b", [0, 1])
    works: list[Any] = []
    was_over: list[bool] = []
    all_reduce = torch.distributed.all_reduce

    def recorded(*arguments: Any, **options: Any) -> Any:
        was_over.extend(work.is_completed() for work in works)
        works.append(all_reduce(*arguments, **options))
        return works[-1]

    replace(torch.distributed, all_reduce=recorded)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = ops.AllReduce(group="a"), ops.AllReduce(group="b")

        def construct(self, x):  # type: ignore[no-untyped-def]
            return self.a(x), self.b(x * 2)

    x, net = Tensor([1.0, 2.0]) * (get_rank() + 1), Net()

    def both() -> list[Any]:
        if graph:
            return [out.asnumpy().tolist() for out in net(x)]
        outs = [x.copy(), x * 2]
        handles = [ms.mint.distributed.all_reduce(out, group=group, async_op=True) for out, group in zip(outs, "ab")]
        for handle in handles:
            handle.wait()
        return [out.asnumpy().tolist() for out in outs]

    ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
    for _ in range(4):                         # a graph is compiled, and ranks compare the facts about their first exchanges
        both()
    works.clear()
    was_over.clear()
    if get_rank() == 1:
        time.sleep(DELAY)
    sums = both()
    outcome = effects.outcome_of(OPTIONS["auto_parallel.communi_parallel_mode"], parallel_mode)
    ms.reset_auto_parallel_context()
    from torchspore.distributed.comm import channels

    return was_over, sums, str(outcome), channels.is_serial()


@pytest.mark.parametrize("graph", [False, True], ids=["pynative", "graph"])
@pytest.mark.parametrize(("parallel_mode", "machines", "waits", "outcome"), [
    ("all_group_parallel", 1, False, "groups do not wait for each other"),
    ("no_group_parallel", 1, True, "groups exchange one after the other"),
    ("same_server_group_parallel", 1, False, "groups of several machines exchange one after the other"),
    ("same_server_group_parallel", 2, True, "groups of several machines exchange one after the other"),
])  # fmt: skip
def test_a_group_waits_for_another(parallel_mode: str, machines: int, waits: bool, outcome: str, graph: bool, workers: Any) -> None:
    results = workers(2, _gap, parallel_mode, graph, machines)
    was_over, sums, reported, is_serial = results[0]
    assert was_over == [waits]
    assert sums == results[1][1] == [[3.0, 6.0], [6.0, 12.0]]
    assert reported == f"applied: {outcome}" and not is_serial


def _messages_and_sums() -> Any:
    """Send to each other, and sum in two groups, while groups are serialized."""
    import mindspore as ms
    from mindspore import Tensor
    from mindspore.communication import create_group, get_rank, init

    init()
    ms.set_auto_parallel_context(communi_parallel_mode="no_group_parallel")
    create_group("a", [0, 1])
    distributed, peer, total = ms.mint.distributed, 1 - get_rank(), 0.0
    for step in range(3):
        received, x = Tensor([0.0]), Tensor([get_rank() + step + 1.0])
        works = [distributed.isend(x, peer), distributed.irecv(received, peer)]
        sums = [x.copy(), x.copy(), x.copy()]
        works += [distributed.all_reduce(out, group=group, async_op=True) for out, group in zip(sums, ("a", None, "a"))]
        for work in works:
            work.wait()
        total += float(received.asnumpy()[0]) + sum(float(out.asnumpy()[0]) for out in sums)
    return total


def test_messages_never_wait(workers: Any) -> None:
    """Both ranks send before they receive, which would never end if a receipt waited for the sending."""
    assert workers(2, _messages_and_sums) == [3 * sum((3, 5, 7)) + 2 + 3 + 4, 3 * sum((3, 5, 7)) + 1 + 2 + 3]
