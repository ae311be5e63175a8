"""Whole generated programs in both modes: everything that they log is equal, their state and random numbers after each call included."""
from __future__ import annotations

import linecache
import math
import os
import random
import sys
import types
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest

from tests.unit.graph.control_flow import program_generator
from tests.unit.graph.control_flow.cell_pieces import CELLS

FEW, MANY = (7, 13), int(os.environ.get("PROGRAMS", "200"))
"""Seeds of each run: in these whole graphs write attributes; and how many there are in all."""


@pytest.fixture(autouse=True)
def afterwards() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def plain(value: Any) -> Any:
    """A value as numbers, texts and lists."""
    if isinstance(value, ms.Tensor):
        return [type(value).__name__, str(value.dtype), *value.shape, *map(float, value.asnumpy().ravel())]
    if isinstance(value, dict):
        return [type(value).__name__, *([plain(key), plain(item)] for key, item in value.items())]
    if isinstance(value, (str, bool, int, float, type(None))):
        return value if isinstance(value, (float, str)) else f"{type(value).__name__} {value}"
    return [type(value).__name__, *map(plain, value)]


def run(seed: int, mode: int) -> list[Any]:
    """What the program of `seed` logs in a mode."""
    name = f"program_{seed}_{mode}"
    file, text, logged = f"/generated/{name}.py", program_generator.text(seed), []
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = types.ModuleType(name)
    module.__dict__["log"] = lambda *values: logged.append([plain(value) for value in values])
    ms.set_context(mode=mode)
    ms.set_seed(7)
    np.random.seed(7)
    random.seed(7)
    sys.modules[name] = module
    try:
        exec(compile(text, file, "exec"), module.__dict__)
    finally:
        del sys.modules[name]
    return logged


def is_close(value: Any, other: Any) -> bool:
    """Equal, but for the last digits of numbers."""
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=2e-5, abs_tol=2e-5) or (math.isnan(value) and math.isnan(other))
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(is_close, value, other))
    return type(value) is type(other) and value == other


def compared(seed: int) -> None:
    eager, graph = run(seed, ms.PYNATIVE_MODE), run(seed, ms.GRAPH_MODE)
    for index, (expected, other) in enumerate(zip(eager, graph)):
        assert is_close(expected, other), f"line {index} of the log of seed {seed}:\n{expected}\n{other}\n{program_generator.text(seed)}"
    assert len(eager) == len(graph)


@pytest.mark.parametrize("seed", FEW)
def test_programs_are_equal_in_both_modes(seed: int) -> None:
    compared(seed)


def test_a_program_of_cells_that_change_is_equal_in_both_modes() -> None:
    compared(CELLS + 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [seed for seed in (*range(MANY), *range(CELLS, CELLS + MANY // 2)) if seed not in FEW])
def test_many_programs_are_equal_in_both_modes(seed: int) -> None:
    compared(seed)
