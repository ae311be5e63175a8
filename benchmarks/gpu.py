#!/usr/bin/env python3
"""ResNet-50, GPT-2-small and BERT on a GPU: training and inference, PyNative and Graph, compared with hand-written torch.

    python benchmarks/gpu.py [--dtype bfloat16] [--tf32] [--compile] [--nets resnet50,gpt2-infer] [--levels O0,O1,O2]

All contenders take turns in one process; a turn has many steps, and only its end waits for the device. The goals: PyNative within 1.05x of
torch eager, Graph within 1.00x. A share is that of the fastest product of two matrices of the same dtype. `--tiny --device CPU` runs the
benchmark itself on small nets. docs/gpu.md has the last run.
"""
from __future__ import annotations

import argparse
import importlib
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import host_waits
import torch
import turns
from handwritten import compiled_step, inference, torch_step

import torchspore

GOALS = {"PyNative": 1.05, "Graph": 1.00}
EAGER = "torch eager"
INFERENCE = "-infer"
Step = Callable[[], Any]


@dataclass(frozen=True)
class Net:
    """A network: the module that has torch's form and, in `programs`, MindSpore's; sizes of the network and of its input."""

    name: str
    title: str
    module: str
    factory: str
    cell: str
    sizes: dict[str, int]
    input: dict[str, int]
    tiny: tuple[dict[str, int], dict[str, int]]


NETS = (
    Net("resnet50", "ResNet-50 on 224x224, batch 128", "resnet50", "make", "ResNet50", {}, {"size": 224, "batch": 128},
        ({}, {"size": 32, "batch": 2})),
    Net("gpt2", "GPT-2-small, 124 million parameters, batch 8 x 1024", "gpt", "make", "GPT",
        {"words": 50257, "length": 1024, "width": 768, "heads": 12, "layers": 12}, {"batch": 8},
        ({"words": 97, "length": 16, "width": 32, "heads": 2, "layers": 2}, {"batch": 2})),
    Net("bert", "BERT-base, 110 million parameters, batch 32 x 128", "bert", "classifier", "Classifier",
        {"words": 30522, "length": 128, "width": 768, "heads": 12, "layers": 12}, {"batch": 32},
        ({"words": 97, "length": 16, "width": 32, "heads": 2, "layers": 2}, {"batch": 2})),
)


@dataclass(frozen=True)
class Workload:
    """A network with the sizes to measure, for training or inference, on a device in a dtype."""

    net: Net
    is_inference: bool
    device: torch.device
    dtype: torch.dtype
    sizes: dict[str, int]
    input: dict[str, int]

    @property
    def title(self) -> str:
        """Return the title of the table."""
        return f"{self.net.title}, {'inference' if self.is_inference else 'training step'}"


def main() -> None:
    """Measure the networks that the command line names."""
    options = _options()
    names = [net.name + kind for net in NETS for kind in ("", INFERENCE)]
    selected = options.nets.split(",") if options.nets else names
    unknown = [name for name in selected if name not in names]
    if unknown:
        raise SystemExit(f"--nets {unknown[0]}: expected some of {', '.join(names)}")
    device, dtype = _device(options.device), getattr(torch, options.dtype)
    peak = peak_speed(device, dtype, options.tf32, 256 if options.tiny else 8192)
    card = "CPU" if device.type == "cpu" else torch.get_device_module(device).get_device_name(0)
    print(f"{card}, torch {torch.__version__}, {options.dtype}{' with TF32' if options.tf32 else ''}: {peak / 1e12:.3f} TFLOP/s at most")
    for net in NETS:
        for kind in ("", INFERENCE):
            if net.name + kind in selected:
                sizes, input_sizes = net.tiny if options.tiny else (net.sizes, net.input)
                measure(Workload(net, bool(kind), device, dtype, sizes, input_sizes), peak, options)


def _device(target: str) -> torch.device:
    """Return torch's device of a `device_target`. Raises SystemExit if this machine has none."""
    if target == "CPU":
        return torch.device("cpu")
    if target == "Ascend":
        importlib.import_module("torch_npu")
    if not torch.accelerator.is_available():
        raise SystemExit(f"--device {target}: this machine has none that torch can use; `torchspore doctor` says why")
    return torch.device(torch.accelerator.current_accelerator())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="GPU", choices=("GPU", "Ascend", "CPU"))
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="that of products and convolutions")
    parser.add_argument("--tf32", action="store_true", help="lets float32 be rounded to TF32, on both sides")
    parser.add_argument("--compile", action="store_true", help="measures torch.compile too")
    parser.add_argument("--levels", help="the jit levels of Graph: O0,O2, and O0 with --tiny")
    parser.add_argument("--nets", help="names with commas between; all without it")
    parser.add_argument("--tiny", action="store_true", help="small nets, for a test of the benchmark")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long one turn takes")
    options = parser.parse_args()
    options.levels = options.levels or ("O0" if options.tiny else "O0,O2")
    return options


def peak_speed(device: torch.device, dtype: torch.dtype, tf32: bool, size: int) -> float:
    """Return the largest measured speed of a product of two square matrices, in operations a second."""
    torch.backends.cuda.matmul.fp32_precision = "tf32" if tf32 else "ieee"
    torch.backends.cudnn.conv.fp32_precision = "tf32" if tf32 else "ieee"
    matrix, seconds = torch.randn(size, size, device=device).to(dtype), []
    for _ in range(10):
        started = time.perf_counter()
        matrix @ matrix
        _synchronize(device)
        seconds.append(time.perf_counter() - started)
    return 2 * size**3 / min(seconds)


