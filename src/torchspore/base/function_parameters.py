"""The parameters of a function, read from its code object: `inspect.signature` creates an object for each of them, which takes longer."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, NamedTuple


class Parameters(NamedTuple):
    """The names of all parameters in the order of the signature, and facts about them by name.

    A parameter without a default or an annotation is missing in the mapping. `any_number` is the name of `*arguments`, or empty.
    """

    names: tuple[str, ...]
    defaults: Mapping[str, Any]
    annotations: Mapping[str, Any]
    any_number: str
    positional: int
    """The number of parameters that a call can pass by position, without `*arguments`."""


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """Return the parameters of a function; of the innermost one if it is wrapped, as `inspect.signature` does."""
    innermost: Any = function
    while not hasattr(innermost, "__signature__") and hasattr(innermost, "__wrapped__"):
        innermost = innermost.__wrapped__
    if type(innermost) is not FunctionType or hasattr(innermost, "__signature__"):
        return _of_signature(inspect.signature(function))
    code = innermost.__code__
    count, keyword_count = code.co_argcount, code.co_kwonlyargcount
    names, rest = code.co_varnames[:count], list(code.co_varnames[count + keyword_count:])
    any_number = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else ""
    any_keywords = rest[:1] if code.co_flags & inspect.CO_VARKEYWORDS else []
    keywords = code.co_varnames[count:count + keyword_count]
    defaults = innermost.__defaults__ or ()
    return Parameters(
        (*names, *([any_number] if any_number else ()), *keywords, *any_keywords),
        {**dict(zip(names[count - len(defaults):], defaults)), **(innermost.__kwdefaults__ or {})}, innermost.__annotations__, any_number,
        count,
    )


def _of_signature(signature: inspect.Signature) -> Parameters:
    parameters = signature.parameters
    empty = inspect.Parameter.empty
    any_number = next((name for name, parameter in parameters.items() if parameter.kind is inspect.Parameter.VAR_POSITIONAL), "")
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return Parameters(
        tuple(parameters), {name: parameter.default for name, parameter in parameters.items() if parameter.default is not empty},
        {name: parameter.annotation for name, parameter in parameters.items() if parameter.annotation is not empty}, any_number,
        sum(parameter.kind in by_position for parameter in parameters.values()),
    )
