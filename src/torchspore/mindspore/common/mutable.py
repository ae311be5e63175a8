"""`mutable`: marks values that a graph must not treat as constants."""
from __future__ import annotations

from typing import Any

from torchspore.engine.tensors.mutable_containers import MutableDict, MutableList, MutableTuple
from torchspore.engine.tensors.number import MutableFloat, MutableInt
from torchspore.engine.tensors.tensor import TensorBase

_MARKED_CLASSES: dict[type, type] = {int: MutableInt, float: MutableFloat, tuple: MutableTuple, list: MutableList, dict: MutableDict}


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """Return `input_data` marked; its numbers are inputs of a graph from the first call on, as Tensors always are.

    It is a bool, an int, a float, a Tensor, or a list, tuple or dict of such. Gradient transforms differentiate by the Tensors of a list,
    tuple or dict only if it is marked. `dynamic_len` is for lists and tuples that change their length: each length has a separate graph
    here. The result has the attributes `__ms_mutable__`, `__ms_dynamic_len__` and `__ms_origin_object__` (`input_data`). Raises TypeError
    for other values and for `dynamic_len` with a value that has no length, ValueError for `dynamic_len` with elements of several types.

    >>> mutable((Tensor([1.0]), 2))[1]
    2
    """
    if not isinstance(dynamic_len, bool):
        raise TypeError(f"For 'mutable', the second input should be bool, but got: {type(dynamic_len).__name__}"
                        "\n\nhint: write dynamic_len=True.")
    if dynamic_len and not isinstance(input_data, (list, tuple)):
        raise TypeError("For 'mutable', when the variable_len is True, the first input should be list or tuple, but got: "
                        f"{type(input_data).__name__}\n\nhint: write mutable([{type(input_data).__name__}], True).")
    if not _can_mark(input_data, ()):
        raise TypeError("For 'mutable', the 'input_data' should be one of (bool, int, float, Tensor, tuple, list, dict) or their nested "
                        f"structures with no self-reference, but got {type(input_data).__name__}: {input_data!r:.100}.")
    if dynamic_len:
        _check_kinds(input_data)
    if isinstance(input_data, TensorBase):
        input_data.__ms_mutable__, input_data.__ms_dynamic_len__ = True, False  # type: ignore[attr-defined]
        return input_data
    marked = _marked(input_data)
    if not isinstance(marked, bool):
        marked.__ms_dynamic_len__, marked.__ms_origin_object__ = dynamic_len, input_data
    return marked


def _check_kinds(items: list[Any] | tuple[Any, ...]) -> None:
    """Raises ValueError for elements of different types: a graph for any number of elements requires one type."""
    plain = {marked: kind for kind, marked in _MARKED_CLASSES.items()}
    kinds = {TensorBase if isinstance(item, TensorBase) else plain.get(type(item), type(item)) for item in items}
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(
            f"mutable(dynamic_len=True): expected elements of one type, got {names}. In graph mode, the element type of dynamic length "
            "array must be the same. The element type do not match."
        )


def _can_mark(value: Any, holders: tuple[int, ...]) -> bool:
    """Return whether `value` consists of Tensors, numbers and containers; `holders` are the ids of the containers around it."""
    if isinstance(value, (TensorBase, bool, int, float)):
        return True
    if not isinstance(value, (list, tuple, dict)) or id(value) in holders:
        return False
    return all(_can_mark(item, (*holders, id(value))) for item in (value.values() if isinstance(value, dict) else value))


def _marked(value: Any) -> Any:
    """Return `value` as an instance of the class that marks it; the numbers inside it are marked too."""
    if isinstance(value, (TensorBase, bool)):
        return value
    if isinstance(value, (list, tuple)):
        value = [_marked(item) for item in value] if isinstance(value, list) else tuple(_marked(item) for item in value)
    elif isinstance(value, dict):
        value = {key: _marked(item) for key, item in value.items()}
    return next(marked for kind, marked in _MARKED_CLASSES.items() if isinstance(value, kind))(value)
