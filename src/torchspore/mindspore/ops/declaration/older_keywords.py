"""Keywords of older MindSpore releases in failed calls, and positional calls whose meaning changed between releases."""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from torchspore.base.frames import line_prefix, warn
from torchspore.base.text import message, with_hint
from torchspore.mindspore.ops.declaration.explain import name_of
from torchspore.public_names import older_calls
from torchspore.translations import translate


def renamed_keywords(
    function: Callable[..., Any], error: Exception, arguments: tuple[Any, ...], keywords: Mapping[str, Any], called: str = "",
) -> dict[str, Any] | None:
    """Return the keywords of a call that failed with `error` in today's spelling.

    None unless `error` is a TypeError, an older release had the keywords, and their meaning is unique.
    """
    if error.__class__ is not TypeError or not keywords:
        return None
    defined_as = ".".join(getattr(function, "__qualname__", "").split(".")[-2:])
    names = dict.fromkeys((called or name_of(function), getattr(function, "__name__", ""), name_of(function), defined_as))
    return older_calls.renamed_arguments(function, [name for name in names if name], arguments, keywords)


def renamed_keywords_of_layer(
    cell: Any, error: Exception, arguments: tuple[Any, ...], keywords: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Return the same for a call of a layer that failed; None if the program defines its `construct`."""
    owner = next((base for base in type(cell).__mro__ if "construct" in base.__dict__), None)
    if owner is None or not owner.__module__.startswith("torchspore."):
        return None
    return renamed_keywords(cell.construct, error, arguments, keywords, f"{owner.__name__}.construct")


def split_of_older_releases(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `split`: `output_num` of MindSpore 1.x is converted, and a positional call that both forms could mean is reported."""

    @functools.wraps(function)
    def split(*arguments: Any, **keywords: Any) -> Any:
        if keywords:
            if "output_num" in keywords:
                return function(*_source(arguments, keywords), **_by_number_of_parts(arguments, keywords))
        elif len(arguments) == 3 and arguments[1].__class__ is int and arguments[2].__class__ is int and arguments[2] > 1:
            _report_older_order(*arguments)
        return function(*arguments, **keywords)

    return split


def _source(arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
    return arguments[:1] or (keywords.get("input_x", keywords.get("tensor")),)


def _by_number_of_parts(arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return today's keywords for `split(axis, output_num)`. Raises TypeError for further arguments, ValueError for unequal parts."""
    unknown = keywords.keys() - {"axis", "output_num", "input_x", "tensor"}
    if unknown or len(arguments) > 2 or (len(arguments) == 2 and "axis" in keywords):
        expected = translate("split(axis=0, output_num=1), the form of MindSpore 1.x")
        hint = translate("write {word}").format(word="split(split_size_or_sections=, axis=)")
        raise TypeError(message(f"{line_prefix()}split(output_num=...)", expected, hint=hint))
    axis = arguments[1] if len(arguments) == 2 else keywords.get("axis", 0)
    shape, parts = _source(arguments, keywords)[0].shape, keywords["output_num"]
    if parts.__class__ is not int or parts < 1 or shape[axis] % parts:
        expected = translate("a number of equal parts of the length {length}").format(length=shape[axis])
        hint = translate("write split(split_size_or_sections=, axis=) for parts of other lengths")
        raise ValueError(message(f"{line_prefix()}split(axis={axis}, output_num={parts})", expected, hint=hint))
    return {"split_size_or_sections": shape[axis] // parts, "axis": axis}


def _report_older_order(tensor: Any, first: int, second: int) -> None:
    """Warn if MindSpore 1.x would have read split(first, second) as equal parts, and the present order has a meaning as well."""
    shape = tensor.shape
    if -len(shape) <= first < len(shape) and shape[first] % second == 0:
        text = translate("split({first}, {second}) means split_size_or_sections={first}, axis={second}; MindSpore 1.8 to 1.9 read it as "
                         "axis={first}, output_num={second}.").format(first=first, second=second)
        hint = translate("write {today}, or {older} for the older meaning")
        warn(with_hint(text, hint.format(today=f"split({first}, axis={second})", older=f"split({shape[first] // second}, axis={first})")))
