"""`mindspore.device_context`: each function sets an option of the context; errors are of the kinds that MindSpore 2.10 raises."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import pytest
from mindspore import device_context, get_context
from mindspore.device_context import cpu, gpu
from mindspore.device_context.gpu import op_precision, op_tuning


@pytest.fixture(autouse=True)
def own_context() -> Iterator[None]:
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
    found = ms.get_current_device()
    assert (found.device_target, found.device_id) == found == tuple(found)
