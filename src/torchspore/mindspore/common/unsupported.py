"""Attributes of MindSpore's Tensor that are missing here: reading one raises an error that explains it.

Each name is a descriptor on the class, because a `__getattr__` would make every attribute of every Tensor slower.
"""
from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, NoReturn

from torchspore.public_names import listing
from torchspore.public_names.lookup import attribute_text


class Lacking:
    """Stands for a missing attribute of a class; for `hasattr` it is missing too."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(attribute_text([self.owner], self.name))


def mark(cls: type) -> None:
    """Put a descriptor into `cls` for each public name that MindSpore's class of this name has and `cls` lacks."""
    for name in listing.attributes_of(cls.__name__):
        if not name.startswith("_") and not hasattr(cls, name):
            lacking = Lacking()
            lacking.__set_name__(cls, name)
            setattr(cls, name, lacking)


def without_lacking(cls: type, names: Iterable[str]) -> list[str]:
    """Return the names without the missing attributes: a program that reads all attributes of `dir(Tensor)` reads those that exist."""
    return [name for name in names if not isinstance(inspect.getattr_static(cls, name, None), Lacking)]
