"""What `Primitive.shard` takes: tuples of tuples of numbers, or of Layouts; whether they fit the operator is seen when it is called."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short


def check(name: str, in_strategy: Any, out_strategy: Any) -> None:
    """Raises TypeError and ValueError for what is no strategy of the primitive of this name."""
    kinds = [_check_one(name, key, value) for key, value in (("in_strategy", in_strategy), ("out_strategy", out_strategy))]
    if out_strategy is not None and in_strategy is None:
        raise ValueError(message(f"{name}.shard(out_strategy={short(out_strategy)})", "an in_strategy, too"))
    if out_strategy and in_strategy and kinds[0] is not kinds[1]:
        wrote = f"{name}.shard({short(in_strategy)}, {short(out_strategy)})"
        raise ValueError(message(wrote, "both as tuples of numbers, or both as Layouts"))


def is_layout(value: Any) -> bool:
    """Whether it is a Layout."""
    return hasattr(value, "to_dict") and not isinstance(value, type)


def _check_one(name: str, key: str, strategy: Any) -> bool:
    """Whether a strategy is made of Layouts. Raises TypeError for what is no strategy."""
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
        raise TypeError(message(wrote, "Layouts alone, or tuples of numbers alone"))
    for number in (one for part in strategy if isinstance(part, tuple) for one in part):
        if not isinstance(number, int):
            raise TypeError(message(wrote, f"whole numbers, got {short(number)}"))
    return bool(count)


def as_attributes(strategy: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    """Layouts as the attributes `in_layout` and `out_layout` have them. Raises ValueError for a Layout that names no axes yet."""
    return tuple({key: value for key, value in one.to_dict().items() if key != "rank_list"} for one in strategy)
