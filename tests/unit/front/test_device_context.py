"""`mindspore.device_context`: each function sets an option of the context; errors are of the kinds that MindSpore 2.10 raises."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import pytest
from mindspore import device_context, get_context
from mindspore.device_context import ascend, cpu, gpu
from mindspore.device_context.gpu import op_precision, op_tuning

from torchspore.context import effects


@pytest.fixture(autouse=True)
def restored_context() -> Iterator[None]:
    from torchspore.context.public import scope

    with scope(runtime_num_threads=1):
        yield


def test_the_gpu_s_switches_are_members_of_gpu_config() -> None:
    op_precision.conv_allow_tf32(False)
    gpu.matmul_allow_tf32(True)
    op_tuning.conv_fprop_algo("winograd")
    gpu.conv_dgrad_algo("algo_1")
    device_context.gpu.op_tuning.conv_wgrad_algo("fft_tiling")
    assert get_context("gpu_config") == {
        "conv_allow_tf32": False, "matmul_allow_tf32": True, "conv_fprop_algo": "winograd", "conv_dgrad_algo": "algo_1",
        "conv_wgrad_algo": "fft_tiling",
    }
    assert gpu.device.is_available() == gpu.is_available() and cpu.device.device_count() == cpu.device_count() == 1


def test_ascend_s_switches_are_options() -> None:
    ascend.op_precision.precision_mode("force_fp32")
    device_context.ascend.op_tuning.op_compile(False)
    ascend.matmul_allow_hf32(True)
    ascend.aoe_job_type("1")
    ascend.op_debug.execute_timeout(77)
    ascend.aclinit_config({"dump": {"dump_scene": "lite_exception:disable"}})
    names = ("precision_mode", "jit_compile", "matmul_allow_hf32", "exception_dump", "op_timeout", "aoe_config")
    assert [get_context(name) for name in names] == ["force_fp32", "0", "1", "0", 77, {"job_type": "1"}]
    ascend.aclnn_cache(True, 5)
    ascend.aclinit_config({"err_msg_mode": "0"})
    text = " ".join(effects.notes()["kernels"])
    assert "aclnn_cache(True, 5)" in text and "err_msg_mode" in text


def test_threads() -> None:
    cpu.threads_num(2)
    cpu.op_tuning.threads_num(1)
    assert get_context("runtime_num_threads") == 1


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: gpu.conv_allow_tf32(1), TypeError, r"conv_allow_tf32\(1\): expected True or False, got int"),
    (lambda: gpu.matmul_allow_tf32("yes"), TypeError, r"matmul_allow_tf32\('yes'\)"),
    (lambda: gpu.conv_fprop_algo("winogard"), ValueError, "conv_fprop_algo='winogard'.*(?s:.)*'winograd'"),
    (lambda: gpu.conv_dgrad_algo("gemm"), ValueError, "conv_dgrad_algo='gemm': expected"),
    (lambda: gpu.conv_wgrad_algo("winograd"), ValueError, "'winograd_nonfused'"),
    (lambda: gpu.conv_wgrad_algo(3), TypeError, r"conv_wgrad_algo\(3\): expected a str, got int"),
    (lambda: ascend.precision_mode("fast"), ValueError, "'precision_mode': 'fast'"),
    (lambda: ascend.op_precision_mode(3), TypeError, r"op_precision_mode\(3\): expected a str"),
    (lambda: ascend.op_compile(2), TypeError, r"op_compile\(2\)"),
    (lambda: ascend.debug_option(1), TypeError, r"debug_option\(1\)"),
    (lambda: ascend.debug_option("all"), ValueError, "'all'"),
    (lambda: ascend.aclnn_cache(False, -1), ValueError, "cache_queue_length=-1"),
    (lambda: ascend.aclnn_cache(7), ValueError, "enable_global_cache=7"),
    (lambda: ascend.aclinit_config({"dump": "all"}), ValueError, "dump_scene"),
    (lambda: ascend.aclinit_config({"err_msg_mode": 0}), ValueError, "'0' or '1'"),
    (lambda: ascend.aclinit_config({"max_opqueue_num": 3}), TypeError, "expected a str"),
    (lambda: ascend.aclinit_config({"queue": 3}), ValueError, "'max_opqueue_num'"),
    (lambda: cpu.threads_num(0), ValueError, r"threads_num\(0\): expected an int from 1 on"),
    (lambda: cpu.threads_num(True), TypeError, "expected an int, got bool"),
    (lambda: ms.set_context(gpu_config={"conv_fprop_algo": "algo_0"}), ValueError, "conv_fprop_algo"),
    (lambda: ms.set_context(gpu_config={"conv_fprop": "gemm"}), ValueError, "did you mean 'conv_fprop_algo'"),
    (lambda: ms.set_context(gpu_config=[]), TypeError, "gpu_config"),
])
def test_what_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_the_documented_name_of_an_algorithm_is_its_other_name() -> None:
    ms.set_context(gpu_config={"conv_fprop_algo": "implicit_precomp_gemm"})
    assert get_context("conv_fprop_algo") == "precomp_gemm"


def test_the_device_in_force_has_names() -> None:
    result = ms.get_current_device()
    assert (result.device_target, result.device_id) == result == tuple(result)
