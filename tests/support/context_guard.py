"""The context as it was before a test: options that the test sets do not act on the tests after it."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_MODULE = "torchspore.context.store"


def keep() -> Callable[[], None]:
    """Return a function that restores the options of now, with their effects. It does nothing where they are as before."""
    store = getattr(sys.modules.get(_MODULE), "STORE", None)
    version, settings = (None, {}) if store is None else (store._base_version, store._code.copy())

    def restore() -> None:
        now = getattr(sys.modules.get(_MODULE), "STORE", None)
        if now is not None and now._base_version != version and _values(now._code) != _values(settings):
            _restore(now, settings)

    return restore


def _values(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: setting.value for key, setting in settings.items()}


def _restore(store: Any, settings: dict[str, Any]) -> None:
    from torchspore.context import effects
    from torchspore.context.options import OPTIONS
    from torchspore.context.store import _add_members

    keys = _add_members([*store._code, *settings])
    old = {key: store.get(key) for key in keys}
    store._code = settings
    store._fill(OPTIONS)
    effects.push([(OPTIONS[key], store.get(key), value) for key, value in old.items() if store.get(key) != value])
