"""A file without a name: disk space that belongs to this process alone and is free again when the process ends, however it ends."""
from __future__ import annotations

import errno
import os
import sys
import tempfile
import threading
from bisect import bisect_left, insort
from collections import deque
from pathlib import Path
from typing import Any

from torchspore.base.paths import absolute
from torchspore.base.text import format_bytes
from torchspore.errors import OffloadFailed, OptionPathBlocked, OptionPathError, OptionPathForbidden, OptionPathMissing

_PAGE = 4096
_NOT_NAMELESS = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
"""Errors of file systems and kernels without unlinked files."""
EXISTS = sys.platform.startswith("linux")
"""True if this system has such files, and /proc, by which a mapping opens them again."""
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})


class Full(Exception):
    """The file has reached the size that `offload_disk_size` allows."""


class NamelessFile:
    """A file in a folder, divided into regions that are allocated, released and reused.

    A missing folder is created while the file is opened, and removed at once: nothing remains, even after a kill. Raises OffloadFailed if
    the folder cannot be created or written, and if the disk is full.
    """

    def __init__(self, folder: str, most: int | None = None) -> None:
        self.folder, self.size, self.largest = absolute(folder), 0, 0
        self._most = most
        self._free: list[tuple[int, int]] = []
        self._released: deque[tuple[int, int]] = deque()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._descriptor = _opened(self.folder)

    def take(self, size: int) -> int:
        """Return the offset of a region of `size` bytes. Raises Full beyond `most`."""
        size = _rounded(size)
        with self._lock:
            self._merge()
            # The smallest hole that is large enough: a step's values come in the same sizes again and again.
            holes = [(length, at) for at, length in self._free if length >= size]
            if holes:
                length, at = min(holes)
                self._free.remove((at, length))
                if length > size:
                    insort(self._free, (at + size, length - size))
                return at
            if self._most is not None and self.size + size > self._most:
                raise Full
            at, self.size = self.size, self.size + size
            self.largest = max(self.largest, self.size)
            return at

    def give(self, at: int, size: int) -> None:
        """The region is free again. May be called anywhere, also while memory is collected."""
        self._released.append((at, _rounded(size)))

    def _merge(self) -> None:
        """Return released regions to the free list, and merge neighbours."""
        while self._released:
            at, size = self._released.popleft()
            index = bisect_left(self._free, (at, 0))
            if index < len(self._free) and self._free[index][0] == at + size:
                size += self._free.pop(index)[1]
            if index and sum(self._free[index - 1]) == at:
                before = self._free.pop(index - 1)
                at, size = before[0], before[1] + size
            insort(self._free, (at, size))

    def write(self, view: Any, at: int, step: int) -> None:
        """Writes bytes, `step` of them at a time."""
        self._each(view, at, step, os.pwritev)

    def read(self, view: Any, at: int, step: int) -> None:
        """Reads bytes back."""
        self._each(view, at, step, os.preadv)

    def _each(self, view: Any, at: int, step: int, call: Any) -> None:
        done, total = 0, len(view)
        while done < total:
            try:
                count = call(self._descriptor, [view[done:done + step]], at + done)
            except OSError as error:
                raise self._failed(error, total) from error
            if not count:
                raise self._failed(OSError(errno.EIO, "the file ends here"), total)
            done += count

    def _failed(self, error: OSError, size: int) -> OffloadFailed:
        return OffloadFailed(
            f"memory_offload: {self.folder}: {error.strerror or error} "
            f"(a file without a name, {format_bytes(self.size)} so far, {format_bytes(size)} more)."
            "\n\nhint: name a folder with more room, set_offload_context({'offload_path': ...}), or a limit, 'offload_disk_size'."
        )

    def reserve(self, at: int, size: int) -> None:
        """Reserve the disk space of a region now, so that later writes into mapped memory cannot fail."""
        if not hasattr(os, "posix_fallocate"):                     # macOS
            return
        try:
            os.posix_fallocate(self._descriptor, at, size)
        except OSError as error:
            raise self._failed(error, size) from error

    @property
    def path(self) -> str:
        """A path by which this process can open the file again."""
        return f"/proc/self/fd/{self._descriptor}"

    @property
    def is_mine(self) -> bool:
        """Return whether this process opened the file: a forked child opens a separate one."""
        return self._process == os.getpid()

    def kind(self) -> str:
        """Return the kind of file system in the kernel's words; empty if the kernel does not say."""
        return _file_system(os.fstat(self._descriptor).st_dev)

    @property
    def is_in_memory(self) -> bool:
        """True if the folder is in memory itself, so that nothing is gained."""
        return self.kind() in _IN_MEMORY

    def __del__(self, close: Any = os.close) -> None:      # `os` may be gone when Python ends
        descriptor = self.__dict__.get("_descriptor")
        if descriptor is not None:
            close(descriptor)


def _rounded(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _opened(folder: str) -> int:
    """The descriptor of a new file. The folder above must be there."""
    for attempts_left in (4, 3, 2, 1, 0):
        is_created = False
        try:
            if not os.path.isdir(folder):
                try:
                    os.mkdir(folder, 0o700)
                    is_created = True
                except FileExistsError:
                    if not os.path.isdir(folder):
                        raise NotADirectoryError(errno.ENOTDIR, "a file has its name") from None
            return _nameless(folder)
        except FileNotFoundError as error:
            # Another process of the same program may have taken the folder away again that it made.
            if not attempts_left or not os.path.isdir(os.path.dirname(folder)):
                raise _unusable(folder, error) from None
        except OSError as error:
            raise _unusable(folder, error) from None
        finally:
            if is_created:
                _remove(folder)
    raise AssertionError("unreachable")


def _remove(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        return                         # another process has created a file there in the meantime


def _nameless(folder: str) -> int:
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in _NOT_NAMELESS:
            raise
    descriptor, path = tempfile.mkstemp(dir=folder, prefix=".torchspore-offload-")
    os.unlink(path)
    return descriptor


def _unusable(folder: str, error: OSError) -> OffloadFailed:
    return OffloadFailed(
        f"set_offload_context(offload_path): cannot create a file in {folder}: {error.strerror or error}."
        "\n\nhint: name a folder that you may write to; its last component is created if it is missing."
    )


def check_folder(path: str) -> tuple[type[OptionPathError], str] | None:
    """Return why no file can be created in a folder, as far as that is visible without creating one, and the error for it; None if one can.
    """
    folder = absolute(path)
    if os.path.isdir(folder):
        return None if os.access(folder, os.W_OK | os.X_OK) else (OptionPathForbidden, f"{folder} can't be written")
    if os.path.lexists(folder):
        return OptionPathBlocked, f"{folder} is a file, not a folder"
    above = os.path.dirname(folder)
    if not os.path.isdir(above):
        return OptionPathMissing, f"there is no folder {above}"
    return None if os.access(above, os.W_OK | os.X_OK) else (OptionPathForbidden, f"{above} can't be written")


def _file_system(device: int) -> str:
    device_text = f"{os.major(device)}:{os.minor(device)}"
    try:
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
            fields, _, rest = line.partition(" - ")
            if fields.split()[2] == device_text:
                return rest.split()[0]
    except (OSError, IndexError):
        return ""
    return ""
