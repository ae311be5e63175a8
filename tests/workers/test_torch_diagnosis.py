"""torch's tools for exchanges of accelerators, with gloo in their place: dumps and errors lead to the lines of the program."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed
from support.patches import replace

FAULTS = Path(__file__).parents[1] / "support" / "exchange_faults.py"


def test_the_launcher_reports_the_exchange_that_ranks_begin_differently(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "torchspore", "workers", "-n", "2", "--log-dir", str(tmp_path), str(FAULTS), "kind"]
    run = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 1
    assert "world, exchange 2: the ranks differ" in run.stderr, run.stderr
    assert f"rank 0: AllReduce of float32[4] at {FAULTS}:27" in run.stderr
    assert f"rank 1: AllGather of float32[2] at {FAULTS}:23" in run.stderr


def _begun() -> int:
    from mindspore.communication import get_rank, init

    from torchspore.distributed.comm import groups

    replace(groups, has_queue=lambda: True)
    torch.distributed.set_debug_level_from_env()                 # the process that forks this one has read another environment
    init()
    return get_rank()


def _compared() -> str:
    import mindspore as ms
    from mindspore import Tensor

    rank = _begun()
    ms.ops.AllReduce()(Tensor(np.ones(3, np.float32)))
    try:
        if rank == 0:
            ms.ops.AllReduce()(Tensor(np.ones(4, np.float32)))
        else:
            ms.ops.AllGather()(Tensor(np.ones(2, np.float32)))
    except RuntimeError as error:
        return str(error)
    return ""


def test_torchs_comparison_of_exchanges_is_translated(workers: Any) -> None:
    first, second = workers(2, _compared, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    reduce, gather = "AllReduce of float32[4]", "AllGather of float32[2]"
    assert "test_torch_diagnosis.py" in first and f"rank 0 is in {reduce}, and rank 1 is in {gather}" in first, first
    assert f"rank 1 is in {gather}, and rank 0 is in {reduce}" in second


def _meeting(path: str) -> str:
    import time

    import mindspore as ms
    from mindspore import Tensor

    rank = _begun()
    try:
        if rank == 0:
            ms.save_checkpoint({"w": Tensor(np.ones(2, np.float32))}, path, format="dcp")
        else:
            time.sleep(0.1)
            ms.communication.create_group("other", [0, 1])
    except RuntimeError as error:
        return str(error)
    return ""


def test_a_rank_that_does_not_come_to_a_save_is_named(workers: Any, tmp_path: Path) -> None:
    first, second = workers(2, _meeting, str(tmp_path / "n.dcp"))
    assert "rank 1 is in create_group('other')" in first and "which all processes must call" in second, (first, second)


def _together(path: str) -> list[str]:
    import mindspore as ms
    from mindspore import Tensor

    _begun()
    ms.save_checkpoint({"w": Tensor(np.ones(2, np.float32))}, path, format="dcp")
    return list(ms.load_checkpoint(path, format="dcp"))


@pytest.mark.parametrize("level", ["OFF", "DETAIL"])
def test_ranks_that_come_to_a_save_meet(workers: Any, tmp_path: Path, level: str) -> None:
    assert workers(2, _together, str(tmp_path / "n.dcp"), TORCH_DISTRIBUTED_DEBUG=level) == [["w"], ["w"]]
