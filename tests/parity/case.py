"""A parity case: one function that real MindSpore and torchspore both run, and whose answers are compared.

A case file is a module of `tests/parity/cases/`. It imports `mindspore` and nothing of ours but this file:

    import mindspore as ms
    from parity.case import case

    @case(rtol=1e-6)
    def conv2d_same_stride2():
        conv = ms.nn.Conv2d(3, 4, 3, stride=2, weight_init="ones")
        return {"output": conv(ms.Tensor(image)).asnumpy()}

`tools/record.py parity` runs it in MindSpore 2.10 and writes `tests/parity/records/<file>.npz`;
`tests/parity/test_cases.py` runs it here and compares. No torch and no mindspore is imported by this file.
"""
from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy

HERE = Path(__file__).parent
CASES = HERE / "cases"
RECORDS = HERE / "records"

Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One declared case. `name` is unique in its file; `call` takes nothing and answers a mapping."""

    name: str
    call: Callable[[], Answer]
    rtol: float = 1e-6
    atol: float = 0.0
    graph: bool = False
    """Whether GRAPH_MODE is compared here too, against the same (PyNative) record."""


@dataclass
class Collected:
    """The cases of one file, in the order in which they stand there."""

    cases: list[Case] = field(default_factory=list)


_collecting: Collected | None = None


def case(
    *, rtol: float = 1e-6, atol: float = 0.0, graph: bool = False, over: Mapping[str, Any] | Iterable[Any] | None = None
) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Declares the decorated function as a case.

    The function answers a dict: NumPy arrays are compared within `rtol` and `atol` (dtype and shape exactly), anything else
    must be JSON and is compared for equality. With `over`, it takes one argument and becomes one case for each item:
    the values of a mapping (named by its keys), or the items of an iterable (named by their text).
    """

    def declare(function: Callable[..., Answer]) -> Callable[..., Answer]:
        if _collecting is None:
            return function
        if over is None:
            _collecting.cases.append(Case(function.__name__, function, rtol, atol, graph))
            return function
        items = over.items() if isinstance(over, Mapping) else [(str(item), item) for item in over]
        for label, item in items:
            _collecting.cases.append(Case(f"{function.__name__}[{label}]", partial(function, item), rtol, atol, graph))
        return function

    return declare


def raised(call: Callable[[], Any]) -> str | None:
    """The name of the built-in error type that `call` raises, or None. A subclass counts as it; messages are not compared."""
    try:
        call()
    except Exception as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return None


def load(path: Path) -> list[Case]:
    """Imports the case file at `path` afresh and gives its cases."""
    global _collecting
    _collecting = collected = Collected()
    try:
        specification = importlib.util.spec_from_file_location(f"parity_cases_{path.stem}", path)
        assert specification is not None and specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.modules[specification.name] = module
        specification.loader.exec_module(module)
    finally:
        _collecting = None
    names = [test_case.name for test_case in collected.cases]
    assert len(set(names)) == len(names), f"{path}: two cases have one name"
    return collected.cases


def run(test_case: Case, graph: bool = False) -> dict[str, Any]:
    """Runs a case from the same state each time: PyNative (or Graph) mode, and known NumPy random numbers."""
    import mindspore

    mindspore.set_context(mode=mindspore.GRAPH_MODE if graph else mindspore.PYNATIVE_MODE)
    numpy.random.seed(20)
    try:
        return dict(test_case.call())
    finally:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)


def write(path: Path, answers: Mapping[str, Answer], about: Mapping[str, str]) -> None:
    """Writes one file of records: an array for each array, and one JSON text for everything else."""
    arrays: dict[str, numpy.ndarray] = {}
    values: dict[str, dict[str, Any]] = {}
    for name, answer in answers.items():
        values[name] = {}
        for key, value in answer.items():
            if isinstance(value, (numpy.ndarray, numpy.generic)):
                arrays[f"{name}/{key}"] = numpy.asarray(value)
            else:
                values[name][key] = value
    text = json.dumps({"about": dict(about), "values": values}, sort_keys=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    # numpy stamps every member with the same date, so that equal records are equal files.
    numpy.savez_compressed(path, __json__=numpy.array(text), **arrays)


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The answers of one file of records, by case."""
    with numpy.load(path, allow_pickle=False) as file:
        text = json.loads(str(file["__json__"]))
        answers: dict[str, dict[str, Any]] = {name: dict(values) for name, values in text["values"].items()}
        for key in file.files:
            if key != "__json__":
                name, _, part = key.rpartition("/")
                answers[name][part] = file[key]
    return answers


ACCELERATOR_TOLERANCES = {"float16": 5e-3, "float32": 1e-4, "float64": 1e-9, "complex64": 1e-4, "complex128": 1e-9}
"""How far an accelerator's numbers may lie from the CPU's, relative to the array's largest number: kernels add in another order."""


def tolerances(expected: Any, rtol: float, atol: float) -> tuple[float, float]:
    """Gives the tolerances of a case on an accelerator for one recorded array: those of its dtype where they are larger."""
    limit = ACCELERATOR_TOLERANCES.get(str(getattr(expected, "dtype", "")), 0.0)
    finite = expected[numpy.isfinite(expected)] if limit and expected.size else numpy.zeros(0)
    largest = float(numpy.abs(finite).max()) if finite.size else 0.0
    return max(rtol, limit), max(atol, limit * largest)


def differences(expected: Answer, result: Answer, rtol: float, atol: float, on_accelerator: bool = False) -> list[str]:
    """What differs, one line for each key; empty where the answers agree. On an accelerator `tolerances` widens `rtol` and `atol`."""
    lines = []
    for key in sorted({*expected, *result}):
        if key not in result:
            lines.append(f"{key}: not answered")
        elif key not in expected:
            lines.append(f"{key}: not in the record (record it: tools/record.py parity)")
        else:
            limits = tolerances(expected[key], rtol, atol) if on_accelerator else (rtol, atol)
            if problem := _difference(expected[key], result[key], *limits):
                lines.append(f"{key}: {problem}")
    return lines


def _difference(expected: Any, result: Any, rtol: float, atol: float) -> str | None:
    if not isinstance(expected, numpy.ndarray):
        plain = json.loads(json.dumps(result)) if not isinstance(result, (numpy.ndarray, numpy.generic)) else result
        return None if type(plain) is type(expected) and plain == expected else f"{expected!r} expected, {result!r} found"
    result = numpy.asarray(result)
    if expected.dtype != result.dtype or expected.shape != result.shape:
        return f"{expected.dtype}{list(expected.shape)} expected, {result.dtype}{list(result.shape)} found"
    if expected.dtype.kind not in "fc":
        return None if (expected == result).all() else f"{expected.tolist()!r} expected, {result.tolist()!r} found"
    if numpy.allclose(result, expected, rtol=rtol, atol=atol, equal_nan=True):
        return None
    with numpy.errstate(invalid="ignore", over="ignore"):
        distance = numpy.abs(result.astype(numpy.complex128) - expected.astype(numpy.complex128))
    # A number where NaN is expected, or the other way round, is as far apart as can be; NaN beside NaN is equal.
    nan_differs = numpy.isnan(result) != numpy.isnan(expected)
    distance = numpy.where(nan_differs, numpy.inf, numpy.nan_to_num(distance, nan=0.0))
    worst = numpy.unravel_index(int(distance.argmax()), distance.shape)
    texts = [f"{value.dtype}({value!s})" for value in (expected[worst], result[worst])]       # NumPy 1 and 2 have two forms of repr
    return f"at {tuple(int(index) for index in worst)}: {texts[0]} expected, {texts[1]} found"
