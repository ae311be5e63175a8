"""Functions with control flow on Tensors are one graph that serves every input, with PyNative's values and gradients."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import pytest

from tests.unit.graph.control_flow.corpus import branches, loops, returns, state
from tests.unit.graph.control_flow.running import INPUTS, cell_values, expect_equal, graph_values, is_single_graph, values

FUNCTIONS = [*branches.FUNCTIONS, *loops.FUNCTIONS, *returns.FUNCTIONS, *state.FUNCTIONS]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f"{f.__module__.rsplit('.', 1)[-1]}-{f.__name__}")
def test_a_function_is_one_graph(function: Callable[..., Any]) -> None:
    expected = values(function, INPUTS, True)
    result, call = graph_values(function, INPUTS, True, "LAX")
    expect_equal(result, expected)
    assert is_single_graph(call)


@pytest.mark.parametrize("kind", state.CELLS, ids=lambda kind: kind.__name__)
def test_a_cell_is_one_graph(kind: type) -> None:
    expected, _, _ = cell_values(kind, INPUTS, ms.PYNATIVE_MODE, True)
    result, _, call = cell_values(kind, INPUTS, ms.GRAPH_MODE, True)
    expect_equal(result, expected)
    assert is_single_graph(call)
