"""What two processes exchange: functions that real MindSpore and torchspore both run, in this order, in each of two processes.

`tools/record.py communication` keeps what MindSpore gives; tests/workers/test_communication_parity.py compares.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import mindspore.communication as communication
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import comm_func
from mindspore.communication.management import get_rank
from mindspore.mint import distributed

WORLD = "mccl_world_group"
"""The name that MindSpore gives the group of all processes on a CPU; another backend's is refused by some functions there."""
CASES: dict[str, Callable[[], Any]] = {}
BOTH: set[str] = set()
"""Cases that are run in graph mode too."""


def case(graph: bool = False) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Takes a function for a case; `graph` says that it is run in both modes."""

    def take(function: Callable[[], Any]) -> Callable[[], Any]:
        CASES[function.__name__] = function
        if graph:
            BOTH.add(function.__name__)
        return function

    return take


def _x(*shape: int) -> Any:
    count = int(np.prod(shape))
    return Tensor((np.arange(1, count + 1).reshape(shape) + 100 * get_rank()).astype(np.float32))


class _Net(nn.Cell):
    def __init__(self, collective: Any) -> None:
        super().__init__()
        self.collective = collective

    def construct(self, x: Any) -> Any:
        return self.collective(x * 2)


def _with_gradient(collective: Any, x: Any) -> Any:
    net = _Net(collective)
    out = net(x)
    sens = Tensor((np.arange(out.size).reshape(out.shape) + 10 * (get_rank() + 1)).astype(np.float32))
    gradient = ms.ops.GradOperation(sens_param=True)(net)(x, sens)
    return out, gradient


@case()
def ranks() -> Any:
    return (
        communication.get_rank(), communication.get_group_size(), communication.get_local_rank(), communication.get_local_rank_size(),
        communication.get_process_group_ranks(), communication.get_world_rank_from_group_rank(WORLD, 1),
    )


@case()
def group_rank_of_world_rank() -> Any:
    return communication.get_group_rank_from_world_rank(1, WORLD)


@case()
def global_comm() -> Any:
    return communication.GlobalComm.BACKEND, communication.GlobalComm.WORLD_COMM_GROUP, communication.GlobalComm.INITED


@case()
def rank_out_of_range() -> Any:
    return communication.get_world_rank_from_group_rank("mccl_world_group", 5)


@case()
def no_such_group() -> Any:
    return communication.get_rank("nobody")


@case(graph=True)
def all_reduce_sum() -> Any:
    return _with_gradient(ops.AllReduce(), _x(2, 3))


@case(graph=True)
def all_reduce_max() -> Any:
    return _with_gradient(ops.AllReduce(ops.ReduceOp.MAX), _x(2, 3))


@case(graph=True)
def all_reduce_min() -> Any:
    return _with_gradient(ops.AllReduce(ops.ReduceOp.MIN), _x(2, 3))


@case(graph=True)
def all_reduce_prod() -> Any:
    return _with_gradient(ops.AllReduce(ops.ReduceOp.PROD), _x(2, 3))


@case()
def all_reduce_avg() -> Any:
    return ops.AllReduce("avg")(_x(2, 3))


@case()
def all_reduce_int() -> Any:
    return ops.AllReduce()(Tensor([1 + get_rank(), 7], ms.int32))


@case()
def all_reduce_half() -> Any:
    return ops.AllReduce()(Tensor([1 + get_rank(), 7], ms.float16))


@case()
def all_reduce_bool() -> Any:
    return ops.AllReduce()(Tensor([True]))


@case(graph=True)
def all_gather() -> Any:
    return _with_gradient(ops.AllGather(), _x(2, 3))


@case(graph=True)
def reduce_scatter() -> Any:
    return _with_gradient(ops.ReduceScatter(), _x(4, 3))


@case()
def reduce_scatter_uneven_rows() -> Any:
    return ops.ReduceScatter()(_x(3, 2))


@case()
def broadcast() -> Any:
    return ops.Broadcast(1)((_x(2, 3), _x(2)))


@case()
def broadcast_gradient() -> Any:
    return _with_gradient(lambda x: ops.Broadcast(1)((x,))[0], _x(2, 3))


@case()
def reduce_to_one() -> Any:
    return ops.Reduce(1)(_x(2, 2))


@case()
def collective_gather() -> Any:
    return ops.CollectiveGather(1)(_x(2, 2))


@case()
def collective_scatter() -> Any:
    return ops.CollectiveScatter(1)(_x(4, 2))


@case()
def scatter_gradient() -> Any:
    return _with_gradient(ops.CollectiveScatter(1), _x(4, 2))


@case()
def gather_gradient() -> Any:
    return _with_gradient(ops.CollectiveGather(1), _x(4, 2))


@case()
def all_to_all() -> Any:
    return ops.AlltoAll(2, 0, 1)(_x(4, 2))


@case()
def all_to_all_uneven() -> Any:
    counts = [[1, 2], [3, 1]]
    rank = get_rank()
    return ops.AlltoAllV()(_x(sum(counts[rank])), counts[rank], [counts[0][rank], counts[1][rank]])


@case()
def barrier() -> Any:
    return ops.Barrier()()


@case()
def functional_all_reduce() -> Any:
    return comm_func.all_reduce(_x(2, 2))


@case()
def functional_all_gather() -> Any:
    return comm_func.all_gather_into_tensor(_x(2, 2))


@case()
def functional_reduce_scatter() -> Any:
    return comm_func.reduce_scatter_tensor(_x(2, 2))


@case()
def functional_reduce() -> Any:
    return comm_func.reduce(_x(2, 2), 1, group=WORLD)


@case()
def functional_scatter() -> Any:
    return comm_func.scatter_tensor(_x(2, 2), 0, WORLD)


@case()
def functional_gather() -> Any:
    return comm_func.gather_into_tensor(_x(2, 2), 0, WORLD)


@case()
def functional_broadcast() -> Any:
    return comm_func.broadcast(_x(2, 2), 1, WORLD)


@case()
def functional_all_to_all() -> Any:
    return comm_func.all_to_all_single_with_output_shape([2, 2], _x(2, 2))


@case()
def mint_all_reduce() -> Any:
    x = _x(2, 2)
    return distributed.all_reduce(x), x


@case()
def mint_all_reduce_later() -> Any:
    x = _x(2, 2)
    handle = distributed.all_reduce(x, op="max", async_op=True)
    handle.wait()
    return type(handle).__name__, x


@case()
def mint_broadcast() -> Any:
    x = _x(2, 2)
    distributed.broadcast(x, 1)
    return x


@case()
def mint_reduce() -> Any:
    x = _x(2, 2)
    distributed.reduce(x, 1)
    return x


@case()
def mint_all_gather() -> Any:
    out = [Tensor(np.zeros((2, 2), np.float32)) for _ in range(2)]
    distributed.all_gather(out, _x(2, 2))
    return out


@case()
def mint_all_gather_into() -> Any:
    out = Tensor(np.zeros((4, 2), np.float32))
    distributed.all_gather_into_tensor(out, _x(2, 2))
    return out


@case()
def mint_reduce_scatter() -> Any:
    out = Tensor(np.zeros((2, 2), np.float32))
    distributed.reduce_scatter(out, [_x(2, 2), _x(2, 2) + 1])
    return out


@case()
def mint_reduce_scatter_tensor() -> Any:
    out = Tensor(np.zeros((1, 2), np.float32))
    distributed.reduce_scatter_tensor(out, _x(2, 2))
    return out


@case()
def mint_gather() -> Any:
    out = [Tensor(np.zeros((2, 2), np.float32)) for _ in range(2)]
    distributed.gather(_x(2, 2), out, 1)
    return out


@case()
def mint_scatter() -> Any:
    out = Tensor(np.zeros((2, 2), np.float32))
    distributed.scatter(out, [_x(2, 2), _x(2, 2) * 2], 1)
    return out


@case()
def mint_all_to_all_single() -> Any:
    out = Tensor(np.zeros((2, 2), np.float32))
    distributed.all_to_all_single(out, _x(2, 2))
    return out


@case()
def mint_objects() -> Any:
    results: list[Any] = [None, None]
    distributed.all_gather_object(results, {"rank": get_rank()})
    return results


@case()
def mint_broadcast_objects() -> Any:
    objects = [get_rank(), "text"] if get_rank() else [None, None]
    distributed.broadcast_object_list(objects, 1, WORLD)
    return objects


@case()
def mint_gather_objects() -> Any:
    results: list[Any] = [None, None]
    distributed.gather_object(("rank", get_rank()), results if get_rank() == 0 else None, 0)
    return results


@case()
def mint_scatter_objects() -> Any:
    results: list[Any] = [None]
    distributed.scatter_object_list(results, ["a", {"b": 1}], 0, WORLD)
    return results


@case()
def mint_world() -> Any:
    return (
        distributed.get_rank(), distributed.get_world_size(), distributed.get_global_rank(None, 1),
        distributed.get_group_rank(None, 1), distributed.get_process_group_ranks(), distributed.is_initialized(),
    )


@case()
def mint_new_group_of_all() -> Any:
    return distributed.new_group()


@case()
def create_group() -> Any:
    communication.create_group("pair", [0, 1])
    return communication.get_rank("pair"), communication.get_group_size("pair"), ops.AllReduce(group="pair")(_x(2))


@case()
def create_group_taken() -> Any:
    communication.create_group("pair", [0, 1])
    return communication.get_process_group_ranks("pair")


@case()
def create_group_beyond() -> Any:
    communication.create_group("beyond", [0, 7])


@case()
def create_group_twice_the_same() -> Any:
    communication.create_group("same", [0, 0])


@case()
def destroy_group() -> Any:
    communication.destroy_group("pair")


@case()
def destroy_world() -> Any:
    communication.destroy_group("hccl_world_group")


@case()
def again() -> Any:
    communication.init()
    return communication.get_group_size()


@case()
def create_group_without_this() -> Any:
    if get_rank() == 0:
        communication.create_group("other", [1])
        return communication.get_rank("other")
    communication.create_group("other", [1])
    return communication.get_rank("other")
