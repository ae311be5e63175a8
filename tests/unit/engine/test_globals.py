"""Importing and using the front end changes nothing of torch that the rest of a program would notice."""
from __future__ import annotations

import subprocess
import sys

import pytest

STATE = """
import random, sys, warnings
import numpy
import torch

def state():
    return {
        "grad": torch.is_grad_enabled(), "dtype": torch.get_default_dtype(), "device": torch.empty(0).device,
        "threads": torch.get_num_threads(), "interop": torch.get_num_interop_threads(),
        "seed": torch.random.get_rng_state().tolist(), "numpy": numpy.random.get_state()[1].tolist(),
        "python": random.getstate(), "deterministic": torch.are_deterministic_algorithms_enabled(),
        # SymPy, which torch loads with its tracing, says how often to show SymPy's own warning.
        "filters": [filter for filter in warnings.filters if not filter[2].__module__.startswith("sympy")],
        "matmul": torch.get_float32_matmul_precision(), "autocast": torch.is_autocast_enabled("cpu"), "hook": sys.excepthook,
        "printing": vars(torch._tensor_str.PRINT_OPTS), "anomaly": torch.is_anomaly_enabled(),
        "inference": torch.is_inference_mode_enabled(),
    }
"""
USED = """
import torchspore
before = state()
torchspore.install()
import mindspore
from mindspore import Tensor, nn, ops
imported = state()
net = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")
for mode in (1, 0):
    mindspore.set_context(mode=mode)
    mindspore.value_and_grad(net, None, net.trainable_params())(Tensor([[1.0, 2.0]]))
used = state()
print(sorted(key for key in before if before[key] != imported[key]), sorted(key for key in before if before[key] != used[key]))
"""


def changed(program: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


def test_neither_import_nor_use_changes_a_global() -> None:
    assert changed(STATE + USED) == "[] []"


THRESHOLDS = """
import os, sys
import torchspore
torchspore.install()
import mindspore
from torchspore.context import effects
import resource, torch
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    kept = [torch.zeros(12_000_000) for _ in range(3)]
    del kept
before = faults()
for _ in range(3):
    kept = [torch.zeros(12_000_000) for _ in range(3)]
    del kept
print(faults() - before)
print(effects.notes()["memory"])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
def test_freed_blocks_stay_in_the_process_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    import platform

    if platform.libc_ver()[0] != "glibc":
        pytest.skip("glibc only")
    monkeypatch.delenv("TORCHSPORE_MALLOC", raising=False)
    faults, note = changed(THRESHOLDS).splitlines()
    monkeypatch.setenv("TORCHSPORE_MALLOC", "0")
    without, off = changed(THRESHOLDS).splitlines()
    monkeypatch.delenv("TORCHSPORE_MALLOC")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=65536")
    _, message = changed(THRESHOLDS).splitlines()
    assert "raised" in note and "TORCHSPORE_MALLOC=0" in off and "GLIBC_TUNABLES is set" in message
    assert int(faults) * 5 < int(without)  # glibc never keeps blocks above 32 MB by itself
