"""Primitives and functions of exchange between 2 and 4 processes, against values worked out by hand, in both modes."""
from __future__ import annotations

from typing import Any

import pytest


def _both(make: Any, *inputs: Any) -> Any:
    """What a Cell gives and the gradients of its inputs, in PyNative; equal in graph mode."""
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, nn

    class Net(nn.Cell):
        def construct(self, *x: Any) -> Any:
            return make(*x)

    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = Net()
        out = net(*inputs)
        sens = Tensor(np.arange(out.size, dtype=np.float32).reshape(out.shape) + 1)
        gradients = ms.ops.GradOperation(get_all=True, sens_param=True)(net)(*inputs, sens)
        results.append((out.asnumpy().tolist(), [gradient.asnumpy().tolist() for gradient in gradients]))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert results[0] == results[1]
    return results[0]


def _uneven() -> Any:
    import numpy as np
    from mindspore import Tensor, communication, ops

    communication.init()
    rank = communication.get_rank()
    counts = [[1, 2], [3, 1]]
    flat = Tensor(np.arange(sum(counts[rank]), dtype=np.float32) + 10 * rank)
    blocks = Tensor(np.arange(2 * sum(counts[rank]), dtype=np.float32) + 10 * rank)
    tensor = Tensor(np.arange(rank + 1, dtype=np.float32) + 10 * rank)
    array = Tensor(np.arange(3, dtype=np.float32) + 10 * rank)
    return [
        _both(lambda x: ops.AlltoAllV()(x, counts[rank], [row[rank] for row in counts]), flat),
        _both(lambda x: ops.AlltoAllV(block_size=2)(x, counts[rank], [row[rank] for row in counts]), blocks)[0],
        _both(lambda x: ops.AlltoAllVC()(x, [1, 2, 3, 1]), flat),
        _both(lambda x: ops.AlltoAllVC(transpose=True)(x, [1, 3, 2, 1]), flat),
        _both(lambda x: ops.AllGatherV()(x, [1, 2]), tensor),
        _both(lambda x: ops.ReduceScatterV()(x, [1, 2]), array),
        _both(lambda x: ops.ReduceScatterV("max")(x, [1, 2]), array)[0],
    ]


def test_uneven_shares(workers: Any) -> None:
    first, second = workers(2, _uneven)
    swapped = ([0, 10, 11, 12], [[1, 1, 2]]), ([1, 2, 13], [[2, 3, 4, 3]])
    assert first[0] == first[2] == first[3] == swapped[0] and second[0] == second[2] == second[3] == swapped[1]
    assert first[1] == [0, 1, 10, 11, 12, 13, 14, 15] and second[1] == [2, 3, 4, 5, 16, 17]
    assert first[4] == ([0, 10, 11], [[2]]) and second[4] == ([0, 10, 11], [[4, 6]])
    assert first[5] == ([10], [[1, 1, 2]]) and second[5] == ([12, 14], [[1, 1, 2]])
    assert first[6] == [10] and second[6] == [11, 12]


def _neighbours() -> Any:
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, communication, ops

    communication.init()
    rank = communication.get_rank()
    right, left = (rank + 1) % 4, (rank - 1) % 4
    ring = ops.NeighborExchange([right, left], [left, right], ([2], [2]), ([2], [2]), ms.float32)
    x = Tensor(np.array([rank, rank + 0.5], np.float32))
    a, b = ring((x, x * 10))
    # A picture of 4 x 4 in four quarters; each has its neighbours' edges around it.
    down, across = rank // 2, rank % 2
    picture = np.arange(16, dtype=np.float32).reshape(4, 4)
    quarter = Tensor(picture[None, None, 2 * down:2 * down + 2, 2 * across:2 * across + 2].copy())
    others = [-1] * 8
    others[4 if down == 0 else 0] = rank + 2 - 4 * down
    others[2 if across == 0 else 6] = rank + 1 - 2 * across
    others[{(0, 0): 3, (0, 1): 5, (1, 0): 1, (1, 1): 7}[down, across]] = 3 - rank
    lens = [down, 1 - down, across, 1 - across]
    halo = ops.NeighborExchangeV2(others, lens, others, lens, "NCHW")
    out, (gradient,) = _both(lambda x: halo(x), quarter)
    rows, columns = slice(2 * down - down, 2 * down + 3 - down), slice(2 * across - across, 2 * across + 3 - across)
    return a.asnumpy().tolist(), b.asnumpy().tolist(), out[0][0] == picture[rows, columns].tolist(), gradient[0][0]


def test_neighbours(workers: Any) -> None:
    results = workers(4, _neighbours)
    for rank, (a, b, is_halo, _) in enumerate(results):
        left, right = (rank - 1) % 4, (rank + 1) % 4
        assert a == [left, left + 0.5] and b == [right * 10, right * 10 + 5] and is_halo
    # Rank 0's lower right corner (5 in the picture) is read by all four: 5 in its own, 4, 2 and 1 in the places that others have it.
    assert results[0][3] == [[1.0, 2.0 + 1.0], [4.0 + 1.0, 5.0 + 4.0 + 2.0 + 1.0]]


