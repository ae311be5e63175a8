"""`dataclass` whose methods are generated when the first object is created.

Python compiles each method of a dataclass separately, which takes half a millisecond for a class, and most programs create no object of
most classes. `dataclasses.fields` and `inspect.signature` do not know a class before its first object, and no other dataclass may derive
from it. Its objects are created by `__new__`, also those of pickles and copies.
"""
from __future__ import annotations

import dataclasses
import functools
import threading
from typing import TYPE_CHECKING, Any

from torchspore.base.interrupts import postponed

_lock = threading.RLock()

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """Decorate a class like `dataclasses.dataclass` with these options."""
        if cls is None:
            return functools.partial(dataclass, **options)
        is_generated = False

        def __new__(kind: type, *args: Any, **kwargs: Any) -> Any:
            nonlocal is_generated
            if not is_generated:
                with _lock, postponed():
                    if not is_generated:
                        dataclasses.dataclass(cls, **options)
                        is_generated = True
            return object.__new__(kind)

        cls.__new__ = __new__
        return cls
