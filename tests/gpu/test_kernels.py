"""On a real GPU: the operator records, TF32 against float64, cuDNN's algorithms by name, the table of `performance`."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from running import Run, environment

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]
QUICK = "ops_elementwise,ops_conv,nn_conv,ops_reduction,ops_array,nn_optim"


@pytest.mark.parametrize("files", [QUICK, pytest.param("", marks=pytest.mark.slow)], ids=["some", "all"])
def test_the_operator_records_hold_on_the_gpu(files: str) -> None:
    own = environment({"TORCHSPORE_DEVICE": "GPU", "TORCHSPORE_FORCE_CONV_ALLOW_TF32": "False", "PARITY": files})
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--maxfail=20", "-p", "no:cacheprovider", "tests/parity/test_cases.py"]
    ended = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, timeout=1800)
    assert ended.returncode == 0, ended.stdout[-5000:]


def told(run: Callable[..., Run], text: str, **options: str) -> Any:
    ended = run("-c", text + "\nprint(json.dumps(told))\n", extra=options)
    assert ended.code == 0, ended.err[-3000:]
    return json.loads(ended.out.splitlines()[-1])


TF32 = """
import json, numpy as np, mindspore as ms
from mindspore import Tensor, ops
ms.set_context(device_target="GPU", gpu_config={{"conv_allow_tf32": {conv}, "matmul_allow_tf32": {matmul}}})
told, rng = {{}}, np.random.RandomState(0)
def error(call, *arrays):
    exact = call(*(Tensor(a, ms.float64) for a in arrays)).asnumpy()
    found = call(*(Tensor(a.astype(np.float32)) for a in arrays)).asnumpy()
    return float(np.abs(found - exact).max() / np.abs(exact).max())
told["matmul"] = error(ops.matmul, rng.randn(512, 512), rng.randn(512, 512))
told["conv"] = error(lambda x, w: ops.conv2d(x, w), rng.randn(8, 64, 32, 32), rng.randn(64, 64, 3, 3))
"""


def test_tf32_switches_change_the_error_against_float64(run: Callable[..., Run]) -> None:
    if torch.version.hip is not None or torch.cuda.get_device_capability()[0] < 8:
        pytest.skip("this GPU has no TF32")
    rounded, exact = (told(run, TF32.format(conv=on, matmul=on)) for on in (True, False))
    mixed = told(run, TF32.format(conv=False, matmul=True))
    for what in ("conv", "matmul"):
        assert exact[what] < 1e-5 and rounded[what] > 20 * exact[what] and rounded[what] < 5e-3, what
    assert mixed["conv"] < 1e-5 and mixed["matmul"] > 1e-5


NAMED = """
import json, numpy as np, mindspore as ms
from mindspore import Tensor, ops
ms.set_context(device_target="GPU", mode={mode})
told, rng = {{}}, np.random.RandomState(0)
SHAPES = {{"3x3": ((8, 16, 28, 28), (32, 16, 3, 3), {{"pad_mode": "pad", "padding": 1}}), "1x1": ((8, 64, 14, 14), (32, 64, 1, 1), {{}}),
          "5x5 stride 2": ((4, 8, 33, 31), (16, 8, 5, 5), {{"stride": 2}}), "groups": ((4, 32, 16, 16), (32, 8, 3, 3), {{"groups": 4}}),
          "dilation": ((4, 8, 20, 20), (8, 8, 3, 3), {{"dilation": 2}})}}
ALGORITHMS = {{
    "conv_fprop_algo": ["implicit_gemm", "precomp_gemm", "gemm", "direct", "fft", "fft_tiling", "winograd", "winograd_nonfused",
                        "performance"],
    "conv_dgrad_algo": ["algo_0", "algo_1", "fft", "fft_tiling", "winograd", "winograd_nonfused", "performance"],
    "conv_wgrad_algo": ["algo_0", "algo_1", "algo_3", "fft", "fft_tiling", "winograd_nonfused", "performance"],
}}
def results(x, w, how, dtype):
    call = lambda x, w: ops.conv2d(x, w, **how)
    grads = ops.grad(lambda x, w: (call(x, w) ** 2).sum(), (0, 1))(Tensor(x, dtype), Tensor(w, dtype))
    return [t.asnumpy().astype(np.float64) for t in (call(Tensor(x, dtype), Tensor(w, dtype)), *grads)]
for name, (shape, kernel, how) in SHAPES.items():
    x, w = rng.randn(*shape), rng.randn(*kernel)
    ms.set_context(gpu_config={{}})
    exact = results(x, w, how, ms.float64)
    for option, algorithms in ALGORITHMS.items():
        for algorithm in algorithms:
            ms.set_context(gpu_config={{option: algorithm, "conv_allow_tf32": False}})
            try:
                found = results(x, w, how, ms.float32)
                error = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(found, exact))
                told[f"{{name}} {{option}} {{algorithm}}"] = error
            except RuntimeError as refused:
                told[f"{{name}} {{option}} {{algorithm}}"] = f"{{type(refused).__name__}}: {{refused}}"
"""


@pytest.mark.parametrize("mode", [1, 0])
def test_every_algorithm_gives_right_numbers_or_names_those_that_can(run: Callable[..., Run], mode: int) -> None:
    if torch.version.hip is not None:
        pytest.skip("ROCm has no cuDNN")
    found = told(run, NAMED.format(mode=mode))
    assert len(found) == 5 * (9 + 7 + 7)
    for name, value in found.items():
        if isinstance(value, str):
            assert "AlgorithmRefused" in value and "cuDNN can't do this convolution so" in value and "hint: conv_" in value, (name, value)
            assert not name.endswith((" performance", " implicit_gemm", " algo_1")), (name, value)
        else:
            assert value < (1e-2 if "winograd" in name or "fft" in name else 1e-4), (name, value)
    ran = {name.split()[-1] for name, value in found.items() if not isinstance(value, str)}
    assert {"implicit_gemm", "precomp_gemm", "gemm", "algo_0", "algo_1", "algo_3", "performance"} <= ran


def test_the_named_algorithm_s_kernels_run(run: Callable[..., Run]) -> None:
    if torch.version.hip is not None:
        pytest.skip("ROCm has no cuDNN")
    found = told(run, """
import json, torch, mindspore as ms, numpy as np
from mindspore import Tensor, ops
ms.set_context(device_target="GPU")
told = {}
x, w = Tensor(np.ones((8, 16, 28, 28), np.float32)), Tensor(np.ones((32, 16, 3, 3), np.float32))
for name in ("normal", "implicit_gemm", "gemm", "fft_tiling", "performance"):
    ms.set_context(gpu_config={"conv_fprop_algo": name})
    ops.conv2d(x, w)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        ops.conv2d(x, w)
        ms.hal.synchronize()
    told[name] = sorted({event.key for event in profile.key_averages()})
""")
    assert any("fft" in kernel.lower() for kernel in found["fft_tiling"])
    assert found["implicit_gemm"] != found["fft_tiling"] and found["gemm"] != found["fft_tiling"]


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
