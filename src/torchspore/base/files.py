"""Files that are there whole or not at all."""
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
from typing import BinaryIO

READ_ONLY = 0o400
_LONGEST = 200
"""Bytes of a file name; file systems take 255 of them."""

_MOST_NAMES = 10_000


@contextlib.contextmanager
def whole_file(path: Path, mode: int | None = None, durable: bool = False, sweeps: bool = True) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` when the block has ended; an error or Ctrl-C leaves what was there before.

    The temporary name beside it is nobody else's and no link is followed. `mode` are the permissions (0600 where none are given).
    With `durable` it is on the disk before it takes its place. If it `sweeps`, it removes the temporary files that killed processes left in
    the folder, whatever file they were for: a program that is killed while it saves step 5 saves step 6 next. Raises OSError.
    """
    if sweeps:
        sweep(path.parent, "")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{_end_of(path.name)}.{_machine()}-{os.getpid()}.", suffix=".tmp")
    try:
        with open(temporary, "wb", opener=lambda *_: handle) as file:     # a file that knows its name, for libraries that want one
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
            error.filename = str(path)             # a full disk says nothing of what it could not take
        raise


def write_whole(path: Path, contents: bytes | str, mode: int | None = None) -> None:
    """Writes a file, whole or not at all. Raises OSError."""
    with whole_file(path, mode) as file:
        file.write(contents.encode() if isinstance(contents, str) else contents)


def own_names(wanted: Path) -> Iterator[Path]:
    """Names to try, one after the other, for what shall replace nothing: with the seconds since 1970, the process, and a number behind."""
    yield wanted
    stamped = f"{wanted}.{int(time.time())}"
    yield Path(stamped)
    yield Path(f"{stamped}.{os.getpid()}")
    for number in range(1, _MOST_NAMES):
        yield Path(f"{stamped}.{os.getpid()}.{number}")


def read_plain(path: Path) -> bytes:
    """The contents of a plain file. Raises OSError, also for a FIFO or a device, which would be waited for or have no end."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "no plain file", str(path))
        return file.read()


def sweep(folder: Path, suffix: str) -> None:
    """Removes what killed processes of this machine left in the folder of files whose names end with `suffix`."""
    pattern = re.compile(rf"\..*{re.escape(_end_of(suffix))}\.{_machine()}-(\d+)\.\w{{8}}\.tmp", re.DOTALL)
    with contextlib.suppress(OSError), os.scandir(folder) as names:
        for name in names:
            found = pattern.fullmatch(name.name)
            if found is not None and not _is_alive(int(found.group(1))):
                with contextlib.suppress(OSError):
                    os.unlink(name.path)


def _end_of(name: str) -> str:
    """As much of a file name as leaves room for what is added to it."""
    return name if len(os.fsencode(name)) <= _LONGEST else name[-_LONGEST // 4 :]


@functools.cache
def _machine() -> str:
    """Return a short name for this machine and its space of process numbers: in a shared folder, another one's processes can't be seen."""
    try:
        processes = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        processes = 0
    return f"{zlib.crc32(f'{platform.node()} {processes}'.encode()):08x}"


def _is_alive(process: int) -> bool:
    """Return whether a process runs. One that has ended and that its parent has not asked about yet (a zombie) does not."""
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
    with contextlib.suppress(OSError):  # not every system lets a folder be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
