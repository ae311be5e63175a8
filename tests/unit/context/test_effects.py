"""What options do, seen from outside."""
from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest
import torch
from support.processes import Run

from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.context.public import get_context, scope, set_context, set_device
from torchspore.context.store import STORE
from torchspore.engine.devices import device
from torchspore.engine.execution import pynative
from torchspore.errors import OptionValueError

Program = Callable[..., Run]

SCATTER = """
import hashlib, torch
from torchspore.context.public import set_context
import torchspore.engine
set_context(deterministic={value!r}, runtime_num_threads=2)
torch.manual_seed(0)
index, source = torch.randint(0, 50, (200_000,)), torch.randn(200_000)
total = torch.zeros(50).index_put_((index,), source, accumulate=True).scatter_add_(0, index, source)
print(hashlib.sha256(total.numpy().tobytes()).hexdigest(), torch.are_deterministic_algorithms_enabled())
"""


def test_every_effect_and_reader_is_there() -> None:
    for option in OPTIONS.values():
        if option.effect is not None:
            assert callable(effects.resolve(option.effect)), option.key
        if option.read_by is not None:
            assert (effects.__file__ and __import__(f"torchspore.{option.read_by}", fromlist=["_"])), option.key


def test_runtime_num_threads_caps_torch() -> None:
    cores = os.cpu_count() or 1
    before = torch.get_num_threads()
    set_context(runtime_num_threads=1)
    assert torch.get_num_threads() == 1
    set_context(runtime_num_threads=cores + 5)
    assert torch.get_num_threads() == cores
    set_context(runtime_num_threads=0)
    assert torch.get_num_threads() == before


def test_a_wrong_option_leaves_the_effect_undone() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="bogus"):
        set_context(runtime_num_threads=1, bogus=1)
    assert torch.get_num_threads() == before
    with pytest.raises(RuntimeError):
        set_context(runtime_num_threads=1, device_target="Ascend")
    assert (torch.get_num_threads(), get_context("device_target")) == (before, "CPU")


def test_a_scope_undoes_its_effects() -> None:
    before = torch.get_num_threads()
    with scope(runtime_num_threads=1, deterministic="ON"):
        assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == (1, True)
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == (before, False)


def test_deterministic_switches_torch_and_exports_variables() -> None:
    set_context(deterministic="ON")
    assert torch.are_deterministic_algorithms_enabled() and torch.is_deterministic_algorithms_warn_only_enabled()
    assert torch.backends.cudnn.deterministic and not torch.utils.deterministic.fill_uninitialized_memory
    assert (os.environ["HCCL_DETERMINISTIC"], os.environ["TE_PARALLEL_COMPILER"]) == ("true", "1")
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"]
    set_context(deterministic="OFF")
    assert not torch.are_deterministic_algorithms_enabled() and torch.utils.deterministic.fill_uninitialized_memory
    assert not {"HCCL_DETERMINISTIC", "TE_PARALLEL_COMPILER", "CUBLAS_WORKSPACE_CONFIG"} & set(os.environ)


def test_a_strict_variable_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_DETERMINISTIC", "strict")
    set_context(deterministic="ON")
    set_context(deterministic="OFF")
    assert os.environ["HCCL_DETERMINISTIC"] == "strict"


def test_deterministic_gives_equal_bits(program: Program) -> None:
    seen = {program(SCATTER.format(value="ON")).out for _ in range(3)}
    assert len(seen) == 1
    assert seen.pop().endswith(" True\n")


def test_the_cpu_is_never_waited_for() -> None:
    set_context(pynative_synchronize=True)
    assert not pynative.wait_for_each
    outcome = effects.outcome_of(OPTIONS["pynative_synchronize"], True)
    assert str(outcome) == "no effect here: operators on the CPU run in the caller's thread"


def test_an_accelerator_is_waited_for() -> None:
    with device.on(device.Machine(has_queue=lambda target: True)):
        assert str(pynative.synchronize(True)) == "applied: each operator is waited for"
        assert pynative.wait_for_each
        assert str(pynative.synchronize(False)) == "applied: operators run ahead of Python"
    assert not pynative.wait_for_each


def test_the_device_is_the_cpu_here() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert (device.current(), device.has_queue(), device.name()) == (torch.device("cpu"), False, f"CPU ({os.cpu_count()} cores)")
    seen: list[torch.device] = []
    thread = threading.Thread(target=lambda: seen.append(device.current()))
    thread.start()
    thread.join()
    assert seen == [torch.device("cpu")]


