"""Errors of operators: the user's line first, then the call with its shapes, what was expected, and a hint."""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from torchspore.base.frames import user_frame
from torchspore.base.text import show_full, with_hint, without_addresses
from torchspore.engine.core import dtypes, unsupported_dtypes
from torchspore.engine.core.tensor import TensorBase
from torchspore.engine.memory import limit
from torchspore.errors import LacksKernel, OutOfMemory, TorchsporeError
from torchspore.mindspore.ops.reasons import Reason, is_torch, of_call, reason
from torchspore.mindspore.ops.whose import is_about_arguments, is_users_error, told

LONGEST = 60


_OF_CAPTURES = ("DynamicOutputShapeException", "DataDependentOutputException")
"""What stand-ins raise while a graph is captured, of an operator that needs values: nothing is wrong with the call."""


def explain(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], error: Exception) -> Exception:
    """The error to raise in place of torch's `error`; one of our own keeps its kind and its words."""
    if getattr(error, "explained", False) or type(error).__name__ in _OF_CAPTURES:
        return error
    given = _given(function, arguments, keywords)
    call = f"{place()}{name_of(function)}({', '.join(f'{key}: {shown(value)}' for key, value in given.items())})"
    if is_torch(error) and not is_about_arguments(error, list(given.values()), is_operator=True):
        return error if is_users_error(error) else told(error, call)
    beyond = limit.sentence(error)
    kind, sentence, hint = _reason(function, given, error) if beyond is None else (OutOfMemory, beyond, None)
    sentence = _TENSOR.sub("a Tensor", sentence)
    text = f"{call}: {sentence}"
    return _made(kind, text if hint is None else with_hint(text, hint))


def of_graph(line: str, name: str, given: list[Any], is_gradient: bool, error: Exception) -> Exception:
    """The error for what a kernel of a graph refuses: `name` is the operator, or that whose gradient it computes, `given` its Tensors."""
    beyond = limit.sentence(error)
    named = {f"argument {at}": value for at, value in enumerate(given)}
    kind, sentence, hint = reason(name, named, error) if beyond is None else (OutOfMemory, beyond, None)
    call = f"{name}({', '.join(map(shown, given))})"
    text = f"{line}: {'the gradient of ' if is_gradient else ''}{call}: {sentence}"
    return _made(kind, text if hint is None else with_hint(text, hint))


def _made(kind: Callable[[str], Exception], text: str) -> Exception:
    made = kind(text)
    made.explained = True  # type: ignore[attr-defined]
    return made


_TENSOR = re.compile(r"\btensor\((?:[^()]|\([^()]*\))*\)")
"""A torch tensor as an f-string shows it."""


def replaced(
    error: Exception, function: Callable[..., Any], called: str, arguments: tuple[Any, ...], keywords: dict[str, Any],
) -> Exception:
    """The error to raise in the place of `error`, with which the call of `called` ends: itself where it is the user's, or says all."""
    if getattr(error, "explained", False) or isinstance(error, (TorchsporeError, StopIteration)):
        return error
    if not _is_known(error) or is_users_error(error):
        return error
    beyond = limit.sentence(error)
    if beyond is not None:
        return _made(OutOfMemory, f"{place()}{_call(called, arguments, keywords)}: {beyond}")
    own = not is_torch(error)
    text = str(error.args[0]) if isinstance(error, KeyError) and len(error.args) == 1 else str(error)
    if isinstance(error, KeyError) and called.endswith("__getitem__"):
        return error
    if own or isinstance(error, OSError):
        if not re.match(r"['/\w.]+[^:\n]*: ", text) and not _named(called) & set(re.findall(r"\w+", text)):
            error.args = (f"{place()}{called}: {text or 'it can not be done.'}",) if len(error.args) <= 1 else error.args
        return error
    if re.search(r"positional argument|unexpected keyword|multiple values for|missing a required|too many", text):
        sentence, kind = f"expected {called}{signature_of(function).replace('(self, ', '(').replace('(self)', '()')}.", TypeError
        made: Exception = TypeError(f"{place()}{_call(called, arguments, keywords)}: {sentence}")
    elif not is_about_arguments(error, [*arguments, *keywords, *keywords.values()]):
        return told(error, f"{place()}{_call(called, arguments, keywords)}")
    else:
        kind, sentence, hint = of_call(error)
        text = f"{place()}{_call(called, arguments, keywords)}: {sentence}"
        made = kind(text if hint is None else with_hint(text, hint))
    made.explained = True  # type: ignore[attr-defined]
    return made


def _named(called: str) -> set[str]:
    """The words that name a call; that it is a method of Tensors says little in a message about Tensors."""
    return set(called.split(".")) - {"Tensor"} or {called}


