"""Native libraries: those of a platform wheel, or compiled for the installed torch at first need and stored in the user's cache folder."""
from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import sys
import sysconfig
import time
from pathlib import Path

import torch

from torchspore.base import trust
from torchspore.engine.native import bundled_libraries
from torchspore.engine.native.bundled_libraries import Reason
from torchspore.translations import translatable

NO_COMPILER = "TORCHSPORE_NO_NATIVE"
"""With `TORCHSPORE_NO_NATIVE=1` Python does the work, as without a compiler."""

_MOST_LIBRARIES = 8
"""Libraries of one kind that stay in the folder: those of other versions of torch are in use by other environments."""
_LONGEST_BUILD = 3600.0
"""Seconds after which a compiler has written its file, or was killed."""
_SYMBOLS = Path(__file__).with_name("glibc_symbols.h")
_OLDEST_PROCESSOR = {"x86_64": ["-march=x86-64", "-mtune=generic"], "aarch64": ["-march=armv8-a", "-mtune=generic"]}
"""The compiler's flags for libraries of wheels: some systems' compilers have newer processors as their default."""


class Source:
    """A C++ file beside the Python file that loads its library. If `is_module`, the library is a module for one version of Python."""

    def __init__(self, path: Path, is_module: bool = False) -> None:
        self.path, self.is_module = path, is_module
        self._digest = ""
        self._bundled: Path | Reason | None = None
        self._has_searched = False

    def bundled(self) -> Path | None:
        """Return the library that the wheel contains for this torch and Python; None without one."""
        bundled = self._find_bundled()
        return bundled if isinstance(bundled, Path) else None

    def why_not_bundled(self) -> str:
        """Return why the library of the wheel is not used; empty if it is, or if the wheel contains none."""
        bundled = self._find_bundled()
        return bundled.text() if isinstance(bundled, Reason) else ""

    def reject_bundled(self, error: str) -> None:
        """Stop using the library of the wheel in this process, which could not be loaded."""
        self._bundled = Reason(translatable("the wheel's library cannot be loaded: {error}"), {"error": error})

    def _find_bundled(self) -> Path | Reason | None:
        if not self._has_searched:
            self._has_searched = True
            self._bundled = bundled_libraries.find_library(self.path.name, self.digest())
        return self._bundled

    def digest(self) -> str:
        """Return a digest of the files that determine the library: the source, its headers and the compiler's command."""
        if not self._digest:
            files = [self.path, *sorted(self.path.parent.glob("*.h")), _SYMBOLS, Path(__file__)]
            self._digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
        return self._digest

    def why_not(self) -> str:
        """Return why its library is unavailable; empty if it exists or can be built."""
        if os.environ.get(NO_COMPILER, "") not in ("", "0"):
            return f"{NO_COMPILER}=1"
        if not sys.platform.startswith("linux"):
            return translatable("it is built on Linux alone")
        try:
            library = self.library()
        except OSError as error:
            return error.strerror or str(error)
        if library.exists():
            return ""
        if not _compiler():
            return translatable("there is no C++ compiler (g++)")
        if self.is_module and not (_python_headers() / "Python.h").exists():
            return translatable("there is no Python.h: install the headers of this Python (python3-dev)")
        return ""

    def library(self) -> Path:
        """Return the path of the library, which may not exist. Raises OSError if there is no private folder for it."""
        return self.bundled() or self.built_library()

    def built_library(self) -> Path:
        """Return the path in this user's cache for this source, torch and Python. Raises OSError if there is no private folder for it."""
        folder = trust.cache_folder("it") / "native"
        trust.make_folder(folder.parent)
        trust.make_folder(folder)
        trust.check_folder(folder)
        about = f"{torch.__version__} {torch.__file__} {sys.version if self.is_module else ''} {self.digest()}"
        return folder / f"{self.path.stem}_{hashlib.sha256(about.encode()).hexdigest()[:24]}.so"

    def build(self) -> Path | None:
        """Build the library, if it does not exist; return its path, None if it cannot be built. Raises OSError."""
        if self.why_not():
            return None
        library = self.library()
        if not library.exists():
            self._compile(library)
        if not library.exists():
            return None
        self.check(library)
        return library

    def check(self, library: Path) -> None:
        """Check that only this user can have written a library; one of the wheel is as safe as its Python files. Raises OSError."""
        if library != self.bundled():
            trust.check_folder(library.parent)

    def start_build(self) -> None:
        """Start the build and do not wait for it. It gets the lowest priority; a library that cannot be built stays missing."""
        with contextlib.suppress(OSError):
            if not self.why_not() and not self.library().exists():
                self._spawn(self.library(), "nice -n 19 ")
                self._remove_old_files(self.library().parent)

    def _compile(self, library: Path) -> None:
        """Run the compiler in a separate process, which finishes for the next program even if this one ends."""
        os.waitpid(self._spawn(library), 0)
        self._remove_old_files(library.parent)

    def _remove_old_files(self, folder: Path) -> None:
        """Remove the oldest libraries, and the files of compilers that were killed."""
        ages = {path: time.time() - path.stat().st_mtime for path in folder.iterdir()}
        libraries = sorted((path for path in ages if path.match(f"{self.path.stem}_*.so")), key=lambda path: ages[path])
        unfinished = [path for path, age in ages.items() if path.match(f".{self.path.stem}_*.tmp") and age > _LONGEST_BUILD]
        for old in (*libraries[_MOST_LIBRARIES:], *unfinished):
            old.unlink(missing_ok=True)

    def command(self, output: Path, is_portable: bool = False) -> list[str]:
        """Return the command that compiles the library. If `is_portable`, it runs on each processor of this architecture."""
        home = Path(torch.__file__).parent
        # Without NDEBUG torch's headers give some classes members that its libraries do not have.
        command = [
            _compiler(), "-O2", "-std=c++20", "-shared", "-fPIC", "-w", "-DNDEBUG", "-include", str(_SYMBOLS),
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            f"-I{home / 'include'}", str(self.path), "-o", str(output), f"-L{home / 'lib'}", "-ltorch_cpu", "-lc10", "-lpthread",
        ]
        if self.is_module:
            command += [f"-I{home / 'include' / 'torch' / 'csrc' / 'api' / 'include'}", f"-I{_python_headers()}", "-ltorch_python"]
        if is_portable:
            command += ["-s", f"-ffile-prefix-map={home}=torch", *_OLDEST_PROCESSOR.get(platform.machine(), [])]
        return command

    def _spawn(self, library: Path, before: str = "") -> int:
        """Start the compiler and return its process. `before` is the beginning of the command in the shell."""
        aside = library.with_name(f".{library.name}.{os.getpid()}.tmp")
        command = self.command(aside)
        script = f'target=$1; aside=$2; shift 2; {before}"$@" >/dev/null 2>&1 && mv -f "$aside" "$target" || rm -f "$aside"'
        words = ["/bin/sh", "-c", script, "sh", str(library), str(aside), *command]
        # A process that reads this program's output waits until no process has it open.
        streams = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
        return os.posix_spawn(words[0], words, {**os.environ, "LC_ALL": "C"}, setsid=True, file_actions=streams)


def _python_headers() -> Path:
    return Path(sysconfig.get_path("include"))


def _compiler() -> str:
    return shutil.which(os.environ.get("CXX", "") or "g++") or ""