def _pairs() -> Any:
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, communication, ops
    from mindspore.communication import comm_func
    from mindspore.mint import distributed

    communication.init()
    rank = communication.get_rank()
    x = Tensor(np.array([1.0, 2.0], np.float32) + 10 * rank)
    out = []
    if rank == 0:
        out.append(ops.Send(3, 1)(x).asnumpy().tolist())
    else:
        out.append(ops.Receive(3, 0, [2], ms.float32)(Tensor(0.0)).asnumpy().tolist())
    kinds, peers = (["isend", "irecv"], [1 - rank] * 2)
    _, came = ops.BatchISendIRecv(kinds, peers, ((2,),), (ms.float32,))((x,))
    out.append(came.asnumpy().tolist())
    room = ms.mint.zeros((2,))
    handles = distributed.batch_isend_irecv([distributed.P2POp("isend", x, 1 - rank), distributed.P2POp("irecv", room, 1 - rank)])
    for handle in handles:
        handle.wait()
    out.append(room.asnumpy().tolist())
    if rank == 0:
        sendings = [distributed.isend(x * 2, 1, tag=5), distributed.isend(x * 3, 1, tag=6)]
        for sending in sendings:
            sending.wait()
        distributed.send_object_list(["a", {"b": 1}], 1)
        later = comm_func.isend(x, 1)
    else:
        second, first = ms.mint.zeros((2,)), ms.mint.zeros((2,))
        assert distributed.irecv(second, 0, tag=6).wait() is None and distributed.recv(first, 0, tag=5) == 0
        objects = [None, None]
        distributed.recv_object_list(objects, 0)
        came, later = comm_func.irecv(ms.mint.zeros((2,)), 0)
        out += [first.asnumpy().tolist(), second.asnumpy().tolist(), objects]
    later.wait()
    return out if rank == 0 else [*out, came.asnumpy().tolist()]


def test_pairs(workers: Any) -> None:
    first, second = workers(2, _pairs)
    assert first == [[1, 2], [11, 12], [11, 12]]
    assert second == [[1, 2], [1, 2], [1, 2], [2, 4], [3, 6], ["a", {"b": 1}], [1, 2]]


def _later() -> Any:
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, communication
    from mindspore.communication import comm_func
    from mindspore.mint import distributed as d

    communication.init()
    rank = communication.get_rank()

    def x() -> Any:
        return Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32) + 10 * rank)

    def call_into_room(shape: Any, call: Any) -> Any:
        room = ms.mint.zeros(shape)
        handle = call(room)
        handle.wait(), handle.wait()
        return room.asnumpy().tolist()

    def changed(call: Any) -> Any:
        value = x()
        call(value).wait()
        return value.asnumpy().tolist()

    def listed(call: Any) -> Any:
        rooms = [ms.mint.zeros((1, 2)) for _ in range(2)]
        call(rooms).wait()
        return [room.asnumpy().tolist() for room in rooms]

    rows = [x()[:1], x()[1:]]
    results = {
        "all_reduce": changed(lambda t: d.all_reduce(t, async_op=True)), "avg": changed(lambda t: d.all_reduce(t, "avg", async_op=True)),
        "reduce": changed(lambda t: d.reduce(t, 1, async_op=True)), "broadcast": changed(lambda t: d.broadcast(t, 1, async_op=True)),
        "gather_into": call_into_room((4, 2), lambda t: d.all_gather_into_tensor(t, x(), async_op=True)),
        "scatter_tensor": call_into_room((1, 2), lambda t: d.reduce_scatter_tensor(t, x(), async_op=True)),
        "scatter": call_into_room((1, 2), lambda t: d.scatter(t, rows, 1, async_op=True)),
        "reduce_scatter": call_into_room((1, 2), lambda t: d.reduce_scatter(t, rows, async_op=True)),
        "single": call_into_room((2, 2), lambda t: d.all_to_all_single(t, x(), async_op=True)),
        "uneven": call_into_room((3, 2), lambda t: d.all_gather_into_tensor_uneven(t, x()[:rank + 1], [1, 2], async_op=True)),
        "uneven_sum": call_into_room((rank, 2), lambda t: d.reduce_scatter_tensor_uneven(t, x()[:1], [0, 1], async_op=True)),
        "v_c": call_into_room((2, 2), lambda t: comm_func.all_to_all_v_c(t, x(), [1, 1, 1, 1], async_op=True)),
        "all_gather": listed(lambda rooms: d.all_gather(rooms, x()[:1], async_op=True)),
        "gather": listed(lambda rooms: d.gather(x()[:1], rooms, 1, async_op=True)),
        "all_to_all": listed(lambda rooms: d.all_to_all(rooms, rows, async_op=True)),
    }
    for name, call in (
        ("f.all_reduce", lambda: comm_func.all_reduce(x(), async_op=True)),
        ("f.all_gather", lambda: comm_func.all_gather_into_tensor(x()[:1], async_op=True)),
        ("f.reduce_scatter", lambda: comm_func.reduce_scatter_tensor(x(), async_op=True)),
        ("f.single", lambda: comm_func.all_to_all_single_with_output_shape((2, 2), x(), async_op=True)),
    ):
        value, handle = call()
        handle.wait()
        results[name] = value.asnumpy().tolist()
    values, handle = comm_func.all_to_all_with_output_shape([(1, 2), (1, 2)], rows)
    assert handle is None
    return {**results, "f.all_to_all": [value.asnumpy().tolist() for value in values]}


