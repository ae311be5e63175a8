"""What operators draw on the CPU for parameters in Tensors: Gamma, Poisson, normal between limits, weights, candidates.

Run by real MindSpore (`/work/oracle/bin/python tests/parity/parameter_draws.py`, which writes the record) and by the test; imports nothing
of torchspore.
"""
from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

try:
    from parity.draws import summary
except ImportError:
    from draws import summary

RECORD = Path(__file__).parent / "records" / "parameter_draws.json"
FLOATS = np.float16, np.float32, np.float64
ALPHAS = 0.01, 0.3, 0.99, 1.0, 1.01, 2.5, 7, 100, 12345.0, 0.0
RATES = 0.0, 0.01, 0.5, 1, 3, 9.99, 10, 11, 50, 300, 60000
WEIGHTS = np.array([[0.5, 20, 2.5, 0, 3], [0, 1, 1, 5, 0.1], [1, 0, 0, 0, 0]])
LIMITS = (-1, 2), (0.1, 0.5), (3, 9), (-np.inf, -3), (1, 1.001), (0, 9), (0.5, 2.5), (4, 4.1), (-9, -0.5), (-5, np.inf), (2, 2), (-1.2, 1.2)
CLASSES = [[1, 5], [3, 9], [3, 3]]
LIBRARY = "C library"
"""The key of the record with the version of the C library that MindSpore's kernels called."""


def c_library() -> str:
    """Return the name and version of this process's C library, such as "glibc 2.36"."""
    return os.confstr("CS_GNU_LIBC_VERSION") or ""


def results(value: Any) -> list[Any]:
    """The summaries of one Tensor, or of each of several."""
    return [summary(item) for item in value] if isinstance(value, (tuple, list)) else [summary(value)]


def functions(ms: Any) -> dict[str, Callable[[Any], Any]]:
    """Functions that count their seeds from call to call, by their names: called with a seed of their own or None."""
    ops, tensor = ms.ops, ms.Tensor

    def ints(*values: int) -> Any:
        return tensor(np.array(values, np.int32))

    out: dict[str, Callable[[Any], Any]] = {
        "random_gamma_rank_2": lambda seed: ops.random_gamma(ints(3, 5), tensor(np.full((2, 2), 0.7, np.float32)), seed),
        "random_gamma_of_one": lambda seed: ops.random_gamma(ints(1), tensor(1.5, ms.float32), seed),
        "random_gamma_int64": lambda seed: ops.random_gamma(tensor([2, 3], ms.int64), tensor([1.5], ms.float32), seed),
        "random_poisson_rank_2": lambda seed: ops.random_poisson(ints(3, 5), tensor(np.full((2, 2), 20.5, np.float32)), seed),
        "random_poisson_many": lambda seed: ops.random_poisson(ints(300), tensor(np.array([3, 30], np.float32)), seed, ms.int32),
    }
    for dtype in FLOATS:
        name = np.dtype(dtype).name
        out[f"random_gamma_{name}"] = lambda seed, dtype=dtype: ops.random_gamma(ints(40), tensor(np.array(ALPHAS, dtype)), seed)
    for dtype in (*FLOATS, np.int32, np.int64):
        name = np.dtype(dtype).name
        out[f"random_poisson_{name}"] = lambda seed, dtype=dtype: ops.random_poisson(ints(40), tensor(np.array(RATES, dtype)), seed)
        kind = getattr(ms, name)
        out[f"random_poisson_as_{name}"] = lambda seed, kind=kind: ops.random_poisson(
            ints(7), tensor(np.array(RATES, np.float32)), seed, kind)
    return out


