"""Directories and files that the user names."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o700


def absolute(path: str) -> str:
    """Gives the path without links, `..` and `~`, whether or not it exists."""
    return os.path.realpath(os.path.expanduser(path))


def make_directory(path: str) -> list[str]:
    """Makes a directory and its parents (mode 0700) and returns those that were made, outermost first.

    Raises the OSError of the step that failed, after removing what it had made.
    """
    missing: list[Path] = []
    place = Path(path)
    while not place.exists():
        missing.append(place)
        place = place.parent
    made: list[str] = []
    try:
        for step in reversed(missing):
            try:
                step.mkdir(mode=PRIVATE)
                made.append(str(step))
            except FileExistsError:
                if not step.is_dir():          # else another process of the same program was first
                    raise
        if not os.access(path, os.W_OK) or not os.path.isdir(path):
            raise NotADirectoryError(path) if not os.path.isdir(path) else PermissionError(path)
    except OSError:
        remove_directories(made)
        raise
    return made


def remove_directories(made: list[str]) -> None:
    """Removes directories that `make_directory` returned; one that has been filled since stays."""
    for path in reversed(made):
        try:
            os.rmdir(path)
        except OSError:
            return
