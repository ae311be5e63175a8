"""Native libraries that a platform wheel contains (tools/native_wheel.py builds it), so that no compiler is needed.

A library of C++ fits one torch, one Python and one text of its sources. The wheel's list names all three, and the SHA-256 of each file; any
other library is never loaded. Builds of torch for the CPU and for CUDA have one commit, equal headers for these sources and equal symbols.
"""
from __future__ import annotations

import hashlib
import json
import re
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, NamedTuple

import torch

from torchspore.translations import translatable, translate

FOLDER = Path(__file__).with_name("bundled")
LIST = "libraries.json"
_FILE_NAME = re.compile(r"\w[\w.+-]{0,200}", re.ASCII)
_MOST_BYTES = 1 << 28


class Target(NamedTuple):
    """The target of a library: the release of torch, its commit and build options, and the binary interface of Python."""

    torch: str
    torch_build: str
    python: str


class Library(NamedTuple):
    """One row of the wheel's list. `sources` is the digest of the source files, `sha256` that of the library."""

    file: str
    source: str
    sources: str
    sha256: str
    target: Target


class Reason(NamedTuple):
    """Why no library of the wheel is used. `text` translates it when it is read."""

    sentence: str
    values: dict[str, str]

    def text(self) -> str:
        """Return the reason in the user's language."""
        return translate(self.sentence).format(**self.values)


def this_target() -> Target:
    """Return the target of this process."""
    version = torch.version
    options = ("debug" if version.debug else "", f"ROCm {version.hip}" if version.hip else "", f"XPU {version.xpu}" if version.xpu else "",
               "" if torch.compiled_with_cxx11_abi() else "old C++ ABI")
    build = " ".join((str(version.git_version), *filter(None, options)))
    return Target(torch.__version__.partition("+")[0], build, EXTENSION_SUFFIXES[0].strip(".").partition(".")[0])


def write_list(folder: Path, libraries: list[Library]) -> None:
    """Write the list of a wheel's libraries into their folder."""
    rows = [{**library._asdict(), "target": library.target._asdict()} for library in libraries]
    (folder / LIST).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def find_library(source: str, sources: str) -> Path | Reason | None:
    """Return the library of a source file for this process, or why the wheel has none; None if it contains no libraries at all."""
    try:
        rows = [row for row in read_list(FOLDER) if row.source == source]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Reason(translatable("the wheel's list of libraries is damaged"), {})
    target = this_target()
    library = next((row for row in rows if row.target == target and row.sources == sources), None)
    if library is None:
        return _why_none(source, rows, target)
    path = FOLDER / library.file
    return path if _is_intact(path, library.sha256) else Reason(translatable("the wheel's library {file} is damaged"), {"file": path.name})


def _is_intact(path: Path, sha256: str) -> bool:
    """Return whether a path names a regular file, not a link, with this digest."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    except OSError:
        return False


def read_list(folder: Path) -> list[Library]:
    """Return the rows of the list in a folder. Raises OSError, ValueError, KeyError, TypeError, AttributeError or RecursionError if it is
    damaged: each value is a text, and each file a name in this folder.
    """
    rows: list[dict[str, Any]] = json.loads((folder / LIST).read_text(encoding="utf-8"))
    if not isinstance(rows, list):
        raise ValueError(f"expected a list in {LIST}")
    libraries = [Library(**{**row, "target": Target(**row["target"])}) for row in rows]
    for library in libraries:
        if not all(isinstance(value, str) for value in (*library[:-1], *library.target)) or not _FILE_NAME.fullmatch(library.file):
            raise ValueError(f"expected texts and a file name in each row of {LIST}")
    return libraries


def _why_none(source: str, rows: list[Library], target: Target) -> Reason:
    """Explain which part of the target no row has."""
    if not rows:
        return Reason(translatable("the wheel has no library of {source}"), {"source": source})
    pythons = sorted({row.target.python for row in rows})
    if target.python not in pythons:
        return Reason(translatable("the wheel has them for {offered}, not for {present}"),
                      {"offered": ", ".join(pythons), "present": target.python})
    releases = sorted({row.target.torch for row in rows})
    if target.torch not in releases:
        return Reason(translatable("the wheel has them for torch {offered}, not for torch {present}"),
                      {"offered": ", ".join(releases), "present": target.torch})
    if target not in [row.target for row in rows]:
        return Reason(translatable("the wheel has them for another build of torch {version}"), {"version": target.torch})
    return Reason(translatable("the wheel has them for other source files"), {})
