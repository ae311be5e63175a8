"""Memory that several names share, as a Tensor decides: a write through one name runs as in PyNative, and STRICT refuses it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

from tests.unit.graph.control_flow.running import INPUTS, LEVELS, flat
from tests.unit.graph.control_flow.test_writes_in_place import first, tensor


def an_alias_made_in_a_loop(x):
    a, b, i = x * 1, x * 2, Tensor(0)
    while i < 3:
        if x.sum() > 0:
            b = a
        b[0] = b[1] * 0.5
        a = a * 1.5
        i = i + 1
    return (a * a).sum() + (b * b * b).sum()


def a_view_taken_on_one_way(x):
    b = x * 1
    if x.sum() > 0:
        v = b[1:]
        v[0] = 9
    else:
        b = b * 2
    return (b * b).sum()


def a_new_tensor_with_two_names(x):
    a, b, c, i = x * 1, x * 2, x * 0, Tensor(0)
    while i < 3:
        i = i + 1
        a[0] = a[0] + 1
        c = c + b
        b = a * 3
        a = b
    return (a + b + c).sum()


def a_new_tensor_with_two_names_on_one_way(x):
    a, b, c, i = x * 1, x * 2, x * 0, Tensor(0)
    while i < 3:
        i = i + 1
        a[0] = a[0] + 1
        c = c + b
        if b.sum() > 0:
            b = a * 3
            a = b
        else:
            a = a * 2
    return (a + b + c).sum()


def a_view_of_a_new_tensor(x):
    a, b, c, i = x * 1, x * 2, x * 0, Tensor(0)
    while i < 3:
        i = i + 1
        a.add_(1.0)
        c = c + b
        b = a * 3
        a = b[:]
    return (a + b + c).sum()


_IN_PARTS = [
    an_alias_made_in_a_loop, a_view_taken_on_one_way, a_new_tensor_with_two_names, a_new_tensor_with_two_names_on_one_way,
    a_view_of_a_new_tensor,
]


@pytest.mark.parametrize("function", _IN_PARTS, ids=lambda f: f.__name__)
def test_what_no_graph_holds_runs_in_parts(function: Callable[[Any], Any]) -> None:
    call = ms.jit(first(function))
    for x in INPUTS:
        for ours, its in zip(flat(call(tensor(x))), flat(first(function)(tensor(x)))):
            np.testing.assert_allclose(ours, its, rtol=1e-5)
    inner = first(function)
    reason = r"(writes in place into a Tensor that may be one of several|and writes in place into it)"
    with ms.context.scope(jit_syntax_level=LEVELS["STRICT"]), pytest.raises(RuntimeError, match=reason):
        ms.jit(lambda x: inner(x))(tensor(INPUTS[0]))
