"""Directories and files that the user names."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o700


def absolute(path: str) -> str:
    """Return the path without links, `..` and `~`, whether or not it exists."""
    return os.path.realpath(os.path.expanduser(path))


def make_directory(path: str) -> list[str]:
    """Create a directory and its parents (mode 0700) and return those that were created, outermost first.

    Raise the OSError of the step that failed, after removing the directories it had created.
    """
    missing: list[Path] = []
    ancestor = Path(path)
    while not ancestor.exists():
        missing.append(ancestor)
        ancestor = ancestor.parent
    created: list[str] = []
    try:
        for step in reversed(missing):
            try:
                step.mkdir(mode=PRIVATE)
                created.append(str(step))
            except FileExistsError:
                if not step.is_dir():          # otherwise another process of the same program created it first
                    raise
        if not os.access(path, os.W_OK) or not os.path.isdir(path):
            raise NotADirectoryError(path) if not os.path.isdir(path) else PermissionError(path)
    except OSError:
        remove_directories(created)
        raise
    return created


def remove_directories(created: list[str]) -> None:
    """Remove directories that `make_directory` returned; one that has been filled since then stays."""
    for path in reversed(created):
        try:
            os.rmdir(path)
        except OSError:
            return