def test_an_absent_device_is_refused_with_the_way_out(program: Program) -> None:
    ran = program("import mindspore as ms\nms.set_context(mode=0, device_target='Ascend')\n")
    result = f"found: {os.cpu_count()} CPU cores (torch {torch.__version__}, torch_npu is not installed)."
    assert ran.code == 1
    assert ran.err.endswith(
        "train.py:2: device_target='Ascend': an Ascend device is requested, and this machine has none.\n"
        f"{result}\n\n"
        "hint: torchspore run --device CPU train.py, or set TORCHSPORE_DEVICE=CPU; the program stays as it is.\n"
    )


def test_an_absent_device_that_is_forced(program: Program) -> None:
    ran = program("import mindspore as ms\n", TORCHSPORE_DEVICE="Ascend")
    assert ran.code != 0
    assert "TORCHSPORE_DEVICE=Ascend: an Ascend device is requested, and this machine has none.\n" in ran.err
    assert ran.err.endswith("\n\nhint: unset TORCHSPORE_DEVICE, or set it to CPU.\n")


def test_a_forced_device_runs_the_program_untouched(program: Program) -> None:
    text = "import mindspore as ms\nms.set_context(device_target='Ascend', device_id=3)\nms.set_context(device_target='Ascend')\n"
    ran = program(text + "print(ms.get_context('device_target'), (ms.Tensor([1.0]) + 1).asnumpy())\n", "--device", "CPU", "--explain")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("CPU [2.]\n")
    assert ran.err == "torchspore: the program requests Ascend (train.py:2); TORCHSPORE_DEVICE=CPU runs it on CPU.\n"
    assert "TORCHSPORE_DEVICE, forced; the program requests 'Ascend'" in ran.out
    assert "no effect here: the CPU has no index" in ran.out


def test_set_device_names_itself() -> None:
    with pytest.raises(ValueError, match=r"^set_device\(device_target='cpu'\)"):
        set_device("cpu")


def test_strict_refuses_what_has_no_effect_here(program: Program) -> None:
    ran = program("import mindspore as ms\nms.set_context(pynative_synchronize=True)\n", TORCHSPORE_STRICT="1")
    assert ran.code == 1
    assert ran.err.endswith(
        "StrictRefusal: pynative_synchronize: no effect here: operators on the CPU run in the caller's thread, "
        "and TORCHSPORE_STRICT=1 makes that an error.\n\n"
        "hint: leave pynative_synchronize at its default here, or unset TORCHSPORE_STRICT.\n"
    )


def test_options_of_the_environment_act_when_the_engine_loads(program: Program) -> None:
    text = "import mindspore, torch\nprint(torch.are_deterministic_algorithms_enabled(), torch.get_num_threads())\n"
    ran = program(text, TORCHSPORE_FORCE_DETERMINISTIC="ON", TORCHSPORE_FORCE_RUNTIME_NUM_THREADS="1")
    assert ran.out == "True 1\n"


def test_importing_changes_no_torch_global(program: Program) -> None:
    state = """
import random, warnings, torch, numpy
def state():
    return (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads(),
            torch.random.get_rng_state().tolist(), random.getstate(), str(numpy.random.get_state()), list(warnings.filters),
            torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark)
before = state()
import mindspore
print(state() == before)
"""
    assert program(state).out == "True\n"


def test_a_second_ascend_config_leaves_the_keys_that_it_does_not_name() -> None:
    set_context(ascend_config={"matmul_allow_hf32": True, "precision_mode": "force_fp16"})
    set_context(ascend_config={"conv_allow_hf32": False})
    assert get_context("ascend_config") == {"conv_allow_hf32": False}
    assert [STORE.get(key) for key in ("matmul_allow_hf32", "precision_mode", "conv_allow_hf32")] == ["1", "force_fp16", "0"]
    with pytest.raises(OptionValueError):
        set_context(ascend_config={"matmul_allow_hf32": False, "precision_mode": "x"})
    assert STORE.get("matmul_allow_hf32") == "1"
    set_context(gpu_config={"conv_fprop_algo": "fft"})
    set_context(gpu_config={"conv_allow_tf32": False})
    assert (STORE.get("conv_fprop_algo"), STORE.get("conv_allow_tf32")) == ("fft", False)
    STORE.reset("context")
    assert (STORE.get("matmul_allow_hf32"), STORE.get("conv_fprop_algo")) == ("", "normal")
