"""Errors of operators: the user's line, the call with its shapes, the expectation, and a hint."""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from torchspore.base.frames import line_prefix, with_slashes
from torchspore.base.text import show_full, split_hint, with_hint, without_addresses
from torchspore.engine.execution import unsupported_dtypes
from torchspore.engine.memory import limit
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.errors import LacksKernel, OutOfMemory, TorchsporeError
from torchspore.mindspore.ops.declaration.blame import is_about_arguments, is_users_error, prefix_with_call
from torchspore.mindspore.ops.declaration.reasons import Reason, is_torch, of_call, reason
from torchspore.public_names import older_calls
from torchspore.translations import translate
from torchspore.translations.refusals import translate_refusal

LONGEST = 60


_OF_CAPTURES = ("DynamicOutputShapeException", "DataDependentOutputException")
"""Errors that fake tensors raise during a capture if an operator needs values. The call itself is correct."""


def explain(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], error: Exception) -> Exception:
    """Return the error to raise in place of torch's `error`; errors of this package keep their type and text."""
    if getattr(error, "explained", False) or type(error).__name__ in _OF_CAPTURES:
        return error
    arguments_by_name = _explicit_arguments(function, arguments, keywords)
    call = f"{line_prefix()}{name_of(function)}({', '.join(f'{key}: {shown(value)}' for key, value in arguments_by_name.items())})"
    if is_torch(error) and not is_about_arguments(error, list(arguments_by_name.values()), is_operator=True):
        return error if is_users_error(error) else prefix_with_call(error, call)
    beyond = limit.sentence(error)
    kind, sentence, hint = _reason(function, arguments_by_name, error) if beyond is None else (OutOfMemory, beyond, None)
    sentence = _TENSOR.sub("a Tensor", sentence)
    text = f"{call}: {sentence}"
    return _as_explained(kind, text if hint is None else with_hint(text, hint))


def of_graph(line: str, name: str, tensors: list[Any], is_gradient: bool, error: Exception) -> Exception:
    """Return the error for a kernel of a graph that fails: `name` is the operator, or the one whose gradient it computes."""
    beyond = limit.sentence(error)
    named = {f"argument {at}": value for at, value in enumerate(tensors)}
    kind, sentence, hint = reason(name, named, error) if beyond is None else (OutOfMemory, beyond, None)
    call = f"{name}({', '.join(map(shown, tensors))})"
    if is_gradient:
        call = translate("the gradient of {call}").format(call=call)
    text = f"{line}: {call}: {sentence}"
    return _as_explained(kind, text if hint is None else with_hint(text, hint))


def _as_explained(kind: Callable[[str], Exception], text: str) -> Exception:
    explained_error = kind(text)
    explained_error.explained = True  # type: ignore[attr-defined]
    return explained_error


_TENSOR = re.compile(r"\btensor\((?:[^()]|\([^()]*\))*\)")
"""Matches a torch tensor as an f-string shows it."""


def _is_signal(error: Exception) -> bool:
    """Return whether torch raises the exception to end a run that it no longer needs, such as that of `torch.utils.checkpoint`."""
    return type(error).__base__ is Exception and type(error).__module__.startswith("torch.")


def replaced(
    error: Exception, function: Callable[..., Any], called: str, arguments: tuple[Any, ...], keywords: dict[str, Any],
) -> Exception:
    """Return the error to raise in place of `error` of the call of `called`: `error` itself if it is the user's or needs no addition."""
    if getattr(error, "explained", False) or isinstance(error, (TorchsporeError, StopIteration)) or _is_signal(error):
        return error
    if not _is_library_error(error) or is_users_error(error):
        return error
    beyond = limit.sentence(error)
    if beyond is not None:
        return _as_explained(OutOfMemory, f"{line_prefix()}{_call(called, arguments, keywords)}: {beyond}")
    is_our_text = not is_torch(error)
    text = str(error.args[0]) if isinstance(error, KeyError) and len(error.args) == 1 else str(error)
    if isinstance(error, KeyError) and called.endswith("__getitem__"):
        return error
    if is_our_text and len(error.args) == 1:
        translated = translate_refusal(text)
        error.args = (translated,) if translated != text else error.args
        text = translated
    if is_our_text or isinstance(error, OSError):
        if not re.match(r"['/\w.]+[^:：\n]*(?:: |：)", text) and not _named(called) & set(re.findall(r"\w+", text)):
            error.args = (f"{line_prefix()}{called}: {text or translate('it cannot be done.')}",) if len(error.args) <= 1 else error.args
        return error
    if re.search(r"positional argument|unexpected keyword|multiple values for|missing a required|too many", text):
        signature = signature_of(function).replace("(self, ", "(").replace("(self)", "()")
        text = f"{line_prefix()}{_call(called, arguments, keywords)}: {_expected_call(called + signature)}"
        hint = older_calls.explanation((called, called.rpartition(".")[2]), inspect.signature(function).parameters, keywords)
        new_error: Exception = TypeError(text if hint is None else with_hint(text, hint))
    elif not is_about_arguments(error, [*arguments, *keywords, *keywords.values()]):
        return prefix_with_call(error, f"{line_prefix()}{_call(called, arguments, keywords)}")
    else:
        kind, sentence, hint = of_call(error)
        text = f"{line_prefix()}{_call(called, arguments, keywords)}: {sentence}"
        new_error = kind(text if hint is None else with_hint(text, hint))
    new_error.explained = True  # type: ignore[attr-defined]
    return new_error


