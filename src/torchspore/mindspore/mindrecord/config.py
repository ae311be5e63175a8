"""`mindspore.mindrecord.config`: the key and the modes of the encryption of MindRecord files."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.base.text import message, short
from torchspore.public_names import missing

_KEYS = (16, 24, 32)
_MODE = "AES-GCM"
_values: dict[str, Any] = {"enc_key": None, "enc_mode": _MODE, "dec_mode": None}


def set_enc_key(enc_key: str | None) -> None:
    """Sets the key, of 16, 24 or 32 characters, for encrypting files on writing and decrypting them on reading.

    None disables encryption. Raises ValueError for another length or type.
    """
    if enc_key is not None and (not isinstance(enc_key, str) or len(enc_key.encode()) not in _KEYS):
        raise ValueError(message("set_enc_key(...)", "None or a str of 16, 24 or 32 bytes"))
    _values["enc_key"] = enc_key


def set_enc_mode(enc_mode: str | Callable[..., None] = _MODE) -> None:
    """Sets the encryption: 'AES-GCM', or a function of (file, its size, the file to write, the key). Raises ValueError."""
    _values["enc_mode"] = _mode("set_enc_mode", "enc_mode", enc_mode)


def set_dec_mode(dec_mode: str | Callable[..., None] | None = _MODE) -> None:
    """Sets the decryption: 'AES-GCM', None for the mode of `set_enc_mode`, or a function as there. Raises ValueError."""
    _values["dec_mode"] = None if dec_mode is None else _mode("set_dec_mode", "dec_mode", dec_mode)


def _mode(call: str, name: str, mode: Any) -> Any:
    if mode != _MODE and not callable(mode):
        raise ValueError(message(f"{call}({name}={short(mode)})", f"{_MODE!r} or a function"))
    return mode


def current() -> tuple[str | None, Any, Any]:
    """Return the key, the encryption mode, and the decryption mode."""
    return _values["enc_key"], _values["enc_mode"], _values["dec_mode"]


__getattr__ = missing(__name__)
__all__ = ["set_dec_mode", "set_enc_key", "set_enc_mode"]
