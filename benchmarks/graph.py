#!/usr/bin/env python3
"""Graph mode compared with torch eager, torch.compile, jax.jit, ONNX Runtime and MindSpore 2.10.

    python benchmarks/graph.py [--quick] [--jax PYTHON] [--oracle PYTHON] [--nets mlp,gpt]

Each contender has a separate process with an empty cache of compiled kernels; all take turns in one run. *The others* are torch eager,
torch.compile, jax.jit and, for an inference and if it is installed, ONNX Runtime.
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field

import turns

EAGER, COMPILE, JAX, ONNX = "torch eager", "torch.compile", "jax.jit", "ONNX Runtime"
OURS = ("PyNative", "O0", "O1")
LONGEST_START = 20.0
"""Seconds from the start of MindSpore's process to the end of its first step, after which the benchmark stops it."""
WITH_O2 = ("mlp",)
"""The nets that O2 runs too: its tuning takes up to a minute for other nets, and its forms are those of O1 in most nets."""


@dataclass
class Net:
    """A line of the benchmark: the program, training step or inference, the sizes."""

    title: str
    program: str
    what: str = "step"
    sizes: dict[str, int] = field(default_factory=dict)
    is_quick: bool = True

    @property
    def name(self) -> str:
        """Return the name for `--nets`."""
        size = 1 if self.sizes.get("batch") == 1 else self.sizes.get("size")
        return "-".join([self.program, *(["infer"] if self.what == "infer" else []), *([str(size)] if size else [])])


NETS = [
    Net("MLP 784-512-512-10, batch 128, training step", "mlp"), Net("LeNet-5, batch 64, training step", "lenet"),
    Net("GPT of four layers, width 256, batch 8 x 128, training step", "gpt"),
    Net("ResNet-18 on 64x64, batch 16, training step", "resnet18", sizes={"size": 64, "batch": 16}),
    Net("ResNet-50 on 224x224, batch 8, training step", "resnet50", sizes={"size": 224, "batch": 8}, is_quick=False),
    Net("ResNet-50 on 224x224, batch 8, inference", "resnet50", "infer", {"size": 224, "batch": 8}, is_quick=False),
    Net("BERT-base, batch 4 x 128, inference", "bert", "infer"),
    Net("ResNet-50 on 224x224, batch 1, inference", "resnet50", "infer", {"size": 224, "batch": 1}, is_quick=False),
    Net("BERT-base, batch 1 x 128, inference", "bert", "infer", {"batch": 1}, is_quick=False),
]


def main() -> None:
    """Measure the selected nets and the overhead of a call."""
    options = _options()
    names = options.nets.split(",") if options.nets else [net.name for net in NETS if net.is_quick or not options.quick]
    unknown = set(names) - {"overhead", *(net.name for net in NETS)}
    if unknown:
        raise SystemExit(f"--nets {unknown.pop()}: expected some of {', '.join(net.name for net in NETS)}, overhead")
    for net in NETS:
        if net.name in names:
            measure(net, options)
    if not options.nets or "overhead" in names:
        overhead(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jax", help="a Python that has jax")
    parser.add_argument("--oracle", help="a Python that has real MindSpore 2.10")
    parser.add_argument("--no-compile", action="store_true", help="omit torch.compile")
    parser.add_argument("--quick", action="store_true", help="the smaller nets, fewer rounds")
    parser.add_argument("--nets", help="names with commas between")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, default=0.4, help="how long one turn takes")
    parser.add_argument("--device", default="CPU", choices=("CPU", "GPU"))
    options = parser.parse_args()
    options.rounds = options.rounds or (4 if options.quick else 7)
    return options


def measure(net: Net, options: argparse.Namespace) -> None:
    """Measure one net and print its table."""
    processes: dict[str, turns.Worker] = {}
    stopped: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, start in _contenders(net, options, folder).items():
            try:
                processes[name] = start()
            except turns.TooSlow as error:
                stopped[name] = str(error)
            except RuntimeError as error:      # the table omits a contender that fails
                print(f"{net.name}: {name} did not start: {error}", file=sys.stderr)
        try:
            times = turns.measure({name: process.seconds for name, process in processes.items()}, options.seconds, options.rounds)
        finally:
            for process in processes.values():
                process.close()
    _print(net.title, times, {name: process.first for name, process in processes.items()})
    for name, first in stopped.items():
        print(f"| {name} | {first}: stopped in its first step | | | |", flush=True)


