"""Imports every module of a package and counts those that fail for another reason than a missing third-party package."""
from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REQUIRED_SHARE = 0.97


def import_all(package: str, third_party_texts: tuple[str, ...] = ()) -> dict[str, Any]:
    """Import the modules of `package`. Return the counts as the row's remark.

    An ImportError whose text contains one of `third_party_texts` counts as a missing third-party package, like a ModuleNotFoundError for
    another package.

    Raises:
        ImportError: fewer than 97 % of the modules that miss no third-party package can be imported.
    """
    imported, missing, failed = 0, Counter[str](), list[str]()
    names = sorted(set(_module_names(package)))
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:  # not ImportError: torchspore would regard the imports of the package as guarded
            absent = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
            first_line = f"{type(error).__name__}: {error}".splitlines()[0][:120]
            if absent not in ("", package, "mindspore"):
                missing[absent] += 1
            elif any(text in str(error) for text in third_party_texts):
                missing[first_line.partition(": ")[2].partition(" (/")[0]] += 1
            else:
                failed.append(f"{name}: {first_line}")
        else:
            imported += 1
    expected = len(names) - missing.total()
    remark = f"{imported} of {expected} modules import"
    if missing:
        remark += f"; {missing.total()} of {len(names)} miss a third-party package ({', '.join(missing)})"
    if imported < REQUIRED_SHARE * expected:
        raise ImportError(f"{remark}; the first failures: {'; '.join(failed[:3])}")
    return {"told": remark + (f"; not imported: {'; '.join(failed[:4])}" if failed else "")}


def _module_names(package: str) -> Iterator[str]:
    root = Path(next(iter(importlib.import_module(package).__path__))).parent
    for folder, _, files in os.walk(root / package):
        for file in files:
            if file.endswith(".py"):
                parts = (Path(folder) / file).relative_to(root).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def train_three_steps(step: Any, *inputs: Any) -> list[float]:
    """Return the losses of three calls of a training step. Raises ValueError if one is not finite."""
    import numpy as np

    losses = [float(step(*inputs).asnumpy().reshape(-1)[0]) for _ in range(3)]
    if not np.isfinite(losses).all():
        raise ValueError(f"the losses are {losses}")
    return losses


def compare_modes(losses_in_mode: Any) -> dict[str, Any]:
    """Call `losses_in_mode(mode)` in PyNative and Graph mode. Return the losses as the row's remark.

    Raises:
        ValueError: the losses differ by more than 1e-5 of their size.
    """
    import mindspore as ms
    import numpy as np

    pynative, graph = losses_in_mode(ms.PYNATIVE_MODE), losses_in_mode(ms.GRAPH_MODE)
    if not np.allclose(pynative, graph, rtol=1e-5):
        raise ValueError(f"PyNative {pynative}, Graph mode {graph}")
    return {"told": f"losses in both modes: {', '.join(f'{loss:.6f}' for loss in pynative)}"}
