"""Cells that compute in the precision of `to_float` beside their ported Modules under torch.autocast."""
from __future__ import annotations

import types

import torch

from torchspore.port.verification import comparison
from torchspore.port.verification.comparison import Builder, Verdict
from torchspore.port.verification.lower_precision import TOLERANCE_OF_AUTOCAST
from torchspore.port.verification.recorded_run import Recorded, Recording
from torchspore.port.verification.without_dropout import without_dropout
from torchspore.torch_modules.cell_module import as_module


def compare_lowered(ported: types.ModuleType, class_names: list[str], recording: Recording) -> list[Verdict]:
    """Return the verdicts of the classes whose recorded Cells have layers of a lower precision: results, with a larger tolerance."""
    verdicts = []
    for name in class_names:
        recorded = recording.calls.get(name)
        dtypes = {vars(layer)["_lower_"].dtype for layer in comparison.lowered_layers(recorded.cell)} if recorded is not None else set()
        dtypes &= set(TOLERANCE_OF_AUTOCAST)
        if recorded is None or len(dtypes) != 1:
            continue
        dtype = dtypes.pop()
        tolerance = TOLERANCE_OF_AUTOCAST[dtype]
        precision = f"{str(dtype).removeprefix('torch.')} under torch.autocast, tolerance {tolerance:.0e}"
        try:
            with without_dropout(ported):
                verdict = Verdict(name, _difference(recorded, Builder(ported, recording), dtype), 0.0, tolerance=tolerance)
        except Exception as error:
            verdict = Verdict(name, reason=f"{type(error).__name__}: {error}".splitlines()[0])
        verdict.precision = precision
        verdicts.append(verdict)
    return verdicts


def _difference(recorded: Recorded, builder: Builder, dtype: torch.dtype) -> float:
    """Return the largest difference of the results of a call."""
    module, _ = comparison.prepared(recorded, builder)
    reference = as_module(recorded.cell)
    reference.train(False)
    module.train(False)
    args, kwargs = comparison._to_torch((recorded.args, recorded.kwargs), torch.float32)
    with torch.no_grad():
        expected = comparison._run(reference, args, kwargs)
        with torch.autocast("cpu", dtype=dtype):
            actual = comparison._run(module, args, kwargs)
    return comparison._difference(expected, actual)
