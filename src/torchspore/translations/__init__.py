"""The language of torchspore's messages: English, or Chinese with `TORCHSPORE_LANG=zh`.

    raise ValueError(translate("{name}: this option does not exist.").format(name=name))

The English text is the key: `zh.po` in this folder has its translation, and a text without one stays English. `tools/messages.py` collects
the texts and checks the file. Programs that compare messages, tests and `--json` read English.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Mapping

VARIABLE = "TORCHSPORE_LANG"
LANGUAGES = {"en": "English", "zh": "Chinese"}
_ENGLISH = ("en", "c", "posix")
_SAMPLE = "中文"
"""Text that a stream must be able to print."""


class _State:
    """The translations of the user's language; empty for English, None before the first message."""

    def __init__(self) -> None:
        self.messages: Mapping[str, str] | None = None


_STATE = _State()


def translate(text: str) -> str:
    """Return a text in the user's language. Values are inserted afterwards: `translate("no file {path}").format(path=path)`."""
    messages = _STATE.messages
    if messages is None:
        messages = select()
    return messages.get(text, text)


def messages_of_language() -> Mapping[str, str]:
    """Return all translations of the user's language; none for English."""
    return select() if _STATE.messages is None else _STATE.messages


def translatable(text: str) -> str:
    """Mark a text of a table for the catalogue. The code that prints the table translates it."""
    return text


def select() -> Mapping[str, str]:
    """Read TORCHSPORE_LANG, and return the translations. Report a language without translations on stderr."""
    value = os.environ.get(VARIABLE, "")
    _STATE.messages = _read(value, _encoding(sys.stdout), _encoding(sys.stderr)) if value else {}
    return _STATE.messages


def start() -> None:
    """Select the language if no message was translated yet, so that an unknown language is reported at the beginning."""
    if _STATE.messages is None:
        select()


class english:
    """A `with` block whose messages are in English, such as the output of `--json`; with `english(False)` the block changes nothing."""

    def __init__(self, is_active: bool = True) -> None:
        self.is_active = is_active
        self.outer: Mapping[str, str] | None = None

    def __enter__(self) -> None:
        self.outer = _STATE.messages
        if self.is_active:
            _STATE.messages = {}

    def __exit__(self, *_: object) -> None:
        _STATE.messages = self.outer


class language(english):
    """A `with` block whose messages are in a language, whatever the output can print: for files in UTF-8."""

    def __init__(self, name: str) -> None:
        from torchspore.translations import catalogue

        super().__init__()
        self.inner: Mapping[str, str] = {} if name == "en" else catalogue.read(name)

    def __enter__(self) -> None:
        self.outer = _STATE.messages
        _STATE.messages = self.inner


def language_of(value: str) -> str | None:
    """Return the language that a value such as `zh_CN.UTF-8` names: "en", "zh", or None for another one."""
    name = value.strip().lower().replace("-", "_").partition(".")[0].partition("@")[0].partition("_")[0]
    return "en" if name in _ENGLISH else name if name in LANGUAGES else None


def _encoding(stream: object) -> str:
    """Return the encoding of a stream; UTF-8 for one that stores text, such as StringIO."""
    return getattr(stream, "encoding", None) or "utf-8"


def _read(value: str, *encodings: str) -> Mapping[str, str]:
    """Return the translations for a value of the variable; none for English, an unknown language, and an output without Chinese."""
    language = language_of(value)
    if language == "en":
        return {}
    if language is None:
        names = " or ".join(f"{code} ({name})" for code, name in LANGUAGES.items())
        problem = f"expected {names}. Messages are in English."
    else:
        unable = next((encoding for encoding in encodings if not _can_encode(encoding)), None)
        if unable is None:
            from torchspore.translations import catalogue

            return catalogue.read(language)
        problem = f"the output's encoding {unable} has no Chinese characters. Messages are in English.\n\nhint: set PYTHONIOENCODING=utf-8."
    print(f"torchspore: {VARIABLE}={value:.40}: {problem}", file=sys.stderr)
    os.environ[VARIABLE] = "en"              # processes that this one starts print no second warning
    return {}


def _can_encode(encoding: str) -> bool:
    try:
        _SAMPLE.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
