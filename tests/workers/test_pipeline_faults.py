"""A pipeline in trouble: stages that die, hang, have no memory, or run something else; and a job that goes on with other stages."""
from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from support.patches import replace

HERE = Path(__file__).name
WIDTH, LAYERS, STEPS = 16, 4, 6


def begun(stages: int, parts: int = 4, width: int = WIDTH, rows: int = 16, **net: Any) -> tuple[Any, int]:
    """The training step of a net of equal layers in so many stages, and this process's number."""
    from mindspore import communication

    from torchspore.distributed.comm import watchdog

    replace(watchdog, LATE=0.3, RETRY_SECONDS=0.1)
    ms.set_context(mode=ms.GRAPH_MODE)
    rank = 0
    if os.environ.get("WORLD_SIZE", "1") != "1":
        communication.init()
        rank = communication.get_rank()
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=stages)
    ms.set_seed(1)
    cells = nn.CellList([nn.SequentialCell([nn.Dense(width, width, **net), nn.Tanh()]) for _ in range(LAYERS)])
    for at, cell in enumerate(cells):
        cell.pipeline_stage = at * stages // LAYERS
    network = nn.SequentialCell(*cells)
    step = nn.TrainOneStepCell(nn.PipelineCell(nn.WithLossCell(network, nn.MSELoss()), parts), nn.Adam(network.trainable_params(), 1e-2))
    return step.set_train(), rank


def batch(at: int, rows: int = 16, width: int = WIDTH) -> tuple[Any, Any]:
    """The whole batch of one step."""
    x = np.random.default_rng(at).standard_normal((rows, width)).astype(np.float32)
    return Tensor(x), Tensor(x[::-1].copy())


def _killed(at: int) -> Any:
    step, rank = begun(2)
    step(*batch(0))
    if rank == at:
        os.kill(os.getpid(), signal.SIGKILL)
    before = time.monotonic()
    try:
        for number in range(1, 4):
            step(*batch(number))
    except RuntimeError as error:
        return time.monotonic() - before, str(error)


@pytest.mark.parametrize("at", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_stage_that_is_killed_is_named(at: int, workers: Any) -> None:
    ended = workers.ended(2, _killed, at, seconds=60)
    assert ended[at].code == -9 and ended[1 - at].error is None, ended
    seconds, text = ended[1 - at].value            # who waits until a silent rank counts as lost waits 20; a busy machine makes it 1 or 2
    assert seconds < 5.0 and f"rank {at} is gone" in text and f"{HERE}:" in text, text


def _hung() -> None:
    step, rank = begun(2)
    step(*batch(0))
    from torchspore.distributed.comm import watchdog

    assert watchdog.watch is not None
    replace(watchdog.watch, seconds=1.5)
    if rank == 1:
        time.sleep(3)
    step(*batch(1))


def test_a_stage_that_hangs_is_named_with_its_line(workers: Any) -> None:
    first, _ = workers.ended(2, _hung, seconds=60)
    assert first.error == "CommunicationError"
    assert re.search(r"rank 1 has not come to it: it is at .*test_pipeline_faults\.py:\d+", first.text), first.text


def _otherwise(kind: str) -> None:
    rank = int(os.environ["RANK"])
    parts = 2 if kind == "parts" and rank else 4
    step, _ = begun(2, parts, bias_init="ones") if kind == "net" and rank else begun(2, parts, has_bias=not (kind == "bias" and rank))
    if kind == "loss" and rank:
        step.network.network._loss_fn = nn.L1Loss()
    if kind == "second batch":
        step(*batch(0))
    step(*batch(0, rows=8 if "batch" in kind and rank else 16))


@pytest.mark.parametrize("kind", ["parts", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("bias", "batch", "second batch"))])
def test_a_stage_that_runs_something_else_is_named(kind: str, workers: Any) -> None:
    for ended in workers.ended(2, _otherwise, kind, seconds=60):
        assert ended.error in ("StrategyRefused", "CommunicationError") and not ended.is_late, ended
        assert f"{HERE}:" in ended.text or "differs between processes" in ended.text, ended.text


