"""Programs as people write them, as pipelines by real processes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def _cases(names: list[str], stages: int, is_cut: bool, more: dict[str, Any]) -> list[list[float]]:
    import mindspore as ms
    from support import pipeline_programs

    if is_cut:
        from mindspore.communication import init

        init()
    results = []
    for name in names:
        results.append(pipeline_programs.run(name, stages, is_cut, **more))
        ms.reset_auto_parallel_context()
    return results


@pytest.mark.parametrize(("count", "stages", "names", "more"), [
    (2, 2, ["fitted"], {}),
    pytest.param(2, 2, ["functional", "pangu", "resnet", "amp_o2", "averaged"], {}, marks=pytest.mark.slow),
    pytest.param(4, 4, ["odd", "gap", "fitted"], {}, marks=pytest.mark.slow),
    pytest.param(3, 3, ["odd", "fitted"], {"parallel_mode": "auto_parallel"}, marks=pytest.mark.slow),
])
def test_processes_give_what_one_gives(count: int, stages: int, names: list[str], more: dict[str, Any], workers: Any) -> None:
    (alone,) = workers(1, _cases, names, stages, False, {}, seconds=300)
    for result in workers(count, _cases, names, stages, True, more, seconds=300):
        for name, losses, expected in zip(names, result, alone):
            np.testing.assert_allclose(losses, expected, rtol=3e-6, err_msg=name)


def _chosen() -> tuple[int, list[float]]:
    import mindspore as ms
    from mindspore.communication import init
    from support import pipeline_programs

    from torchspore.context import effects

    init()
    result = pipeline_programs.run("fitted", 2, True, parallel_mode="auto_parallel", auto_pipeline=True)
    messages = [line for line in effects.notes()["distribution"] if line.startswith("auto_pipeline: ")]
    ms.reset_auto_parallel_context()
    return int(messages[0].split()[1]), result


def test_processes_choose_one_number_of_stages(workers: Any) -> None:
    """The graph of `eval` finds Parameters that lie as the step has left them."""
    (alone,) = workers(1, _cases, ["fitted"], 2, False, {}, seconds=120)
    (stages, result), (other, second_result) = workers(2, _chosen, seconds=120)
    assert stages == other
    for value in (result, second_result):
        np.testing.assert_allclose(value, alone[0], rtol=3e-6)
