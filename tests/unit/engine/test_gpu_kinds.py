"""`device_target='GPU'` on AMD's ROCm, Intel's xpu and Apple's mps, by stand-ins whose calls must fit torch's own signatures.

No such GPU has run this. torch's modules for them are there in every build, so that names and arguments can be compared.
"""
from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import pytest
import torch
from mindspore import hal

from torchspore.cli import calibration_worker, doctor
from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.context.public import get_context, scope, set_context
from torchspore.context.store import STORE
from torchspore.distributed.comm import environment, groups
from torchspore.engine.devices import device, device_diagnosis, device_facts, gpu_kinds, machine, streams
from torchspore.engine.execution import device_selection
from torchspore.engine.memory import limit
from torchspore.engine.random import generators
from torchspore.engine.torch_internals import torch_private
from torchspore.errors import DeviceNotFound

GIB = 1 << 30
FIGURES = {
    "xpu": {"device_count": 2, "is_available": True, "is_initialized": True, "current_device": 0, "get_device_name": "Intel Arc",
            "max_memory_allocated": 7, "memory_allocated": 3 * GIB, "get_arch_list": ["dg2"],
            "memory_stats": {"allocated_bytes.all.current": 5, "allocated_bytes.all.peak": 7, "reserved_bytes.all.current": 8,
                             "reserved_bytes.all.peak": 9}},
    "mps": {"device_count": 1, "current_allocated_memory": 3 * GIB, "driver_allocated_memory": 4 * GIB, "recommended_max_memory": 8 * GIB},
}
"""What the stand-ins answer."""


class Module:
    """A stand-in for `torch.xpu` or `torch.mps`: it has their names alone, and each call must fit their signature."""

    def __init__(self, kind: str) -> None:
        self._kind, self._module, self.calls = kind, getattr(torch, kind), []

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._module, name)              # AttributeError for what torch does not have
        if not callable(attribute) or inspect.isclass(attribute):
            return attribute

        def call(*arguments: Any, **keywords: Any) -> Any:
            inspect.signature(attribute).bind(*arguments, **keywords)
            self.calls.append((name, *arguments, *keywords.values()))
            if name == "get_device_properties":
                return type("Properties", (), {"total_memory": 8 * GIB, "name": "Intel Arc"})()
            if name == "_lazy_call":
                return arguments[0]()
            return FIGURES[self._kind].get(name)

        return call


