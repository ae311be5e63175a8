"""Ranks that mean different exchanges by one call are named in every rank, with what each says; no number comes out of it."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.patches import replace

HERE = Path(__file__).name


def _start(mode: int = 1) -> Any:
    import mindspore as ms
    from mindspore import communication

    from torchspore.distributed.comm import watchdog

    replace(watchdog, LATE=0.3, RETRY_SECONDS=0.1)
    communication.init()
    ms.set_context(mode=mode)
    return ms, communication.get_rank()


def _filled(ms: Any, *shape: int, dtype: Any = None) -> Any:
    import numpy as np

    return ms.Tensor(np.ones(shape), dtype or ms.float32)


CALLS = {
    "kind": (
        lambda ms, rank: ms.ops.AllReduce("max" if rank else "sum")(_filled(ms, 4)),
        ("AllReduce(sum) of float32[4]", "AllReduce(max) of float32[4]"),
    ),
    "dtype": (
        lambda ms, rank: ms.ops.AllReduce()(_filled(ms, 4, dtype=ms.int32 if rank else ms.float32)),
        ("AllReduce(sum) of float32[4]", "AllReduce(sum) of int32[4]"),
    ),
    "length": (
        lambda ms, rank: ms.ops.AllReduce()(_filled(ms, 4 + 2 * rank)),
        ("AllReduce(sum) of float32[4]", "AllReduce(sum) of float32[6]"),
    ),
    "shape": (
        lambda ms, rank: ms.ops.AllReduce()(_filled(ms, *((2, 3) if rank else (3, 2)))),
        ("AllReduce(sum) of float32[3, 2]", "AllReduce(sum) of float32[2, 3]"),
    ),
    "root": (
        lambda ms, rank: ms.ops.Broadcast(rank)((_filled(ms, 4),)),
        ("Broadcast(0) of float32[4]", "Broadcast(1) of float32[4]"),
    ),
    "gather": (
        lambda ms, rank: ms.ops.AllGather()(_filled(ms, 4 - rank)),
        ("AllGather of float32[4]", "AllGather of float32[3]"),
    ),
    "scatter": (
        lambda ms, rank: ms.ops.ReduceScatter()(_filled(ms, 4 - 2 * rank)),
        ("ReduceScatter(sum) of float32[4]", "ReduceScatter(sum) of float32[2]"),
    ),
    "scatter's kind": (
        lambda ms, rank: ms.ops.ReduceScatter("max" if rank else "sum")(_filled(ms, 4)),
        ("ReduceScatter(sum) of float32[4]", "ReduceScatter(max) of float32[4]"),
    ),
    "all to all": (
        lambda ms, rank: ms.ops.AlltoAll(2, 0, 0)(_filled(ms, 4 - 2 * rank)),
        ("AlltoAll of float32[..] that sends [2, 2] and receives [2, 2]", "AlltoAll of float32[..] that sends [1, 1] and receives [1, 1]"),
    ),
    "all to all's rows": (
        lambda ms, rank: ms.ops.AlltoAll(2, 0, 0)(_filled(ms, 4, 3 - rank)),
        ("AlltoAll of float32[.., 3]", "AlltoAll of float32[.., 2]"),
    ),
    "dtype of as many bytes": (
        lambda ms, rank: ms.ops.AllGather()(_filled(ms, 4 * (1 + rank), dtype=ms.uint32 if rank == 0 else ms.int16)),
        ("AllGather of uint32[4]", "AllGather of int16[8]"),
    ),
    "broadcast's dtype": (
        lambda ms, rank: ms.ops.Broadcast(0)((_filled(ms, 4, dtype=ms.uint64 if rank else ms.complex64),)),
        ("Broadcast(0) of complex64[4]", "Broadcast(0) of uint64[4]"),
    ),
    "all to all's dtype": (
        lambda ms, rank: ms.ops.AlltoAll(2, 0, 0)(_filled(ms, 4, dtype=ms.uint16 if rank else ms.int16)),
        ("AlltoAll of int16[..] that", "AlltoAll of uint16[..] that"),
    ),
    "pair": (
        lambda ms, rank: ms.ops.Receive(0, 1, [4], ms.float32)(None) if not rank else ms.ops.Send(0, 0)(_filled(ms, 3)),
        ("Receive of float32[4] from rank 1", "Send of float32[3] to rank 0"),
    ),
    "pair's dtype": (
        lambda ms, rank: ms.ops.Receive(0, 1, [4], ms.float32)(None) if not rank else ms.ops.Send(0, 0)(_filled(ms, 4, dtype=ms.int32)),
        ("Receive of float32[4] from rank 1", "Send of int32[4] to rank 0"),
    ),
    "neighbors": (
        lambda ms, rank: ms.ops.NeighborExchange([1 - rank], [1 - rank], ([4],), ([4 - rank],), ms.float32)((_filled(ms, 4 - rank),)),
        ("receives float32[4] from rank 1", "sends float32[3] to rank 0"),
    ),
}


def _differ(name: str, mode: int) -> Any:
    ms, rank = _start(mode)
    call = CALLS[name][0]
    return ms.jit(lambda x: call(ms, rank))(_filled(ms, 1)) if mode == 0 else call(ms, rank)


def _line(text: str) -> str:
    return re.sub(r"for \d+\.\d s", "for N s", re.sub(r"[^ ]*/(test_\w+\.py):\d+", r"\1:N", text))


@pytest.mark.parametrize("name, mode", [*((name, 1) for name in CALLS), ("kind", 0), ("pair", 0), ("broadcast's dtype", 0)])
def test_what_differs_is_named_in_both(workers: Any, name: str, mode: int) -> None:
    message = CALLS[name][1]
    for rank, ended in enumerate(workers.ended(2, _differ, name, mode, seconds=40)):
        assert ended.error == "CommunicationError", ended
        text = _line(ended.text)
        assert f"rank {rank} waits in " in text and f"; rank {1 - rank} is in " in text, ended.text
        description, other = text.split("; rank ")
        assert message[rank] in description and message[1 - rank] in other, ended.text
        assert f"at {HERE}:N" in other and description.startswith(f"{HERE}:N: "), ended.text


def _cached_on_one_rank() -> Any:
    ms, rank = _start()
    add, shapes = ms.ops.AllReduce(), ([4, 4, 3], [4, 4, 4])[rank]
    sums = [float(add(_filled(ms, length)).sum()) for length in shapes[:2]]
    try:
        return sums, add(_filled(ms, shapes[2]))
    except RuntimeError as error:
        return sums, str(error)


def test_what_is_new_to_one_alone_gives_no_number_to_the_other(workers: Any) -> None:
    for rank, (message, text) in enumerate(workers(2, _cached_on_one_rank, seconds=20)):
        assert message == [8.0, 8.0]
        assert f"rank {rank} waits in AllReduce(sum) of float32[{3 + rank}]" in text and f"of float32[{4 - rank}] over" in text, text


def _cached_in_another_order() -> Any:
    ms, rank = _start()
    add, most = ms.ops.AllReduce(), ms.ops.AllReduce("max")
    for _ in range(3):
        add(_filled(ms, 4)), add(_filled(ms, 4)), most(_filled(ms, 4))
    add(_filled(ms, 4))
    if rank == 0:
        add(_filled(ms, 4))                                # rank 1 leaves one out
    return most(_filled(ms, 4))


def test_an_exchange_omitted_from_a_known_order_is_named(workers: Any) -> None:
    for rank, ended in enumerate(workers.ended(2, _cached_in_another_order, seconds=20)):
        assert ended.error == "CommunicationError", ended
        assert f"rank {rank} waits in AllReduce({('sum', 'max')[rank]})" in ended.text, ended.text
        assert f"rank {1 - rank} is in AllReduce({('max', 'sum')[rank]})" in ended.text, ended.text


def _slow_third() -> Any:
    import time

    ms, rank = _start()
    from mindspore import communication

    communication.create_group("two", [0, 1])
    if rank == 2:
        time.sleep(1.5)
        ms.mint.distributed.send(_filled(ms, 2), 1)
    if rank == 1:
        ms.mint.distributed.recv(_filled(ms, 2), 2)
    return 0.0 if rank == 2 else float(ms.ops.AllReduce(group="two")(_filled(ms, 4)).sum())


def test_a_rank_that_waits_for_a_slow_third_one_is_waited_for(workers: Any) -> None:
    assert workers(3, _slow_third, seconds=20) == [8.0, 8.0, 0.0]


def _long_way() -> Any:
    ms, rank = _start()

    from torchspore.distributed.comm import watchdog

    replace(watchdog, LATE=0.002, RETRY_SECONDS=0.002)
    x = _filled(ms, 30_000_000)
    (ms.mint.distributed.send if rank else ms.mint.distributed.recv)(x, 1 - rank)
    return float(x[0])


def test_what_takes_long_between_two_is_waited_for(workers: Any) -> None:
    assert workers(2, _long_way, seconds=20) == [1.0, 1.0]


def _uneven() -> Any:
    import torch

    from torchspore.distributed.comm import collectives, groups, watchdog

    replace(watchdog, LATE=0.3, RETRY_SECONDS=0.1)
    world = groups.start()
    for sent, received in (((1, 2), (1, 2)), ((1, 4), (1, 2))) if world.rank == 0 else (((2, 1), (2, 1)), ((2, 1), (3, 1))):
        collectives.all_to_all_uneven(torch.zeros(sum(sent), 5), world, received, sent)


def test_lengths_that_two_ranks_see_otherwise_are_named(workers: Any) -> None:
    first, second = workers.ended(2, _uneven, seconds=20)
    mine, yours = "AlltoAll of float32[.., 5] that sends [1, 4] and receives [1, 2]", "that sends [2, 1] and receives [3, 1]"
    assert f"rank 0 waits in {mine}" in first.text and f"{yours} over" in first.text, first
    assert "rank 1 waits in AlltoAll" in second.text and f"rank 0 is in {mine}" in second.text, second


def _killed_before_the_first() -> Any:
    import os
    import signal
    import time

    ms, rank = _start()

    from torchspore.distributed.comm import watchdog

    replace(watchdog, LATE=2.0, RETRY_SECONDS=0.5)
    if rank == 1:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    try:
        ms.ops.AllReduce()(_filled(ms, 4))
    except RuntimeError as error:
        return time.monotonic() - begun, str(error)


def test_a_rank_that_is_killed_before_it_comes_to_a_new_exchange_is_named(workers: Any) -> None:
    first, _ = workers.ended(2, _killed_before_the_first, seconds=20)
    seconds, text = first.value
    assert seconds < 1.5 and "when rank 1 is gone" in text, first


def _objects() -> Any:
    ms, rank = _start()
    ms.mint.distributed.broadcast_object_list(["of", rank], src=rank)


def test_objects_of_two_roots_are_named(workers: Any) -> None:
    for rank, ended in enumerate(workers.ended(2, _objects, seconds=20)):
        assert ended.error == "CommunicationError", ended          # each kept its own
        assert f"rank {rank} waits in an exchange of 2 objects of rank {rank} over world" in ended.text, ended.text
        assert f"rank {1 - rank} is in an exchange of 2 objects of rank {1 - rank} over world" in ended.text, ended.text
