"""One rank has no memory, no disk, no hurry, or another graph: what it says, and what the others say."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, communication, nn, ops
from support import full_disk
from support.patches import replace

HERE = Path(__file__).name


def _begin(mode: int = 1) -> int:
    from torchspore.distributed.comm import watchdog

    replace(watchdog, LATE=0.3, RETRY_SECONDS=0.1)
    ms.set_context(mode=mode)
    communication.init()
    return communication.get_rank()


def _leave_during_rendezvous(message: str) -> None:
    """Rank 1 leaves where gloo makes connections; what gloo says of it to rank 0 comes by chance, or after minutes."""
    import os
    import time

    from torchspore.engine.torch_internals import torch_process_groups

    def start(*arguments: Any, **named: Any) -> None:
        if os.environ["RANK"] == "1":
            os._exit(3)
        time.sleep(0.3)
        raise RuntimeError(message)

    replace(torch_process_groups, start_processes=start)
    communication.init()


@pytest.mark.parametrize("message", ["Connection closed by peer [127.0.0.1]:33936", "Connect timeout [none]"])
def test_a_rank_that_leaves_while_connections_open(workers: Any, message: str) -> None:
    first, second = workers.ended(2, _leave_during_rendezvous, f"Gloo connectFullMesh failed with [pair.cc:553] {message}", seconds=20)
    assert second.code == 3 and first.error == "CommunicationError", first
    assert re.match(rf".*{HERE}:\d+: rank 0 was in init\(\) over world \(its number 1\) when rank 1 is gone\.", first.text), first


class Tiled(nn.Cell):
    """Asks for as much memory as it is told to, between two exchanges."""

    def construct(self, x: Any, count: int) -> Any:
        return ops.AllReduce()(ops.tile(ops.AllReduce()(x), (count,)).sum())


def _without_memory(mode: int) -> Any:
    ms.set_context(max_device_memory="0.5GB")
    rank = _begin(mode)
    for step in range(2):
        Tiled()(Tensor(np.ones(2, np.float32)), 1 << 30 if (rank, step) == (1, 1) else 1)


@pytest.mark.slow                                                    # the allocator that counts is compiled first
@pytest.mark.parametrize("mode", [0, 1])
def test_a_rank_without_memory(workers: Any, mode: int) -> None:
    first, second = workers.ended(2, _without_memory, mode, seconds=30)
    assert second.error == "OutOfMemory" and re.search(rf"{HERE}:\d+: .*out of memory: 8.0 GiB more were requested", second.text), second
    assert first.error == "CommunicationError" and "rank 1" in first.text, first


def _without_disk(folder: str, is_full: bool) -> Any:
    rank = _begin()
    ms.set_auto_parallel_context(
        parallel_mode="data_parallel", enable_parallel_optimizer=True, parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )
    net = nn.Dense(64, 64)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params())).set_train()
    x = Tensor(np.ones((2, 64), np.float32))
    step(x, x)
    path = Path(folder) / ("all.ckpt" if is_full else f"part_{rank}.ckpt")
    ms.save_checkpoint(step, str(path), integrated_save=is_full)
    before = path.read_bytes()
    step(x, x)
    with full_disk.takes(10_000), pytest.raises(OSError, match=path.name):
        ms.save_checkpoint(step, str(path), integrated_save=is_full)
    return path.read_bytes() == before, len(ms.load_checkpoint(str(path))), float(step(x, x).asnumpy()) > 0


@pytest.mark.parametrize("is_full", [True, False])
def test_a_full_disk_leaves_the_old_checkpoint(workers: Any, tmp_path: Path, is_full: bool) -> None:
    results = workers(2, _without_disk, str(tmp_path), is_full)
    assert results == [(True, results[0][1], True)] * 2 and results[0][1] > 5
    assert sorted(path.name for path in tmp_path.iterdir()) == (["all.ckpt"] if is_full else ["part_0.ckpt", "part_1.ckpt"])


def _without_disk_in_fit(folder: str, stages: int) -> Any:
    from mindspore import train

    rank = _begin(0)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=stages)
    net = nn.SequentialCell([nn.Dense(16, 64), nn.Dense(64, 8)])
    net[0].matmul.shard(((1, 1), (2 // stages, 1)))
    if stages > 1:
        net[0].pipeline_stage, net[1].pipeline_stage = 0, 1
    x = np.random.RandomState(1).rand(32, 16).astype(np.float32)
    data = ms.dataset.NumpySlicesDataset((x, x[:, :8].copy()), shuffle=False).batch(8)
    model = train.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params()))
    rank_folder = Path(folder) / str(rank)
    saving = train.ModelCheckpoint("m", str(rank_folder), train.CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=2))

    class Filling(train.Callback):
        def on_train_step_begin(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num == 7:
                disk.__enter__()

    disk = full_disk.takes(4000)
    with pytest.raises(OSError, match=r"m-2_4\.ckpt"):
        model.fit(3, data, callbacks=[Filling(), saving])
    disk.__exit__(None, None, None)
    return {path.name: len(ms.load_checkpoint(str(path))) for path in rank_folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("stages", [1, 2])
def test_a_full_disk_in_fit_leaves_the_checkpoints_before_it(workers: Any, tmp_path: Path, stages: int) -> None:
    for result in workers(2, _without_disk_in_fit, str(tmp_path), stages):
        assert sorted(result) == ["m-1_4.ckpt", "m-2_2.ckpt"] and len(set(result.values())) == 1, result


def _slow() -> Any:
    import time

    if _begin() == 1:
        time.sleep(1.5)
    return ops.AllReduce()(Tensor([1.0])).asnumpy().tolist()


def test_a_slow_rank_is_waited_for(workers: Any) -> None:
    assert workers(2, _slow) == [[2.0], [2.0]]


class Exchanging(nn.Cell):
    """Two exchanges, in an order that depends on the rank."""

    def construct(self, x: Any) -> Any:
        if communication.get_rank() == 0:
            return ops.AllGather()(ops.AllReduce()(x))
        return ops.AllReduce()(ops.AllGather()(x))


def _other_graph() -> None:
    _begin(0)
    Exchanging()(Tensor(np.ones(4, np.float32)))


def test_graphs_that_exchange_in_another_order_are_named(workers: Any) -> None:
    first, second = workers.ended(2, _other_graph, seconds=30)
    assert first.error == second.error == "CommunicationError", (first, second)
    assert "rank 0 waits in AllReduce(sum) of float32[4] over world" in first.text and "rank 1 is in AllGather of float32[4]" in first.text
    assert "rank 1 waits in AllGather of float32[4] over world" in second.text and f"{HERE}:" in second.text, second


class Summed(nn.Cell):
    """One exchange of a graph."""

    def construct(self, x: Any) -> Any:
        return ops.AllReduce()(x) * 2


def _never_comes(mode: int) -> Any:
    import time

    ms.set_context(op_timeout=1)
    rank, summed = _begin(mode), Summed()
    for step in range(2):
        if (rank, step) == (1, 1):
            time.sleep(6)
        summed(Tensor(np.ones(4, np.float32)))


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0, 1])
def test_the_limit_of_operators_counts_for_a_rank_that_never_comes(workers: Any, mode: int) -> None:
    first, second = workers.ended(2, _never_comes, mode, seconds=40)
    assert first.code == 124 and re.search("all_?reduce", first.out, re.IGNORECASE) and f"{HERE}:" in first.out, first
    assert second.error == "CommunicationError" and "rank 0 is gone" in second.text, second
