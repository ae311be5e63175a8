"""Exchanges in graphs: nodes that stay, keep their order, and give PyNative's numbers at every level."""
from __future__ import annotations

import traceback
from typing import Any

import pytest


def _net() -> Any:
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, communication, nn, ops

    communication.init()

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(Tensor(np.arange(12, dtype=np.float32).reshape(3, 4) / 10), name="weight")
            self.total, self.every, self.share = ops.AllReduce(), ops.AllGather(), ops.ReduceScatter()
            self.swap, self.wait = ops.AlltoAll(2, 0, 1), ops.Barrier()

        def construct(self, x: Any) -> Any:
            hidden = self.total(ops.matmul(x, self.weight))
            self.every(hidden)                                    # nobody reads it; every rank calls it all the same
            self.total(hidden), self.total(hidden)
            self.wait()
            rows = self.swap(self.every(ops.relu(hidden)))
            return self.share(rows).sum()

    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) + communication.get_rank())
    return ms, Net(), x


def _numbers(level: str) -> Any:
    ms, net, x = _net()
    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode, jit_config={"jit_level": level})
        out = net(x)
        gradient = ms.grad(net, 0, net.trainable_params())
        results.append((float(out.asnumpy()), gradient(x)[0].asnumpy().tolist(), gradient(x)[1][0].asnumpy().tolist()))
    return results


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_both_modes_give_equal_numbers(workers: Any, level: str) -> None:
    for pynative, graph in workers(2, _numbers, level):
        assert pynative == graph


def _nodes() -> Any:
    ms, net, x = _net()
    ms.set_context(mode=ms.GRAPH_MODE)
    net(x)
    from torchspore.graph import dispatch

    (graph,) = dispatch.graphs(net)
    return [str(node.target) for node in graph.module.graph.nodes if "c10d" in str(node.target) or "barrier" in str(node.target)]


def test_no_exchange_is_dropped_joined_or_moved(workers: Any) -> None:
    kinds = ["all_reduce", "all_gather_into_tensor", "all_reduce", "all_reduce", "barrier", "all_gather_into_tensor", "all_to_all_single",
             "reduce_scatter_tensor"]
    for result in workers(2, _nodes):
        assert [name.split(".")[1] for name in result if "wait_tensor" not in name] == kinds
        assert sum("wait_tensor" in name for name in result) == 7


# ---- the compile cache


def _cached_result(folder: str) -> tuple[list[float], list[str]]:
    """What a net with an exchange gives, and what is said of the compile cache."""
    import mindspore as ms
    from mindspore import Tensor, nn, ops
    from mindspore.communication import init

    from torchspore.context import effects

    init()
    ms.set_context(mode=ms.GRAPH_MODE, enable_compile_cache=True, compile_cache_path=folder)

    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            return ops.AllReduce()(x * 2) + 1

    values = Net()(Tensor([1.0, 2.0])).asnumpy().tolist()
    return values, effects.notes()["compile cache"]


def test_the_compile_cache_keeps_what_is_compiled_and_says_what_it_can_not_keep(workers: Any, tmp_path: Any) -> None:
    first, second = workers(2, _cached_result, str(tmp_path)), workers(2, _cached_result, str(tmp_path))
    assert [result for result, _ in (*first, *second)] == [[5.0, 9.0]] * 4
    for rank in range(2):
        reason, none = first[rank][1]
        assert none.startswith("compile cache: nothing is stored for ") and f"rank_{rank}" in none
        assert second[rank][1][-1].endswith(f"is in {tmp_path}/rank_{rank}/graph_cache; its kernels are loaded.")
        assert reason.endswith(
            "the graph can't be stored for load_compile_cache (it exchanges values with other processes, all of which would have to use "
            "the same entry)",
        )


def _interrupted() -> Any:
    """A step whose forward pass raises, between steps of a split graph that keeps parts of its weights on each rank."""
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, communication, nn, ops

    communication.init()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", enable_parallel_optimizer=True,
        parallel_optimizer_config={"optimizer_level": "level3", "parallel_optimizer_threshold": 0},
    )

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.raises = nn.Dense(8, 8), False

        def construct(self, x: Any) -> Any:
            x = ops.tanh(self.dense(x))
            if self.raises:
                raise KeyError("an error of the program")
            return x

    net = Net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-2)).set_train()
    x = Tensor(np.ones((4, 8), np.float32))
    losses = [float(step(x, x))]
    errors = []
    for _ in range(2):
        net.raises = True
        try:
            step(x, x)
        except KeyError as error:
            errors.append((str(error), len(traceback.extract_tb(error.__traceback__))))
        net.raises = False
        losses.append(float(step(x, x)))
    try:
        step(x, Tensor(np.ones((4, 9), np.float32)))
    except ValueError as error:
        errors.append((str(error), 0))
    return losses, errors


def test_an_error_of_the_program_ends_one_step_of_a_split_graph(workers: Any) -> None:
    for losses, errors in workers(2, _interrupted):
        assert losses[0] > losses[1] > losses[2] > 0
        assert [text for text, _ in errors[:2]] == ["'an error of the program'"] * 2 and errors[0][1] == errors[1][1]
        assert "sub(input: Float32[4, 8], other: Float32[4, 9])" in errors[2][0]
