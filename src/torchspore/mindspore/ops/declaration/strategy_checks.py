"""Checks of the arguments of `Primitive.shard`: tuples of tuples of numbers, or of Layouts. A call checks whether they fit the operator."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short


def check(name: str, in_strategy: Any, out_strategy: Any) -> None:
    """Raises TypeError and ValueError for arguments that are not a strategy of the primitive of this name."""
    kinds = [_check_strategy(name, key, value) for key, value in (("in_strategy", in_strategy), ("out_strategy", out_strategy))]
    if out_strategy is not None and in_strategy is None:
        raise ValueError(message(f"{name}.shard(out_strategy={short(out_strategy)})", "an in_strategy, too"))
    if out_strategy and in_strategy and kinds[0] is not kinds[1]:
        wrote = f"{name}.shard({short(in_strategy)}, {short(out_strategy)})"
        raise ValueError(message(wrote, "both as tuples of numbers, or both as Layouts"))


def flattened(strategy: Any) -> Any:
    """Return a strategy with one entry for each Tensor: that of an input that is a tuple of Tensors is a tuple with an entry for each."""
    if not isinstance(strategy, tuple) or not any(map(_is_of_several, strategy)):
        return strategy
    return tuple(entry for part in strategy for entry in (part if _is_of_several(part) else (part,)))


def _is_of_several(part: Any) -> bool:
    return isinstance(part, tuple) and bool(part) and all(isinstance(entry, tuple) or is_layout(entry) for entry in part)


def is_layout(value: Any) -> bool:
    """Return whether a value is a Layout."""
    return hasattr(value, "to_dict") and not isinstance(value, type)


def _check_strategy(name: str, key: str, strategy: Any) -> bool:
    """Return whether a strategy consists of Layouts. Raises TypeError for a value that is not a strategy."""
    wrote = f"{name}.shard({key}={short(strategy)})"
    if strategy is None:
        return False
    if not isinstance(strategy, tuple):
        raise TypeError(message(wrote, f"a tuple with a tuple of numbers, or a Layout, for each input, got {type(strategy).__name__}"))
    for part in strategy:
        if not isinstance(part, tuple) and not is_layout(part):
            raise TypeError(message(wrote, f"tuples of numbers, or Layouts, in it, got {type(part).__name__}"))
    count = sum(map(is_layout, strategy))
    if count not in (0, len(strategy)):
        raise TypeError(message(wrote, "only Layouts, or only tuples of numbers"))
    for number in (number for part in strategy if isinstance(part, tuple) for number in part):
        if not isinstance(number, int):
            raise TypeError(message(wrote, f"ints, got {short(number)}"))
    return bool(count)


def as_attributes(strategy: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    """Return Layouts in the form of the attributes `in_layout` and `out_layout`. Raises ValueError for a Layout without axis names."""
    return tuple({key: value for key, value in layout.to_dict().items() if key != "rank_list"} for layout in strategy)
