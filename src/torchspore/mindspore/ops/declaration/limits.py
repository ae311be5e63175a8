"""Checks of constructor arguments by kind: lengths of windows, sequences, dtypes, fractions, finite numbers, words."""
from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import list_choices, message, short, with_type
from torchspore.engine.tensors.dtypes import FROM_TORCH, Type
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.errors import WrongKind
from torchspore.translations import translate


def check_lengths(
    name: str, counts: tuple[int, ...], least: int = 1, wrong_count: type[Exception] = ValueError,
    kinds: type | tuple[type, ...] = tuple, **arguments: Any,
) -> None:
    """Raises if an argument is neither an int of at least `least` nor a sequence of such ints with a length in `counts`.

    `wrong_count` is the error for a sequence of another length: ValueError, but TypeError for the layers where MindSpore raises that.
    Sequences are tuples, or what `kinds` names.
    """
    for key, value in arguments.items():
        if value.__class__ is int and value >= least:        # nearly every call; the text below costs more than the operator
            continue
        if value.__class__ is tuple and kinds is tuple and len(value) in counts and _are_ints(value, least):
            continue
        wrote = f"{name}({key}={short(value)})"
        parts = value if isinstance(value, kinds) and counts else (value,)
        for part in parts:
            if not _is_int(part):
                raise WrongKind(message(wrote, with_type(translate("an int or a tuple of ints") if counts else "an int", part)))
        if isinstance(value, kinds) and len(value) not in counts:
            expected = translate("an int or {counts} of them, got {count}")
            raise wrong_count(message(wrote, expected.format(counts=translate(" or ").join(map(str, sorted(counts))), count=len(value))))
        if any(part < least for part in parts):
            raise ValueError(message(wrote, translate("ints from {low} on").format(low=least)))


def _are_ints(values: tuple[Any, ...], least: int) -> bool:
    return all(value.__class__ is int and value >= least for value in values)


def _is_int(value: Any) -> bool:
    """Return whether a value is an int or has an integer value; `__index__` alone proves nothing for arrays and Tensors."""
    if isinstance(value, (int, torch.SymInt)):          # `operator.index` would fix the value of a symbolic int of a graph
        return not isinstance(value, bool)
    try:
        operator.index(value)
    except (TypeError, ValueError, RuntimeError):       # a complex Tensor has no integer value
        return False
    return True


def check_finite(name: str, **arguments: Any) -> None:
    """Raises ValueError if a number is infinite or NaN; values that are not floats pass."""
    for key, value in arguments.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(message(f"{name}({key}={value})", "a finite number"))


def check_real(name: str, least: float | None = None, above: float | None = None, most: float | None = None, **arguments: Any) -> None:
    """Raises TypeError if an argument is not a float (an int is not), ValueError if it is not finite or outside the limits."""
    for key, value in arguments.items():
        if not isinstance(value, float):
            raise TypeError(f"{name}({key}={short(value)}): expected a float, got {type(value).__name__}.")
        check_finite(name, **{key: value})
        low = (least is not None and value < least) or (above is not None and value <= above)
        if low or (most is not None and value > most):
            raise ValueError(message(f"{name}({key}={value})", _describe_range(least, above, most)))


def _describe_range(least: float | None, above: float | None, most: float | None) -> str:
    if least is not None:
        text = translate("a number from {low:g} on") if most is None else translate("a number from {low:g} up to {high:g}")
    elif above is not None:
        text = translate("a number above {low:g}") if most is None else translate("a number above {low:g} up to {high:g}")
    else:
        text = translate("a number up to {high:g}")
    return text.format(low=least if least is not None else above, high=most)


def check_words(name: str, key: str, value: Any, words: tuple[str, ...]) -> None:
    """Raises ValueError if an argument is not one of the words."""
    if not isinstance(value, str) or value not in words:
        raise ValueError(message(f"{name}({key}={short(value)})", list_choices(words)))


def check_divisor(name: str, divisor_override: Any) -> None:
    """Raises if `divisor_override`, which replaces a window's size as divisor, is neither None nor an int of at least 1."""
    if divisor_override is not None:
        check_lengths(name, (), divisor_override=divisor_override)


def small(word: Any) -> Any:
    """Return a word in lower case, because 2.10 accepts either case for some; other values stay unchanged."""
    return word.lower() if isinstance(word, str) else word


Rule = Callable[[str, str, Any], None]
"""Raises if an argument (class name, argument name, value) is outside its limits."""


def lengths(*counts: int, least: int = 1, kinds: type | tuple[type, ...] = tuple) -> Rule:
    """An int from `least` on, or as many of them as one of `counts` says."""
    return lambda name, key, value: check_lengths(name, counts, least, kinds=kinds, **{key: value})


def volume(least: int = 1) -> Rule:
    """An int from `least` on, three of them, or five that begin with two ones."""
    def check(name: str, key: str, value: Any) -> None:
        check_lengths(name, (3, 5), least, **{key: value})
        if isinstance(value, tuple) and len(value) == 5 and tuple(value[:2]) != (1, 1):
            raise ValueError(f"{name}({key}={short(value)}): expected 1 for the batch and for the channels.")

    return check


def real(least: float | None = None, above: float | None = None, most: float | None = None) -> Rule:
    """A float between these limits."""
    return lambda name, key, value: check_real(name, least, above, most, **{key: value})


