"""Checks of the kinds of constructors' arguments: bool, int, float or str."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short, with_type
from torchspore.translations import translate

REFUSED: dict[Any, frozenset[type]] = {
    kind.__name__: frozenset({str, bool, int, float, complex, list, tuple, dict, type(None)}) - taken
    for kind, taken in ((bool, {bool}), (int, {int}), (float, {float, int}), (str, {str}))
}
"""Types that an argument with this annotation must not have; the operator judges others (NumPy's numbers, Tensors)."""


def check_kinds(name: str, kind: str, **arguments: Any) -> None:
    """Raises TypeError if an argument of the class `name` is not a `kind`: 'bool', 'int', 'float' (or an int) or 'str'."""
    for key, value in arguments.items():
        if value.__class__ in REFUSED[kind]:
            refuse_kind(name, key, value, kind)


def refuse_kind(name: str, key: str, value: Any, kind: str) -> None:
    raise TypeError(message(f"{name}({key}={short(value)})", with_type(f"{'an' if kind == 'int' else 'a'} {kind}", value)))


def refuse_seed(name: str, value: Any) -> None:
    kind, got = (ValueError, short(value)) if value.__class__ is int else (TypeError, type(value).__name__)
    expected = translate("{expected}, got {kind}").format(expected=translate("an int from 0 on"), kind=got)
    raise kind(message(f"{name}(seed={short(value)})", expected))
