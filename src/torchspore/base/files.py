"""Files that are written completely or not at all."""
from __future__ import annotations

import contextlib
import errno
import functools
import os
import platform
import re
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import BinaryIO

READ_ONLY = 0o400
BINARY: int = getattr(os, "O_BINARY", 0)
"""The flag of `os.open` with which Windows does not translate the ends of lines."""
_LONGEST = 200
"""Bytes of a file name; file systems take 255 of them."""

_MOST_NAMES = 10_000


@contextlib.contextmanager
def atomic_file(path: Path, mode: int | None = None, durable: bool = False, sweeps: bool = True) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` when the block ends; after an error or Ctrl-C the previous file remains.

    The temporary file next to it has a unique name, and links are not followed. `mode` sets the permissions (0600 by default).
    With `durable` the contents are on disk before the file is replaced. With `sweeps` it also removes temporary files that killed processes
    left in the folder, for any target: a program that is killed while it saves step 5 saves step 6 next. Raise OSError.
    """
    if sweeps:
        sweep(path.parent, "")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{_end_of(path.name)}.{_machine()}-{os.getpid()}.", suffix=".tmp")
    try:
        with open(temporary, "wb", opener=lambda *_: handle) as file:     # some libraries need a file object with a name
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, path)
        if durable:
            _sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)             # the error of a full disk does not name the file
        raise


def write_atomically(path: Path, contents: bytes | str, mode: int | None = None) -> None:
    """Write a file completely or not at all. Raise OSError."""
    with atomic_file(path, mode) as file:
        file.write(contents.encode() if isinstance(contents, str) else contents)


def unused_names(path: Path) -> Iterator[Path]:
    """Yield names to try in order for a file that must not replace another: with the seconds since 1970, the process id and a number."""
    yield path
    stamped = f"{path}.{int(time.time())}"
    yield Path(stamped)
    yield Path(f"{stamped}.{os.getpid()}")
    for number in range(1, _MOST_NAMES):
        yield Path(f"{stamped}.{os.getpid()}.{number}")


def read_plain(path: Path) -> bytes:
    """Return the contents of a regular file. Raise OSError, also for a FIFO or a device, which could block or never end."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | BINARY)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "no plain file", str(path))
        return file.read()


_position_lock = Lock()


def read_at(handle: int, length: int, offset: int) -> bytes:
    """Return at most `length` bytes of an open file from `offset` on. The position of the file may move. Raise OSError."""
    if hasattr(os, "pread"):
        return os.pread(handle, length, offset)
    with _position_lock:
        os.lseek(handle, offset, os.SEEK_SET)
        return os.read(handle, length)


def sweep(folder: Path, suffix: str) -> None:
    """Remove temporary files that killed processes of this machine left in the folder for files whose names end with `suffix`."""
    pattern = re.compile(rf"\..*{re.escape(_end_of(suffix))}\.{_machine()}-(\d+)\.\w{{8}}\.tmp", re.DOTALL)
    with contextlib.suppress(OSError), os.scandir(folder) as names:
        for name in names:
            match = pattern.fullmatch(name.name)
            if match is not None and not _is_alive(int(match.group(1))):
                with contextlib.suppress(OSError):
                    os.unlink(name.path)


def _end_of(name: str) -> str:
    """Return the end of a file name that is short enough for the added prefix and suffix."""
    return name if len(os.fsencode(name)) <= _LONGEST else name[-_LONGEST // 4 :]


@functools.cache
def _machine() -> str:
    """Return a short name of this machine and its process namespace: in a shared folder, processes of other machines are not visible."""
    try:
        processes = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        processes = 0
    return f"{zlib.crc32(f'{platform.node()} {processes}'.encode()):08x}"


def _is_alive(process: int) -> bool:
    """Return whether a process runs. A zombie, which has ended but whose parent has not yet waited for it, does not.

    Windows has no signal 0: `os.kill` would interrupt the process. Each process counts as running there.
    """
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    try:
        state = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state not in (b"Z", b"X")


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some systems do not allow a folder to be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
