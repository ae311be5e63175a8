"""On a real GPU: TF32 against float64, cuDNN's algorithms by name, the table of `performance`."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.processes import Run

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("cuda")]
ROOT = Path(__file__).parents[2]

TF32 = """
ms.set_context(device_target="GPU", gpu_config={{"conv_allow_tf32": {conv}, "matmul_allow_tf32": {matmul}}})
def error(call, *arrays):
    exact = call(*(Tensor(a, ms.float64) for a in arrays)).asnumpy()
    rounded = call(*(Tensor(a.astype(np.float32)) for a in arrays)).asnumpy()
    return float(np.abs(rounded - exact).max() / np.abs(exact).max())
results["matmul"] = error(ops.matmul, rng.randn(512, 512), rng.randn(512, 512))
results["conv"] = error(lambda x, w: ops.conv2d(x, w), rng.randn(8, 64, 32, 32), rng.randn(64, 64, 3, 3))
"""


def test_tf32_switches_change_the_error_against_float64(run_program: Callable[[str], Any]) -> None:
    if torch.version.hip is not None or torch.cuda.get_device_capability()[0] < 8:
        pytest.skip("this GPU has no TF32")
    rounded, exact = (run_program(TF32.format(conv=on, matmul=on)) for on in (True, False))
    mixed = run_program(TF32.format(conv=False, matmul=True))
    for what in ("conv", "matmul"):
        assert exact[what] < 1e-5 and rounded[what] > 20 * exact[what] and rounded[what] < 5e-3, what
    assert mixed["conv"] < 1e-5 and mixed["matmul"] > 1e-5


NAMED = """
ms.set_context(device_target="GPU", mode={mode})
SHAPES = {{"3x3": ((8, 16, 28, 28), (32, 16, 3, 3), {{"pad_mode": "pad", "padding": 1}}), "1x1": ((8, 64, 14, 14), (32, 64, 1, 1), {{}}),
          "5x5 stride 2": ((4, 8, 33, 31), (16, 8, 5, 5), {{"stride": 2}}), "groups": ((4, 32, 16, 16), (32, 8, 3, 3), {{"groups": 4}}),
          "dilation": ((4, 8, 20, 20), (8, 8, 3, 3), {{"dilation": 2}})}}
ALGORITHMS = {{
    "conv_fprop_algo": ["implicit_gemm", "precomp_gemm", "gemm", "direct", "fft", "fft_tiling", "winograd", "winograd_nonfused",
                        "performance"],
    "conv_dgrad_algo": ["algo_0", "algo_1", "fft", "fft_tiling", "winograd", "winograd_nonfused", "performance"],
    "conv_wgrad_algo": ["algo_0", "algo_1", "algo_3", "fft", "fft_tiling", "winograd_nonfused", "performance"],
}}
def outputs(x, w, options, dtype):
    call = lambda x, w: ops.conv2d(x, w, **options)
    grads = ops.grad(lambda x, w: (call(x, w) ** 2).sum(), (0, 1))(Tensor(x, dtype), Tensor(w, dtype))
    return [t.asnumpy().astype(np.float64) for t in (call(Tensor(x, dtype), Tensor(w, dtype)), *grads)]
for name, (shape, kernel, options) in SHAPES.items():
    x, w = rng.randn(*shape), rng.randn(*kernel)
    ms.set_context(gpu_config={{}})
    exact = outputs(x, w, options, ms.float64)
    for option, algorithms in ALGORITHMS.items():
        for algorithm in algorithms:
            ms.set_context(gpu_config={{option: algorithm, "conv_allow_tf32": False}})
            try:
                values = outputs(x, w, options, ms.float32)
                error = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(values, exact))
                results[f"{{name}} {{option}} {{algorithm}}"] = error
            except RuntimeError as refused:
                results[f"{{name}} {{option}} {{algorithm}}"] = f"{{type(refused).__name__}}: {{refused}}"
"""


@pytest.mark.parametrize("mode", [1, 0])
def test_every_algorithm_gives_right_numbers_or_names_those_that_can(run_program: Callable[[str], Any], mode: int) -> None:
    if torch.version.hip is not None:
        pytest.skip("ROCm has no cuDNN")
    results = run_program(NAMED.format(mode=mode))
    assert len(results) == 5 * (9 + 7 + 7)
    for name, value in results.items():
        if isinstance(value, str):
            assert "AlgorithmRefused" in value and "cuDNN can't do this convolution so" in value and "hint: conv_" in value, (name, value)
            assert not name.endswith((" performance", " implicit_gemm", " algo_1")), (name, value)
        else:
            assert value < (1e-2 if "winograd" in name or "fft" in name else 1e-4), (name, value)
    ran = {name.split()[-1] for name, value in results.items() if not isinstance(value, str)}
    assert {"implicit_gemm", "precomp_gemm", "gemm", "algo_0", "algo_1", "algo_3", "performance"} <= ran


def test_the_named_algorithm_s_kernels_run(run_program: Callable[[str], Any]) -> None:
    if torch.version.hip is not None:
        pytest.skip("ROCm has no cuDNN")
    results = run_program("""
ms.set_context(device_target="GPU")
x, w = Tensor(np.ones((8, 16, 28, 28), np.float32)), Tensor(np.ones((32, 16, 3, 3), np.float32))
for name in ("normal", "implicit_gemm", "gemm", "fft_tiling", "performance"):
    ms.set_context(gpu_config={"conv_fprop_algo": name})
    ops.conv2d(x, w)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        ops.conv2d(x, w)
        ms.hal.synchronize()
    results[name] = sorted({event.key for event in profile.key_averages()})
""")
    assert any("fft" in kernel.lower() for kernel in results["fft_tiling"])
    assert results["implicit_gemm"] != results["fft_tiling"] and results["gemm"] != results["fft_tiling"]


def test_explain_shows_what_performance_has_tried(run: Callable[..., Run], tmp_path: Path) -> None:
    if torch.version.hip is not None:
        pytest.skip("ROCm has no cuDNN")
    path = tmp_path / "conv.py"
    path.write_text("""
import mindspore as ms, numpy as np
from mindspore import Tensor, ops
ms.set_context(device_target="GPU", gpu_config={"conv_fprop_algo": "performance"})
ops.conv2d(Tensor(np.ones((8, 16, 28, 28), np.float32)), Tensor(np.ones((32, 16, 3, 3), np.float32)))
""")
    ended = run("explain", path)
    assert ended.code == 0, ended.err
    assert "conv_fprop_algo x 8x16x28x28, weight 32x16x3x3, float32: " in ended.out and " ms " in ended.out


def test_the_benchmark_reaches_its_goals() -> None:
    if not os.environ.get("TORCHSPORE_SPEED"):
        pytest.skip("TORCHSPORE_SPEED=1 asks for it: it takes minutes and wants a GPU of its own")
    ended = subprocess.run([sys.executable, "benchmarks/gpu.py"], cwd=ROOT, capture_output=True, text=True, timeout=3600)
    assert ended.returncode == 0 and "beyond" not in ended.stdout, ended.stdout
