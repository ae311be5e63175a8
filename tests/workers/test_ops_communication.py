"""`mindspore.ops.communication` and `mint.distributed.TCPStore` between two processes, in place and not."""
from __future__ import annotations

import re
import socket
from typing import Any

import mindspore as ms
import pytest


def _forms() -> Any:
    import numpy as np
    from mindspore import Tensor, ops
    from mindspore.ops import communication as c

    c.init_process_group()
    rank = c.get_rank()

    def x() -> Any:
        return Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32) + 10 * rank)

    def listed(value: Any) -> Any:
        return value.asnumpy().tolist()

    part, gathered, row = x(), ms.mint.zeros((4, 2)), ms.mint.zeros((1, 2))
    assert ops.all_reduce(part) is None and c.all_gather_into_tensor(gathered, x()) is None and c.reduce_scatter_tensor(row, x()) is None
    out = [listed(part), listed(gathered), listed(row)]
    c.scatter_tensor(row, x(), 1)
    gathered = ms.mint.zeros((4, 2))
    c.gather_into_tensor(gathered, x(), 1, async_op=True)
    c.gather_into_tensor(gathered, x() + 1, 1)
    out += [listed(row), listed(gathered)]
    c.set_comm_ops_inplace(False)
    input_tensor = x()
    (total, none), (rows, handle) = c.all_reduce(input_tensor), c.all_gather_into_tensor(None, x(), async_op=True)
    handle.wait()
    assert none is None and listed(input_tensor) == listed(x())
    out += [listed(total), listed(rows), listed(c.reduce_scatter_tensor(None, x(), "max")[0])]
    with pytest.raises(ValueError, match=re.escape("broadcast after set_comm_ops_inplace(False): expected one of all_reduce, all_gather")):
        c.broadcast(input_tensor, 0)
    c.set_comm_ops_inplace(True, ["send"])
    if rank == 0:
        c.send(x(), 1)
        c.send(x() * 2, 1)
    else:
        came, (later, waits) = c.recv(x(), 0), c.irecv(x(), 0)
        waits.wait()
        out += [listed(came), listed(later)]
    c.set_comm_ops_inplace(True)
    c.broadcast(input_tensor, 1)
    return [*out, listed(input_tensor)]


def test_functions_write_into_what_they_are_given_or_give_something_new(workers: Any) -> None:
    first, second = workers(2, _forms)
    x, y = [[1, 2], [3, 4]], [[11, 12], [13, 14]]
    total = [[12, 14], [16, 18]]
    assert first == [total, x + y, [[12, 14]], [[11, 12]], [[0, 0]] * 4, total, x + y, [[11, 12]], y]
    later = [[2, 3], [4, 5], [12, 13], [14, 15]]
    assert second == [total, x + y, [[16, 18]], [[13, 14]], later, total, x + y, [[13, 14]], x, [[2, 4], [6, 8]], y]


def _graph() -> Any:
    from mindspore import nn
    from mindspore.ops import communication as c

    c.init_process_group()
    c.set_comm_ops_inplace(False, ["all_reduce"])

    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            return c.all_reduce(x * 2)[0] + 1

    ms.set_context(mode=ms.GRAPH_MODE)
    return Net()(ms.Tensor([1.0 + c.get_rank()])).asnumpy().tolist()


def test_in_a_graph(workers: Any) -> None:
    assert workers(2, _graph) == [[7.0], [7.0]]


def _store(port: int) -> Any:
    import os
    from datetime import timedelta

    from mindspore.mint import distributed
    from mindspore.ops import communication as c

    rank = int(os.environ["RANK"])
    store = distributed.TCPStore("127.0.0.1", port, 2, rank == 0, timedelta(seconds=20))
    if rank == 0:
        store.set("word", "a")
    assert store.get("word") == b"a"
    count = store.add("sum", rank + 1)
    c.init_process_group(store=store, world_size=2, rank=rank)
    total = [None, None]
    c.all_gather_object(total, count)
    gone = store.delete_key("word") if rank == 0 else True
    return c.get_world_size(), sorted(total)[-1], gone


def test_processes_meet_at_a_store_of_the_programs(workers: Any) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert workers(2, _store, port, TORCHELASTIC_USE_AGENT_STORE="<unset>") == [(2, 3, True)] * 2


def test_what_does_not_fit() -> None:
    from datetime import timedelta

    from mindspore.mint.distributed import TCPStore, init_process_group
    from mindspore.ops import communication as c

    for words, error, text in (
        ((1, 2), TypeError, "TCPStore(host_name=1): expected str, got int."),
        (("a", 70000), ValueError, "TCPStore(port=70000): expected a port from 0 to 65535."),
        (("a", 1, 0), ValueError, "TCPStore(world_size=0): expected at least 1."),
        (("127.0.0.1", 9, 1, False, timedelta(seconds=1)), RuntimeError,
         "TCPStore('127.0.0.1', 9, is_master=False): no process answered within 1 s.\n\nhint: the process with is_master=True serves it."),
    ):
        with pytest.raises(error, match=f"^{re.escape(text)}$"):
            TCPStore(*words)
    with pytest.raises(TypeError, match=re.escape("init_process_group(store=1): expected a TCPStore, got int.")):
        init_process_group(store=1)
    with pytest.raises(TypeError, match=re.escape("set_comm_ops_inplace(1): expected a bool, got int.")):
        c.set_comm_ops_inplace(1)
    with pytest.raises(ValueError, match=re.escape("set_comm_ops_inplace(func_list=['x']): expected 'all_gather', ")):
        c.set_comm_ops_inplace(True, ["x"])
