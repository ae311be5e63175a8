"""The MindSpore version that torchspore implements, and the versions of installed packages."""

from __future__ import annotations

from importlib import metadata

MINDSPORE = "2.10.0"


def key(text: str) -> tuple[int, ...]:
    """Convert '2.10.0rc1' to (2, 10, 0), so that versions compare as numbers."""
    numbers: list[int] = []
    for part in text.split("+")[0].split("."):
        digits = ""
        for letter in part:
            if not letter.isdigit():
                break
            digits += letter
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def installed(distribution: str) -> str | None:
    """Return the version of an installed distribution without importing it, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
