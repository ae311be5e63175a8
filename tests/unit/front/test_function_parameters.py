"""The parameters of a function as `inspect.signature` reports them, for all operators and for each form of a parameter."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import mindspore as ms
import pytest

from torchspore.base.function_parameters import Parameters, parameters_of
from torchspore.mindspore.ops.declaration.declare import OPERATORS


def expected(function: Callable[..., Any]) -> Parameters:
    parameters = inspect.signature(function).parameters
    empty = inspect.Parameter.empty
    return Parameters(
        tuple(parameters), {name: p.default for name, p in parameters.items() if p.default is not empty},
        {name: p.annotation for name, p in parameters.items() if p.annotation is not empty},
        next((name for name, p in parameters.items() if p.kind is p.VAR_POSITIONAL), ""),
        sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values()))


def without_return(parameters: Parameters) -> Parameters:
    return parameters._replace(annotations={name: kind for name, kind in parameters.annotations.items() if name != "return"})


def plain(a: int, b: Any = 1) -> None: ...


def each_form(a: int, /, b: Any = 2, *rest: int, c: str, d: float = 4.0, **others: bool) -> None: ...


def keywords_alone(*, a: int = 1, b: int) -> None: ...


def nothing() -> None: ...


@functools.wraps(each_form)
def wrapper(*arguments: Any, **keywords: Any) -> None: ...


def declared(*arguments: Any) -> None: ...


declared.__signature__ = inspect.signature(plain)  # type: ignore[attr-defined]


@functools.wraps(declared)
def around_declared(*arguments: Any) -> None: ...


@pytest.mark.parametrize("function", [
    plain, each_form, keywords_alone, nothing, wrapper, declared, around_declared, functools.partial(plain, 1), ms.Tensor.reshape, len,
], ids=lambda function: getattr(function, "__name__", "partial"))
def test_each_form(function: Callable[..., Any]) -> None:
    assert without_return(parameters_of(function)) == expected(function)


def test_all_operators() -> None:
    assert len(OPERATORS) > 1000
    for operator in OPERATORS.values():
        for function in (operator.function, operator.body):
            assert without_return(parameters_of(function)) == expected(function), operator.name


def test_signatures_of_primitives() -> None:
    assert str(inspect.signature(ms.ops.ReLU)) == "()"
    assert str(inspect.signature(ms.ops.Concat)) == "(axis: 'int' = 0)"
    assert list(inspect.signature(ms.ops.MatMul.__init__).parameters) == ["self", "transpose_a", "transpose_b"]
