"""Devices that a machine has, played by a stand-in for the count: nothing here runs an operator on one."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import mindspore
import pytest
import torch

from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.context.public import get_context, scope, set_context
from torchspore.context.store import STORE
from torchspore.engine.devices import device
from torchspore.engine.execution import device_selection, pynative
from torchspore.errors import DeviceNotFound

COUNT = {"CPU": 1, "GPU": 2, "Ascend": 0}
TORCH_DEVICES = {"CPU": "cpu", "GPU": "cuda"}


@pytest.fixture(autouse=True)
def two_gpus(fresh: None) -> Iterator[None]:
    def torch_device(target: str) -> torch.device:
        return torch.device("cpu") if target == "CPU" else torch.device(TORCH_DEVICES[target], device._index(target))

    with device.on(device.Machine(count=COUNT.__getitem__, resolve=torch_device)):
        yield
        STORE.reset("context")
        STORE.learn_default("device_target", "CPU")
        device_selection.await_use(False)


def test_the_device_and_its_index() -> None:
    set_context(device_id=1, device_target="GPU")
    assert (device.current(), device.has_queue()) == (torch.device("cuda", 1), True)
    assert str(effects.outcome_of(OPTIONS["device_target"], "GPU")) == "applied: operators run on cuda"
    assert str(effects.outcome_of(OPTIONS["device_id"], 1)) == "applied: operators run on cuda:1"
    with scope(device_target="CPU"):
        assert device.current() == torch.device("cpu")
    assert device.current() == torch.device("cuda", 1)


def test_an_index_that_is_not_there_is_reported_when_it_is_used() -> None:
    set_context(device_target="GPU", device_id=5)
    with pytest.raises(DeviceNotFound) as caught:
        device.current()
    line, _, text = str(caught.value).partition(": ")
    assert Path(line.rpartition(":")[0]).name == "test_device.py"
    assert text == "device_id=5: this machine has 2 of GPU.\n\nhint: write device_id=0."


def test_the_accelerator_that_is_there_is_the_default() -> None:
    device_selection.set_default_target()
    assert get_context("device_target") == "GPU"
    set_context(device_target="CPU")
    assert (get_context("device_target"), device.current()) == ("CPU", torch.device("cpu"))


def test_what_was_set_before_acts_on_the_new_device() -> None:
    set_context(pynative_synchronize=True, device_id=1)
    assert not pynative.wait_for_each
    set_context(device_target="GPU")
    assert pynative.wait_for_each
    assert str(effects.outcome_of(OPTIONS["device_id"], 1)) == "applied: operators run on cuda:1"
    set_context(device_target="CPU")
    assert not pynative.wait_for_each
    assert str(effects.outcome_of(OPTIONS["device_id"], 1)) == "no effect here: the CPU has no index"


def test_memory_level_follows_the_device() -> None:
    assert get_context("memory_optimize_level") == 0
    with device.on(device.Machine(count=lambda target: 1)):
        set_context(device_target="Ascend")
        assert get_context("memory_optimize_level") == 1
        with scope(device_target="CPU"):
            assert get_context("memory_optimize_level") == 0
        set_context(device_target="CPU", memory_optimize_level="O1")
    assert get_context("memory_optimize_level") == 1


def test_an_index_beyond_what_the_environment_lets_it_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    set_context(device_target="GPU", device_id=2)
    with pytest.raises(DeviceNotFound) as caught:
        device.current()
    assert str(caught.value).partition(": ")[2] == (
        "device_id=2: this machine has 2 of GPU that CUDA_VISIBLE_DEVICES=4,7 lets it see.\n\n"
        "hint: write device_id=0, or unset CUDA_VISIBLE_DEVICES."
    )


def test_a_device_that_takes_no_array_is_reported_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version\nwhat CUDA says further")

    set_context(device_target="GPU")
    monkeypatch.setattr(torch, "empty", empty)
    with device.on(device.Machine(count=COUNT.__getitem__)), pytest.raises(DeviceNotFound) as caught:
        device.current()
    monkeypatch.undo()
    text = str(caught.value)
    assert "device_target='GPU', device_id=0: the device exists, and cannot allocate memory: CUDA driver version is insufficient" in text
    assert "\nfound: " in text and "\n\nhint: nvidia-smi shows details; torchspore run --device CPU " in text


def test_where_a_tensor_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    set_context(device_target="GPU", device_id=1)
    assert device.resolve_device("to", "CPU") == torch.device("cpu")
    assert {device.resolve_device("to", name) for name in ("GPU", "gpu", "GPU:1")} == {torch.device("cuda", 1)}
    with pytest.raises(ValueError, match=r"to\('GPU:0'\): expected the process's own device, GPU:1"):
        device.resolve_device("to", "GPU:0")
    with pytest.raises(DeviceNotFound, match=r"to\('Ascend'\): an Ascend device is requested, and this machine has none"):
        device.resolve_device("to", "Ascend")
    for wrong in ("moon", "GPU:x", "", "CPU:-1"):
        with pytest.raises(ValueError, match="expected 'CPU', 'GPU' or 'Ascend'"):
            device.resolve_device("to", wrong)
    with pytest.raises(ValueError, match=r"to\('CPU:99'\): expected 'CPU': the host has no other"):
        device.resolve_device("to", "CPU:99")
    set_context(device_target="CPU")
    with pytest.raises(DeviceNotFound, match=r"operators run on CPU\.\n\nhint: write mindspore.set_device\('GPU'\)"):
        device.resolve_device("to", "GPU")


def test_where_tensors_are_created() -> None:
    assert [device.is_home(name) for name in ("CPU", "CPU:0", "GPU", "Ascend", "cpu", "")] == [True, True, False, False, False, False]
    set_context(device_target="GPU", device_id=1)
    assert [device.is_home(name) for name in ("CPU", "GPU", "GPU:1", "GPU:0")] == [False, True, True, False]
    with pytest.raises(ValueError, match=r"Tensor\(device='CPU'\): expected 'GPU' or None\."):
        mindspore.Tensor([1.0], device="CPU")


def test_why_a_device_can_t_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torchspore.engine.devices import device_diagnosis

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(torch.version, "cuda", None)
    assert device_diagnosis.broken("GPU") is None and device_diagnosis.broken("Ascend") is None and device_diagnosis.broken("CPU") is None
    for tool in ("nvidia-smi", "npu-smi"):
        (tmp_path / tool).touch(0o755)
    result = device_diagnosis.broken("GPU")
    assert result is not None and result.why == "nvidia-smi is here, but torch was built without NVIDIA's CUDA"
    assert result.command.endswith("-m pip install --force-reinstall torch")
    result = device_diagnosis.broken("Ascend")
    assert result is not None and result.why == "CANN is installed, torch_npu is not" and "pip install torch_npu==2." in result.command
    (tmp_path / "torch_npu.py").write_text("import te")
    monkeypatch.syspath_prepend(str(tmp_path))
    device_diagnosis.npu_error.cache_clear()
    result = device_diagnosis.broken("Ascend")
    assert result is not None and "can't be imported: ModuleNotFoundError: No module named 'te'" in result.why
    assert result.command == "source /usr/local/Ascend/ascend-toolkit/set_env.sh"
    device_diagnosis.npu_error.cache_clear()
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    error_text = ["Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized\nmore"]

    def init() -> None:
        raise RuntimeError(error_text[0])

    monkeypatch.setattr(torch.cuda, "init", init)
    result = device_diagnosis.broken("GPU")
    assert result is not None and result.why.endswith("Error 802: system not yet initialized") and result.command == "nvidia-smi"
    error_text[0] = "Found no NVIDIA driver on your system. Please check"
    assert device_diagnosis.broken("GPU") is None
    error_text[0] = "CUDA unknown error"
    with device.on(device.Machine(count=lambda target: 0)), pytest.raises(DeviceNotFound) as caught:
        set_context(device_target="GPU")
    text = str(caught.value)
    assert "device_target='GPU': a GPU is requested, and can't be used: torch " in text
    assert "\nhint: nvidia-smi\n   or: torchspore run" in text
