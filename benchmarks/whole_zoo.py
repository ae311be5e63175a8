#!/usr/bin/env python3
"""Programs of MindSpore's model zoo: `python benchmarks/whole_zoo.py --zoo DIR [--oracle PYTHON] [--rounds N] [--nets lenet,ncf]`.

DIR is a checkout of the model zoo, whose code is not a part of this repository:

    git clone https://github.com/mindspore-ai/models DIR
    git -C DIR checkout COMMIT

The zoo's programs also import the packages that `PROGRAMS` lists.

Each program runs by the command of its README, unchanged, in torchspore and, with `--oracle`, in real MindSpore, on small data sets in the
published formats (zoo_data.py). TORCHSPORE_FORCE_MODE and TORCHSPORE_FORCE_JIT_LEVEL select the mode of torchspore. For real
MindSpore whole_programs/zoo_runner.py replaces the mode, because no environment variable does. `whole_programs/zoo_for_torch` has the same
training as people write it by hand for torch; the benchmark stops if it trains another number of parameters. Times, memory and rounds are
those of whole.py.
"""
from __future__ import annotations

import functools
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import program_runs
import turns
import zoo_data
from program_runs import Run

URL = "https://github.com/mindspore-ai/models"
COMMIT = "eab643f51336dbf7d711f02d27e6516e5affee59"
HOW_TO_GET = f"git clone {URL} DIR && git -C DIR checkout {COMMIT}"
FOLDER = Path(__file__).parent / "whole_programs"
TORCH = "torch, by hand"
LEVEL = "TORCHSPORE_FORCE_JIT_LEVEL"
OURS = {"torchspore PyNative": {"TORCHSPORE_FORCE_MODE": "PYNATIVE_MODE"},
        "torchspore O0": {"TORCHSPORE_FORCE_MODE": "GRAPH_MODE", LEVEL: "O0"},
        "torchspore O1": {"TORCHSPORE_FORCE_MODE": "GRAPH_MODE", LEVEL: "O1"}}
MINDSPORE = {"MindSpore 2.10 PyNative": "PYNATIVE", "MindSpore 2.10 graph": "AS_WRITTEN"}


@dataclass(frozen=True)
class Program:
    """A folder of the zoo, the function that writes its data, and the arguments of its `train.py`; `{data}` is the folder of the data."""

    title: str
    folder: str
    write_data: Callable[[Path], None]
    arguments: tuple[str, ...]
    packages: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


PROGRAMS = {
    "lenet": Program(
        "LeNet-5 on MNIST files: 3 epochs of 150 steps", "research/cv/lenet",
        functools.partial(zoo_data.write_digits, rows={"train/train": 4800}),
        ("--data_path", "{data}", "--ckpt_path", "ckpt", "--epoch_size", "3", "--device_target", "CPU")),
    "resnet18": Program(
        "ResNet-18 on CIFAR-10 files: 2 epochs of 15 steps", "official/cv/ResNet", functools.partial(zoo_data.write_pictures, count=500),
        ("--device_target", "CPU", "--data_path", "{data}", "--config_path", "{folder}/config/resnet18_cifar10_config.yaml",
         "--epoch_size", "2", "--train_image_size", "64", "--loss_scale", "1"),
        ("scipy",), {"DEVICE_ID": "0"}),
    "textcnn": Program(
        "TextCNN on movie reviews: 4 epochs of 45 steps", "research/nlp/textcnn",
        functools.partial(zoo_data.write_movie_reviews, sentences=1600),
        ("--config_path", "{folder}/mr_config_cpu.yaml", "--device_target", "CPU", "--data_path", "{data}", "--dataset", "MR",
         "--output_path", "output"),
        ("pandas",)),
    "ncf": Program(
        "NCF on MovieLens ratings: an epoch of 141 steps", "research/recommend/ncf", zoo_data.write_movie_ratings,
        ("--data_path", "{data}", "--dataset", "ml-1m", "--train_epochs", "1", "--batch_size", "4096", "--output_path", "output",
         "--checkpoint_path", "checkpoint", "--device_target", "CPU", "--device_id", "0", "--num_parallel_workers", "2"),
        ("pandas", "absl", "six")),
    "deepbsde": Program(
        "DeepBSDE, an equation in 100 dimensions: 200 steps", "research/hpc/deepbsde",
        functools.partial(zoo_data.write_equation, steps=200),
        ("--config_path", "{data}/HJBLQ_config.yaml"), ("scipy", "yaml")),
    "cgan": Program(
        "Conditional GAN on MNIST files: 2 epochs of 15 steps", "research/cv/CGAN",
        functools.partial(zoo_data.write_digits, rows={"train": 960}, separator="-"),
        ("--data_path", "{data}", "--output_path", "output", "--batch_size", "64", "--epoch_size", "2", "--device_target", "CPU"),
        ("PIL",)),
}


def take_checkout(words: list[str]) -> Path:
    """Remove `--zoo DIR` from the words of a command line. Return DIR; raise SystemExit if it is missing or not a checkout of the zoo."""
    if "--zoo" not in words or words.index("--zoo") + 1 == len(words):
        raise SystemExit(f"--zoo is missing: expected --zoo DIR, a checkout of the model zoo. To get it: {HOW_TO_GET}")
    position = words.index("--zoo")
    checkout = Path(words[position + 1])
    del words[position:position + 2]
    missing = [program.folder for program in PROGRAMS.values() if not (checkout / program.folder / "train.py").is_file()]
    if missing:
        raise SystemExit(f"--zoo {checkout}: expected a checkout of the model zoo with {missing[0]}/train.py, which this folder does not "
                         f"have. To get it: {HOW_TO_GET}")
    return checkout.resolve()