def _print(title: str, times: dict[str, list[float]], firsts: dict[str, float]) -> None:
    """Print a line for each contender: its step, ratios to torch eager and to the best of the others in each round, its first step."""
    others = [spent for name, spent in times.items() if name in (EAGER, COMPILE, JAX, ONNX)]
    best = [min(round_) for round_ in zip(*others)]
    print(f"\n### {title}\n")
    print(f"| contender | ms a step | ratio to {EAGER} (median, min .. max) | ratio to the best of the others | s, first step |")
    print("|---|---:|---|---|---:|")
    for name, spent in times.items():
        to_best = turns.ratio(spent, best) if name.startswith("torchspore") else ""
        print(f"| {name} | {statistics.median(spent) * 1e3:.3f} | {turns.ratio(spent, times[EAGER])} | {to_best} | {firsts[name]:.1f} |")
    sys.stdout.flush()


def _contenders(net: Net, options: argparse.Namespace, folder: str) -> dict[str, Callable[[], turns.Worker]]:
    sizes, device = json.dumps(net.sizes), "cuda" if options.device == "GPU" else "cpu"

    def ours(how: str) -> Callable[[], turns.Worker]:
        return lambda: turns.Worker(sys.executable, "spore_worker.py", net.program, net.what, sizes, how, environment={
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/{how}", "TORCHSPORE_FORCE_DEVICE_TARGET": options.device,
        })

    def torchs(how: str) -> Callable[[], turns.Worker]:
        return lambda: turns.Worker(sys.executable, "torch_worker.py", net.program, device, net.what, sizes, how, environment={
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/{how}",
        })

    contenders = {EAGER: torchs("eager")}
    if not options.no_compile:
        contenders[COMPILE] = torchs("compile")
    if options.jax:
        contenders[JAX] = lambda: turns.Worker(options.jax, "jax_worker.py", net.program, net.what, sizes)
    if net.what == "infer" and options.device == "CPU" and importlib.util.find_spec("onnxruntime"):
        contenders[ONNX] = lambda: turns.Worker(sys.executable, "onnx_worker.py", net.program, sizes)
    for how in (*OURS, *(["O2"] if net.name in WITH_O2 else []), *(["boost"] if net.what == "infer" else [])):
        contenders[f"torchspore {how}"] = ours(how)
    if options.oracle:
        contenders["MindSpore 2.10 graph"] = lambda: turns.Worker(
            options.oracle, "oracle_worker.py", net.program, "graph", net.what, sizes, limit=LONGEST_START)
    return contenders


def overhead(options: argparse.Namespace) -> None:
    """Print the time of a call of a compiled Cell without its kernels, in this process."""
    import torch

    import torchspore

    torchspore.install()
    import mindspore as ms
    from mindspore import nn

    torch.set_num_threads(1)               # a call does not include waiting for other threads
    ms.set_context(mode=ms.GRAPH_MODE)
    x, y = ms.ops.ones((2, 8)), ms.Tensor([1, 0], ms.int32)
    net = nn.SequentialCell(nn.Dense(8, 8), nn.ReLU(), nn.Dense(8, 8), nn.ReLU(), nn.Dense(8, 2))
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    for title, called, arguments in (("inference", net, (x,)), ("training step", cell, (x, y))):
        called(*arguments)
        (graph,) = torchspore.graphs(called)
        code, inputs_of_code = graph.code, []

        def watched(*inputs, code=code, inputs_of_code=inputs_of_code):
            inputs_of_code[:] = inputs
            return code(*inputs)

        graph.code = watched
        called(*arguments)
        graph.code = code
        times = turns.compare(f"A call of a compiled Cell (a tiny MLP, {title})", {
            "its code alone": turns.timer(lambda code=code, inputs_of_code=inputs_of_code: code(*inputs_of_code)),
            "the call": turns.timer(lambda called=called, arguments=arguments: called(*arguments)),
        }, "its code alone", 0.1, options.rounds, "us", "a call")
        extra = sorted(a - b for a, b in zip(times["the call"], times["its code alone"]))
        print(f"\nbeyond its kernels: {statistics.median(extra) * 1e6:.1f} us ({extra[0] * 1e6:.1f} .. {extra[-1] * 1e6:.1f})")


if __name__ == "__main__":
    main()
