"""The native file that notes each operator, built for the installed torch at first need and kept in the user's own cache folder.

Building takes a C++ compiler some seconds, so it goes on beside the program; until then, and where there is no compiler, Python's marks
are all there is. A library is code: it comes only from a folder that is this user's alone.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from torchspore.base import trust
from torchspore.blackbox.board import SIZE

_SOURCE = Path(__file__).with_name("watch.cpp")
NO_COMPILER = "TORCHSPORE_NO_NATIVE"
"""`TORCHSPORE_NO_NATIVE=1` leaves it to Python's marks, as where there is no compiler."""

_KEPT = 8
"""Libraries that stay in the folder: those of other versions of torch are in use by other environments."""
_building: threading.Thread | None = None
_waiting: Callable[[Any], None] | None = None
"""Who gets the library when it is built."""


def why_not() -> str:
    """Why there is no native watch here; empty where there is or can be one."""
    if os.environ.get(NO_COMPILER, "") not in ("", "0"):
        return f"{NO_COMPILER}=1"
    if not sys.platform.startswith("linux"):
        return "it is built on Linux alone"
    try:
        path = _library()
    except OSError as error:
        return error.strerror or str(error)
    return "" if path.exists() or _compiler() else "there is no C++ compiler (g++)"


def load(use: Callable[[Any], None]) -> None:
    """Hands the library to `use`: at once where it was built before, else from a thread as soon as it is; never where that can't be."""
    global _building, _waiting
    if why_not():
        return
    path = _library()
    if path.exists():
        _use(path, use)
        return
    _waiting = use
    if _building is None:
        _building = threading.Thread(target=_build_and_use, args=(path,), name="torchspore-native", daemon=True)
        _building.start()


def unload() -> None:
    """Nobody waits for the library any longer."""
    global _waiting
    _waiting = None


def build() -> bool:
    """Builds the library now, if it is not there; says whether it is."""
    if why_not():
        return False
    path = _library()
    if not path.exists():
        _build(path)
    return path.exists()


def _build_and_use(path: Path) -> None:
    try:
        _build(path)
        if path.exists() and _waiting is not None:
            _use(path, _waiting)
    except OSError:                        # no room, no rights: Python's marks go on
        return


def _use(path: Path, use: Callable[[Any], None]) -> None:
    trust.check(path.parent)
    library = ctypes.CDLL(str(path))
    library.torchspore_size.restype = ctypes.c_uint64
    library.torchspore_arm.argtypes = [ctypes.c_void_p, ctypes.c_int]
    if library.torchspore_size() == SIZE:
        use(library)


def _build(path: Path) -> None:
    """Runs the compiler in a process of its own, which ends its work for the next program where this one ends before."""
    home = Path(torch.__file__).parent
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    # Without NDEBUG torch's headers give some classes members that its libraries do not have.
    command = [
        _compiler(), "-O2", "-std=c++20", "-shared", "-fPIC", "-w", "-DNDEBUG",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        f"-I{home / 'include'}", str(_SOURCE), "-o", str(aside), f"-L{home / 'lib'}", "-ltorch_cpu", "-lc10", "-lpthread",
    ]
    words = ["/bin/sh", "-c", 'target=$1; aside=$2; shift 2; "$@" >/dev/null 2>&1 && mv -f "$aside" "$target" || rm -f "$aside"',
             "sh", str(path), str(aside), *command]
    child = os.posix_spawn(words[0], words, {**os.environ, "LC_ALL": "C"}, setsid=True)
    os.waitpid(child, 0)
    for old in sorted(path.parent.glob("watch_*.so"), key=lambda one: one.stat().st_mtime)[:-_KEPT]:
        old.unlink(missing_ok=True)


def _compiler() -> str:
    return shutil.which(os.environ.get("CXX", "") or "g++") or ""


def _library() -> Path:
    """Where the library for this source and this torch is, or will be. Raises OSError where there is no folder of the user's own."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(root):
        raise trust.Untrusted("there is no home folder to keep it in", "set XDG_CACHE_HOME to a folder of your own")
    folder = Path(root, "torchspore", "native")
    trust.make(folder.parent)
    trust.make(folder)
    trust.check(folder)
    about = f"{torch.__version__} {torch.__file__}".encode()
    return folder / f"watch_{hashlib.sha256(_SOURCE.read_bytes() + Path(__file__).read_bytes() + about).hexdigest()[:24]}.so"
