"""A job goes on from its checkpoint: with equal bits after a rank was killed, with equal numbers on fewer ranks."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from support.resumed_jobs import STEPS, begun, values

ADAM = [
    "beta1_power", "beta2_power", "down", "global_step", "learning_rate", "moment1.down", "moment1.up", "moment2.down", "moment2.up", "up",
]


def _trained(mode: str, folder: str, killed_at: int) -> Any:
    """Trains from the last checkpoint on; rank 1 is killed in a step."""
    import signal

    step, batches, rank = begun(mode)
    path, first = Path(folder) / "last.ckpt", 0
    if path.exists():
        loaded = ms.load_checkpoint(str(path))
        first = int(loaded.pop("step"))
        assert ms.load_param_into_net(step, loaded, strict_load=True)[0] == []
    for at in range(first, STEPS):
        if at == killed_at and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        step(*batches[at])
        if at % 2 == 1:
            ms.save_checkpoint(step, str(path), append_dict={"step": at + 1})
    return first, values(step, folder)


@pytest.mark.parametrize("mode", [pytest.param("data_parallel", marks=pytest.mark.slow), "semi_auto_parallel"])
def test_a_job_that_was_killed_ends_with_the_bits_of_one_that_was_not(workers: Any, tmp_path: Path, mode: str) -> None:
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        folder.mkdir()
    wanted = workers(4, _trained, mode, str(folders[0]), -1)
    ended = workers.ended(4, _trained, mode, str(folders[1]), 3, seconds=30)
    assert [one.code for one in ended] == [0, -9, 0, 0]
    for rank in (0, 2, 3):
        assert ended[rank].error == "CommunicationError" and "when rank 1 is gone" in ended[rank].text, ended[rank]
    for (first, found), (_, one) in zip(workers(4, _trained, mode, str(folders[1]), -1), wanted, strict=True):
        assert first == 2 and sorted(found) == sorted(one) == ADAM
        assert all(np.array_equal(found[name], one[name]) for name in one)


EPOCHS = 4


def _fitted(mode: str, folder: str, killed: tuple[int, int, int]) -> Any:
    """Trains by `Model.fit` from the newest epoch that all ranks have saved; one rank is killed in a step of an epoch."""
    import signal

    from mindspore import mint, nn, train
    from mindspore.communication import get_group_size, get_rank, init

    init()
    rank, size = get_rank(), get_group_size()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(3)
    is_split, stages = mode != "data_parallel", 2 if mode == "pipeline" else 1
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel" if is_split else mode, dataset_strategy="full_batch" if is_split else "data_parallel",
        gradients_mean=not is_split, enable_parallel_optimizer=stages == 1, pipeline_stages=stages,
        parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )
    net = nn.SequentialCell([nn.Dense(16, 32), mint.nn.Dropout(p=0.1), nn.Dense(32, 8)])  # nn.Dropout ignores a later set_seed
    if stages > 1:
        net[0].pipeline_stage, net[2].pipeline_stage = 0, 1
    optimizer = nn.Adam(net.trainable_params(), nn.cosine_decay_lr(0.0, 0.01, EPOCHS * 4, 4, EPOCHS))
    loss = nn.MSELoss()
    if stages > 1:
        model = train.Model(nn.PipelineCell(nn.WithLossCell(net, loss), 2), optimizer=optimizer)
    else:
        model = train.Model(net, loss, optimizer)
    x = np.random.RandomState(7).rand(32, 16).astype(np.float32)
    parts = {} if is_split else {"num_shards": size, "shard_id": rank}
    data = ms.dataset.NumpySlicesDataset((x, x[:, :8] * 2), shuffle=False, **parts).batch(8 // (1 if is_split else size))

    class Fate(train.Callback):
        def on_train_epoch_begin(self, run_context: Any) -> None:
            ms.set_seed(100 + run_context.original_args().cur_epoch_num)

        def on_train_step_begin(self, run_context: Any) -> None:
            state = run_context.original_args()
            if (rank, state.cur_epoch_num, (state.cur_step_num - 1) % 4) == killed:
                os.kill(os.getpid(), signal.SIGKILL)

    own = [Path(folder, f"rank_{one}") for one in range(size)]
    saved = [{int(file.stem.rpartition("-")[2].partition("_")[0]) for file in one.glob("m*.ckpt")} for one in own]
    first = max(set.intersection(*saved), default=0)
    if first:
        ms.load_param_into_net(model.train_network, ms.load_checkpoint(str(next(own[rank].glob(f"m*-{first}_4.ckpt")))))
    config = train.CheckpointConfig(save_checkpoint_steps=4)
    model.fit(EPOCHS, data, callbacks=[Fate(), train.ModelCheckpoint("m", str(own[rank]), config)], initial_epoch=first)
    return first, values(model.train_network, folder)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "ranks"), [("data_parallel", 2), ("semi_auto_parallel", 4), ("pipeline", 2)])
def test_a_fit_that_was_killed_ends_with_the_bits_of_one_that_was_not(workers: Any, tmp_path: Path, mode: str, ranks: int) -> None:
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        folder.mkdir()
    nobody = (-1, -1, -1)
    wanted = workers(ranks, _fitted, mode, str(folders[0]), nobody)
    for turn, killed in enumerate([(1, 2, 0), (0, 3, 2), (ranks - 1, 4, 3)]):
        ended = workers.ended(ranks, _fitted, mode, str(folders[1]), killed)
        assert ended[killed[0]].code == -9, ended
        for rank, one in enumerate(ended):
            assert rank == killed[0] or (one.error == "CommunicationError" and f"rank {killed[0]} is gone" in one.text), (turn, one)
    found = workers(ranks, _fitted, mode, str(folders[1]), nobody)
    for (first, own), (_, one) in zip(found, wanted, strict=True):
        assert first == 3 and sorted(own) == sorted(one)
        assert all(np.array_equal(own[name], one[name]) for name in one)


def _saved(folder: str, cuts: int) -> Any:
    """Trains half of the steps, and saves: whole, and each rank its part."""
    step, batches, rank = begun("semi_auto_parallel", cuts, strategy_ckpt_config={
        "save_file": f"{folder}/from.ckpt", "only_trainable_params": False,
    })
    for batch in batches[:STEPS // 2]:
        step(*batch)
    own = Path(folder) / "from" / f"rank_{rank}"
    own.mkdir(parents=True)
    ms.save_checkpoint(step, str(own / "part.ckpt"), integrated_save=False)
    ms.save_checkpoint(step, f"{folder}/whole_{rank}.ckpt")
    return {name: tuple(value.shape) for name, value in ms.load_checkpoint(str(own / "part.ckpt")).items()}


def _compiled(folder: str, cuts: int) -> None:
    """Compiles the step for as many ranks as there are, which leaves a strategy file."""
    step, batches, _ = begun("semi_auto_parallel", cuts, strategy_ckpt_config={
        "save_file": f"{folder}/to.ckpt", "only_trainable_params": False,
    })
    step.compile(*batches[0])


def _resumed(folder: str, cuts: int, way: str) -> Any:
    """Goes on with the other half, from a whole file or from parts."""
    step, batches, rank = begun("semi_auto_parallel", cuts)
    if way == "whole":
        ms.load_checkpoint(f"{folder}/whole_0.ckpt", step, strict_load=True)
    elif way == "parts":
        step.compile(*batches[0])
        ms.load_checkpoint(f"{folder}/to/rank_{rank}/part{rank}.ckpt", step, strict_load=True)
    else:
        files = [f"{folder}/from/rank_{rank}/part.ckpt" for rank in range(8)]
        ms.load_distributed_checkpoint(step, files, train_strategy_filename=f"{folder}/from.ckpt", strict_load=True)
    for batch in batches[STEPS // 2:]:
        step(*batch)
    Path(folder, way).mkdir(exist_ok=True)
    return values(step, f"{folder}/{way}")


@pytest.mark.slow
def test_a_job_of_eight_ranks_goes_on_with_four_and_with_one(workers: Any, tmp_path: Path) -> None:
    folder = str(tmp_path)
    shapes = workers(8, _saved, folder, 4, seconds=120.0)[0]
    assert shapes["up"] == (8, 8) and shapes["moment1.down"] == (4, 8), shapes      # 4 cuts of the strategy, 2 of the optimizer
    workers(4, _compiled, folder, 2)
    ms.transform_checkpoints(f"{folder}/from", f"{folder}/to", "part", f"{folder}/from.ckpt", f"{folder}/to.ckpt")
    (wanted,) = workers(1, _trained, "semi_auto_parallel", folder, -1)
    for ranks, way in ((4, "whole"), (4, "parts"), (1, "whole"), (1, "distributed")):
        for found in workers(ranks, _resumed, folder, 2, way):
            assert sorted(found) == ADAM
            for name, one in wanted[1].items():
                assert np.abs(found[name] - one).max() <= 1e-6 * max(1.0, np.abs(one).max()), (ranks, way, name)
