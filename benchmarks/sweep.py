#!/usr/bin/env python3
"""Many networks beside torch: `python benchmarks/sweep.py [NAME or FILE ...] [--sample N] [--levels PyNative,O0,O1] [--rounds N]`.

`torchspore port` writes each network of tests/scripts/programs/models in torch, with the same weights. The largest Cell of a program that
the port reproduces is called with the inputs of the program. The networks of benchmarks/networks are written by hand for both. Each runs a
forward call in evaluation, and a forward and backward pass in training for the mean of its results. Cell and Module run in turns in one
process with one thread. A ratio above 1 means that torchspore is slower. `--sample N` takes N of all; `--json FILE` also writes the rows.
"""
from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networks
import turns

ROOT = Path(__file__).resolve().parent.parent
SECONDS_FOR_PROGRAM = 400
TORCH = "torch"
Calls = dict[str, Callable[[int], float]]


class Pair:
    """A Cell and a torch Module that compute the same, and the arguments of their calls."""

    def __init__(self, cell: Any, module: Any, args: Any, kwargs: Any) -> None:
        self.cell, self.module, self.args, self.kwargs = cell, module, args, kwargs


def _of_program(path: str) -> Pair:
    """Return the largest Cell of a program that its port reproduces. Raise ValueError if there is none."""
    from torchspore.port import complete_port
    from torchspore.port.verification.comparison import Builder, prepared

    outcome = complete_port.port_file(path)
    equal = {verdict.name for verdict in outcome.verdicts if verdict.is_equal and "without to_float" not in verdict.precision}
    if outcome.recording is None or outcome.module is None:
        raise ValueError("it has no Cells to compare")
    calls = [recorded for name, recorded in outcome.recording.calls.items() if name in equal]
    if not calls:
        raise ValueError("no Cell of it was compared and equal")
    recorded = max(calls, key=lambda each: sum(values.size for values in each.state.values()))
    module, _ = prepared(recorded, Builder(outcome.module, outcome.recording))
    return Pair(recorded.cell, module, recorded.args, recorded.kwargs)


def _of_network(name: str) -> Pair:
    """Return a network of benchmarks/networks. Raise ValueError if Cell and Module do not compute the same."""
    import numpy as np
    import torch

    from torchspore.port.verification.recorded_run import ArrayOfTensor

    cell, module, inputs = networks.load_networks()[name]()
    networks.copy_parameters(cell, module)
    pair = Pair(cell, module, tuple(map(ArrayOfTensor, inputs)), {})
    cell.set_train(False)
    module.eval()
    result = cell(*_to_mindspore(pair.args)).asnumpy()
    with torch.no_grad():
        expected = module(*map(torch.from_numpy, inputs)).numpy()
    if not np.allclose(result, expected, 1e-4, 1e-5):
        raise ValueError(f"its results differ by {np.abs(result - expected).max():.1e}")
    return pair


def _contenders(name: str, levels: list[str]) -> tuple[str, Calls, Calls]:
    """Return the class of a network, and for inference and training the timers of each contender."""
    pair = _of_program(name) if name.endswith(".py") else _of_network(name)
    infer, train = {TORCH: _torch_timer(pair, False)}, {TORCH: _torch_timer(pair, True)}
    for level in levels:
        infer[level], train[level] = (_cell_timer(pair, level, is_training) for is_training in (False, True))
    return type(pair.cell).__name__, infer, train


def _torch_timer(pair: Pair, is_training: bool) -> Callable[[int], float]:
    import torch

    from torchspore.port.verification.comparison import _tensors, _to_torch
    from torchspore.port.verification.results import tensors_of_result

    module = pair.module
    args, kwargs = _to_torch((pair.args, pair.kwargs), torch.float32)
    for tensor in _tensors((args, kwargs)):
        tensor.requires_grad_(False)
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]

    def infer() -> Any:
        with torch.no_grad():
            return module(*args, **kwargs)

    def train() -> None:
        for parameter in parameters:
            parameter.grad = None
        results = [result for result in tensors_of_result(module(*args, **kwargs)) if result.is_floating_point()]
        sum(result.mean() for result in results).backward()

    return _in_mode(lambda: module.train(is_training), turns.timer(train if is_training else infer))


def _cell_timer(pair: Pair, level: str, is_training: bool) -> Callable[[int], float]:
    import mindspore as ms

    cell = pair.cell
    args, kwargs = _to_mindspore((pair.args, pair.kwargs))
    keyed = tuple(kwargs)

    def forward(*values: Any) -> Any:
        results = cell(*values[:len(args)], **dict(zip(keyed, values[len(args):])))
        return sum(result.mean() for result in _floating_results(results))

    gradient = ms.value_and_grad(forward, None, ms.ParameterTuple(cell.trainable_params()))
    step = gradient if level == "PyNative" else ms.jit(lambda *values: gradient(*values))

    def set_mode() -> None:
        if level == "PyNative":
            ms.set_context(mode=ms.PYNATIVE_MODE)
        else:
            ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": level})
        cell.set_train(is_training).set_grad(False)          # a Cell of `set_grad()` would record each call for a later gradient

    if is_training:
        return _in_mode(set_mode, turns.timer(lambda: step(*args, *kwargs.values())))
    return _in_mode(set_mode, turns.timer(lambda: cell(*args, **kwargs)))


