"""Collective operators for a group of one process."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.communication import GlobalComm, create_group, destroy_group

import torchspore

X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
KINDS = {
    "AllReduce": lambda: ops.AllReduce(ops.ReduceOp.MAX), "AllGather": ops.AllGather, "ReduceScatter": ops.ReduceScatter,
    "Reduce": lambda: ops.Reduce(0), "CollectiveGather": lambda: ops.CollectiveGather(0), "CollectiveScatter": ops.CollectiveScatter,
    "AlltoAll": lambda: ops.AlltoAll(1, 0, 1),
}


class Net(nn.Cell):
    """The collective of three times x."""

    def __init__(self, collective: Any) -> None:
        super().__init__()
        self.collective = collective

    def construct(self, x: Any) -> Any:
        return self.collective(x * 3)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_sent_comes_back_with_its_gradient(mode: int, name: str) -> None:
    net = Net(KINDS[name]())
    np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), X * 3)
    np.testing.assert_array_equal(ms.grad(net)(Tensor(X)).asnumpy(), np.full_like(X, 3))


def test_the_result_is_a_separate_tensor(mode: int) -> None:
    x = Tensor(X)
    result = ops.AllReduce()(x)
    result += 1
    np.testing.assert_array_equal(x.asnumpy(), X)


def test_broadcast_gives_a_tuple(mode: int) -> None:
    first, second = ops.Broadcast(0)((Tensor(X), Tensor(X + 1)))
    np.testing.assert_array_equal(second.asnumpy() - first.asnumpy(), np.ones_like(X))


def test_uneven_shares_barriers_and_neighbours_of_one() -> None:
    np.testing.assert_array_equal(ops.AlltoAllV(block_size=2)(Tensor(X.ravel()), [2], [2]).asnumpy(), X.ravel())
    assert ops.Barrier()() is None
    assert ops.NeighborExchange([], [], (), (), ms.float32)(()) == ()


def test_a_group_of_the_program() -> None:
    create_group("own", [0])
    try:
        np.testing.assert_array_equal(ops.AllReduce(group="own")(Tensor(X)).asnumpy(), X)
    finally:
        destroy_group("own")
    with pytest.raises(ValueError, match="a group that create_group made"):
        ops.AllReduce(group="own")(Tensor(X))
    assert GlobalComm.WORLD_COMM_GROUP


@pytest.mark.parametrize(("call", "text"), [
    (lambda: ops.AllReduce(1), "AllReduce(op=1): expected a str, got int."),
    (lambda: ops.AllReduce("most"), "AllReduce(op='most'): expected 'sum', 'max', 'min', 'prod' or 'avg'."),
    (lambda: ops.AllGather(3), "AllGather(group=3): expected the name of a group, got int."),
    (lambda: ops.Broadcast(1), "Broadcast(root_rank=1): expected 0, the only process."),
    (lambda: ops.AllReduce()(Tensor([True])), "AllReduce: a Tensor of bool: expected a Tensor of numbers."),
    (lambda: ops.AlltoAll(2, 0, 0)(Tensor(X)), "AlltoAll(split_count=2): expected 1, the number of processes."),
    (lambda: ops.AlltoAll(1, 2, 0)(Tensor(X)), "AlltoAll(split_dim=2) of a Tensor of rank 2: expected one of its axes."),
    (lambda: ops.AlltoAll(8, 0, -3)(Tensor(X)), "AlltoAll(concat_dim=-3) of a Tensor of rank 2: expected one of its axes."),
    (lambda: ops.AlltoAllV()(Tensor(X), [4], [4]), "AlltoAllV: a Tensor of shape (2, 2): expected the shape (4,)."),
    (lambda: ops.Send(0, 1)(Tensor(X)),
     "Send(dest_rank=1): expected another process: this training has one.\n\nhint: call it where get_group_size() > 1."),
    (lambda: ops.Receive(0, 1, (2,), ms.float32)(),
     "Receive(src_rank=1): expected another process: this training has one.\n\nhint: call it where get_group_size() > 1."),
])
def test_refusals_of_one_process(call: Callable[[], Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        call()
    assert str(caught.value).endswith(text)
    assert isinstance(caught.value, IndexError) == text.endswith("one of its axes.")


_EXCHANGE: dict[str, Any] = {
    "send_rank_ids": [1], "recv_rank_ids": [1], "recv_shapes": ([2],), "send_shapes": ([2],), "recv_type": ms.float32,
}
_EDGES: dict[str, Any] = {
    "send_rank_ids": [1, *[-1] * 7], "send_lens": [0, 1, 0, 0], "recv_rank_ids": [1, *[-1] * 7], "recv_lens": [0, 1, 0, 0],
    "data_format": "NCHW",
}


@pytest.mark.parametrize(("changed", "error", "text"), [
    ({"send_rank_ids": (1,)}, TypeError, r"NeighborExchange\(send_rank_ids=\(1,\)\): expected a list of ints"),
    ({"recv_rank_ids": [1.0]}, TypeError, r"recv_rank_ids=\[1.0\]\): expected a list of ints"),
    ({"recv_rank_ids": [True]}, TypeError, "expected a list of ints"),
    ({"send_rank_ids": [-1]}, ValueError, "expected ints from 0 on"),
    ({"send_shapes": [[2]]}, TypeError, r"send_shapes=\[\[2\]\]\): expected a tuple of lists of ints"),
    ({"recv_shapes": ([2], [2])}, ValueError, "of 2 shapes: expected 1, as in recv_rank_ids"),
    ({"recv_type": np.float32}, TypeError, "expected a type of mindspore"),
    ({"group": ("a",)}, TypeError, "expected the name of a group"),
])
def test_arguments_of_neighbor_exchange(changed: dict[str, Any], error: type[Exception], text: str) -> None:
    exchange = ops.NeighborExchange(**{**_EXCHANGE, **changed})        # MindSpore checks them when it is called
    with pytest.raises(error, match=text):
        exchange((ms.Tensor(np.ones(2, np.float32)),))


@pytest.mark.parametrize(("changed", "error", "text"), [
    ({"send_rank_ids": (1, *[-1] * 7)}, TypeError, "expected a list of ints"),
    ({"recv_lens": (0, 1, 0, 0)}, TypeError, "expected a list of ints"),
    ({"send_lens": [0, 1.0, 0, 0]}, TypeError, "expected a list of ints"),
    ({"send_lens": [0, -1, 0, 0]}, ValueError, "expected ints from 0 on"),
    ({"recv_rank_ids": [-1] * 7}, ValueError, "expected a list of 8 ints"),
    ({"recv_lens": [0] * 5}, ValueError, "expected a list of 4 ints"),
    ({"recv_rank_ids": [1, 1, *[-1] * 6]}, ValueError, "expected each rank once"),
    ({"data_format": "NHWC"}, ValueError, "expected 'NCHW'"),
])
def test_arguments_of_neighbor_exchange_v2(changed: dict[str, Any], error: type[Exception], text: str) -> None:
    ops.NeighborExchangeV2(**_EDGES)
    with pytest.raises(error, match=text):
        ops.NeighborExchangeV2(**{**_EDGES, **changed})
    nowhere = {**_EDGES, "send_rank_ids": [-1] * 8, "recv_rank_ids": [-1] * 8, "send_lens": [0, 5, 0, 0]}
    with pytest.raises(ValueError, match="expected at most 4 at index 1"):
        ops.NeighborExchangeV2(**nowhere)(ms.Tensor(np.ones((1, 1, 4, 4), np.float32)))


class _Exchanging(ms.nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.exchange = ops.NeighborExchange([1], [1, 2], ([2], [3]), ([2],), ms.float32)
        self.edges = ops.NeighborExchangeV2([1, *[-1] * 7], [1, 0, 0, 0], [1, *[-1] * 7], [1, 0, 0, 0], "NCHW")
        self.scale = ms.Parameter(ms.Tensor([2.0]))

    def construct(self, x, image):
        first, second = self.exchange((x * self.scale,))
        return first.sum() + second.sum(), self.edges(image)


def test_exchanges_for_eight_devices_are_compiled_in_one_process_and_do_not_run() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(device_num=8)
    net, inputs = _Exchanging(), (ms.Tensor(np.ones(2, np.float32)), ms.Tensor(np.ones((1, 1, 4, 4), np.float32)))
    net.compile(*inputs)
    (graph,) = torchspore.graphs(net)
    assert str(graph).count("torchspore.planned_exchange.default(") == 3
    with pytest.raises(RuntimeError, match="NeighborExchange among 8 devices in one process: expected a process for each device"):
        net(*inputs)
    ms.set_auto_parallel_context(device_num=2)
    with pytest.raises(ValueError, match="recv_rank_ids=2"):
        _Exchanging().compile(*inputs)


def test_all_to_all_of_equal_devices_in_one_process() -> None:
    """One process that computes for N devices returns what device `global_rank` receives from devices with equal inputs."""
    x = Tensor(np.arange(16, dtype=np.float32).reshape(2, 8))
    ms.set_auto_parallel_context(device_num=4, global_rank=1)
    try:
        assert ops.AlltoAll(4, 1, 0)(x).asnumpy().tolist() == [[2.0, 3.0], [10.0, 11.0]] * 4
        with pytest.raises(ValueError, match="a length of axis 0 that 4 divides"):
            ops.AlltoAll(4, 0, 1)(x)
        with pytest.raises(RuntimeError, match="a process for each device"):
            ms.grad(lambda value: ops.AlltoAll(4, 1, 0)(value).sum())(x)
    finally:
        ms.reset_auto_parallel_context()
