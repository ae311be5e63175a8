"""Functions of mint that pass their arguments, unchanged and in order, to one function of torch or `ops`."""
from __future__ import annotations
import __future__

import ast
import sys
from collections.abc import Callable
from typing import Any

from torchspore.mindspore.ops.declare import bridged
from torchspore.mindspore.ops.wide import Widening


def forwarding(
    declaration: str, compute: Callable[..., Any], doc: str, *, by_name: tuple[str, ...] = (), wide: Widening | None = None,
) -> Any:
    """Build a function of Tensors that passes its arguments to `compute`, which takes torch tensors.

    `declaration` is the name with the parameters, as in `def`: "lerp(input: T, end: T, weight: Any)"; "-> Any" follows if the result is not
    one Tensor. The parameters after `*`, and those named in `by_name`, are passed by name. `wide` is that of `@op`.
    """
    return bridged(wide=wide)(_define(declaration if "->" in declaration else f"{declaration} -> T", compute, doc, by_name))


def renaming(declaration: str, operator: Callable[..., Any], doc: str) -> Any:
    """Build a function that passes its Tensors to `operator`, a function of Tensors; `declaration` is that of `forwarding`."""
    return _define(f"{declaration} -> Any", operator, doc, ())


def _define(declaration: str, compute: Callable[..., Any], doc: str, by_name: tuple[str, ...]) -> Any:
    """Compile `declaration` as a Python function: a shared `*arguments` would be slower, and its errors would name no parameter."""
    caller = sys._getframe(2)
    module = ast.parse(f"def {declaration}: return compute()")
    definition = module.body[0]
    assert isinstance(definition, ast.FunctionDef)
    call = definition.body[0].value                                                  # type: ignore[attr-defined]
    parameters = definition.args
    for names, is_named in ((parameters.args, False), (parameters.kwonlyargs, True)):
        for name in (parameter.arg for parameter in names):
            value = ast.Name(name, ast.Load())
            if is_named or name in by_name:
                call.keywords.append(ast.keyword(name, value))
            else:
                call.args.append(value)
    ast.increment_lineno(ast.fix_missing_locations(module), caller.f_lineno - 1)      # tracebacks show the line of the declaration
    code = compile(module, caller.f_code.co_filename, "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    namespace = {"compute": compute, "__name__": caller.f_globals["__name__"]}
    exec(code, namespace)                                                            # the text is a literal of this package
    function: Any = namespace[definition.name]
    function.__doc__ = doc
    return function
