"""Ranks that wait for one another for ever say so, each with its line and the next one's."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.patches import replace

HERE = Path(__file__).name


def _start() -> Any:
    import mindspore as ms
    import numpy as np
    from mindspore import communication

    from torchspore.distributed.comm import watchdog

    replace(watchdog, LATE=0.3, RETRY_SECONDS=0.1)
    communication.init()
    return ms.ops, communication, communication.get_rank(), ms.Tensor(np.ones(4, np.float32)), ms.float32


def _both_receive() -> None:
    ops, _, rank, _, dtype = _start()
    ops.Receive(0, 1 - rank, [4], dtype)(None)


def _all_send() -> None:
    ops, communication, rank, ones, dtype = _start()
    size = communication.get_group_size()
    ops.Send(0, (rank + 1) % size)(ones)
    ops.Receive(0, (rank - 1) % size, [4], dtype)(None)


def _groups_in_other_orders() -> None:
    ops, communication, rank, ones, _ = _start()
    for at in range(2):
        communication.create_group(f"row{at}", [2 * at, 2 * at + 1])
        communication.create_group(f"column{at}", [at, at + 2])
    names = [f"row{rank // 2}", f"column{rank % 2}"]
    for name in names if rank in (0, 3) else reversed(names):
        ops.AllReduce(group=name)(ones)


RECEIVE_HINT = "hint: let one of them send while the next one receives, or use isend and irecv."
ORDER_HINT = "hint: every rank of a group must call the same exchanges in the same order, of equal shapes and dtypes."


@pytest.mark.parametrize(("count", "function", "text", "hint"), [
    (2, _both_receive, "Receive of float32[4] from rank {0} over world", RECEIVE_HINT),
    pytest.param(3, _all_send, "Send of float32[4] to rank {0} over world", RECEIVE_HINT, marks=pytest.mark.slow),
    pytest.param(4, _groups_in_other_orders, "AllReduce(sum) of float32[4] over ", ORDER_HINT, marks=pytest.mark.slow),
])
def test_ranks_that_wait_for_one_another(count: int, function: Any, text: str, hint: str, workers: Any) -> None:
    for rank, ended in enumerate(workers.ended(count, function, seconds=20)):
        assert ended.error == "CommunicationError", ended
        assert f"{HERE}:" in ended.text and f"rank {rank} waits in {text.format((rank + 1) % count)}" in ended.text, ended.text
        ring = ended.text.partition("; ranks ")[2].partition(" wait for one another.\n\n")[0].split(", ")
        assert sorted(ring) == [str(index) for index in range(count)] and ring[0] == str(rank), ended.text
        assert f"; rank {ring[1]} is in {text.format((int(ring[1]) + 1) % count)}" in ended.text and ended.text.endswith(hint), ended.text
