"""Directories that options name are made when the option is set, so that what cannot be made is refused there and then."""

from __future__ import annotations

import os
from collections.abc import Callable

from torchspore.base.paths import make_directory, remove_directories
from torchspore.base.text import with_hint
from torchspore.errors import OptionPathBlocked, OptionPathError, OptionPathForbidden, OptionPathMissing

_KINDS: dict[type[OSError], type[OptionPathError]] = {
    FileNotFoundError: OptionPathMissing, NotADirectoryError: OptionPathBlocked, FileExistsError: OptionPathBlocked,
    PermissionError: OptionPathForbidden,
}


def directory(path: str, what: str) -> Callable[[], None]:
    """Makes a directory (mode 0700); gives the function that takes it back.

    Raises OptionPathError about `what`, the call as the user wrote it.
    """
    try:
        made = make_directory(path)
    except OSError as error:
        kind = next((ours for theirs, ours in _KINDS.items() if isinstance(error, theirs)), OptionPathError)
        reason = f"{what}: {path} cannot be made or written ({error.strerror or type(error).__name__})."
        raise kind(with_hint(reason, "name a directory that you may write to")) from None
    return lambda: remove_directories(made)


def parent(path: str, what: str) -> Callable[[], None]:
    """Makes the directory that a file is to stand in."""
    return directory(os.path.dirname(os.path.abspath(path)) if path else os.getcwd(), what)
