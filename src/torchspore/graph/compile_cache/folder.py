"""The folder of the compile cache: its path, atomic writes, its size limit, and the handling of errors."""
from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import hmac
import os
import platform
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from torchspore.base import event_log, once, trust
from torchspore.base.files import read_plain, write_atomically
from torchspore.base.text import with_hint
from torchspore.context import effects
from torchspore.engine.front_end import FRONT
from torchspore.translations import translate

LIMIT = "TORCHSPORE_CACHE_LIMIT"
PACKAGE = Path(__file__).parents[2]
"""Where torchspore's own files are."""
_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_DEFAULT = 4 << 30


def log_message(text: str, key: str | None = None) -> None:
    """Report to the user in the log; with a `key` only once."""
    if key is not None and not once.first_time(("compile cache", key)):
        return
    event_log.event("cache", text)
    effects.note("compile cache", text)
    if FRONT.warn is not None:
        FRONT.warn(text)


class Folder:
    """`<path>/rank_N/graph_cache`. An error of reading or writing is reported once, and the program continues without the cache."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.usable = True
        self._swept = 0.0
        self._most: int | None = None

    def prepare(self) -> bool:
        """Create the folder with access for this user only, and try to write into it; return whether that worked."""
        try:
            trust.key()
            trust.make_folder(self.root)
            trust.check_parents(self.root)
            parts = [self.root / part for part in ("graphs", "choices", "kernels")]
            for folder in (self.root, *parts, *[part / surroundings() for part in parts]):
                trust.make_folder(folder)
                trust.check_folder(folder)
            probe = self.root / "graphs" / ".probe"
            self._put(probe, b"")
            probe.unlink(missing_ok=True)                # another process may try the same folder at this moment
        except OSError as error:
            self._fail(error)
        return self.usable

    def kernels(self) -> Path:
        """Inductor's own directory."""
        return self.root / "kernels" / surroundings()

    def path(self, part: str, key: str) -> Path:
        """Return the path of the entry with a key."""
        return self.root / part / surroundings() / key

    def read(self, part: str, key: str) -> bytes | None:
        """Return the contents of an entry; None if there is none or it is damaged. A damaged entry is reported and dropped."""
        path = self.path(part, key)
        try:
            held = read_plain(path)
            with contextlib.suppress(OSError):
                os.utime(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._fail(error)
            return None
        digest, separator, contents = held.partition(b"\n")
        if separator and hmac.compare_digest(digest, self._digest(part, key, contents)):
            return contents
        self.drop(part, key, "was stored by another user, or is damaged")
        return None

    @staticmethod
    def _digest(part: str, key: str, contents: bytes) -> bytes:
        return trust.digest(f"{part} {surroundings()} {key}", contents)

    def drop(self, part: str, key: str, why: str) -> None:
        """Remove an unusable entry, and report it once for the folder."""
        log_message(f"compile cache: {self.path(part, key)} {why}; it is compiled again.", key=f"damaged {self.root}")
        with contextlib.suppress(OSError):
            self.path(part, key).unlink()

    def write(self, part: str, key: str, contents: bytes) -> None:
        """Write an entry atomically."""
        if not self.usable:
            return
        try:
            self._put(self.path(part, key), self._digest(part, key, contents) + b"\n" + contents)
        except OSError as error:
            self._fail(error)

    def put(self, name: str, text: str) -> None:
        """Writes a file of the folder itself."""
        try:
            self._put(self.root / name, text.encode())
        except OSError as error:
            self._fail(error)

    def _put(self, path: Path, contents: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, contents)

    def _fail(self, error: OSError) -> None:
        self.usable = False
        hint = (translate("free some space") if error.errno == errno.ENOSPC else
                translate("set compile_cache_path to a folder that can be written"))
        text = translate("compile cache: {folder} can't be used ({reason}); graphs are compiled without it.")
        text = text.format(folder=self.root, reason=error.strerror or error)
        log_message(with_hint(text, getattr(error, "hint", hint)), key=f"unusable {self.root}")

    @contextlib.contextmanager
    def locked(self, wait: bool = True) -> Iterator[bool]:
        """Holds the folder's lock, which processes share; gives whether it was got."""
        try:
            import fcntl
        except ImportError:                       # Windows: files are still replaced atomically
            yield True
            return
        handle = os.open(self.root / ".lock", os.O_RDWR | os.O_CREAT, 0o600)          # both ways: one way alone would wait at a FIFO
        with os.fdopen(handle, "rb", buffering=0) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            yield True

    def sweep(self) -> None:
        """Remove the least recently used entries until the folder is within its limit; at most every few seconds, by one process at a time.
        """
        most = limit()
        if not self.usable or (most == self._most and time.monotonic() - self._swept < 2):
            return
        self._swept, self._most = time.monotonic(), most
        try:
            with self.locked(wait=False) as got:
                if got:
                    self._shrink(most)
        except OSError as error:
            self._fail(error)

    def _shrink(self, most: int) -> None:
        files = []
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = Path(folder, name)
                with contextlib.suppress(OSError):
                    status = path.stat()
                    files.append((max(status.st_atime, status.st_mtime), status.st_size, path))
        total = sum(size for _, size, _ in files)
        gone = 0
        for _, size, path in sorted(files):
            if total <= most:
                break
            if path.name in (".lock", "compile_dependency.hash"):
                continue
            with contextlib.suppress(OSError):
                path.unlink()
                total, gone = total - size, gone + 1
        if gone:
            event_log.event("cache", f"{gone} files used longest ago are taken out of {self.root}: the limit is {most} bytes")


def limit() -> int:
    """The most bytes that the folder may hold: TORCHSPORE_CACHE_LIMIT, as in `500MB`; 4GB without it."""
    limit_text = os.environ.get(LIMIT, "").strip().upper()
    number = limit_text.rstrip("BKMGT ")
    try:
        return int(float(number) * _UNITS[limit_text[len(number):].strip()]) if limit_text else _DEFAULT
    except (ValueError, KeyError):
        log_message(f"{LIMIT}={limit_text}: expected a size such as 500MB; 4GB is taken.", key=LIMIT)
        return _DEFAULT


@functools.cache
def surroundings() -> str:
    """Return a short name for all that compiled code depends on apart from the graph: versions, compiler, flags, Inductor's settings."""
    return named(torch.__version__, PACKAGE)


def named(version: str, package: Path) -> str:
    """The name for a version of torch, and for torchspore's files in `package`."""
    compiler = os.environ.get("CXX", "g++")
    try:
        compiler_version = subprocess.run([*shlex.split(compiler), "--version"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError, ValueError):
        compiler_version = ""
    flags = sorted(
        f"{name}={value}" for name, value in os.environ.items()
        if name in ("CXXFLAGS", "CPPFLAGS", "LDFLAGS") or (name.startswith("TORCHINDUCTOR_") and name != "TORCHINDUCTOR_CACHE_DIR")
    )
    facts = [_files(package), version, platform.python_version(), platform.machine(), compiler, compiler_version, *flags]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _files(root: Path) -> str:
    """Size and time of each file: a version under work changes without another number."""
    paths = sorted(root.rglob("*.py"))
    return " ".join(f"{path.relative_to(root)}:{(status := path.stat()).st_size}:{status.st_mtime_ns}" for path in paths)