@pytest.fixture(params=["xpu", "mps"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A build of torch for that GPU, on a machine that has it."""
    use(monkeypatch, request.param)
    with effects.fresh(), device.on(standing(request.param)):
        yield request.param
        STORE.reset("context")
        STORE.learn_default("device_target", "CPU")
        device_selection.await_use(False)


def use(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: torch.device(kind))
    monkeypatch.setattr(torch, kind, Module(kind))
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)


def standing(kind: str) -> device.Machine:
    """torchspore's own answers, but for the array that a device is woken by."""
    return device.Machine(resolve=lambda target: torch.device(device.type_of(target), 0) if target != "CPU" else torch.device("cpu"))


def outcome(name: str) -> str:
    return str(effects.outcome_of(OPTIONS[name], get_context(name)))


def test_the_device_is_detected_and_named(kind: str) -> None:
    assert device.count("GPU") == FIGURES[kind]["device_count"]
    set_context(device_target="GPU")
    assert outcome("device_target") == f"applied: operators run on {kind}"
    assert device.current().type == kind and device.has_queue()
    assert device.name() == {"xpu": "Intel Arc", "mps": "Apple GPU (mps)"}[kind]
    assert hal.get_device_name(0, "GPU") == device.name()
    assert hal.get_device_capability(0, "GPU") is None
    assert "GPU" in device.describe_devices()
    set_context(device_id=5)
    with pytest.raises(DeviceNotFound, match=f"device_id=5: this machine has {device.count('GPU')} of GPU"):
        device._index("GPU")


def test_the_variable_that_hides_gpus_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZE_AFFINITY_MASK", "0")
    set_context(device_target="GPU", device_id=7)
    with pytest.raises(DeviceNotFound) as caught:
        device._index("GPU")
    assert ("ZE_AFFINITY_MASK=0 lets it see" in str(caught.value)) is (kind == "xpu")


def test_memory_is_read_from_the_device(kind: str) -> None:
    set_context(device_target="GPU")
    figures = {"xpu": (5, 8, 7, 9), "mps": (3 * GIB, 4 * GIB, 3 * GIB, 4 * GIB)}[kind]
    names = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
    if kind == "xpu":
        result = device_facts.memory("GPU")
    else:
        with pytest.warns(UserWarning, match="torch does not count the peak of memory on Apple's mps: the figures of max_memory_"):
            result = device_facts.memory("GPU")
    assert tuple(result[name] for name in names) == figures
    device_facts.reset_peaks("GPU")
    device_facts.empty_cache("GPU")
    assert machine.device_peaks() == ({"GPU 0": 7, "GPU 1": 7} if kind == "xpu" else {})


def test_the_limit_of_memory_acts(kind: str) -> None:
    set_context(device_target="GPU", max_device_memory="2GB")
    assert outcome("max_device_memory").startswith("applied: torch allocates at most 2.0 GiB")
    calls = [call for call in getattr(torch, kind).calls if call[0] == "set_per_process_memory_fraction"]
    assert calls[-1][:2] == ("set_per_process_memory_fraction", 0.25)
    cause = torch.OutOfMemoryError("XPU out of memory. Tried to allocate 4.00 GiB") if kind == "xpu" else RuntimeError(
        "MPS backend out of memory (MPS allocated: 1.5 GB, max allowed: 2 GB). Tried to allocate 4.00 GB on shared pool.")
    text = limit.sentence(cause)
    assert text is not None and text.startswith("out of memory: 4.00 G") and "3.0 GiB of the 2.0 GiB" in text


SWITCHES = {
    "conv_allow_tf32": ({"gpu_config": {"conv_allow_tf32": True}}, "TF32 is a format of NVIDIA's matrix units"),
    "matmul_allow_tf32": ({"gpu_config": {"matmul_allow_tf32": True}}, "TF32 is a format of NVIDIA's matrix units"),
    "conv_fprop_algo": ({"gpu_config": {"conv_fprop_algo": "performance"}}, "the algorithms are cuDNN's"),
    "conv_dgrad_algo": ({"gpu_config": {"conv_dgrad_algo": "algo_1"}}, "the algorithms are cuDNN's"),
    "mempool_block_size": ({"mempool_block_size": "2GB"}, "only the allocators of CUDA and ROCm have a step"),
}


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_that_only_cuda_has_says_so(kind: str, switch: str) -> None:
    settings, reason = SWITCHES[switch]
    set_context(device_target="GPU", **settings)
    option = next(option for name, option in OPTIONS.items() if name.rpartition(".")[2] == switch)
    text = str(effects.outcome_of(option, STORE.get(option.name)))
    assert text == f"no effect here: {reason}, and the GPU is {gpu_kinds.NAMES[kind]}"


def test_streams_and_events(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[object] = []
    monkeypatch.setattr(torch.accelerator, "synchronize", waits.append)
    set_context(device_target="GPU")
    if kind == "xpu":
        first, second = (type("Stream", (), {"stream_id": number, "wait_stream": lambda self, other: None})() for number in (0, 3))
        now = [first]
        fake = type("Xpu", (), {
            "Stream": staticmethod(lambda device, priority: second), "current_stream": staticmethod(lambda device: now[-1]),
            "set_stream": staticmethod(now.append), "Event": staticmethod(lambda enable_timing=False: "event"),
        })
        for name, words in (("current_stream", (1,)), ("set_stream", (1,))):
            inspect.signature(getattr(torch.xpu._module, name)).bind(*words)
        monkeypatch.setattr(streams, "_first", {})
        with device.on(device.Machine(lambda target: 1, lambda target: torch.device("xpu", 0), backend=lambda target: fake)):
            other = streams.new_stream(0)
            streams.choose(other)
            assert streams.current() is second and streams.default() is first
            assert streams.new_event(True, True) == "event" and streams.number(other) == 3
            streams.choose(first)
            assert streams.current() is first
        return
    stream = hal.Stream()
    with hal.StreamCtx(stream):
        assert hal.current_stream() == hal.default_stream()
    stream.wait_stream(hal.default_stream())
    stream.synchronize()
    assert stream.query() and waits == [torch.device("mps", 0)] * 2 and stream.id == 0
    assert effects.notes()["streams"] == ["Apple's mps has one stream: work on several runs one after the other"]


def test_an_event_of_mps_is_used_without_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "mps")
    calls: list[str] = []
    event_class = torch.mps._module.event.Event

    class Event:
        def __init__(self, enable_timing: bool = False) -> None:
            calls.append(f"Event({enable_timing})")

        def __getattr__(self, name: str) -> Any:
            def call(*arguments: Any) -> float:
                inspect.signature(getattr(event_class, name)).bind(self, *arguments)
                calls.append(name)
                return 2.5

            return call

    monkeypatch.setattr(torch.mps._module.event, "Event", Event)
    with effects.fresh(), device.on(standing("mps")), scope(device_target="GPU"):
        first, second = hal.Event(enable_timing=True), hal.Event(enable_timing=True)
        first.record()
        second.record(hal.current_stream())
        second.wait()
        assert first.elapsed_time(second) == 2.5
    assert calls == ["Event(True)", "Event(True)", "record", "record", "wait", "synchronize", "elapsed_time"]


def test_offload_means_nothing_where_the_memory_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "mps")
    with effects.fresh(), device.on(standing("mps")), scope(device_target="GPU", memory_offload="ON"):
        assert outcome("memory_offload") == (
            "no effect here: Apple's GPU computes in the host's memory, so that moving values there frees nothing")


def test_several_processes_are_refused_on_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "mps")
    monkeypatch.setattr(groups._PROCESS, "state", None)           # another test may have created the group of this process
    process_info = environment.ProcessInfo(0, 2, 0, 2)
    with effects.fresh(), device.on(standing("mps")), scope(device_target="GPU"), pytest.raises(RuntimeError) as caught:
        groups.start(process_info=process_info)
    assert str(caught.value) == (
        "init(): torch has no communication library for Apple's mps, the GPU of this machine.\n\n"
        "hint: TORCHSPORE_DEVICE=CPU lets several processes run on the CPU.")


