"""`mindspore.hal`, its memory and `mindspore.device_context`; answers on the CPU as real MindSpore 2.10 gives them."""
from __future__ import annotations

import mindspore as ms
import pytest
import torch
from mindspore import Tensor, device_context, hal, ops

OTHER = next((target for target in ("GPU", "Ascend") if not hal.is_available(target)), None)


def on_the_cpu() -> bool:
    return ms.get_context("device_target") == "CPU"


def test_the_cpu_is_there() -> None:
    assert hal.is_available("CPU") and hal.is_initialized("CPU") and hal.device_count("CPU") == 1
    assert hal.get_device_name(0, "CPU") == "CPU" and hal.get_device_properties(0, "CPU") is None
    assert hal.get_device_capability(0, "CPU") is None and hal.get_arch_list("CPU") is None
    assert device_context.cpu.is_available() and device_context.cpu.device_count() == 1


@pytest.mark.skipif(OTHER is None, reason="this machine has every kind of device")
def test_a_device_that_is_absent() -> None:
    module = {"GPU": device_context.gpu, "Ascend": device_context.ascend}[OTHER]
    assert not hal.is_available(OTHER) and not hal.is_initialized(OTHER) and not module.is_available()
    for call in (hal.device_count, hal.get_arch_list, hal.memory_allocated):
        with pytest.raises(ValueError, match="expected a device that this machine has"):
            call(OTHER)
    with pytest.raises(ValueError, match="expected a device that this machine has"):
        module.device_count()


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="expected 'CPU', 'GPU' or 'Ascend'"):
        hal.is_available("TPU")
    with pytest.raises(TypeError, match="a str, got int"):
        hal.device_count(1)
    with pytest.raises(ValueError, match="no negative number"):
        hal.get_device_name(-1, "CPU")
    with pytest.raises(TypeError, match="an int, got str"):
        hal.get_device_name("0", "CPU")


@pytest.mark.gpu
def test_memory_of_a_gpu_is_counted() -> None:
    before = hal.memory_allocated("GPU")
    tensor = Tensor([1.0]) + ops.ones((1024, 1024))
    hal.synchronize()
    assert hal.memory_allocated("GPU") >= before + tensor.nbytes and hal.max_memory_allocated("GPU") >= hal.memory_allocated("GPU")
    assert hal.get_device_properties(0, "GPU").total_memory > 0
    capability = hal.get_device_capability(0, "GPU")
    assert (capability is None or len(capability) == 2) and (capability is not None or not torch.cuda.is_available())
