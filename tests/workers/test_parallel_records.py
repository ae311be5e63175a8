"""Trainings by two ranks give what real MindSpore's msrun gave on the CPU (`tools/record.py parallel`)."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import parallel_cases
from support.patches import replace

RECORD = Path(__file__).resolve().parents[1] / "parity" / "records" / "parallel.npz"


def all_cases(mode: int) -> dict[str, dict[str, Any]]:
    """The weights of every case on one rank."""
    from mindspore.communication import get_rank, init

    init()
    results = {}
    for name in parallel_cases.CASES:
        if mode in parallel_cases.SAME_ONLY_IN_MODE.get(name, (0, 1)):
            results[name] = parallel_cases.run(name, mode, get_rank())
    return results


@pytest.mark.parametrize("mode", [0, 1])
def test_weights_are_those_of_mindspore(workers: Any, mode: int) -> None:
    record = np.load(RECORD)
    compared = 0
    for rank, cases in enumerate(workers(2, all_cases, mode, seconds=120.0)):
        for name, case in cases.items():
            for key, value in case.items():
                expected = record[f"{name}/{mode}/{rank}/{key}"]
                rtol = 2e-3 if value.dtype == np.float16 else 2e-6
                np.testing.assert_allclose(value, expected, rtol=rtol, atol=1e-7, err_msg=f"{name}, rank {rank}, {key}")
                compared += 1
    assert compared == 2 * 6 * len(cases)


FUSED = ("each_by_itself", "all_in_one", "by_size", "cut_after_the_first", "cut_twice")
"""Cases that say how gradients are put together. Where nothing is said MindSpore sends each by itself on the CPU; here all go in one."""


def message_counts() -> dict[str, int]:
    """How many messages the gradients of a case take on one rank."""
    import mindspore as ms
    from mindspore import nn
    from mindspore.communication import get_rank, init

    init()
    results: dict[str, int] = {}
    original_init = nn.DistributedGradReducer.__init__

    def counted(self: Any, *args: Any, **kwargs: Any) -> None:
        original_init(self, *args, **kwargs)
        results[now] = len(self._plan.buckets)

    replace(nn.DistributedGradReducer, __init__=counted)
    for now in FUSED:
        parallel_cases.run(now, ms.PYNATIVE_MODE, get_rank())
    return results


def test_gradients_take_as_many_messages_as_in_mindspore(workers: Any) -> None:
    record = np.load(RECORD)
    expected = {name: int(record[f"{name}/0/0/AllReduce"]) for name in FUSED}
    assert expected == {"each_by_itself": 6, "all_in_one": 1, "by_size": 1, "cut_after_the_first": 2, "cut_twice": 3}
    assert workers(2, message_counts) == [expected] * 2