def restarting(ms: Any) -> dict[str, Callable[[int], Any]]:
    """Functions whose seed decides: called with a seed from 1 on."""
    ops, tensor = ms.ops, ms.Tensor
    classes = tensor(np.array(CLASSES, np.int64))
    out: dict[str, Callable[[int], Any]] = {
        "uniform_candidates": lambda seed: ops.uniform_candidate_sampler(classes, 2, 30, True, 99, seed),
        "uniform_candidates_repeated": lambda seed: ops.uniform_candidate_sampler(classes, 2, 300, False, 99, seed),
        "uniform_candidates_all": lambda seed: ops.uniform_candidate_sampler(classes, 2, 50, True, 50, seed, False),
        "uniform_candidates_without_hits": lambda seed: ops.uniform_candidate_sampler(classes, 2, 10, True, 20, seed, True),
        "uniform_candidates_too_few": lambda seed: ops.uniform_candidate_sampler(classes, 2, 10, True, 12, seed, True),
        "uniform_candidates_int32": lambda seed: ops.uniform_candidate_sampler(classes.astype(ms.int32), 2, 30, True, 2**31 - 1, seed),
        "uniform_candidates_wide": lambda seed: ops.uniform_candidate_sampler(classes, 2, 30, False, 2**32, seed),
        "uniform_candidates_very_wide": lambda seed: ops.uniform_candidate_sampler(classes, 2, 30, True, 2**40 + 12345, seed),
        "log_uniform_candidates": lambda seed: ops.log_uniform_candidate_sampler(classes, 2, 30, True, 99, seed),
        "log_uniform_candidates_repeated": lambda seed: ops.log_uniform_candidate_sampler(classes, 2, 300, False, 9999, seed),
        "log_uniform_candidates_all": lambda seed: ops.log_uniform_candidate_sampler(classes, 2, 12, True, 12, seed),
        "weighted_vector": lambda seed: ops.multinomial_with_replacement(tensor(WEIGHTS[0].astype(np.float32)), seed, 3, 9, True),
        "weighted_offset": lambda seed: ops.multinomial_with_replacement(tensor(WEIGHTS.astype(np.float32)), 5, seed, 9, True),
        "weighted_negative": lambda seed: ops.multinomial_with_replacement(tensor(WEIGHTS.astype(np.float32)), -seed, seed, 9, True),
        "weighted_large": lambda seed: ops.multinomial_with_replacement(tensor(WEIGHTS.astype(np.float32)), seed + 2**40, 2**50, 4, True),
    }
    for dtype in FLOATS:
        name = np.dtype(dtype).name
        logits = tensor(np.log(WEIGHTS + 0.01).astype(dtype))
        weights = tensor(WEIGHTS.astype(dtype))
        for kind in ("int16", "int32", "int64"):
            out[f"random_categorical_{name}_{kind}"] = lambda seed, logits=logits, kind=kind: ops.random_categorical(
                logits, 100, seed, getattr(ms, kind))
        out[f"weighted_{name}"] = lambda seed, weights=weights: ops.multinomial_with_replacement(weights, seed, 4, 101, True)
        out[f"weighted_once_{name}"] = lambda seed, weights=weights: ops.multinomial_with_replacement(weights, seed, 4, 5, False)
    return out


