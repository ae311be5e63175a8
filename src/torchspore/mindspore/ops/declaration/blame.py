"""The cause of an error: the arguments of a call, a user function, or a defect of this package."""
from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from torchspore.base.frames import is_user_file, with_slashes
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.translations import translate

_DEFECTS = (NameError, AssertionError, ImportError)
"""Errors that arguments cannot cause: unknown names, failed assertions, missing modules."""
_OF_CLASSES = (property, types.FunctionType, types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType)
"""Descriptors that a class has where its instances have values."""
_DEEPEST = 3
"""The depth of nested lists that are searched for the cause of an error."""
_LIBRARIES = ("/site-packages/PIL/", "/site-packages/cv2/")


def is_users_error(error: Exception) -> bool:
    """Return whether an error comes from a user function that this package called."""
    step = error.__traceback__
    while step is not None:
        filename = step.tb_frame.f_code.co_filename
        if is_user_file(filename) and not any(library in with_slashes(filename) for library in _LIBRARIES):
            return True
        step = step.tb_next
    return False


def is_about_arguments(error: Exception, arguments: Sequence[Any], is_operator: bool = False) -> bool:
    """Return whether `arguments` of a call can be the cause of an error; otherwise the called code has a defect.

    A missing attribute is attributed to the arguments if one of them lacks it, or if only Tensors have it (an attribute of a set or an
    iterator belongs to no argument), a missing key if it comes from one of them. An operator that
    got a value other than a Tensor computes with it before it fails: a part of it may lack the attribute.
    """
    if isinstance(error, _DEFECTS):
        return isinstance(error, AssertionError) and _is_of_torch(error)
    if isinstance(error, AttributeError):
        is_part_of_argument = is_operator and _is_plain(error.obj) and _is_strange(arguments)
        return error.name in (None, "_t") or _came_in(error.obj, arguments) or is_part_of_argument
    if type(error) is KeyError and error.args:
        return _is_named(error.args[0], [part for value in arguments for part in _values(value)])
    return True


def _is_of_torch(error: Exception) -> bool:
    """Return whether an error comes from torch's Python code, which asserts properties of arguments."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and "/torch/" in with_slashes(step.tb_frame.f_code.co_filename)


def prefix_with_call(error: Exception, call: str) -> Exception:
    """Return `error` with its class and traceback, and with the call in front of its text."""
    text = str(error) or translate("it cannot be done")
    if isinstance(error, KeyError) and error.args:
        text = translate("there is no key {key!r}").format(key=error.args[0])
    form = translate("{call}: {text}, a defect of torchspore.") if _is_ours(error) else translate("{call}: {text}.")
    error.args = (form.format(call=call, text=text),)
    error.explained = True  # type: ignore[attr-defined]
    return error


def _is_ours(error: Exception) -> bool:
    """Return whether the cause is in this package, not in a library or a user object that lacks an attribute."""
    if isinstance(error, ImportError):
        return False
    if isinstance(error, AttributeError):
        return _is_plain(error.obj) or isinstance(error.obj, ModuleType) or type(error.obj).__module__.startswith("torchspore.")
    return isinstance(error, (NameError, AssertionError, KeyError))


def _came_in(owner: Any, arguments: Sequence[Any]) -> bool:
    if isinstance(owner, ModuleType):
        return False
    plain = _is_plain(owner)
    if isinstance(owner, _OF_CLASSES) and any(isinstance(value, type) for part in arguments for value in _values(part)):
        return True                                            # the class Tensor was passed instead of a Tensor
    return any(value is owner or (plain and type(value) is type(owner)) for part in arguments for value in _values(part))


def _is_plain(owner: Any) -> bool:
    return type(owner).__module__.partition(".")[0] in ("builtins", "numpy", "torch") and not isinstance(owner, ModuleType)


def _is_strange(arguments: Sequence[Any]) -> bool:
    """Return whether an operator got a value other than a Tensor."""
    return any(not isinstance(value, TensorBase) for value in arguments)


def _is_named(key: Any, values: list[Any]) -> bool:
    """Return whether a missing key is one of the values, a part of a string, or a type, dtype or number of axes of one of them."""
    if isinstance(key, tuple):
        return any(_is_named(part, values) for part in key)
    if isinstance(key, str):
        return any(isinstance(value, str) and key.lower() in value.lower() for value in values) or _is_trait(key, values)
    return _is_trait(key, values) or any(type(value) is type(key) and value == key for value in values)


def _is_trait(key: Any, values: list[Any]) -> bool:
    for value in values:
        if key is type(value) or key == type(value).__name__ or any(key is getattr(value, name, 0) for name in ("ndim", "dtype")):
            return True
    return False


def _values(argument: Any, depth: int = 0) -> Iterator[Any]:
    """Yield each value in an argument, a Tensor also as its torch tensor."""
    yield argument
    if isinstance(argument, TensorBase):
        yield getattr(argument, "_t", None)
    elif isinstance(argument, (list, tuple)) and depth < _DEEPEST:
        for value in argument:
            yield from _values(value, depth + 1)
    elif isinstance(argument, dict) and depth < _DEEPEST:
        for key, value in argument.items():
            yield key
            yield from _values(value, depth + 1)
