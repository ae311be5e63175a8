"""Create the directories that options name when the option is set, so that an impossible path is refused immediately."""

from __future__ import annotations

import os
from collections.abc import Callable

from torchspore.base.paths import make_directory, remove_directories
from torchspore.base.text import with_hint
from torchspore.errors import OptionPathBlocked, OptionPathError, OptionPathForbidden, OptionPathMissing
from torchspore.translations import translate

_KINDS: dict[type[OSError], type[OptionPathError]] = {
    FileNotFoundError: OptionPathMissing, NotADirectoryError: OptionPathBlocked, FileExistsError: OptionPathBlocked,
    PermissionError: OptionPathForbidden,
}


def directory(path: str, call: str) -> Callable[[], None]:
    """Create a directory (mode 0700); return the function that removes it again.

    Raise OptionPathError about `call`, as the user wrote it.
    """
    try:
        created = make_directory(path)
    except OSError as error:
        kind = next((ours for theirs, ours in _KINDS.items() if isinstance(error, theirs)), OptionPathError)
        text = translate("{setting}: {path} cannot be created or written ({reason}).")
        text = text.format(setting=call, path=path, reason=error.strerror or type(error).__name__)
        raise kind(with_hint(text, translate("name a directory that you may write to"))) from None
    return lambda: remove_directories(created)


def parent(path: str, call: str) -> Callable[[], None]:
    """Create the directory of a file."""
    return directory(os.path.dirname(os.path.abspath(path)) if path else os.getcwd(), call)