def primitives(ms: Any) -> dict[str, tuple[Callable[[int, int], Any], list[Callable[[Any], Any]]]]:
    """How each primitive is made of two seeds, and calls of it, each of which the record makes three times."""
    ops, tensor = ms.ops, ms.Tensor
    truncated = ops.operations.random_ops.ParameterizedTruncatedNormal

    def array(values: Any, dtype: Any = np.float32) -> Any:
        return tensor(np.array(values, dtype))

    def shape(*values: int, dtype: Any = np.int32) -> Any:
        return tensor(np.array(values, dtype))

    def limits(low: float, high: float, dtype: Any = np.float32, mean: float = 0.25) -> list[Any]:
        return [array([value], dtype) for value in (mean, 1.5, low, high)]

    classes = np.array(CLASSES)
    out: dict[str, tuple[Callable[[int, int], Any], list[Callable[[Any], Any]]]] = {
        "RandomGamma": (ops.RandomGamma, [
            lambda op: op(shape(30), array(ALPHAS)),
            lambda op: op(shape(30), array([2.5, 3.5])), lambda op: op(shape(30), array([2.5, 4.5])),
            lambda op: op(shape(5, 6), array([2.5, 3.5])), lambda op: op(shape(30, dtype=np.int64), array([2.5, 3.5])),
            lambda op: op(shape(30), array([2.5, 3.5], np.float64)), lambda op: op(shape(30), array([[2.5, 3.5]])),
        ]),
        "RandomPoisson": (ops.RandomPoisson, [
            lambda op: op(shape(30), array(RATES)),
            lambda op: op(shape(30), array([2.5, 33.5])), lambda op: op(shape(30), array([2.5, 44, 2])),
            lambda op: op(shape(5, 6), array([2.5, 33.5])), lambda op: op(shape(30, dtype=np.int64), array([2.5, 33.5])),
            lambda op: op(shape(30), array([2.5, 33.5], np.float64)), lambda op: op(shape(30), array([[2.5, 33.5]])),
            lambda op: op(shape(0), array([2.5, 33.5])),
        ]),
        "ParameterizedTruncatedNormal": (truncated, [
            lambda op: op(shape(3, 20), *limits(-1, 2)),
            lambda op: op(shape(3, 20), *limits(1, 2)), lambda op: op(shape(3, 21), *limits(1, 2)),
            lambda op: op(shape(3, 20), *limits(-1, 2, np.float64)), lambda op: op(shape(3, 4, 5), *limits(-1, 2)),
            lambda op: op(shape(3, 20), array(0.25), array(1.5), array(-1), array(2)),
            lambda op: op(shape(3, 20, dtype=np.int64), *limits(-1, 2)),
        ]),
        "MultinomialWithReplacement": (lambda seed, seed2: (ops.MultinomialWithReplacement(5, True), seed, seed2), [
            lambda op: op[0](array(WEIGHTS), array(op[1], np.int64), array(op[2], np.int64)),
            lambda op: op[0](array(WEIGHTS[:1]), array(op[1], np.int64), array(op[2], np.int64)),
            lambda op: op[0](array(WEIGHTS, np.float64), array(op[1], np.int64), array(op[2], np.int64)),
            lambda op: op[0](array(WEIGHTS), array(op[1] + 9, np.int64), array(op[2], np.int64)),
            lambda op: op[0](array(WEIGHTS + 1), array(op[1], np.int64), array(op[2], np.int64)),
        ]),
        "RandomCategorical": (lambda seed, seed2: (ops.RandomCategorical(ms.int64), seed + 10 * seed2), [
            lambda op: op[0](array(WEIGHTS), 20, op[1]), lambda op: op[0](array(-WEIGHTS), 20, op[1]),
            lambda op: op[0](array(WEIGHTS[:1]), 20, op[1]), lambda op: op[0](array(WEIGHTS), 21, op[1]),
            lambda op: op[0](array(WEIGHTS), 20, op[1] + 1), lambda op: op[0](array(WEIGHTS, np.float64), 20, op[1]),
            lambda op: op[0](array(WEIGHTS), 20, array(op[1], np.int64)), lambda op: op[0](array(WEIGHTS), 20, -op[1]),
            lambda op: op[0](array(WEIGHTS), 20, op[1] + 2**40),
        ]),
        "UniformCandidateSampler": (lambda seed, seed2: ops.UniformCandidateSampler(2, 30, True, 99, seed + 10 * seed2), [
            lambda op: op(tensor(classes)), lambda op: op(tensor(classes + 1)), lambda op: op(tensor(classes[:1])),
            lambda op: op(tensor(classes.astype(np.int32))),
        ]),
        "LogUniformCandidateSampler": (lambda seed, seed2: ops.LogUniformCandidateSampler(2, 30, True, 99, seed - seed2 + 6), [
            lambda op: op(tensor(classes)), lambda op: op(tensor(classes + 1)), lambda op: op(tensor(classes[:1])),
        ]),
    }
    for dtype in FLOATS:
        calls = [lambda op, low=low, high=high, dtype=dtype: op(shape(2, 30), *limits(low, high, dtype)) for low, high in LIMITS]
        out[f"ParameterizedTruncatedNormal_{np.dtype(dtype).name}"] = (truncated, calls)
    return out


def cases(ms: Any) -> dict[str, Callable[[], list[Any]]]:
    """Every program of the record."""
    out: dict[str, Callable[[], list[Any]]] = {}

    def of_function(draw: Any, seed: int, op_seeds: tuple[Any, ...]) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            ms.set_seed(seed)
            return [results(draw(op_seed)) for op_seed in op_seeds]

        return run

    def of_primitive(make: Any, calls: Any, seeds: tuple[int, int]) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            ms.set_seed(3)
            first, second = make(*seeds), make(*seeds)
            return [results(call(op)) for op in (first, second, first, first) for call in calls]

        return run

    for name, draw in functions(ms).items():
        for seed in (1, 0, 12345, 2**31 + 7):
            out[f"{name}/{seed}"] = of_function(draw, seed, (None, 7, None, 7, 8) if seed == 1 else (None, None))
    for name, draw in restarting(ms).items():
        out[name] = of_function(draw, 1, (1, 5, 1, 99999))
    for name, (make, calls) in primitives(ms).items():
        for seeds in ((3, 4), (5, 0), (0, 6)):
            out[f"{name}/{seeds[0]}/{seeds[1]}"] = of_primitive(make, calls, seeds)
    out["together"] = lambda: together(ms)
    return out


def together(ms: Any) -> list[Any]:
    """Different functions in a row: each kind counts its seeds apart."""
    ms.set_seed(1)
    draws = {**functions(ms), **restarting(ms)}
    return [results(draws[name](3 if name in restarting(ms) else seed)) for seed in (None, 2, None) for name in sorted(draws)]


if __name__ == "__main__":
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, device_target="CPU")
    record: dict[str, Any] = {LIBRARY: c_library()}
    for name, case in cases(mindspore).items():
        try:
            record[name] = case()
        except Exception as error:
            print(name, type(error).__name__, " ".join(str(error).split())[:200], file=sys.stderr)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in record.items())
    RECORD.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
