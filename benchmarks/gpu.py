"""ResNet-50 and GPT-2-small on a GPU: training and inference, PyNative and Graph, beside torch as people write it by hand.

    python benchmarks/gpu.py [--dtype bfloat16] [--tf32] [--compile] [--nets resnet50,gpt2-infer] [--levels O0,O1,O2]

All contenders take turns in one process; a turn is many steps, and only its end waits for the device. The goals: PyNative within 1.05x of
torch eager, Graph within 1.00x. A share is that of the fastest product of two matrices of the same dtype. `--tiny --device CPU` runs the
benchmark itself on small nets. Not run on a GPU yet.
"""
from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import turns
from handwritten import compiled_step, inference, torch_step

import torchspore

GOALS = {"PyNative": 1.05, "Graph": 1.00}
EAGER = "torch eager"
Step = Callable[[], Any]


@dataclass(frozen=True)
class Net:
    """A line of the benchmark: the module that has torch's form and, in `programs`, MindSpore's; sizes of the net and of its input."""

    name: str
    title: str
    program: str
    cell: str
    sizes: dict[str, int]
    input: dict[str, int]
    tiny: tuple[dict[str, int], dict[str, int]]


NETS = (
    Net("resnet50", "ResNet-50 on 224x224, batch 128", "resnet50", "ResNet50", {}, {"size": 224, "batch": 128},
        ({}, {"size": 32, "batch": 2})),
    Net("gpt2", "GPT-2-small, 124 million parameters, batch 8 x 1024", "gpt", "GPT",
        {"words": 50257, "length": 1024, "width": 768, "heads": 12, "layers": 12}, {"batch": 8},
        ({"words": 97, "length": 16, "width": 32, "heads": 2, "layers": 2}, {"batch": 2})),
)


def main() -> None:
    """Measures what is asked for."""
    options = _options()
    names = [net.name + what for net in NETS for what in ("", "-infer")]
    wanted = options.nets.split(",") if options.nets else names
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise SystemExit(f"--nets {unknown[0]}: expected some of {', '.join(names)}")
    if options.device == "GPU" and not torch.cuda.is_available():
        raise SystemExit("--device GPU: this machine has none that torch can use; `torchspore doctor` says why")
    place = torch.device("cuda" if options.device == "GPU" else "cpu")
    best = peak(place, getattr(torch, options.dtype), options.tf32, 256 if options.tiny else 8192)
    name = torch.cuda.get_device_name(place) if place.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, {options.dtype}{' with TF32' if options.tf32 else ''}: {best / 1e12:.3f} TFLOP/s at most")
    for net in NETS:
        for what in ("", "-infer"):
            if net.name + what in wanted:
                measured(net, bool(what), place, best, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="GPU", choices=("GPU", "CPU"))
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


def peak(place: torch.device, dtype: torch.dtype, tf32: bool, size: int) -> float:
    """The most operations a second that a product of two square matrices reaches."""
    torch.backends.cuda.matmul.fp32_precision = "tf32" if tf32 else "ieee"
    torch.backends.cudnn.conv.fp32_precision = "tf32" if tf32 else "ieee"
    left, times = torch.randn(size, size, device=place).to(dtype), []
    for _ in range(10):
        started = time.perf_counter()
        left @ left
        _wait(place)
        times.append(time.perf_counter() - started)
    return 2 * size**3 / min(times)


def _wait(place: torch.device) -> None:
    if place.type != "cpu":
        torch.accelerator.synchronize(place)


def measured(net: Net, infers: bool, place: torch.device, best: float, options: argparse.Namespace) -> None:
    """Prints the table of one net."""
    sizes, given = net.tiny if options.tiny else (net.sizes, net.input)
    dtype = getattr(torch, options.dtype)
    eager = _torch(net, infers, place, dtype, sizes, given, False)
    operations = _operations(eager)
    steps: dict[str, Step] = {EAGER: eager}
    if options.compile:
        steps["torch.compile"] = _torch(net, infers, place, dtype, sizes, given, True)
    steps["PyNative"] = _ours(net, infers, options, sizes, given, 1, "O0")
    for level in options.levels.split(","):
        steps[f"Graph {level}"] = _ours(net, infers, options, sizes, given, 0, level)
    times = turns.taken({name: _timed(step, place) for name, step in steps.items()}, options.seconds, options.rounds)
    title = "tiny" if options.tiny else net.title
    print(f"\n### {net.name}: {title}, {'inference' if infers else 'training step'}, {operations / 1e9:.3f} GFLOP\n")
    print("| contender | ms a step | ratio to torch eager (median, min .. max) | TFLOP/s | share of peak | goal |")
    print("|---|---:|---|---:|---:|---|")
    for name, own in times.items():
        speed = operations / statistics.median(own)
        print(f"| {name} | {statistics.median(own) * 1e3:.3f} | {turns.ratio(own, times[EAGER])} | {speed / 1e12:.3f} | {speed / best:.1%} "
              f"| {_goal(name, own, times[EAGER])} |", flush=True)


def _goal(name: str, own: list[float], base: list[float]) -> str:
    """Whether a contender of ours reaches its goal."""
    limit = GOALS.get(name.split()[0])
    if limit is None:
        return ""
    reached = statistics.median(a / b for a, b in zip(own, base)) <= limit
    return f"{'within' if reached else 'beyond'} {limit:.2f}"


def _timed(step: Step, place: torch.device) -> Callable[[int], float]:
    def seconds(steps: int) -> float:
        _wait(place)
        started = time.perf_counter()
        for _ in range(steps):
            step()
        _wait(place)
        return time.perf_counter() - started

    return seconds


def _operations(step: Step) -> int:
    """The floating-point operations of a step."""
    from torchspore.engine import flops

    counter = flops.Counter()
    counter.start()
    step()
    return counter.stop()


def _torch(
    net: Net, infers: bool, place: torch.device, dtype: torch.dtype, sizes: dict[str, int], given: dict[str, int], compiled: bool,
) -> Step:
    torch.manual_seed(0)
    with torch.device(place):
        made = importlib.import_module(net.program).make(place.type == "cuda", **sizes, **given)
    if infers:
        step = inference(made[0], made[3][0], compiled)
    else:
        step = (compiled_step if compiled else torch_step)(*made)
    if dtype is torch.float32:
        return step

    def mixed() -> Any:
        with torch.autocast(place.type, dtype):
            return step()

    return mixed


def _ours(net: Net, infers: bool, options: argparse.Namespace, sizes: dict[str, int], given: dict[str, int], mode: int, level: str) -> Step:
    torchspore.install()
    import mindspore as ms
    from mindspore import amp

    how: dict[str, Any] = {"mode": mode, "jit_config": {"jit_level": level}}
    ms.set_context(device_target=options.device, gpu_config={"conv_allow_tf32": options.tf32, "matmul_allow_tf32": options.tf32}, **how)
    module = importlib.import_module(f"programs.{net.program}")
    cell = getattr(module, net.cell)(**sizes)
    if options.dtype != "float32":
        cell = amp.auto_mixed_precision(cell, "auto", getattr(ms, options.dtype))
    own = module.of(cell, infers, **({"words": sizes["words"], "length": sizes["length"]} if "length" in sizes else {}), **given)

    def step() -> Any:
        ms.set_context(**how)
        return own()

    return step


if __name__ == "__main__":
    main()