def _synchronize(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def measure(workload: Workload, peak: float, options: argparse.Namespace) -> None:
    """Print the table of one workload, and append it to the result file of tools/on_gpu.sh."""
    steps: dict[str, Step] = {EAGER: _torch_step(workload, False)}
    operations = _operations(steps[EAGER])
    if options.compile:
        steps["torch.compile"] = _torch_step(workload, True)
    steps["PyNative"] = _spore_step(workload, options, 1, "O0")
    for level in options.levels.split(","):
        steps[f"Graph {level}"] = _spore_step(workload, options, 0, level)
    times = turns.measure({name: _timed(step, workload.device) for name, step in steps.items()}, options.seconds, options.rounds)
    waits = {name: host_waits.count(step) if workload.device.type == "cuda" else None for name, step in steps.items()}
    kind = "inference" if workload.is_inference else "training step"
    print(f"\n### {workload.net.name}: {'tiny' if options.tiny else workload.net.title}, {kind}, {operations / 1e9:.3f} GFLOP\n")
    print("| contender | ms a step | ratio to torch eager (median, min .. max) | TFLOP/s | share of peak | waits | goal |")
    print("|---|---:|---|---:|---:|---:|---|")
    rows = []
    for name, seconds in times.items():
        speed = operations / statistics.median(seconds)
        shown_waits = "-" if waits[name] is None else waits[name]
        print(f"| {name} | {statistics.median(seconds) * 1e3:.3f} | {turns.ratio(seconds, times[EAGER])} | {speed / 1e12:.3f} "
              f"| {speed / peak:.1%} | {shown_waits} | {_goal(name, seconds, times[EAGER])} |", flush=True)
        ratios = sorted(a / b for a, b in zip(seconds, times[EAGER]))
        rows.append({"name": name, "ms": statistics.median(seconds) * 1e3, "share": speed / peak, "waits": waits[name],
                     "ratio": [ratios[0], statistics.median(ratios), ratios[-1]]})
    _append(workload, options, operations, peak, rows)


def _append(workload: Workload, options: argparse.Namespace, operations: int, peak: float, rows: list[dict[str, Any]]) -> None:
    """Append the table to the file that ON_GPU_RESULTS names; tools/on_gpu.sh sets it."""
    file = os.environ.get("ON_GPU_RESULTS")
    if not file:
        return
    from on_gpu import results

    title = f"{'Tiny net of the test: ' if options.tiny else ''}{workload.title}"
    results.append(
        Path(file), os.environ["ON_GPU_STAGE"], f"{title}: {', '.join(row['name'] for row in rows)}", results.PASSED, title=title,
        dtype=options.dtype, gflop=operations / 1e9, peak_tflops=peak / 1e12, contenders=rows)


def _goal(name: str, seconds: list[float], base: list[float]) -> str:
    """Return whether a contender of torchspore reaches its goal, as a text."""
    limit = GOALS.get(name.split()[0])
    if limit is None:
        return ""
    is_reached = statistics.median(a / b for a, b in zip(seconds, base)) <= limit
    return f"{'within' if is_reached else 'beyond'} {limit:.2f}"


def _timed(step: Step, device: torch.device) -> Callable[[int], float]:
    def seconds(steps: int) -> float:
        _synchronize(device)
        started = time.perf_counter()
        for _ in range(steps):
            step()
        _synchronize(device)
        return time.perf_counter() - started

    return seconds


def _operations(step: Step) -> int:
    """Return the floating-point operations of a step."""
    from torchspore.engine.execution import flop_counts

    counter = flop_counts.Counter()
    counter.start()
    step()
    return counter.stop()


def _torch_step(workload: Workload, is_compiled: bool) -> Step:
    torch.manual_seed(0)
    with torch.device(workload.device):
        module = importlib.import_module(workload.net.module)
        model, loss, optimizer, batch = getattr(module, workload.net.factory)(
            workload.device.type == "cuda", **workload.sizes, **workload.input)
    if workload.is_inference:
        step = inference(model, batch[0], is_compiled)
    else:
        step = (compiled_step if is_compiled else torch_step)(model, loss, optimizer, batch)
    if workload.dtype is torch.float32:
        return step

    def mixed() -> Any:
        with torch.autocast(workload.device.type, workload.dtype):
            return step()

    return mixed


def _spore_step(workload: Workload, options: argparse.Namespace, mode: int, level: str) -> Step:
    torchspore.install()
    import mindspore as ms
    from mindspore import amp

    switches: dict[str, Any] = {"mode": mode, "jit_config": {"jit_level": level}}
    rounding = {"conv_allow_tf32": options.tf32, "matmul_allow_tf32": options.tf32}
    ms.set_context(device_target=options.device, gpu_config=rounding, **switches)
    module = importlib.import_module(f"programs.{workload.net.module}")
    cell = getattr(module, workload.net.cell)(**workload.sizes)
    if options.dtype != "float32":
        cell = amp.auto_mixed_precision(cell, "auto", getattr(ms, options.dtype))
    lengths = {name: workload.sizes[name] for name in ("words", "length") if name in workload.sizes}
    run = module.of(cell, workload.is_inference, **lengths, **workload.input)

    def step() -> Any:
        ms.set_context(**switches)
        return run()

    return step


if __name__ == "__main__":
    main()
