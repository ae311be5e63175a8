"""Generated functions that run in parts, inside a gradient that PyNative takes: values, gradients and state are PyNative's.

Each statement `reads_a_file()` ends a graph, so that values, views and memory cross the border between two graphs on torch's tape.
"""
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import mindspore as ms
import pytest

from tests.unit.graph.control_flow.generator import InPlaceWriter, Writer, features, function, text
from tests.unit.graph.control_flow.running import changed, expect_equal, run_for_inputs

COUNT = int(os.environ.get("PROGRAMS", "200"))
QUICK = 3


class _Parts:
    """Ends a graph before some statements, also inside of branches and loops."""

    def _put(self, depth: int, line: str) -> None:
        if self._random.random() < 0.25 and not line.startswith(("else", "elif", "except", "finally")):
            super()._put(depth, "reads_a_file()")
        super()._put(depth, line)


class PartsWriter(_Parts, Writer):
    """Functions without writes in place, in parts."""


class InPlacePartsWriter(_Parts, InPlaceWriter):
    """Functions that write in place, in parts."""


def reads_a_file() -> None:
    open("/dev/null").close()


def in_parts(seed: int, kind: type[Writer]) -> Callable[[Any], Any]:
    program = function(seed, kind)
    program.__globals__["reads_a_file"] = reads_a_file
    return program


def test_the_generated_functions_have_borders_in_branches_and_loops() -> None:
    counts: Counter[str] = Counter()
    for seed in range(COUNT):
        source = text(seed, InPlacePartsWriter)
        borders = [len(line) - len(line.lstrip()) for line in source.splitlines() if line.strip() == "reads_a_file()"]
        facts = {"with a border": bool(borders), "several": len(borders) > 2, "nested": max(borders, default=0) > 4}
        counts.update(fact for fact, is_true in facts.items() if is_true)
        counts.update(features(source) & {"if in 2 loops", "while in 1 loops"})
    assert counts["with a border"] > 0.8 * COUNT and counts["several"] > 0.3 * COUNT and counts["nested"] > 0.7 * COUNT, counts


def with_weights(function: Callable[[Any], Any], state: Any) -> Callable[[Any], Any]:
    """(value, gradients by the input and by the Parameter of the state) of a function of one Tensor."""
    return ms.value_and_grad(lambda x: function(x), 0, [state.kept])


CHANGES: dict[str, Callable[..., Any]] = {
    "first order": lambda function, state: changed(function, 1), "second order": lambda function, state: changed(function, 2),
    "weights": with_weights,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", [PartsWriter, InPlacePartsWriter])
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[] if seed < QUICK else [pytest.mark.slow]) for seed in range(COUNT)])
def test_parts_inside_a_gradient(seed: int, kind: type[Writer], change: str) -> None:
    program, parts = in_parts(seed, kind), in_parts(seed, kind)
    call = ms.jit(parts)
    for _ in range(2):                                             # the second time with the graphs of the first
        expected = run_for_inputs(program, CHANGES[change](program, program.state))
        expect_equal(run_for_inputs(parts, CHANGES[change](call, parts.state)), expected)
