"""What operators draw on the CPU after a seed in PyNative mode: several shapes and calls in a row, seeds of the program and of operators.

Run by real MindSpore (`/work/oracle/bin/python tests/parity/draws.py`, which writes the record) and by the test; imports nothing of
torchspore.
"""
from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).parent / "records" / "draws.json"
SEEDS = 1, 0, 12345, 2**31 + 7
SHAPES = (3,), (2, 5), (1,), (1001,), (3,), (40, 50)

MULTIPLES = (4,), (2, 6), (1000,), (40, 50)
"""Shapes for bernoulli, whose kernel begins its next call with what is left of four words."""


def summary(value: Any) -> list[Any]:
    """The dtype, the shape, the first values as text, and a digest of all bytes."""
    array = np.ascontiguousarray(value.asnumpy())
    digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
    return [str(array.dtype), list(array.shape), [str(item) for item in array.ravel()[:4]], digest]


def functions(ms: Any) -> dict[str, Callable[..., Any]]:
    """Each function by its name: called with a shape, and with a seed of its own or None."""
    ops, tensor = ms.ops, ms.Tensor
    single, integer = ms.float32, ms.int32
    return {
        "standard_normal": lambda shape, seed: ops.standard_normal(shape, seed),
        "randn": lambda shape, seed: ops.randn(*shape, seed=seed),
        "randn_float16": lambda shape, seed: ops.randn(*shape, seed=seed, dtype=ms.float16),
        "randn_like": lambda shape, seed: ops.randn_like(ops.ones(shape, single), seed),
        "normal": lambda shape, seed: ops.normal(shape, tensor(1.5, single), tensor(0.3, single), seed),
        "normal_of_rows": lambda shape, seed: ops.normal(
            (2, *shape), tensor(np.array([1.5, 2], np.float32).reshape(2, *[1] * len(shape))), tensor(0.3, single), seed),
        "rand": lambda shape, seed: ops.rand(*shape, seed=seed),
        "rand_float64": lambda shape, seed: ops.rand(*shape, seed=seed, dtype=ms.float64),
        "rand_like": lambda shape, seed: ops.rand_like(ops.ones(shape, single), seed),
        "uniform": lambda shape, seed: ops.uniform(shape, tensor(-1.5, single), tensor(0.3, single), seed),
        "uniform_int": lambda shape, seed: ops.uniform(shape, tensor(-15, integer), tensor(2**30, integer), seed, integer),
        "randint": lambda shape, seed: ops.randint(-5, 1000, shape, seed),
        "randint_wide": lambda shape, seed: ops.randint(-2**30, 2**30 + 12345, shape, seed),
        "randint_int32": lambda shape, seed: ops.randint(0, 3, shape, seed, dtype=integer),
        "randint_like": lambda shape, seed: ops.randint_like(ops.ones(shape, integer), 0, 3 * 2**29, seed),
        "multinomial": lambda shape, seed: ops.multinomial(weights(ms, shape[0]), 20, True, seed),
        "multinomial_rows": lambda shape, seed: ops.multinomial(weights(ms, shape[0] * 3).reshape(3, shape[0]), 15, True, seed),
        "multinomial_once": lambda shape, seed: ops.multinomial(weights(ms, shape[0]), min(shape[0], 5), False, seed),
        "multinomial_rows_once": lambda shape, seed: ops.multinomial(
            weights(ms, shape[0] * 3).reshape(3, shape[0]), min(shape[0], 5), False, seed),
        "rrelu": lambda shape, seed: ops.rrelu(tensor(np.linspace(-3, 2, int(np.prod(shape))).reshape(shape).astype(np.float32))),
        "numpy_rand": lambda shape, seed: ms.numpy.rand(shape),
        "numpy_randn": lambda shape, seed: ms.numpy.randn(shape, dtype=ms.float64),
        "numpy_randint": lambda shape, seed: ms.numpy.randint(-3, 1000, shape),
        "standard_laplace": lambda shape, seed: ops.standard_laplace(shape, seed),
        "laplace": lambda shape, seed: ops.laplace(shape, tensor([1.5], single), tensor([0.3], single), seed),
        "shuffle": lambda shape, seed: ops.shuffle(tensor(np.arange(2 * shape[0], dtype=np.float32).reshape(-1, 2)), seed),
        "shuffle_vector": lambda shape, seed: ops.shuffle(tensor(np.arange(shape[-1] * 11, dtype=np.int32)), seed),
        "choice_with_mask": lambda shape, seed: ops.choice_with_mask(tensor(np.arange(np.prod(shape)).reshape(shape) % 3 > 0), 7, seed)[0],
    }