def test_exchanges_that_are_waited_for_later(workers: Any) -> None:
    total, parts, other = [[12.0, 14.0], [16.0, 18.0]], [[1.0, 2.0], [3.0, 4.0]], [[11.0, 12.0], [13.0, 14.0]]
    for rank, result in enumerate(workers(2, _later)):
        swapped = [parts[rank], other[rank]]
        mine = parts if rank == 0 else other
        assert result == {
            "all_reduce": total, "avg": [[6.0, 7.0], [8.0, 9.0]], "reduce": total if rank else mine, "broadcast": other,
            "gather_into": parts + other, "scatter_tensor": [total[rank]], "scatter": [other[rank]], "reduce_scatter": [total[rank]],
            "single": swapped, "uneven": [parts[0], other[0], other[1]], "uneven_sum": [total[0]] if rank else [], "v_c": swapped,
            "all_gather": [[parts[0]], [other[0]]], "gather": [[parts[0]], [other[0]]] if rank else [[[0.0, 0.0]], [[0.0, 0.0]]],
            "all_to_all": [[parts[rank]], [other[rank]]], "f.all_reduce": total, "f.all_gather": [parts[0], other[0]],
            "f.reduce_scatter": [total[rank]], "f.single": swapped, "f.all_to_all": [[parts[rank]], [other[rank]]],
        }


def _dynamic() -> Any:
    import os

    index = int(os.environ["RANK"])
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_USE_AGENT_STORE"):
        del os.environ[name]
    os.environ.update(MS_ROLE="MS_SCHED" if index == 2 else "MS_WORKER", MS_WORKER_NUM="2", MS_SCHED_HOST="127.0.0.1")
    from mindspore import communication

    communication.init()
    return communication.get_rank(), communication.get_group_size(), communication.get_local_rank()


def test_a_scheduler_and_two_workers_without_numbers(workers: Any) -> None:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    ended = workers.ended(3, _dynamic, seconds=20, MS_SCHED_PORT=port)
    assert sorted(end.value for end in ended[:2]) == [(0, 2, 0), (1, 2, 1)], ended
    assert ended[2].error == "SystemExit" and ended[2].text == "0"


def _taken_over() -> Any:
    import os
    from datetime import timedelta

    import torch
    from mindspore import Tensor, communication, ops

    store = torch.distributed.PrefixStore("ray" + os.environ["TORCHELASTIC_RESTART_COUNT"], torch.distributed.TCPStore(
        "127.0.0.1", int(os.environ["MASTER_PORT"]), None, False, timedelta(seconds=20), wait_for_workers=False))
    torch.distributed.init_process_group("gloo", store=store, rank=int(os.environ["RANK"]), world_size=2)
    communication.init()
    communication.create_group("pair", [1, 0])
    return ops.AllReduce()(Tensor([1.0 + communication.get_rank()])).asnumpy().tolist(), communication.get_rank("pair")


def test_a_group_of_torchs_that_is_there_is_taken_over(workers: Any) -> None:
    assert workers(2, _taken_over) == [([3.0], 1), ([3.0], 0)]


@pytest.mark.parametrize(("call", "text"), [
    ("ops.Broadcast(2)", "Broadcast(root_rank=2): expected a rank in the group, 0 to 1."),
    ("ops.Send(0, rank)(x)", "Send(dest_rank=0) in rank 0: expected another rank from 0 to 1."),
    ("ops.AlltoAll(3, 0, 0)(x)", "AlltoAll(split_count=3): expected 2, the number of processes."),
    ("distributed.broadcast(x, 5)", "src=5: expected one of the group's ranks, [0, 1]."),
    ("nn.SyncBatchNorm(2, process_groups=[[0], [0]])", "SyncBatchNorm(process_groups=[[0], [0]]): expected ranks from 0 to 1, each once."),
    ("distributed.all_gather([x], x)", "tensor_list of 1 Tensors: expected 2: one for each process of the group."),
])
def test_what_does_not_fit_is_refused_before_anything_is_sent(workers: Any, call: str, text: str) -> None:
    first, _ = workers.ended(2, _refused, call)
    assert first.text.endswith(text), first


def _refused(call: str) -> None:
    from mindspore import Tensor, communication, nn, ops
    from mindspore.mint import distributed

    communication.init()
    names = {"ops": ops, "nn": nn, "distributed": distributed, "rank": communication.get_rank()}
    eval(call, {**names, "x": Tensor([1.0, 2.0])})
