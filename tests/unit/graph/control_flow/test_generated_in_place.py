"""Generated functions that write in place: PyNative's values, first and second gradients and state, whether a graph holds them or not.

A Tensor that may be another one, as a Tensor decides, is written and read as PyNative does it: what no graph holds runs in parts.
"""
from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.unit.graph.control_flow.generator import NAMES, InPlaceWriter, LoopAliasWriter, features, function, text
from tests.unit.graph.control_flow.running import compiled, expect_equal, expected

QUICK = range(80)
COUNT = int(os.environ.get("PROGRAMS", "400"))


def branches(source: str) -> Iterator[ast.If]:
    """The `if`s of a source that have an `else`."""
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.If) and node.orelse)


def names_written(block: list[ast.stmt]) -> set[str]:
    """The names that a block writes into in place."""
    names = set()
    for node in (part for statement in block for part in ast.walk(statement)):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            names.add(node.value.id)
        if isinstance(node, ast.Attribute) and node.attr in ("mul_", "add_") and isinstance(node.value, ast.Name):
            names.add(node.value.id)
    return names


def rebound(block: list[ast.stmt]) -> set[str]:
    """The names that a block gives another value."""
    return {
        node.id for statement in block for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NAMES
    }


def test_the_hard_cases_occur() -> None:
    result: Counter[str] = Counter()
    for seed in range(1000):
        source = text(seed, InPlaceWriter)
        result.update(features(source) & {"depth 4", "depth 5", "if in 2 loops", "while in 1 loops", "S.last ="})
        for node in branches(source):
            for branch, other in ((node.body, node.orelse), (node.orelse, node.body)):
                result["one way writes in place, the other rebinds"] += bool(names_written(branch) & rebound(other) - names_written(other))
                result["one way writes a view, the other an alias"] += "v" in names_written(branch) and "d" in names_written(other)
    least = {
        "one way writes in place, the other rebinds": 200, "one way writes a view, the other an alias": 10, "depth 4": 150,
        "if in 2 loops": 50, "while in 1 loops": 50, "S.last =": 50,
    }
    assert {case: result[case] for case, count in least.items() if result[case] < count} == {}


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[] if seed in QUICK else [pytest.mark.slow]) for seed in range(COUNT)])
def test_a_generated_function_that_writes_in_place(seed: int) -> None:
    result, _ = compiled(function(seed, InPlaceWriter), 1, "LAX")
    expect_equal(result, expected(function(seed, InPlaceWriter), 1))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[] if seed < 16 else [pytest.mark.slow]) for seed in range(COUNT // 2)])
def test_loops_that_end_with_two_names_on_one_tensor(seed: int) -> None:
    call, _ = compiled(function(seed, LoopAliasWriter), 1, "LAX")
    expect_equal(call, expected(function(seed, LoopAliasWriter), 1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(COUNT))
def test_of_second_order(seed: int) -> None:
    result, _ = compiled(function(seed, InPlaceWriter), 2, "LAX")
    expect_equal(result, expected(function(seed, InPlaceWriter), 2))
