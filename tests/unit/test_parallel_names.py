"""What programs ask of the parallel context by inner names answers from the one store."""
from __future__ import annotations

import mindspore as ms
import pytest
from mindspore.ops.functional import reduce_prod
from mindspore.parallel._auto_parallel_context import auto_parallel_context
from mindspore.parallel._ps_context import (
    _get_ps_context,
    _is_ps_mode,
    _is_role_pserver,
    _is_role_sched,
    _is_role_worker,
    _reset_ps_context,
    _set_ps_context,
)
from mindspore.parallel._utils import _device_number_check, _get_device_num, _get_global_rank, _get_gradients_mean, _get_parallel_mode
from mindspore.train.model import _StepSync, _transfer_tensor_to_tuple


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


def test_what_copies_of_the_training_loop_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MS_ROLE", raising=False)
    assert not (_is_role_worker() or _is_role_pserver() or _is_role_sched())
    for role, is_role in (("MS_WORKER", _is_role_worker), ("MS_PSERVER", _is_role_pserver), ("MS_SCHED", _is_role_sched)):
        monkeypatch.setenv("MS_ROLE", role)
        assert [entry() for entry in (_is_role_worker, _is_role_pserver, _is_role_sched)].count(True) == 1 and is_role()
    with pytest.raises(ValueError, match=r"device_number=4: expected 1, as parallel_mode is 'stand_alone'"):
        _device_number_check("stand_alone", 4)
    assert _device_number_check("data_parallel", 4) is None
    x = ms.Tensor([1.0, 2.0])
    assert _transfer_tensor_to_tuple(x) == (x,) and _transfer_tensor_to_tuple([x]) == [x]
    _StepSync().step_end(ms.train.RunContext({}))
    assert reduce_prod(x, 0).asnumpy() == 2.0


def test_inner_names_of_the_parameter_server() -> None:
    try:
        _set_ps_context(enable_ps=False)
        assert _get_ps_context("enable_ps") is False and not _is_ps_mode()
    finally:
        _reset_ps_context()