def _floating_results(results: Any) -> list[Any]:
    import mindspore as ms

    if isinstance(results, ms.Tensor):
        return [results] if results.dtype in (ms.float16, ms.float32, ms.float64) else []
    nests = results.values() if isinstance(results, dict) else results if isinstance(results, (tuple, list)) else ()
    return [tensor for nest in nests for tensor in _floating_results(nest)]


def _to_mindspore(value: Any) -> Any:
    import mindspore as ms

    from torchspore.port.verification.recorded_run import ArrayOfTensor

    if isinstance(value, ArrayOfTensor):
        return ms.Tensor(value.values)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_to_mindspore, value))
    return {key: _to_mindspore(item) for key, item in value.items()} if isinstance(value, dict) else value


def _in_mode(set_mode: Callable[[], Any], seconds: Callable[[int], float]) -> Callable[[int], float]:
    """Return the timer with the mode set before each of its turns."""

    def run(steps: int) -> float:
        set_mode()
        return seconds(steps)

    return run


def _measure(path: str, levels: list[str], rounds: int, seconds: float, result: str) -> None:
    """Write the row of a program, or the reason why it has none, as JSON into the file `result`."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    row: dict[str, Any] = {"program": Path(path).stem}
    sys.path[:0] = [str(ROOT / "tests/scripts/programs")]
    try:
        with contextlib.redirect_stdout(io.StringIO()):      # what the program prints
            row["cell"], *both = _contenders(path, levels)
        for what, calls in zip(("infer", "train"), both):
            times = turns.measure(calls, seconds, rounds)
            ratios = {level: turns.ratio(times[level], times[TORCH]) for level in levels}
            row[what] = {"ms": statistics.median(times[TORCH]) * 1e3, **ratios}
    except Exception as error:
        row["reason"] = f"{type(error).__name__}: {error}".splitlines()[0][:100]
        if os.environ.get("SWEEP_TRACEBACK"):
            traceback.print_exc()
    Path(result).write_text(json.dumps(row), encoding="utf-8")


def _row_of(path: str, arguments: argparse.Namespace, levels: list[str]) -> dict[str, Any]:
    """Measure a program in a child process, which inherits the imports."""
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "row.json")
        child = multiprocessing.get_context("fork").Process(
            target=_measure, args=(path, levels, arguments.rounds, arguments.seconds, result))
        child.start()
        child.join(SECONDS_FOR_PROGRAM)
        if child.is_alive():
            child.kill()
        child.join()
        if os.path.exists(result):
            row: dict[str, Any] = json.loads(Path(result).read_text(encoding="utf-8"))
            return row
    return {"program": Path(path).stem, "reason": f"ended with {child.exitcode}"}


def _shown(row: dict[str, Any], levels: list[str]) -> str:
    """Return the line of a row in the table."""
    if "reason" in row:
        return f"| {row['program']} | {row['reason']} | |{' |' * (2 * len(levels))}"
    cells = [row[what][level] for what in ("infer", "train") for level in levels]
    return f"| {row['program']} | {row['cell']} | {row['infer']['ms']:.2f} / {row['train']['ms']:.2f} | {' | '.join(cells)} |"


def names_of_all() -> list[str]:
    """Return the files of all programs, and the names of all networks."""
    return [*sorted(map(str, (ROOT / "tests/scripts/programs/models").glob("*.py"))), *sorted(networks.load_networks())]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sample", type=int, default=0, help="how many of all networks to run, at equal distances in their list")
    parser.add_argument("--levels", default="PyNative,O0")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--json", type=Path, help="a file for the rows")
    arguments = parser.parse_args()
    levels = arguments.levels.split(",")
    names = arguments.names or names_of_all()
    if arguments.sample:
        names = [names[number * len(names) // arguments.sample] for number in range(min(arguments.sample, len(names)))]
    import torchspore

    torchspore.install()
    import mindspore  # noqa: F401

    from torchspore.port import complete_port  # noqa: F401

    heads = [f"{what}, {level}" for what in ("infer", "train") for level in levels]
    print(f"\n### Networks beside torch, ratio to torch (median, min .. max of {arguments.rounds}), one thread\n")
    print(f"| network | Cell | torch infer / train, ms | {' | '.join(heads)} |\n|---|---|---:|{'---|' * len(heads)}")
    rows = []
    for name in names:
        rows.append(_row_of(name, arguments, levels))
        print(_shown(rows[-1], levels), flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
