"""Whose fault an error is: of the arguments of a call, of a function of the program's, or of our own code."""
from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from torchspore.base.frames import is_users
from torchspore.engine.core.tensor import TensorBase

_DEFECTS = (NameError, AssertionError, ImportError)
"""What no argument brings about: unknown names, broken promises of the code, modules that are not there."""
_OF_CLASSES = (property, types.FunctionType, types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType)
"""What a class has where its objects have values."""
_DEEPEST = 3
"""Lists in lists that are looked through for what an error is about."""
_LIBRARIES = ("/site-packages/PIL/", "/site-packages/cv2/")


def is_users_error(error: Exception) -> bool:
    """Whether an error comes out of a function of the program's that we called."""
    step = error.__traceback__
    while step is not None:
        filename = step.tb_frame.f_code.co_filename
        if is_users(filename) and not any(library in filename for library in _LIBRARIES):
            return True
        step = step.tb_next
    return False


def is_about_arguments(error: Exception, given: Sequence[Any], is_operator: bool = False) -> bool:
    """Whether an error can be laid to what a call was `given`; else it is a defect of the code that was called.

    An attribute that is lacking is laid to arguments where one of them lacks it, or where it is what Tensors alone have (one of a set, of
    an iterator, is no value that was given), a key where it came from one of them. An operator that
    was given something other than Tensors computes with it before it fails: what lacks the attribute may be a part of it.
    """
    if isinstance(error, _DEFECTS):
        return isinstance(error, AssertionError) and _is_of_torch(error)
    if isinstance(error, AttributeError):
        return error.name in (None, "_t") or _came_in(error.obj, given) or (is_operator and _is_plain(error.obj) and _is_strange(given))
    if type(error) is KeyError and error.args:
        return _is_named(error.args[0], [part for value in given for part in _values(value)])
    return True


def _is_of_torch(error: Exception) -> bool:
    """Whether an error comes out of torch's Python code, which asserts what arguments must be."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and "/torch/" in step.tb_frame.f_code.co_filename


def told(error: Exception, call: str) -> Exception:
    """`error` itself, of its own class and with its own traceback, whose text names the call before what it said."""
    text = f"there is no key {error.args[0]!r}" if isinstance(error, KeyError) and error.args else str(error) or "it can not be done"
    error.args = (f"{call}: {text}{', a defect of torchspore' if _is_ours(error) else ''}.",)
    error.explained = True  # type: ignore[attr-defined]
    return error


def _is_ours(error: Exception) -> bool:
    """Whether code of ours is wrong: not what a library lacks, nor what an object of the program's should have had."""
    if isinstance(error, ImportError):
        return False
    if isinstance(error, AttributeError):
        return _is_plain(error.obj) or isinstance(error.obj, ModuleType) or type(error.obj).__module__.startswith("torchspore.")
    return isinstance(error, (NameError, AssertionError, KeyError))


def _came_in(owner: Any, given: Sequence[Any]) -> bool:
    if isinstance(owner, ModuleType):
        return False
    plain = _is_plain(owner)
    if isinstance(owner, _OF_CLASSES) and any(isinstance(value, type) for part in given for value in _values(part)):
        return True                                            # Tensor was written where a Tensor is meant
    return any(value is owner or (plain and type(value) is type(owner)) for part in given for value in _values(part))


def _is_plain(owner: Any) -> bool:
    return type(owner).__module__.partition(".")[0] in ("builtins", "numpy", "torch") and not isinstance(owner, ModuleType)


def _is_strange(given: Sequence[Any]) -> bool:
    """Whether an operator was given anything other than Tensors."""
    return any(not isinstance(value, TensorBase) for value in given)


def _is_named(key: Any, values: list[Any]) -> bool:
    """Whether a key that was not found is one of the values, a part of a text, or a type, dtype or number of axes of one of them."""
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


def _values(given: Any, depth: int = 0) -> Iterator[Any]:
    """Each value in what was given, a Tensor also as the torch tensor that operators see."""
    yield given
    if isinstance(given, TensorBase):
        yield getattr(given, "_t", None)
    elif isinstance(given, (list, tuple)) and depth < _DEEPEST:
        for value in given:
            yield from _values(value, depth + 1)
    elif isinstance(given, dict) and depth < _DEEPEST:
        for key, value in given.items():
            yield key
            yield from _values(value, depth + 1)
