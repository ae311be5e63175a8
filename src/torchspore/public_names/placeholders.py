"""Placeholders for MindSpore names that are missing here: importing one succeeds, and its first use raises the error."""
from __future__ import annotations

import importlib.machinery
import os
from types import ModuleType
from typing import Any, NoReturn

from torchspore.base import frames
from torchspore.errors import NotOffered
from torchspore.public_names import import_guard
from torchspore.translations import translate

LENIENT = "TORCHSPORE_LENIENT"
"""Set to 1 by `torchspore run --lenient`: imports of missing names succeed also where the program would catch an ImportError."""
STRICT_IMPORTS = "TORCHSPORE_STRICT_IMPORTS"
"""Set to 1 by `torchspore run --strict-imports`: imports of missing names raise."""

_warned_paths: set[str] = set()


def can_return_placeholder() -> bool:
    """Return whether an import of a missing name succeeds now with a placeholder."""
    if os.environ.get(STRICT_IMPORTS) == "1":
        return False
    return os.environ.get(LENIENT) == "1" or not import_guard.is_guarded()


def warn_of(path: str, text: str) -> None:
    """Warn once for each `path`, at the line of the import, that the name is missing."""
    if path not in _warned_paths:
        _warned_paths.add(path)
        warning = translate("{sentence} The import succeeds, and the first use of the name raises an error.")
        frames.warn(warning.format(sentence=text.partition("\n")[0]), path)


class MissingName:
    """A placeholder for a missing function or class. Every use except passing it on and deriving a class from it raises NotOffered."""

    def __init__(self, path: str, text: str) -> None:
        module, _, name = path.rpartition(".")
        self.__dict__.update(_path=path, _text=text, __name__=name, __qualname__=name, __module__=module)

    def _raise(self, *_: Any, **__: Any) -> NoReturn:
        raise NotOffered(self._text, name=self._path)

    __call__ = __getitem__ = __iter__ = __len__ = __bool__ = __enter__ = __setattr__ = _raise
    __instancecheck__ = __subclasscheck__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _raise
    __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __and__ = __rand__ = __xor__ = __rxor__ = _raise
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __neg__ = __pos__ = __abs__ = __invert__ = _raise
    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = __complex__ = __index__ = __round__ = _raise
    __contains__ = __setitem__ = __delitem__ = __delattr__ = _raise

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):          # Python itself looks these up, in isinstance, pickle and inspect
            raise AttributeError(name)
        self._raise()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type]:
        """Return the base of a subclass: the class statement succeeds, and the first instance raises."""
        def raise_missing(*_: Any, **__: Any) -> NoReturn:
            raise NotOffered(self._text, name=self._path)

        return (type(self.__name__, (), {"__new__": raise_missing, "__module__": self.__module__}),)

    def __or__(self, other: Any) -> Any:
        return self                        # an annotation: `Missing | None`

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"<missing name {self._path}>"


class MissingModule(ModuleType):
    """A placeholder for a missing module. Names imported from it are placeholders; every other use raises NotOffered."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.__path__: list[str] = []
        self.__dict__["_text"] = text

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from torchspore.public_names.lookup import is_from_import, text_for

        path = f"{self.__name__}.{name}"
        if is_from_import():
            return MissingName(path, text_for(path))
        raise NotOffered(self._text, name=path)


def module_spec(path: str, loader: Any) -> importlib.machinery.ModuleSpec:
    """Return the spec of the placeholder for the missing module `path`, which `loader` creates."""
    spec = importlib.machinery.ModuleSpec(path, loader, is_package=True)
    spec.loader_state = "missing"
    return spec