def _call(called: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    given = [*map(shown, arguments), *(f"{key}={shown(value)}" for key, value in keywords.items())]
    return f"{called}({', '.join(given[:8])}{', ...' if len(given) > 8 else ''})"


def _is_known(error: Exception) -> bool:
    """Whether the class of an error is Python's or of a library that stands below us."""
    return type(error).__module__.partition(".")[0] in ("builtins", "torch", "numpy", "cv2", "PIL", "struct", "zlib", "json")


def is_front_end(filename: str) -> bool:
    """Whether a file is one of the front end's or of the engine's."""
    return any(f"/torchspore/{package}/" in filename for package in ("mindspore", "distributed", "observe", "export", "graph", "engine"))


def lacks_kernel(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], dtype: Any) -> LacksKernel:
    """The error for an operator without a kernel for `dtype`, where no cast may be put in."""
    given = _given(function, arguments, keywords)
    call = f"{place()}{name_of(function)}({', '.join(f'{key}: {shown(value)}' for key, value in given.items())})"
    made = LacksKernel(with_hint(f"{call}: {unsupported_dtypes.sentence(dtype)}", unsupported_dtypes.HINT))
    made.explained = True  # type: ignore[attr-defined]
    return made


def _reason(function: Callable[..., Any], given: dict[str, Any], error: Exception) -> Reason:
    text = str(error)
    if re.search(r"positional argument|unexpected keyword|multiple values for", text) and "()" in text:
        return TypeError, f"expected {name_of(function)}{signature_of(function)}.", None
    layer = next((key for key, value in given.items() if any(base.__name__ == "Cell" for base in type(value).__mro__)), None)
    if layer is not None:
        return TypeError, f"expected a Tensor as {layer}, got {type(given[layer]).__name__}.", None
    if not is_torch(error):
        sentence, _, hint = text.partition("\n\nhint: ")
        return type(error), sentence if sentence.endswith(".") else sentence + ".", hint or None
    try:
        return reason(function.__name__, given, error)
    except RecursionError as deep:
        return reason(function.__name__, {}, deep)


def place() -> str:
    """`train.py:12: `, the user's line that is running now, or nothing where there is none."""
    found = user_frame()
    return f"{found[0]}:{found[1]}: " if found else ""


def name_of(function: Callable[..., Any]) -> str:
    """The operator's public name: that of its function, or of its primitive where it has only that."""
    return getattr(function, "shown_as", None) or getattr(function, "__name__", str(function))


def signature_of(function: Callable[..., Any]) -> str:
    """The parameters with their defaults, without types: `(input, axis=-1)`."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)).replace("=torch.", "=mindspore.")
    return re.sub(r"<function (?:\S*\.)?(\w+)>", r"\1", re.sub(r"<function \S*<lambda>>", "...", without_addresses(text)))


def _given(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
    """What was passed, by the names of the parameters, less what equals the defaults: layers pass all of them."""
    given: dict[str, Any] = {}
    rest = list(arguments)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            given.update({f"{parameter.name}[{i}]": value for i, value in enumerate(rest)})
            rest = []
        elif rest and parameter.kind is not parameter.KEYWORD_ONLY:
            value = rest.pop(0)
            if not _is_default(value, parameter.default):
                given[parameter.name] = value
    given.update({f"argument {len(arguments) - len(rest) + i}": value for i, value in enumerate(rest)})
    return {**given, **keywords}


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, (int, float, str, tuple)) and type(value) is type(default) and value == default)


def wrong_arguments(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """The error for a Cell whose `construct` does not take these arguments, None where it does."""
    try:
        inspect.signature(cell.construct).bind(*args, **kwargs)
    except TypeError:
        name = type(cell).__name__
        given = ", ".join([*map(shown, args), *(f"{key}={shown(value)}" for key, value in kwargs.items())])
        return TypeError(f"{place()}{name}({given}): expected {name}.construct{signature_of(cell.construct)}.")
    return None


def shown(value: Any) -> str:
    """A value in a few words: a Tensor as `Float32[2, 3]`."""
    if isinstance(value, TensorBase):
        t = value._t
        return f"{dtypes.FROM_TORCH.get(t.dtype, t.dtype)}{list(t.shape)}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, TensorBase) for item in value):
        return "(" + ", ".join(shown(item) for item in value) + ")"
    if type(value).__module__ == "torch" and value in dtypes.FROM_TORCH:
        return repr(dtypes.FROM_TORCH[value])
    text = _TENSOR.sub("a Tensor", " ".join(show_full(value).split()))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