def _expected_call(call: str) -> str:
    return translate("expected {call}.").format(call=call)


def _named(called: str) -> set[str]:
    """Return the words that name a call, without `Tensor`, which is too frequent in messages about Tensors."""
    return set(called.split(".")) - {"Tensor"} or {called}


def _call(called: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    texts = [*map(shown, arguments), *(f"{key}={shown(value)}" for key, value in keywords.items())]
    return f"{called}({', '.join(texts[:8])}{', ...' if len(texts) > 8 else ''})"


def _is_library_error(error: Exception) -> bool:
    """Return whether the class of an error belongs to Python or to a library below this package."""
    return type(error).__module__.partition(".")[0] in ("builtins", "torch", "numpy", "cv2", "PIL", "struct", "zlib", "json")


def is_front_end(filename: str) -> bool:
    """Return whether a file belongs to the front end or to a package below it."""
    filename = with_slashes(filename)
    return any(f"/torchspore/{package}/" in filename for package in ("mindspore", "distributed", "observe", "export", "graph", "engine"))


def lacks_kernel(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], dtype: Any) -> LacksKernel:
    """Return the error for an operator without a kernel for `dtype`, where a cast is not allowed."""
    arguments_by_name = _explicit_arguments(function, arguments, keywords)
    call = f"{line_prefix()}{name_of(function)}({', '.join(f'{key}: {shown(value)}' for key, value in arguments_by_name.items())})"
    new_error = LacksKernel(with_hint(f"{call}: {unsupported_dtypes.sentence(dtype)}", translate(unsupported_dtypes.HINT)))
    new_error.explained = True  # type: ignore[attr-defined]
    return new_error


def _reason(function: Callable[..., Any], arguments_by_name: dict[str, Any], error: Exception) -> Reason:
    text = str(error)
    if re.search(r"positional argument|unexpected keyword|multiple values for", text) and "()" in text:
        parameters = inspect.signature(function).parameters
        return TypeError, _expected_call(f"{name_of(function)}{signature_of(function)}"), older_calls.explanation(
            (name_of(function), function.__name__), parameters, arguments_by_name,
        )
    layer = next((key for key, value in arguments_by_name.items() if any(base.__name__ == "Cell" for base in type(value).__mro__)), None)
    if layer is not None:
        text = translate("expected a Tensor as {key}, got {kind}.").format(key=layer, kind=type(arguments_by_name[layer]).__name__)
        return TypeError, text, None
    if not is_torch(error):
        sentence, hint = split_hint(translate_refusal(text))
        return type(error), sentence if sentence.endswith((".", "。")) else sentence + translate("."), hint or None
    try:
        return reason(function.__name__, arguments_by_name, error)
    except RecursionError as deep:
        return reason(function.__name__, {}, deep)


def name_of(function: Callable[..., Any]) -> str:
    """Return the operator's public name: that of its function, or of its primitive if it has no public function."""
    return getattr(function, "shown_as", None) or getattr(function, "__name__", str(function))


def signature_of(function: Callable[..., Any]) -> str:
    """Return the parameters with their defaults, without types: `(input, axis=-1)`."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)).replace("=torch.", "=mindspore.")
    return re.sub(r"<function (?:\S*\.)?(\w+)>", r"\1", re.sub(r"<function \S*<lambda>>", "...", without_addresses(text)))


def _explicit_arguments(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by parameter name, without those that equal the defaults, because layers pass all of them."""
    explicit: dict[str, Any] = {}
    rest = list(arguments)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            explicit.update({f"{parameter.name}[{i}]": value for i, value in enumerate(rest)})
            rest = []
        elif rest and parameter.kind is not parameter.KEYWORD_ONLY:
            value = rest.pop(0)
            if not _is_default(value, parameter.default):
                explicit[parameter.name] = value
    explicit.update({f"argument {len(arguments) - len(rest) + i}": value for i, value in enumerate(rest)})
    return {**explicit, **keywords}


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, (int, float, str, tuple)) and type(value) is type(default) and value == default)


def wrong_arguments(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """Return the error for a Cell whose `construct` does not accept these arguments, or None if it does."""
    try:
        inspect.signature(cell.construct).bind(*args, **kwargs)
    except TypeError:
        name = type(cell).__name__
        argument_text = ", ".join([*map(shown, args), *(f"{key}={shown(value)}" for key, value in kwargs.items())])
        expected = _expected_call(f"{name}.construct{signature_of(cell.construct)}")
        return TypeError(f"{line_prefix()}{name}({argument_text}): {expected}")
    return None


def shown(value: Any) -> str:
    """Describe a value in a few words: a Tensor as `Float32[2, 3]`."""
    if isinstance(value, TensorBase):
        t = value._t
        return f"{dtypes.FROM_TORCH.get(t.dtype, t.dtype)}{list(t.shape)}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, TensorBase) for item in value):
        return "(" + ", ".join(shown(item) for item in value) + ")"
    if type(value).__module__ == "torch" and value in dtypes.FROM_TORCH:
        return repr(dtypes.FROM_TORCH[value])
    text = _TENSOR.sub("a Tensor", " ".join(show_full(value).split()))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