@pytest.mark.parametrize(("type_name", "backend"), [
    ("cuda", "cpu:gloo,cuda:nccl"), ("xpu", "cpu:gloo,xpu:xccl"), ("cpu", "gloo"),
])
def test_the_library_of_several_processes(monkeypatch: pytest.MonkeyPatch, type_name: str, backend: str) -> None:
    monkeypatch.setattr(device, "current", lambda: torch.device(type_name, 0))
    assert groups._backend() == backend


def test_calibration_measures_the_gpus_where_each_process_has_one(kind: str) -> None:
    library = {"xpu": "xccl", "mps": ""}[kind]
    count = FIGURES[kind]["device_count"]
    assert calibration_worker.library_of_gpus(count) == library and calibration_worker.library_of_gpus(count + 1) == ""


def test_rocm_has_the_names_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "7.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert (gpu_kinds.kind(), gpu_kinds.device_type(), gpu_kinds.module()) == ("rocm", "cuda", torch.cuda)
    with effects.fresh(), device.on(device.Machine(resolve=lambda target: torch.device("cpu"))):
        set_context(device_target="GPU", gpu_config={"matmul_allow_tf32": True})
        option = next(option for name, option in OPTIONS.items() if name.rpartition(".")[2] == "matmul_allow_tf32")
        assert str(effects.outcome_of(option, True)) == (
            "no effect here: TF32 is a format of NVIDIA's matrix units, and the GPU is AMD's ROCm")
        STORE.reset("context")
        STORE.learn_default("device_target", "CPU")
        device_selection.await_use(False)


def test_the_generator_of_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "mps")
    generator = torch.Generator()
    assert torch.mps._module._get_default_mps_generator is not None        # torch's private name is still there
    monkeypatch.setattr(torch, "mps", type("Module", (), {"_get_default_mps_generator": staticmethod(lambda: generator)}))
    assert generators._global(torch.device("mps", 0)) is generator
    assert generators._numbered(torch.device("mps")) == torch.device("mps", 0)


def test_what_waits_for_the_first_use_acts_at_once_on_mps() -> None:
    acted: list[int] = []
    torch_private.when_initialized(gpu_kinds.mps, lambda: acted.append(1))
    assert acted == [1]


def test_a_gpu_of_another_build_of_torch_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(torch.version, "cuda", None)
    assert device_diagnosis.broken("GPU") is None
    kinds = (("xpu-smi", "Intel's xpu", "whl/xpu"), ("rocm-smi", "AMD's ROCm", "whl/rocm"), ("nvidia-smi", "NVIDIA's CUDA", ""))
    for tool, name, index in kinds:
        (tmp_path / tool).touch(0o755)
        result = device_diagnosis.broken("GPU")
        assert result is not None and result.why == f"{tool} is here, but torch was built without {name}" and index in result.command
    use(monkeypatch, "mps")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for tool in ("xpu-smi", "rocm-smi", "nvidia-smi"):
        (tmp_path / tool).unlink()
    result = device_diagnosis.broken("GPU")
    assert result is not None and result.why == "torch was built with mps, and this macOS or this Mac does not offer it"


def test_doctor_reports_the_gpu(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchspore.mindspore import installation

    monkeypatch.setattr(installation, "JOBS", {"adding": lambda: None})
    lines = [(finding.mark, finding.description) for finding in doctor._device("GPU")]
    assert lines == [(doctor.RIGHT, {"xpu": "Intel Arc (Intel's xpu): adding", "mps": "Apple GPU (mps) (Apple's mps): adding"}[kind])]


def test_a_tensor_of_another_gpu_is_on_the_gpu(kind: str) -> None:
    class There:
        device = torch.device(kind, 0)

    tensor = ms.Tensor([1.0])
    assert type(tensor).device.fget(type("Holder", (), {"_t": There()})()).startswith("GPU")
