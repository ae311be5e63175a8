#!/usr/bin/env python3
"""Compares the parameters of every public callable and method of real MindSpore with those here.

    .oracle/bin/python tools/audit_signatures.py --record /tmp/theirs.json     asks MindSpore
    .venv/bin/python tools/audit_signatures.py /tmp/theirs.json                lists what differs here
"""
from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

from parity import signatures  # noqa: E402

MODULES = (
    *signatures.MODULES, "mindspore.boost", "mindspore.common", "mindspore.communication", "mindspore.communication.comm_func",
    "mindspore.device_context.ascend", "mindspore.device_context.cpu", "mindspore.device_context.gpu", "mindspore.experimental.optim",
    "mindspore.experimental.optim.lr_scheduler", "mindspore.hal", "mindspore.mindrecord", "mindspore.mint", "mindspore.mint.distributed",
    "mindspore.mint.linalg", "mindspore.mint.nn", "mindspore.mint.nn.functional", "mindspore.mint.optim", "mindspore.mint.special",
    "mindspore.nn.probability.bijector", "mindspore.nn.probability.bnn_layers", "mindspore.nn.probability.distribution",
    "mindspore.nn.utils", "mindspore.numpy", "mindspore.parallel", "mindspore.parallel.auto_parallel", "mindspore.parallel.nn",
    "mindspore.profiler", "mindspore.rewrite", "mindspore.runtime", "mindspore.scipy", "mindspore.scipy.fft", "mindspore.scipy.linalg",
    "mindspore.scipy.optimize", "mindspore.utils",
)
CLASSES = (
    "mindspore.COOTensor", "mindspore.CSRTensor", "mindspore.Generator", "mindspore.Model", "mindspore.Parameter",
    "mindspore.ParameterTuple",
    "mindspore.Profiler", "mindspore.RunContext", "mindspore.SummaryRecord", "mindspore.Tensor", "mindspore.amp.LossScaler",
    "mindspore.mindrecord.FileWriter", "mindspore.nn.Cell", "mindspore.nn.CellDict", "mindspore.nn.CellList", "mindspore.nn.Optimizer",
    "mindspore.nn.SequentialCell", "mindspore.nn.TrainOneStepCell", "mindspore.nn.TrainOneStepWithLossScaleCell",
    "mindspore.nn.probability.distribution.Distribution", "mindspore.ops.Primitive", "mindspore.rewrite.Node",
    "mindspore.rewrite.SymbolTree", "mindspore.train.Metric",
)


def record() -> dict[str, str]:
    """The parameters of everything, by its dotted name."""
    found = {}
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        names = [one for one in getattr(module, "__all__", None) or dir(module) if not one.startswith("_")]
        found.update({f"{name}.{one}": text for one, text in signatures.of_module(module, names).items()})
    for path in CLASSES:
        home, _, name = path.rpartition(".")
        try:
            owner = getattr(importlib.import_module(home), name)
        except (ImportError, AttributeError):
            continue
        for one in sorted(dir(owner)):
            text = _method(owner, one)
            if text is not None:
                found[f"{path}.{one}"] = text
    return found


def _method(owner: Any, name: str) -> str | None:
    """The parameters of a method, but for self."""
    if name.startswith("_"):
        return None
    value = getattr(owner, name, None)
    if not callable(value) or inspect.isclass(value):
        return None
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return None
    is_bound = inspect.ismethod(value) or isinstance(inspect.getattr_static(owner, name), staticmethod)
    return signatures.written(parameters if is_bound else parameters[1:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("theirs", type=Path)
    parser.add_argument("--record", action="store_true", help="write what is found to the file")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if not arguments.record:
        import torchspore

        torchspore.install()
    found = record()
    if arguments.record:
        arguments.theirs.write_text(json.dumps(found, indent=1))
        print(f"{len(found)} callables")
        return 0
    theirs = json.loads(arguments.theirs.read_text())
    unknown = ("*args, **kwargs", "*args", "**kwargs")
    absent = [name for name in theirs if name not in found]
    wrong = [name for name, text in theirs.items() if name in found and text not in unknown and not _agrees(found[name], text)]
    for name in wrong:
        print(f"{name}\n  ours:   {found[name]}\n  theirs: {theirs[name]}")
    print(f"{len(theirs)} callables, {len(absent)} absent here, {len(wrong)} with other parameters")
    print("absent:", " ".join(absent))
    return 1 if wrong else 0


def _agrees(ours: str, theirs: str) -> bool:
    """Whether our parameters are MindSpore's, with none but optional ones after them."""
    return ours.startswith(theirs) and all("=" in one or "*" in one for one in ours[len(theirs):].split(", ") if one)


if __name__ == "__main__":
    raise SystemExit(main())
