"""`@op`: an operator is declared once and becomes `ops.relu`, the primitive `ops.ReLU` and the Tensor methods.

The body is written on torch tensors; the declaration unwraps the arguments, wraps the results and explains errors.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, TypeVar, overload

import torch

from torchspore.base.function_parameters import parameters_of
from torchspore.engine.execution import precision, pynative, unsupported_dtypes
from torchspore.engine.execution.precision import as_stored, ruled
from torchspore.engine.front_end import FRONT
from torchspore.engine.native.operators import with_short_path
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.number import Number, operand_for
from torchspore.engine.tensors.tensor import TensorBase, raw, unwrap, wrap, wrap_all, write
from torchspore.errors import CommunicationError
from torchspore.mindspore.ops.declaration.explain import explain, lacks_kernel, name_of, of_graph
from torchspore.mindspore.ops.declaration.extremes import Extremes
from torchspore.mindspore.ops.declaration.function_limits import checks_of_family, checks_of_operator
from torchspore.mindspore.ops.declaration.older_keywords import renamed_keywords
from torchspore.mindspore.ops.declaration.one_dtype import check_one_dtype
from torchspore.mindspore.ops.declaration.primitive import Primitive
from torchspore.mindspore.ops.declaration.primitive_classes import primitive_class
from torchspore.mindspore.ops.declaration.wide import Widening, widened

Body = TypeVar("Body", bound=Callable[..., Any])


@dataclass(frozen=True)
class Operator:
    """One declared operator: its public function, the body on torch tensors, and its names."""

    name: str
    function: Callable[..., Any]
    body: Callable[..., Any]
    primitive: type[Primitive] | None
    methods: tuple[str, ...]


OPERATORS: dict[str, Operator] = {}
"""All operators by the names of their functions."""


def op(
    *, primitive: str | None = None, init: tuple[str, ...] = (), methods: tuple[str, ...] = (), raw_arguments: bool = False,
    older: dict[str, str] | None = None, states: tuple[str, ...] = (), numbers: tuple[str, ...] = (),
    wide: Widening | None = None, plain: Callable[..., torch.Tensor] | None = None, short_path: str = "",
) -> Callable[[Body], Body]:
    """Declare the decorated function as an operator.

    `primitive` names the class form, whose constructor takes the parameters named in `init`; `methods` are the names on Tensor, whose
    receiver is the first parameter. `raw_arguments` means that the body takes and returns front-end Tensors itself (no unwrapping), for
    operators that consist of other operators and for frequent ones. `older` maps argument names of MindSpore 1.x to those of today.
    `states` are arguments that the body writes into: they keep their dtype in Cells that compute in another. `numbers` are arguments whose
    value the body needs: during a capture, a Tensor that the call creates from a number is passed as that number.
    `wide` states how the operator computes uint16, uint32 and uint64; without it, torch decides whether it does.
    `plain` is torch's function that computes the same for one float32 Tensor, or for two, without other arguments. `short_path` is the
    name of the operator's short path in C++ (`engine.native.operators`); by default it is that of `plain`.
    """

    def declare(body: Body) -> Body:
        name = body.__name__
        function = checks_of_operator(body, True) if raw_arguments else _bridge(checks_of_operator(widened(body, wide)), older, plain)
        for function_with_name in (body, getattr(body, "in_python", body)) if raw_arguments else (function,):
            _codes[function_with_name.__code__] = name  # type: ignore[attr-defined]
        if states:
            function = _keeping(function, [parameters_of(body).names.index(state) for state in states], states)
        if numbers:
            function = _reading(function, [parameters_of(body).names.index(number) for number in numbers], numbers)
        if name.startswith("_"):
            function.shown_as = primitive or (methods[0] if methods else name.strip("_"))  # type: ignore[attr-defined]
        function = with_short_path(function, short_path or plain)
        primitive_type = primitive_class(primitive, function, init) if primitive else None
        if name in OPERATORS:
            raise ValueError(f"{name} of {body.__module__}: expected a unique name; {OPERATORS[name].body.__module__} uses it.")
        OPERATORS[name] = Operator(name, function, body, primitive_type, methods)
        return function  # type: ignore[return-value]

    return declare


_TENSORS = ("T", "torch.Tensor", "T | None", "torch.Tensor | None", torch.Tensor)
"""Annotations of parameters that accept a Tensor but not a number."""


def _general_form(body: Callable[..., Any], name: str) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Return the function that computes an operator for any arguments."""

    @functools.cache
    def tensor_parameters() -> set[int | str]:
        """Return the positions and names of the parameters that accept a Tensor but not a number. Signatures are slow; few need one."""
        parameters = inspect.signature(body).parameters.values()
        return {key for number, p in enumerate(parameters) if p.annotation in _TENSORS for key in (number, p.name)}

    def stands_for(value: Number, arguments: Any, keywords: Any) -> Any:
        """Return the argument for a number that is a graph input: where a Tensor is expected, the plain number, which may be refused."""
        positions = [key for entries in (enumerate(arguments), keywords.items()) for key, item in entries if item is value]
        return operand_for(value, arguments, keywords) if tensor_parameters().isdisjoint(positions) else value._value()

    def compute(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if not engine.active and not keywords:
            return body(*[a._t if isinstance(a, TensorBase) else unwrap(a) if a.__class__ in _NESTED else a for a in arguments])
        return (ruled(body, name) if engine.active else body)(
            *[
                (a._t if not engine.active else raw(a) if type(a) is not Number else stands_for(a, arguments, keywords))
                if isinstance(a, TensorBase)
                else unwrap(a) if a.__class__ in _NESTED else a
                for a in arguments
            ],
            **({
                key: unwrap(value) if type(value) is not Number else stands_for(value, arguments, keywords)
                for key, value in keywords.items()
            } if keywords else keywords),
        )

    return compute


def _bridge(
    body: Callable[..., Any], older: dict[str, str] | None = None, plain: Callable[..., torch.Tensor] | None = None,
) -> Callable[..., Any]:
    name = body.__name__
    compute = _general_form(body, name)

    @functools.wraps(body)
    def operator(*arguments: Any, **keywords: Any) -> Any:
        try:
            around = engine.thread_state.frame if engine.active else None
            lookup = None if around is None else around.lookup
            if keywords or not 0 < len(arguments) <= 3 or (around is not None and lookup is None and Number in map(type, arguments)):
                out = compute(arguments, keywords)
            else:                                     # the most frequent calls, with as few further calls as possible
                form = ruled(body, name) if engine.active and (lookup is None or engine.observers) else body
                a = arguments[0]
                if isinstance(a, TensorBase):
                    a = a._t if around is None else around.resolve(a) if lookup is None else lookup(id(a), a._t)
                    can_be_plain = plain is not None and form is body and a.dtype is torch.float32
                else:
                    a, can_be_plain = unwrap(a) if a.__class__ in _NESTED else a, False
                if len(arguments) == 1:
                    out = (plain if can_be_plain else form)(a)          # type: ignore[misc]
                else:
                    b = arguments[1]
                    if isinstance(b, TensorBase):
                        b = b._t if around is None else around.resolve(b) if lookup is None else lookup(id(b), b._t)
                        if can_be_plain and b.dtype is torch.float32 and len(arguments) == 2:
                            form = plain                                # type: ignore[assignment]
                    elif b.__class__ in _NESTED:
                        b = unwrap(b)
                    if len(arguments) == 2:
                        out = form(a, b)
                    else:
                        c = arguments[2]
                        if isinstance(c, TensorBase):
                            c = c._t if around is None else around.resolve(c) if lookup is None else lookup(id(c), c._t)
                        elif c.__class__ in _NESTED:
                            c = unwrap(c)
                        out = form(a, b, c)
            if engine.observers:
                pynative.after(out)
        except CommunicationError:
            raise                                     # its text already names the rank and the line
        except _EXPLAINED as error:
            return _recover(operator, older, arguments, keywords, error)
        return wrap(out) if out.__class__ is torch.Tensor else wrap_all(out)

    operator.gated = True  # type: ignore[attr-defined]
    return operator


def _recover(
    operator: Callable[..., Any], older: dict[str, str] | None, arguments: tuple[Any, ...], keywords: dict[str, Any], error: Exception,
) -> Any:
    """Return the result of a call that failed, by another spelling, device or dtype. Raises the explained error if there is none."""
    if older is not None and older.keys() & keywords.keys():
        return operator(*arguments, **{older.get(key, key): value for key, value in keywords.items()})
    older_spelling = renamed_keywords(operator, error, arguments, keywords)
    if older_spelling is not None:
        return operator(*arguments, **older_spelling)
    if isinstance(error, RecursionError):
        raise explain(operator, arguments, keywords, error) from None
    if isinstance(error, RuntimeError) and pynative.bring((arguments, keywords)):
        return operator(*arguments, **keywords)
    if unsupported_dtypes.is_cause_of(error) and unsupported_dtypes.dtype_of((arguments, keywords)) is not None:
        return _without_kernel(operator, arguments, keywords, error)
    raise explain(operator, arguments, keywords, error) from None


def _keeping(function: Callable[..., Any], positions: list[int], names: tuple[str, ...]) -> Callable[..., Any]:
    """Wrap `function` so that the arguments at `positions`, called `names`, are passed in their stored dtype."""

    @functools.wraps(function)
    def operator(*arguments: Any, **keywords: Any) -> Any:
        if precision.lowering:
            arguments = tuple(as_stored(value) if index in positions else value for index, value in enumerate(arguments))
            keywords.update({name: as_stored(keywords[name]) for name in names if name in keywords})
        return function(*arguments, **keywords)

    return operator


def _reading(function: Callable[..., Any], positions: list[int], names: tuple[str, ...]) -> Callable[..., Any]:
    """Wrap `function` so that it gets Python numbers, or tuples, for Tensors at `positions`, called `names`: a fake tensor has no value."""

    @functools.wraps(function)
    def operator(*arguments: Any, **keywords: Any) -> Any:
        around = engine.frame()
        if around is not None:
            arguments = tuple(_number(around, value) if index in positions else value for index, value in enumerate(arguments))
            keywords.update({name: _number(around, keywords[name]) for name in names if name in keywords})
        return function(*arguments, **keywords)

    return operator


def _number(around: engine.Frame, value: Any) -> Any:
    number = around.known_out(value) if isinstance(value, TensorBase) else None
    return value if number is None else tuple(number) if isinstance(number, list) else number


@overload
def bridged(body: Body) -> Body: ...
@overload
def bridged(*, wide: Widening | None) -> Callable[[Body], Body]: ...


def bridged(body: Body | None = None, *, wide: Widening | None = None) -> Any:
    """Wrap `body`, written on torch tensors, as a function of Tensors, without registering it: its name may belong to another function.

    `wide` is that of `op`.
    """
    if body is None:
        return functools.partial(bridged, wide=wide)
    return _bridge(checks_of_family(widened(body, wide)))


def part_of(shown_as: str, *, wide: Widening | None = None) -> Callable[[Body], Body]:
    """Declare a part of the function `shown_as`; errors use that name. `wide` is that of `op`."""

    def declare(body: Body) -> Body:
        operator = bridged(wide=wide)(body)
        operator.shown_as = shown_as  # type: ignore[attr-defined]
        return operator

    return declare


def explaining(body: Body) -> Body:
    """Wrap `body`, which takes front-end values, so that its errors are explained like those of other operators."""

    @functools.wraps(body)
    def operator(*arguments: Any, **keywords: Any) -> Any:
        try:
            return body(*arguments, **keywords)
        except _EXPLAINED as error:
            older_spelling = renamed_keywords(operator, error, arguments, keywords)
            if older_spelling is not None:
                return operator(*arguments, **older_spelling)
            raise explain(operator, arguments, keywords, error) from None

    operator.gated = True  # type: ignore[attr-defined]
    return operator  # type: ignore[return-value]


def _check_step_shapes(values: dict[str, Any], variables: tuple[str, ...]) -> None:
    """Raises ValueError if a state or the gradient of an optimizer's step has another shape than its weight: torch would broadcast."""
    shape = values[variables[0]].shape
    for key in (*variables[1:], "grad", "gradient", "delta"):
        value = values.get(key)
        if isinstance(value, torch.Tensor) and value.shape != shape:
            raise ValueError(f"expected {key} of shape {tuple(shape)}, as {variables[0]}, got {tuple(value.shape)}.")


def updating(
    *variables: str, primitive: str | None = None, init: tuple[str, ...] = (), name: str = "", gives: int | None = None,
    methods: tuple[str, ...] = (), wide: Widening | None = None,
) -> Callable[[Body], Body]:
    """Declare an operator that writes into its Parameters.

    The body takes torch tensors and returns the new values of the arguments named in `variables`, one value or a tuple. They are stored,
    and the operator returns those variables, or the first `gives` of them. If `gives` is -1, it returns the further results of the body.
    `wide` is that of `op`.
    """

    def declare(body: Body) -> Body:
        signature = functools.cache(lambda: inspect.signature(body))
        computing = widened(body, wide)
        is_dense_step = primitive is not None and primitive.startswith(("Apply", "Adam"))
        is_step = primitive is not None and primitive.startswith(("Apply", "SparseApply", "FusedSparse"))

        @functools.wraps(body)
        def operator(*arguments: Any, **keywords: Any) -> Any:
            try:
                bound = signature().bind(*arguments, **keywords)
                values = {key: unwrap(as_stored(value) if key in variables else value) for key, value in bound.arguments.items()}
                targets = [bound.arguments[key] for key in variables]
                for key, target in zip(variables, targets):
                    if not isinstance(target, TensorBase):
                        raise TypeError(f"expected a Parameter as {key}, got {type(target).__name__}.")
                if is_step:
                    check_one_dtype({key: values[key] for key in variables})
                if is_dense_step:
                    _check_step_shapes(values, variables)
                result = computing(**values)
                new = result if isinstance(result, tuple) else (result,)
                for target, value in zip(targets, new):
                    write(target, value.to(target._t.dtype))
            except _EXPLAINED as error:
                older_spelling = renamed_keywords(operator, error, arguments, keywords)
                if older_spelling is not None:
                    return operator(*arguments, **older_spelling)
                raise explain(operator, arguments, keywords, error) from None
            outputs = targets[:gives] if gives != -1 else [wrap(value) for value in new[len(targets):]]
            return outputs[0] if len(outputs) == 1 else tuple(outputs)

        operator.gated = True  # type: ignore[attr-defined]
        if name:
            operator.__name__ = operator.__qualname__ = name
        return op(primitive=primitive, init=init, methods=methods, raw_arguments=True)(operator)  # type: ignore[return-value]

    return declare


def _operator_of(frame: FrameType) -> str | None:
    """Return the operator that a frame runs: its primitive's name, else its function's name in primitive spelling: `CrossEntropy`."""
    name = _codes.get(frame.f_code)
    if name is None:
        return None
    operator_function = frame.f_locals.get("operator")          # all operators of one factory share the code; a free variable has the name
    name = getattr(operator_function, "__name__", name)
    declared = OPERATORS.get(name)
    if declared is not None and declared.primitive:
        return declared.primitive.__name__
    plain = name.replace("_", "")
    if not _spelled:
        names = [declared.primitive.__name__ for declared in OPERATORS.values() if declared.primitive]
        _spelled.update({name.lower(): name for name in names})
    return _spelled.get(plain, name.strip("_").title().replace("_", ""))


_spelled: dict[str, str] = {}
"""Names of primitives by their lower-case spelling."""


_codes: dict[CodeType, str] = {}
"""The code of operators' functions -> the name of the operator, or of the last one if several share the code as `_bridge` makes it."""
FRONT.operator_of = _operator_of


def _primitive_of(name: str) -> str | None:
    """Return the primitive of the function `name`."""
    declared = OPERATORS.get(name)
    return declared.primitive.__name__ if declared is not None and declared.primitive else None


def _refused(line: str, called: str, arguments: list[Any], is_gradient: bool, error: Exception) -> Exception:
    """Return the error of a graph kernel; it names the operator's function, if there is one."""
    matches = (declared.function for declared in OPERATORS.values() if declared.primitive and declared.primitive.__name__ == called)
    function = next(matches, None)
    return of_graph(line, called if function is None else name_of(function), arguments, is_gradient, error)


FRONT.primitive_of, FRONT.refused = _primitive_of, _refused


def _without_kernel(operator: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], error: Exception) -> Any:
    """Run the operator in float32 and cast the result back. Raises LacksKernel where a cast is not allowed."""
    dtype = unsupported_dtypes.dtype_of((arguments, keywords))
    assert dtype is not None
    if not unsupported_dtypes.may_cast():
        raise lacks_kernel(operator, arguments, keywords, dtype) from None
    try:
        out = operator(*unsupported_dtypes.widened(arguments), **unsupported_dtypes.widened(keywords))
    except Exception:                      # float32 is refused too, so the dtype is not the cause
        raise explain(operator, arguments, keywords, error) from None
    unsupported_dtypes.report_operators([f"{name_of(operator)} in {unsupported_dtypes.kind(dtype)}"])
    return unsupported_dtypes.narrowed(out, dtype)


_NESTED = frozenset({list, Extremes, tuple, dict, torch.Tensor, torch.nn.Parameter})
_EXPLAINED = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError, AssertionError)

