"""`jit` in every spelling, and calls of what it gives with and without arguments: MindSpore 2.10's answers."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, context, jit

from torchspore.mindspore.ops.declaration import error_boundary


def nothing():
    return Tensor([1.0, 2.0]) * 2


def product(x, y=2):
    return x * y


class Holder:
    """Functions of a class under `jit`."""

    @jit
    @staticmethod
    def outer():
        return Tensor([4.0])

    @staticmethod
    @jit
    def inner():
        return Tensor([5.0])

    @jit
    @classmethod
    def of_class(cls):
        return Tensor([6.0])

    @jit
    def method(self, *, factor=2):
        return Tensor([1.0]) * factor


@pytest.mark.parametrize("make", [
    lambda f: jit(f), lambda f: jit()(f), lambda f: jit(None)(f), lambda f: jit(function=f), lambda f: jit(fn=f),
    lambda f: jit(jit_config=ms.JitConfig(jit_level="O0"))(f), lambda f: jit(f, mode="PSJit"), lambda f: jit(f, hash_args=(1,)),
    lambda f: jit(f, compile_once=True), lambda f: jit(f, backend="ms_backend"), lambda f: jit(f, dynamic=1),
    lambda f: jit(f, fullgraph=True), lambda f: jit(f, capture_mode="trace"), lambda f: ms.ms_function(fn=f),
])
def test_a_call_without_positional_arguments(make: Any) -> None:
    result = make(nothing)
    for _ in range(2):
        assert result().asnumpy().tolist() == [2.0, 4.0]
    assert make(product)(x=Tensor([1.0, 3.0])).asnumpy().tolist() == [2.0, 6.0]
    assert make(product)(y=3, x=Tensor([1.0, 3.0])).asnumpy().tolist() == [3.0, 9.0]


def test_functions_of_a_class() -> None:
    assert Holder().outer().asnumpy() == Holder.outer().asnumpy() == 4
    assert Holder().inner().asnumpy() == Holder.inner().asnumpy() == 5
    assert Holder.of_class().asnumpy() == 6
    assert Holder().method().asnumpy() == 2
    assert Holder.method(self=Holder(), factor=3).asnumpy() == 3


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"function": nothing, "fn": nothing}, TypeError,
     "jit(function=..., fn=...): expected one function; `fn` is the older name.\n\nhint: write jit(function=...)."),
    ({"function": nothing, "dynamic": 7}, ValueError, "jit(dynamic=7): expected 0 or 1."),
    ({"function": nothing, "fullgraph": 3}, TypeError, "jit(fullgraph=3): expected a bool, got int."),
    ({"function": 3}, TypeError, "jit(3): expected a function, got int."),
    ({"fn": "f"}, TypeError, "jit('f'): expected a function, got str."),
])
def test_what_jit_refuses(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        jit(**options)
    assert str(caught.value) == text


def test_the_object_behind_the_context() -> None:
    assert context._context() is context.K_CONTEXT
    assert not hasattr(ms, "K_CONTEXT")
    assert context.K_CONTEXT.get_mode() == ms.get_context("mode")
    try:
        context._context().set_param(context.ms_ctx_param.max_call_depth, 777)
        assert ms.get_context("max_call_depth") == 777
        context.K_CONTEXT.set_max_call_depth(778)
        assert context._context().get_param(context.ms_ctx_param.max_call_depth) == 778
    finally:
        ms.set_context(max_call_depth=1000)
    assert context.get_jit_config() == ms.get_context("jit_config")


def test_the_result_of_a_first_call_is_the_graphs_too() -> None:
    call = jit(function=lambda: Tensor(np.ones(3, np.float32)) + 1)
    assert [call().asnumpy().tolist() for _ in range(3)] == [[2.0] * 3] * 3


def test_a_module_that_is_loaded_within_a_graph_is_no_change_by_the_program():
    def late():
        """A class of Tensors as a module defines it that is loaded late, and the error boundary around it."""
        def __init__(self, value):
            Tensor.__init__(self, value)

        __init__.__module__ = "torchspore.mindspore.late"
        error_boundary.around(type("Late", (Tensor,), {"__init__": __init__, "__module__": "torchspore.mindspore.late"}))

    @jit(jit_level="O0")
    def step(x):
        late()
        return x * 2

    with context.scope(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT):
        assert step(Tensor([1.0, 2.0])).asnumpy().tolist() == [2.0, 4.0]
