"""What programs ask of the parallel context by inner names answers from the one store."""
from __future__ import annotations

import mindspore as ms
from mindspore.parallel._auto_parallel_context import auto_parallel_context
from mindspore.parallel._utils import _get_device_num, _get_global_rank, _get_gradients_mean, _get_parallel_mode


def test_inner_names_follow_the_setters() -> None:
    try:
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, device_num=4, global_rank=2)
        assert (_get_parallel_mode(), _get_gradients_mean(), _get_device_num(), _get_global_rank()) == ("data_parallel", True, 4, 2)
        assert auto_parallel_context().get_parallel_mode() == "data_parallel"
        auto_parallel_context().set_gradients_mean(False)
        assert ms.get_auto_parallel_context("gradients_mean") is False
    finally:
        ms.reset_auto_parallel_context()
    assert (_get_parallel_mode(), _get_device_num()) == ("stand_alone", 1)
