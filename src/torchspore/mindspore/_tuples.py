"""`_checkparam.twice` and similar functions: an int for several numbers, such as kernel sizes and strides."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.base.text import message, short


def _expanding(count: int, kinds: tuple[type, ...], collection: str) -> Callable[[Any], tuple[Any, ...]]:
    def expanded(input_: Any) -> tuple[Any, ...]:
        if isinstance(input_, int) and not isinstance(input_, bool):
            return (input_,) * count
        if not isinstance(input_, kinds) or len(input_) != count or any(isinstance(item, (str, float)) for item in input_):
            raise TypeError(message(short(input_), f"an int or {collection} of {count}"))
        return tuple(input_)

    expanded.__doc__ = f"Return an int {count} times, or {collection} of {count} as a tuple. Raises TypeError for anything else."
    return expanded


once, twice, triple = (_expanding(count, (tuple,), "a tuple") for count in (1, 2, 3))
once_sequence, twice_sequence, triple_sequence = (_expanding(count, (tuple, list), "a tuple or list") for count in (1, 2, 3))


def _expand_tuple(n_dimensions: int) -> Callable[[Any], tuple[int, ...]]:
    """Return a function that turns an int, or a tuple of `n_dimensions` ints, into such a tuple."""
    return _expanding(n_dimensions, (tuple,), "a tuple")


def _expand_sequence_to_tuple(n_dimensions: int) -> Callable[[Any], tuple[int, ...]]:
    """As `_expand_tuple`; lists are accepted too."""
    return _expanding(n_dimensions, (tuple, list), "a tuple or list")
