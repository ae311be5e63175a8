"""Trust in stored code: compiled kernels and libraries are loaded only from folders and files that only this user can write.

Each entry carries a digest (HMAC) with a key that is stored in this user's folder, `$XDG_CACHE_HOME/torchspore/key` or
`~/.cache/torchspore/key`: someone who can write to the cache's folder, but can't read the key, can't create an accepted entry.
"""
from __future__ import annotations

import functools
import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from torchspore.base.files import BINARY, write_atomically

_KEY_BYTES = 32
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Untrusted(OSError):
    """Others could have put code here; the text explains how."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.strerror, self.hint = text, hint


def make_folder(folder: Path) -> None:
    """Create a folder that only this user may enter (0700), and its parents. Raise OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass


def check_folder(folder: Path) -> None:
    """Raise Untrusted if the folder does not belong to this user, is a link, or can be written by others."""
    if os.name != "posix":                         # Windows stores permissions elsewhere, and a user's files are private by default
        return
    status = folder.lstat()
    hint = "set compile_cache_path to a folder of your own"
    if stat.S_ISLNK(status.st_mode):
        raise Untrusted(f"{folder} is a link, and compiled code is not taken through links", hint)
    if status.st_uid != os.geteuid():
        raise Untrusted(f"{folder} belongs to another user, whose code is not run", hint)
    if status.st_mode & _BY_OTHERS:
        raise Untrusted(f"{folder} can be written by other users, whose code is not run", f"remove it, or {hint}")


def check_parents(folder: Path) -> None:
    """Raise Untrusted if everybody could replace this folder by another one."""
    if os.name != "posix":
        return
    for parent in folder.resolve().parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise Untrusted(f"everybody can write to {parent} and replace what is in it", "set compile_cache_path to a folder of your own")


def digest(name: str, contents: bytes) -> bytes:
    """Return the digest at the start of an entry; only the owner of the key can create it. Raise OSError if no key can be stored."""
    return hmac.new(key(), name.encode() + b"\n" + contents, hashlib.sha256).hexdigest().encode()


def cache_folder(content: str) -> Path:
    """Return this user's folder for caches; it may not exist. Raise Untrusted, which names the content, without a home folder."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(root):
        raise Untrusted(f"{content} cannot be stored, because no home folder is known", "set XDG_CACHE_HOME to a folder of your own")
    return Path(root, "torchspore")


@functools.cache
def key() -> bytes:
    """Return this user's key, and create it if there is none. Raise OSError if it can't be stored, or others could read or write it."""
    path = cache_folder("the cache's key") / "key"
    make_folder(path.parent)
    check_folder(path.parent)
    for _ in range(2):                             # another process may create the key at the same time; the first one wins
        try:
            return _read(path)
        except FileNotFoundError:
            _make_key(path)
    return _read(path)


def _make_key(path: Path) -> None:
    temporary = path.with_name(f"key.{secrets.token_hex(8)}")
    try:
        write_atomically(temporary, secrets.token_bytes(_KEY_BYTES), 0o600)
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | BINARY)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        hint = f"remove {path}: torchspore creates a new one and fills the cache again"
        if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o077 or not stat.S_ISREG(status.st_mode)):
            raise Untrusted(f"the key {path} is not this user's alone (0600)", hint)
        key_bytes = file.read(_KEY_BYTES + 1)
    if len(key_bytes) != _KEY_BYTES:
        raise Untrusted(f"the key {path} is damaged", hint)
    return key_bytes
