"""The stages, the most important first. Each has jobs, a share of the time, and a number of processes that it can use."""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from on_gpu.jobs import ROOT, Job

GPU_TESTS = "tests/gpu"
WHOLE_PROGRAMS = (
    "alexnet", "bert", "bilstm_crf", "callbacks", "clipping", "cyclegan", "deepfm", "densenet", "efficientnet", "gcn", "gpt", "lenet",
    "loss_scale", "lstm_sentiment", "mobilenetv2", "resnet50", "seq2seq", "swin", "unet", "vae",
)
"""Programs of tests/scripts/programs whose losses real MindSpore recorded."""
PAIRS = 40
"""How many generated programs are compared between PyNative and Graph mode."""
GENERATED = 298
NETS = ("gpt2", "resnet50", "bert", "gpt2-infer", "resnet50-infer", "bert-infer")


@dataclass(frozen=True)
class Machine:
    """The machine of the stages. A dry run has a sample of each stage, on the CPU or on the stand-in accelerator."""

    is_dry: bool
    processes: int
    device: str = "GPU"
    """The `device_target` of the run: GPU or Ascend."""

    @property
    def tests(self) -> dict[str, str]:
        """Return the environment of tests: it sets the device of all programs."""
        return {"TESTS_STAND_IN": "1", "OMP_NUM_THREADS": "1"} if self.is_dry else {"TESTS_DEVICE": self.device, "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Stage:
    """A stage: its jobs run `processes` at a time, within `seconds` and the unused time of earlier stages (`dry_seconds` in a dry run)."""

    letter: str
    title: str
    seconds: float
    dry_seconds: float
    processes: int
    jobs: Callable[[Machine], list[Job]]


def doctor(machine: Machine) -> list[Job]:
    """Return the jobs of `torchspore doctor` and `torchspore env`."""
    return [Job("a", name, command=(sys.executable, "-m", "torchspore", name)) for name in ("doctor", "env")]


def gpu_tests(letter: str, *files: str) -> Callable[[Machine], list[Job]]:
    """Return a function that returns the jobs of files of tests/gpu, one job for each."""

    def jobs(machine: Machine) -> list[Job]:
        return [Job(letter, file, tests=(f"{GPU_TESTS}/test_{file}.py",), environment=machine.tests) for file in files]

    return jobs


def parity(machine: Machine) -> list[Job]:
    """Return the jobs of the parity records in both modes, three for each process; a dry run has every 40th test on the stand-in."""
    if machine.is_dry:
        return [_parity(machine, [], str(part), f"{part}/80", "-p", "stand_in") for part in (1, 2)]
    parts = _balanced(sorted((ROOT / "tests/parity/cases").glob("*.py")), 3 * machine.processes)
    return [_parity(machine, part, str(number), "1/1") for number, part in enumerate(parts, 1)]


def _parity(machine: Machine, files: Sequence[Path], name: str, shard: str, *words: str) -> Job:
    environment = {**machine.tests, "TESTS_TOLERANCE": "accelerator",
                   **({} if machine.is_dry else {"TORCHSPORE_DEVICE": machine.device}),
                   "TORCHSPORE_FORCE_CONV_ALLOW_TF32": "False"}
    if files:
        environment["PARITY"] = ",".join(file.stem for file in files)
    return Job("c", f"parity-{name}", tests=(*words, "tests/parity/test_cases.py", "--shard", shard), environment=environment)


def _balanced(files: Sequence[Path], count: int) -> list[list[Path]]:
    """Spread files over parts of about equal size: the largest first, each to the smallest part."""
    parts: list[list[Path]] = [[] for _ in range(min(count, len(files)))]
    sizes = [0] * len(parts)
    for file in sorted(files, key=lambda file: -file.stat().st_size):
        smallest = sizes.index(min(sizes))
        parts[smallest].append(file)
        sizes[smallest] += file.stat().st_size
    return parts


def programs(machine: Machine) -> list[Job]:
    """Return the jobs of generated programs in both modes and of complete programs with recorded losses; a dry run has three of each."""
    environment = {"OMP_NUM_THREADS": "1"} if machine.is_dry else {**machine.tests, "TORCHSPORE_DEVICE": machine.device}
    count = 1 if machine.is_dry else 8
    shards = 3 * GENERATED // 8 if machine.is_dry else count * GENERATED // PAIRS
    file = "tests/unit/graph/control_flow/test_programs.py"
    pairs = [
        Job("d", f"pairs-{part}", tests=(file, "--shard", f"{part}/{shards}"), environment=environment) for part in range(1, count + 1)
    ]
    names = ("lenet", "gcn", "clipping") if machine.is_dry else WHOLE_PROGRAMS
    selected = " or ".join(f"{name}-" for name in names)
    recorded = [
        Job("d", f"whole-{part}", environment=environment,
            tests=("tests/scripts/test_whole_programs.py", "-k", selected, "--shard", f"{part}/{count}"))
        for part in range(1, count + 1)
    ]
    return pairs + recorded


def benchmarks(machine: Machine) -> list[Job]:
    """Return the jobs of benchmarks/gpu.py for each net: first the contenders that start at once, then those that compile."""
    tiny = ("--device", "CPU", "--tiny", "--rounds", "2", "--seconds", "0.05")
    options = tiny if machine.is_dry else ("--device", machine.device, "--rounds", "5", "--seconds", "0.5")
    nets = NETS[:2] if machine.is_dry else NETS
    command = (sys.executable, "benchmarks/gpu.py", *options, "--dtype", "bfloat16")
    at_once = [Job("f", net, command=(*command, "--nets", net, "--levels", "O0"), appends=True) for net in nets]
    compiled = [
        Job("f", f"{net} compiled", command=(*command, "--nets", net, "--levels", "O1,O2", "--compile"), appends=True) for net in nets
    ]
    return at_once + ([] if machine.is_dry else compiled)


def workers(machine: Machine) -> list[Job]:
    """Return the job of `torchspore workers` with one process: NCCL on a GPU, HCCL on Ascend, gloo in a dry run."""
    device = "CPU" if machine.is_dry else machine.device
    program = str(ROOT / "tools/on_gpu/collectives.py")
    return [Job("g", "workers -n 1", command=(sys.executable, "-m", "torchspore", "workers", "-n", "1", program, device))]


STAGES = (
    Stage("a", "doctor, env", 25, 60, 2, doctor),
    Stage("b", "tests on the GPU: devices, training, mixed precision, hidden waits", 60, 150, 6, gpu_tests("b", "devices", "training")),
    Stage("c", "parity records in both modes", 130, 180, 16, parity),
    Stage("d", "programs in both modes, whole programs with recorded losses", 60, 150, 16, programs),
    Stage("e", "switches: memory, offload, determinism, time-outs, CUDA graphs, streams, checkpoints", 60, 120, 6,
          gpu_tests("e", "memory", "determinism", "graphs", "streams", "timeouts", "checkpoints")),
    Stage("f", "benchmarks beside torch eager and torch.compile", 100, 120, 1, benchmarks),
    Stage("g", "collectives of one process", 15, 60, 1, workers),
    Stage("h", "named algorithms of cuDNN, TF32", 30, 60, 3, gpu_tests("h", "algorithms")),
)
