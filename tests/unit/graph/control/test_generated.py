"""Functions written from a seed: one graph serves every input, with PyNative's values and gradients, at each syntax level."""
from __future__ import annotations

import pytest

from tests.unit.graph.control.generator import function
from tests.unit.graph.control.running import INPUTS, LEVELS, expect_equal, graph_values, is_whole, values

SMALL = [5, 17, 22, 36, 37, 47, 60, 61, 62, 66, 69, 70, 74, 88, 89]
"""Seeds whose functions take little time to capture; the others are slow tests."""
COUNT = 90


@pytest.mark.parametrize("seed", [
    pytest.param(seed, marks=[] if seed in SMALL else [pytest.mark.slow]) for seed in range(COUNT)
])
def test_a_generated_function_is_one_graph(seed: int) -> None:
    made = function(seed)
    expected = values(made, INPUTS, True)
    found, call = graph_values(made, INPUTS, True, "LAX")
    expect_equal(found, expected)
    assert is_whole(call)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["STRICT", "COMPATIBLE"])
@pytest.mark.parametrize("seed", SMALL)
def test_other_levels(seed: int, level: str) -> None:
    assert level in LEVELS
    made = function(seed)
    found, call = graph_values(made, INPUTS, True, level)
    expect_equal(found, values(made, INPUTS, True))
    assert is_whole(call)
