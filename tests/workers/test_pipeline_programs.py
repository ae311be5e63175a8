"""Programs as people write them, as pipelines by real processes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def _cases(names: list[str], stages: int, is_cut: bool, more: dict[str, Any]) -> list[list[float]]:
    import mindspore as ms
    import pipeline_programs

    if is_cut:
        from mindspore.communication import init

        init()
    found = []
    for name in names:
        found.append(pipeline_programs.run(name, stages, is_cut, **more))
        ms.reset_auto_parallel_context()
    return found


@pytest.mark.parametrize(("count", "stages", "names", "more"), [
    (2, 2, ["fitted", "functional"], {}),
    pytest.param(2, 2, ["pangu", "resnet", "amp_o2", "averaged"], {}, marks=pytest.mark.slow),
    pytest.param(4, 4, ["odd", "gap", "fitted"], {}, marks=pytest.mark.slow),
    pytest.param(3, 3, ["odd", "fitted"], {"parallel_mode": "auto_parallel"}, marks=pytest.mark.slow),
])
def test_processes_give_what_one_gives(count: int, stages: int, names: list[str], more: dict[str, Any], workers: Any) -> None:
    (alone,) = workers(1, _cases, names, stages, False, {}, seconds=300)
    for found in workers(count, _cases, names, stages, True, more, seconds=300):
        for name, own, one in zip(names, found, alone):
            np.testing.assert_allclose(own, one, rtol=3e-6, err_msg=name)
