"""`explain` in several processes: rank 0's table, with what is otherwise in the others."""
from __future__ import annotations

import io
from typing import Any

from support.patches import replace


def _explained(fails: bool = False) -> str:
    import os

    import mindspore as ms
    from mindspore import communication

    from torchspore.cli import explain, ranks
    from torchspore.context import effects

    replace(ranks, _SECONDS=0.5)
    communication.init()
    rank = communication.get_rank()
    ms.set_context(max_call_depth=500 if rank == 0 else 600)
    if rank == 1:
        ms.set_auto_parallel_context(gradients_mean=True)
        effects.note("data", f"train.py:{rank} waited")
    effects.note("data", f"train.py:3 took {rank + 1}.5 s")
    if fails and rank == 1:
        os._exit(0)
    shown = io.StringIO()
    explain.table(shown)
    communication.get_group_size()
    return shown.getvalue()


def test_what_other_ranks_have_otherwise_is_marked(workers: Any) -> None:
    first, second, third = workers(3, _explained)
    assert first.startswith("This is rank 0 of 3; differences in others are marked by !\noption")
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in first.splitlines()]
    depth = next(at for at, row in enumerate(rows) if row and row[0] == "max_call_depth")
    assert rows[depth][1] == "500" and rows[depth + 1][:2] == ["! rank 1, 2", "600"]
    mean = next(at for at, row in enumerate(rows) if row and row[0] == "auto_parallel.gradients_mean")
    assert rows[mean][1] == "its default" and rows[mean + 1][:2] == ["! rank 1", "True"]
    assert "  train.py:3 took 1.5 s\n  ! rank 1: train.py:1 waited\n" in first and "took 2.5 s" not in first
    assert "!" not in second + third and "600" in second


def test_a_rank_that_has_failed_is_not_waited_for_long(workers: Any) -> None:
    first, _ = workers.ended(2, _explained, True, seconds=20)
    assert first.value.startswith("This is rank 0 of 2; differences in others are marked by !; rank 1 did not report within 0.5 s\n")