def int_range(least: int, most: int) -> Rule:
    """An int between these limits."""
    def check(name: str, key: str, value: Any) -> None:
        if not _is_int(value) or not least <= value <= most:
            expected = f"{least}" if least == most else translate("an int from {low} to {high}").format(low=least, high=most)
            raise ValueError(message(f"{name}({key}={short(value)})", expected))

    return check


def words(*choices: str, either_case: bool = False) -> Rule:
    """One of these words."""
    return lambda name, key, value: check_words(name, key, value.lower() if either_case and isinstance(value, str) else value, choices)


def dtypes(*names: str) -> Rule:
    """A dtype of mindspore with one of these names, or any if there are none."""
    def check(name: str, key: str, value: Any) -> None:
        value = FROM_TORCH[value] if isinstance(value, torch.dtype) else value
        if not isinstance(value, Type) or (names and str(value) not in names):
            expected = translate(" or ").join(f"mindspore.{part.lower()}" for part in names) or "a dtype of mindspore"
            raise TypeError(message(f"{name}({key}={short(value)})", expected))

    return check


def axes(*kinds: type, is_int_allowed: bool = True) -> Rule:
    """A sequence of ints, of one of these kinds; an int too, unless `is_int_allowed` says otherwise."""
    def check(name: str, key: str, value: Any) -> None:
        if value.__class__ in kinds:
            for part in value:
                if part.__class__ is not int:
                    break
            else:                                          # the most frequent case takes no further call
                return
        parts = value if isinstance(value, kinds) else (value,) if is_int_allowed else (None,)
        for part in parts:
            if part.__class__ is not int:
                break
        else:
            return
        if not all(_is_int(part) for part in parts):
            listed = translate(" or ").join(translate("a {kind} of ints").format(kind=kind.__name__) for kind in kinds)
            expected = translate("an int or {others}").format(others=listed) if is_int_allowed else listed
            raise TypeError(message(f"{name}({key}={short(value)})", with_type(expected, value)))

    return check


def sequence(kinds: type | tuple[type, ...], part: type | None = None, count: int | None = None) -> Rule:
    """A sequence of one of these kinds, with `count` parts of the type `part`."""
    def check(name: str, key: str, value: Any) -> None:
        wrote = f"{name}({key}={short(value)})"
        kind_text = translate("a {kind}")
        named = translate(" or ").join(kind_text.format(kind=kind.__name__) for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
        if not isinstance(value, kinds):
            raise TypeError(message(wrote, with_type(named, value)))
        if count is not None and len(value) != count:
            raise ValueError(message(wrote, translate("{count} values, got {present}").format(count=count, present=len(value))))
        if part is not None and not all(isinstance(item, part) and not isinstance(item, bool) for item in value):
            raise TypeError(message(wrote, translate("{container} of {part}s").format(container=named, part=part.__name__)))

    return check


def optional(rule: Rule) -> Rule:
    """None, or what `rule` says."""
    def check(name: str, key: str, value: Any) -> None:
        if value is not None:
            rule(name, key, value)

    return check


def open_lengths(*counts: int) -> Rule:
    """An int from 0 on, or a tuple of such ints and None, which keeps a length."""
    def check(name: str, key: str, value: Any) -> None:
        parts = tuple(0 if part is None else part for part in value) if isinstance(value, tuple) else value
        check_lengths(name, counts, 0, **{key: parts})

    return check


def int_alone(name: str, key: str, value: Any) -> None:
    """An int."""
    if not _is_int(value):
        raise TypeError(message(f"{name}({key}={short(value)})", with_type("an int", value)))


def real_type(name: str, key: str, value: Any) -> None:
    """A float, an infinite one too."""
    if not isinstance(value, float):
        raise TypeError(f"{name}({key}={short(value)}): expected a float, got {type(value).__name__}.")


def truth(name: str, key: str, value: Any) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise TypeError(message(f"{name}({key}={short(value)})", with_type("a bool", value)))


def number(name: str, key: str, value: Any) -> None:
    """A number."""
    if not isinstance(value, (int, float)):
        raise TypeError(message(f"{name}({key}={short(value)})", with_type("a number", value)))


def shape(name: str, key: str, value: Any) -> None:
    """A tuple or list of lengths, or a Tensor of them."""
    if not isinstance(value, (tuple, list, TensorBase)):
        raise TypeError(f"{name}({key}={short(value)}): expected a tuple, a list or a Tensor, got {type(value).__name__}.")


def tensor(name: str, key: str, value: Any) -> None:
    """A Tensor."""
    if not isinstance(value, TensorBase):
        raise TypeError(message(f"{name}({key}={short(value)})", with_type("a Tensor", value)))


def checked(**rules: Rule) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates the `__init__` of a layer: each argument that a call passes is checked by its rule."""
    def decorate(init: Callable[..., None]) -> Callable[..., None]:
        parameters = list(inspect.signature(init).parameters)

        @functools.wraps(init)
        def checked_init(self: Any, *arguments: Any, **keywords: Any) -> None:
            for key, value in (*zip(parameters[1:], arguments), *keywords.items()):
                if key in rules:
                    rules[key](type(self).__name__, key, value)
            init(self, *arguments, **keywords)

        return checked_init

    return decorate
