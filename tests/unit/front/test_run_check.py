"""What `run_check` and the model zoo's questions about parallel execution answer."""
from __future__ import annotations

import mindspore as ms
import pytest
from mindspore.parallel import _utils
from support import wrong_kernels


def test_run_check_says_that_products_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    ms.run_check()
    assert capsys.readouterr().out == (
        "MindSpore version:  2.10.0\n"
        "The result of multiplication calculation is correct, MindSpore has been installed on platform [CPU] successfully!\n"
    )


def test_run_check_tells_of_a_wrong_product(capsys: pytest.CaptureFixture[str]) -> None:
    with wrong_kernels.Wrong("mm"):
        ms.run_check()
    assert "MindSpore running check failed.\na product is [[" in capsys.readouterr().out


@pytest.mark.parametrize(("options", "answers"), [
    ({}, [1, False, False, False, 1, False, False, False, False]),
    ({"parallel_mode": "semi_auto_parallel", "pipeline_stages": 2, "device_num": 8}, [2, False, False, False, 4, True, False, False, True]),
    ({"parallel_mode": "semi_auto_parallel", "enable_parallel_optimizer": True}, [1, True, False, False, 1, True, False, False, True]),
    ({"parallel_mode": "auto_parallel", "full_batch": True}, [1, False, True, False, 1, True, False, False, False]),
    ({"parallel_mode": "data_parallel", "parameter_broadcast": True}, [1, False, False, True, 1, False, True, False, False]),
    ({"parallel_mode": "hybrid_parallel"}, [1, False, False, False, 1, False, False, True, False]),
])
def test_parallel_options_are_answered(options: dict[str, object], answers: list[object]) -> None:
    names = (
        "_get_pipeline_stages", "_get_enable_parallel_optimizer", "_get_full_batch", "_get_parameter_broadcast", "_get_stage_device_num",
        "_is_in_auto_parallel_mode", "_is_in_data_parallel_mode", "_is_in_hybrid_parallel_mode", "_need_to_full",
    )
    ms.reset_auto_parallel_context()
    ms.set_auto_parallel_context(**options)
    try:
        assert [getattr(_utils, name)() for name in names] == answers
    finally:
        ms.reset_auto_parallel_context()
