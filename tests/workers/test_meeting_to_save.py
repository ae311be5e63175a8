"""State that processes hold in parts is saved by all of them; who saves alone is named, with what the others do."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from support.patches import replace

HERE = Path(__file__).name


def _begin() -> tuple[Any, Any, int]:
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, nn
    from mindspore.communication import get_rank, init

    from torchspore.distributed.comm import watchdog

    replace(watchdog, LATE=0.3, RETRY_SECONDS=0.1)
    init()
    ms.set_auto_parallel_context(
        parallel_mode="data_parallel", enable_parallel_optimizer=True, parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )
    net = nn.Dense(4, 2, weight_init="ones")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params())).set_train()
    x, y = Tensor(np.ones((2, 4), np.float32)), Tensor(np.ones((2, 2), np.float32))
    step(x, y)
    return step, (x, y), get_rank()


def _alone(folder: str) -> None:
    import mindspore as ms

    step, batch, rank = _begin()
    if rank == 0:
        ms.save_checkpoint(step, f"{folder}/a.ckpt")
    step(*batch)


def test_one_rank_that_saves_alone_is_named(workers: Any, tmp_path: Path) -> None:
    first, second = workers.ended(2, _alone, str(tmp_path), seconds=20)
    what = "save_checkpoint of Tensors whose parts processes hold, which each of them must call"
    assert first.error == second.error == "CommunicationError", (first, second)
    at = r"over \S+ \(its number \d+\)"
    assert re.search(rf"{HERE}:\d+: rank 0 waits in {what} {at} for \d\.\d s; rank 1 is in AllReduce", first.text), first
    assert re.search(rf"rank 0 is in {what} {at} at \S*{HERE}:\d+\.", second.text), second
    assert first.seconds < 5 and not list(tmp_path.iterdir())


def _all(folder: str) -> Any:
    import mindspore as ms

    step, _, _ = _begin()
    ms.save_checkpoint(step, f"{folder}/a.ckpt")
    return sorted(ms.load_checkpoint(f"{folder}/a.ckpt")), ms.load_checkpoint(f"{folder}/a.ckpt")["moment1.weight"].shape


def test_all_save_together(workers: Any, tmp_path: Path) -> None:
    for names, shape in workers(2, _all, str(tmp_path)):
        assert "moment1.weight" in names and shape == (2, 4)


def _other_groups() -> None:
    from mindspore import communication

    from torchspore.distributed.comm import watchdog

    replace(watchdog, LATE=0.3, RETRY_SECONDS=0.1)
    communication.init()
    names = ("a", "b") if communication.get_rank() == 0 else ("b", "a")
    for name in names:
        communication.create_group(name, [0, 1])


def test_groups_created_in_another_order_are_named(workers: Any) -> None:
    for rank, ended in enumerate(workers.ended(2, _other_groups, seconds=20)):
        group_name, other = ("a", "b") if rank == 0 else ("b", "a")
        assert ended.error == "CommunicationError" and f"rank {rank} waits in create_group('{group_name}')" in ended.text, ended
        assert f"rank {1 - rank} is in create_group('{other}')" in ended.text and ended.seconds < 5, ended