def check_packages(python: str, names: list[str]) -> None:
    """Raise SystemExit if a Python does not have the packages that the programs import."""
    packages = sorted({package for name in names for package in PROGRAMS[name].packages})
    script = "import importlib.util, sys; print(*(name for name in sys.argv[1:] if importlib.util.find_spec(name) is None))"
    process = subprocess.run([python, "-c", script, *packages], capture_output=True, text=True, check=True)
    if missing := process.stdout.split():
        users = [PROGRAMS[name].folder for name in names if set(missing) & set(PROGRAMS[name].packages)]
        raise SystemExit(f"{python} has no package {', '.join(missing)}: expected the packages that {', '.join(users)} import. Install "
                         f"them with {python} -m pip install, or leave the programs out with --nets")


def build_command(name: str, checkout: Path, data: Path) -> list[str]:
    """Return the path of a program's `train.py` and its arguments."""
    program = PROGRAMS[name]
    folder = checkout / program.folder
    return [str(folder / "train.py"), *(word.format(data=data, folder=folder) for word in program.arguments)]


def run(name: str, contender: str, checkout: Path, data: Path, oracle: str | None, limit: float | None = None) -> Run:
    """Run a program in a fresh process; stop it after `limit` seconds. Raise RuntimeError if it fails."""
    title = f"{name}, {contender}"
    command, environment = build_command(name, checkout, data), PROGRAMS[name].environment
    if contender == TORCH:
        return program_runs.run([sys.executable, str(FOLDER / "zoo_for_torch" / f"{name}.py"), str(data)], {}, title)
    if contender in OURS:
        return program_runs.run([sys.executable, "-m", "torchspore", "run", *command], {**OURS[contender], **environment}, title)
    assert oracle is not None
    return program_runs.run([oracle, str(FOLDER / "zoo_runner.py"), MINDSPORE[contender], *command], environment, title, limit)


def compare_work(name: str, checkout: Path, data: Path) -> str:
    """Run a program in torchspore and the one for torch once, unmeasured. Return a sentence about their parameters and last losses.

    Raise RuntimeError if the numbers of their trained parameters differ.
    """
    command = [str(FOLDER / "zoo_runner.py"), "AS_WRITTEN", *build_command(name, checkout, data)]
    contender = "torchspore PyNative"
    environment = {**OURS[contender], **PROGRAMS[name].environment}
    ours = program_runs.run([sys.executable, "-m", "torchspore", "run", *command], environment, f"{name}, {contender}").output
    theirs = run(name, TORCH, checkout, data, None).output
    counts = [number_after("parameters", output) for output in (ours, theirs)]
    if counts[0] != counts[1]:
        raise RuntimeError(f"{name}: the zoo's program trains {counts[0]:.0f} parameters, zoo_for_torch/{name}.py {counts[1]:.0f}")
    return (f"{counts[0]:,.0f} trained parameters. Last loss: {number_after('loss(?: is|:)?', ours):.3g} in torchspore, "
            f"{number_after('loss', theirs):.3g} in torch.")


def number_after(words: str, output: str) -> float:
    """Return the last number that follows the words, a regular expression, in an output."""
    numbers = re.findall(rf"{words}\s+([-+]?[\d.]+(?:e[-+]?\d+)?)", output)
    return float(numbers[-1]) if numbers else float("nan")


def main() -> None:
    """Print one table for each program."""
    checkout = take_checkout(sys.argv)
    names = turns.selected_nets(PROGRAMS)
    if unknown := [name for name in names if name not in PROGRAMS]:
        raise SystemExit(f"--nets {unknown[0]}: expected names out of {', '.join(PROGRAMS)}")
    options = turns.arguments(__doc__ or "")
    for python in (sys.executable, *([options.oracle] if options.oracle else ())):
        check_packages(python, names)
    contenders = [TORCH, *OURS, *(MINDSPORE if options.oracle else ())]
    print(f"Folders of [the model zoo]({URL}) at commit {COMMIT[:12]}, run by the commands of their READMEs on small data sets of the "
          "published formats.")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            # Programs store caches with their data; NumPy 1, which MindSpore has, cannot read those of NumPy 2.
            data = {contender: Path(folder) / ("mindspore" if contender in MINDSPORE else "torch") for contender in contenders}
            for path in set(data.values()):
                PROGRAMS[name].write_data(path)
            work = compare_work(name, checkout, data[TORCH])
            starts = {contender: functools.partial(run, name, contender, checkout, data[contender], options.oracle)
                      for contender in contenders}
            runs, failures = program_runs.measure(starts, options.rounds, MINDSPORE, TORCH)
        program_runs.print_table(f"{PROGRAMS[name].title} ({PROGRAMS[name].folder})", runs, failures, TORCH)
        print("\n".join(["", work, *(f"{contender} fails: {reason}." for contender, reason in failures.items())]), flush=True)


if __name__ == "__main__":
    main()
