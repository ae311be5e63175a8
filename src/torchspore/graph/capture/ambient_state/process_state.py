"""Process-wide state that a trace reads without a name: NumPy's options, decimal's context, levels of loggers, the environment."""
from __future__ import annotations

import decimal
import logging
import os
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np

from torchspore.graph.capture.state import View


class Setting(View):
    """A state that one call of `text` shows."""

    def text(self) -> str:
        """All that counts of it; the same object while it is the same."""
        raise NotImplementedError

    def get(self, name: str, default: Any = None) -> Any:
        return self.text()

    def __getitem__(self, name: str) -> Any:
        return self.text()

    def __setitem__(self, name: str, value: Any) -> None:
        """Does nothing: the code that changed a setting restores it (`with np.errstate(...)`), or it remains set."""

    def __delitem__(self, name: str) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter(("",))


class NumpyOptions(Setting):
    """NumPy's handling of divisions by zero and similar errors, and its print options."""

    def __init__(self) -> None:
        umath, options = (sys.modules.get(f"numpy._core.{name}") for name in ("umath", "printoptions"))
        variables = getattr(umath, "_extobj_contextvar", None), getattr(options, "format_options", None)
        self._errors, self._formats = variables if all(variables) else (None, None)
        self._seen: tuple[Any, Any] | None = None
        self._text = ""

    def text(self) -> str:
        if self._errors is not None and self._formats is not None:           # NumPy 2 makes a new object of each change
            now = (self._errors.get(), self._formats.get())
            if self._seen is not None and now[0] is self._seen[0] and now[1] is self._seen[1]:
                return self._text
            self._seen = now
        text = f"{np.geterr()} {np.geterrcall()} {np.get_printoptions()}"
        if text != self._text:
            self._text = text
        return self._text


class DecimalContext(Setting):
    """With how many digits decimal computes, and how it rounds."""

    _text = ""

    def text(self) -> str:
        now = decimal.getcontext()
        traps = [signal.__name__ for signal, is_set in now.traps.items() if is_set]
        text = f"{now.prec} {now.rounding} {now.Emin} {now.Emax} {now.capitals} {now.clamp} {traps}"
        if text != self._text:
            self._text = text
        return self._text


class Levels(View):
    """The messages that a logger lets through."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def __getitem__(self, name: str) -> Any:
        return self._logger.isEnabledFor(int(name)) if name else self._logger.getEffectiveLevel()

    def __setitem__(self, name: str, value: Any) -> None:
        raise NotImplementedError

    def __delitem__(self, name: str) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter(())


_NUMPY, _DECIMAL = NumpyOptions(), DecimalContext()
SETTINGS: dict[int, Setting] = {id(np): _NUMPY, id(decimal): _DECIMAL, id(decimal.Decimal): _DECIMAL}
"""By the id of an object that a program names, the setting that its results may depend on."""

LEVELS: dict[CodeType, bool] = {logging.Logger.isEnabledFor.__code__: True, logging.Logger.getEffectiveLevel.__code__: False}
"""The methods of a logger that return which messages it accepts, and True if their first argument is a level."""
LOGGING = logging.__file__

ENVIRONMENT: dict[CodeType, str] = {
    getattr(type(os.environ), name).__code__: what for name, what in (
        ("__getitem__", "reads"), ("__iter__", "reads all"), ("__len__", "reads all"), ("copy", "reads all"), ("__setitem__", "changes"),
        ("__delitem__", "changes"),
    ) if hasattr(getattr(type(os.environ), name, None), "__code__")
}
"""The effects of the methods of `os.environ`."""
