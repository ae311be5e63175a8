"""What an object was made from: the arguments of its constructor by name, kept so that a pipeline can be written down and made again."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


class Given:
    """Base of what keeps its arguments: `_given` holds them, as the outermost constructor was given them."""

    _given: dict[str, Any]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" in vars(cls):
            cls.__init__ = _keeping(cls.__init__)          # type: ignore[misc]


def _keeping(constructor: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(constructor)

    @functools.wraps(constructor)
    def kept(self: Given, *arguments: Any, **keywords: Any) -> None:
        if "_given" not in vars(self):
            try:
                bound = signature.bind(self, *arguments, **keywords).arguments
            except TypeError:                    # the constructor says so itself
                bound = {}
            self._given = {name: value for name, value in bound.items() if name != next(iter(signature.parameters))}
        constructor(self, *arguments, **keywords)

    return kept
