"""Records the queries of a trace that no name shows: options of the context, the seed, which attributes exist."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from torchspore.context import public
from torchspore.engine.front_end import FRONT
from torchspore.graph.capture.state import View


class Answers(View):
    """The answers of one getter, by its argument; by an empty text if it has none."""

    def __init__(self, getter: Callable[..., Any]) -> None:
        self._getter = getter
        self._last: dict[str, Any] = {}

    def get(self, name: str, default: Any = None) -> Any:
        """The answer; the same object as long as it is the same answer, where the getter gives copies."""
        try:
            now = self._getter(name) if name else self._getter()
        except (TypeError, ValueError):
            return default
        last = self._last.get(name)
        if type(now) is not type(last) or now != last:
            self._last[name] = last = now
        return last

    def __getitem__(self, name: str) -> Any:
        return self.get(name)

    def __setitem__(self, name: str, value: Any) -> None:
        raise NotImplementedError

    def __delitem__(self, name: str) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter(self._last)


def _named(*beginnings: str) -> list[FunctionType]:
    return [function for name, function in vars(public).items() if name.startswith(beginnings) and isinstance(function, FunctionType)]


GETTERS: dict[CodeType, Answers | None] = {
    **{function.__code__: None for function in _named("set_", "reset_")},
    inspect.unwrap(public.scope).__code__: None,               # its own code is that of every `contextmanager`
    **{function.__code__: Answers(function) for function in _named("get_")},
}
"""By the code of a function, its answer; None if the function sets something."""


def learn() -> None:
    """Add the getters of the front end, which is imported later."""
    for getter in FRONT.getters:
        if getter.__code__ not in GETTERS:
            GETTERS[getter.__code__] = Answers(getter)