def weights(ms: Any, count: int) -> Any:
    """Positive weights, which are not normalised."""
    return ms.Tensor((np.arange(count) * 7 % 5 + 0.25).astype(np.float32))


def stateless(ms: Any) -> dict[str, Callable[..., Any]]:
    """Functions whose seed is all that decides: called with a shape and a seed from 1 on."""
    ops, tensor = ms.ops, ms.Tensor
    return {
        "randperm": lambda shape, seed: ops.randperm(shape[-1] * 9, seed),
        "randperm_offset": lambda shape, seed: ops.randperm(shape[-1] * 9, 5, seed),
        "randperm_int32": lambda shape, seed: ops.randperm(shape[-1] * 9, seed, dtype=ms.int32),
        "bernoulli": lambda shape, seed: ops.bernoulli(ops.ones(shape, ms.float32), 0.3, seed),
        "bernoulli_int8": lambda shape, seed: ops.bernoulli(ops.ones(shape, ms.int8), 0.8, seed),
        "bernoulli_each": lambda shape, seed: ops.bernoulli(
            ops.ones(shape, ms.float32), tensor(np.linspace(0, 1, int(np.prod(shape))).reshape(shape).astype(np.float32)), seed),
    }


def primitives(ms: Any) -> dict[str, tuple[Callable[[int, int], Any], Callable[..., Any]]]:
    """How each primitive is made of two seeds, and how it is called with a shape."""
    ops, tensor = ms.ops, ms.Tensor
    low, high = tensor(-3, ms.int32), tensor(2**30, ms.int32)
    return {
        "StandardNormal": (ops.StandardNormal, lambda op, shape: op(shape)),
        "UniformReal": (ops.UniformReal, lambda op, shape: op(shape)),
        "UniformInt": (ops.UniformInt, lambda op, shape: op(shape, low, high)),
        "Multinomial": (ops.Multinomial, lambda op, shape: op(weights(ms, shape[0]), 20)),
        "TruncatedNormal": (lambda seed, seed2: ops.TruncatedNormal(seed=seed, seed2=seed2),
                            lambda op, shape: op(tensor((2, *shape), ms.int32))),
        "StandardLaplace": (ops.StandardLaplace, lambda op, shape: op(shape)),
        "RandomShuffle": (ops.RandomShuffle, lambda op, shape: op(tensor(np.arange(shape[0] * 11, dtype=np.int32)))),
        "RandomChoiceWithMask": (lambda seed, seed2: ops.RandomChoiceWithMask(7, seed, seed2),
                                 lambda op, shape: op(tensor(np.arange(np.prod(shape)).reshape(shape) % 3 > 0))[0]),
    }


def cases(ms: Any) -> dict[str, Callable[[], list[Any]]]:
    """Every program of the record."""
    out: dict[str, Callable[[], list[Any]]] = {}

    def of_function(draw: Any, seed: int, op_seeds: tuple[Any, ...], shapes: Any = SHAPES) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            ms.set_seed(seed)
            return [summary(draw(shape, op_seed)) for op_seed in op_seeds for shape in shapes]

        return run

    def of_primitive(make: Any, draw: Any, seeds: tuple[int, int]) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            ms.set_seed(3)
            first, second = make(*seeds), make(*seeds)
            return [summary(draw(op, shape)) for shape in SHAPES for op in (first, second, first)]

        return run

    for name, draw in functions(ms).items():
        for seed in SEEDS:
            out[f"{name}/{seed}"] = of_function(draw, seed, (None, 7) if seed == 1 else (None,))
    for name, draw in stateless(ms).items():
        out[name] = of_function(draw, 1, (1, 5, 99999), MULTIPLES)
    for name, (make, draw) in primitives(ms).items():
        for seeds in ((3, 4), (5, 0), (0, 6)):
            out[f"{name}/{seeds[0]}/{seeds[1]}"] = of_primitive(make, draw, seeds)
    out["together"] = lambda: together(ms)
    return out


def together(ms: Any) -> list[Any]:
    """Different functions in a row: each kind counts its seeds apart."""
    ms.set_seed(1)
    functions_of = functions(ms)
    return [summary(functions_of[name]((4, 3), seed)) for seed in (None, 2, None) for name in sorted(functions_of)]


if __name__ == "__main__":
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, device_target="CPU")
    record = {}
    for name, case in cases(mindspore).items():
        try:
            record[name] = case()
        except Exception as error:
            print(name, type(error).__name__, " ".join(str(error).split())[:200], file=sys.stderr)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in record.items())
    RECORD.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