def _without_memory(width: int) -> None:
    rank = int(os.environ["RANK"])
    if rank == 1:
        ms.set_context(max_device_memory="0.05GB")
    step, _ = begun(2, width=width)
    for at in range(2):
        step(*batch(at, rows=64, width=width))


@pytest.mark.slow                                                    # the allocator that counts is compiled first
def test_a_stage_without_memory(workers: Any) -> None:
    first, second = workers.ended(2, _without_memory, 2048, seconds=60)
    assert second.error == "OutOfMemory", second
    assert first.error == "CommunicationError" and "rank 1" in first.text, first


def _resumed(folder: str, stages: int, first: int, last: int) -> Any:
    """Some of the steps, from the checkpoint on that others have left."""
    step, rank = begun(stages)
    path = f"{folder}/{first}.ckpt"
    if first:
        loaded = ms.load_checkpoint(path)
        assert int(loaded.pop("step")) == first
        assert ms.load_param_into_net(step, loaded, strict_load=True)[0] == []
    values = [float(step(*batch(at)).asnumpy()) for at in range(first, last)]
    ms.save_checkpoint(step, f"{folder}/{last}.ckpt" if rank == 0 else f"{folder}/{rank}_{last}.ckpt", append_dict={"step": last})
    return values


def test_a_job_goes_on_with_other_stages(workers: Any, tmp_path: Path) -> None:
    (alone,) = workers(1, _resumed, str(tmp_path / "."), 1, 0, STEPS)
    results: list[list[float]] = [[] for _ in range(4)]
    first = 0
    for stages in (2, 1, 4):
        for expected, new in zip(results, workers(stages, _resumed, str(tmp_path), stages, first, first + 2) * 4):
            expected += new
        first += 2
    for expected in results:
        np.testing.assert_allclose(expected, alone, rtol=2e-6)
    (checkpoint,) = [ms.load_checkpoint(f"{tmp_path}/{STEPS}.ckpt")]
    assert {"global_step", "moment1.0.0.weight", "3.0.weight"} <= set(checkpoint)


def _parted(folder: str, stages: int) -> Any:
    """A step, and what each process holds in a file of its own, with strategy files of all of them."""
    rank = int(os.environ["RANK"])
    ms.set_auto_parallel_context(strategy_ckpt_config={"save_file": f"{folder}/s/strategy_{rank}.ckpt", "only_trainable_params": False})
    step, _ = begun(stages)
    step(*batch(0))
    (Path(folder) / "parts" / f"rank_{rank}").mkdir(parents=True)
    ms.save_checkpoint(step, f"{folder}/parts/rank_{rank}/part.ckpt", integrated_save=False)
    ms.save_checkpoint(step, f"{folder}/whole_{rank}.ckpt")


def test_parts_of_stages_become_one_file(workers: Any, tmp_path: Path) -> None:
    workers(2, _parted, str(tmp_path), 2)
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["strategy_0.ckpt", "strategy_1.ckpt"]
    ms.merge_pipeline_strategys(str(tmp_path / "s"), str(tmp_path / "merged.ckpt"))     # as programs do, where each stage has its own
    checkpoint = ms.load_checkpoint(str(tmp_path / "whole_0.ckpt"))
    for at, name in enumerate(("s/strategy_0.ckpt", "s/strategy_1.ckpt", "merged.ckpt")):
        ms.transform_checkpoints(str(tmp_path / "parts"), str(tmp_path / str(at)), "one", str(tmp_path / name))
        saved = ms.load_checkpoint(str(tmp_path / str(at) / "rank_0" / "one0.ckpt"))
        assert {"3.0.weight", "moment1.0.0.weight"} <= set(saved) == set(checkpoint)
        for key, value in saved.items():
            np.testing.assert_array_equal(value.asnumpy(), checkpoint[key].asnumpy())
