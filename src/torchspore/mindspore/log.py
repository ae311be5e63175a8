"""`mindspore.log`: messages on stderr or in files, configured by MindSpore's environment variables.

`GLOG_v` is the lowest level shown: 0 debug, 1 info, 2 warning (the default), 3 error, 4 critical. With `GLOG_logtostderr=0`, `GLOG_log_dir`
is the folder whose `rank_N/logs` gets the messages, in files of at most `logger_maxBytes` of which `logger_backupCount` are retained;
those from the level `GLOG_stderrthreshold` on also go to stderr. Each message of torchspore appears once; a program's messages appear
each time.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from torchspore.base.frames import is_torchspore_file
from torchspore.base.text import message

LOGGER_LEVEL = {"0": "DEBUG", "1": "INFO", "2": "WARNING", "3": "ERROR", "4": "CRITICAL"}
_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
MAX_BYTES = 50 * 1024 * 1024
BACKUP_COUNT = 30

_MAX_REMEMBERED = 10_000
GLOBAL_LOGGER: logging.Logger | None = None
_lock = threading.Lock()


class _Line(logging.Formatter):
    """Format one message as MindSpore does: level, module letter, process, time, location, text."""

    def format(self, record: logging.LogRecord) -> str:
        when = self.formatTime(record, "%Y-%m-%d-%H:%M:%S") + f".{int(record.msecs):03d}.000"
        head = f"[{record.levelname}] ME({os.getpid()}:{record.thread},{record.processName}):{when}"
        path = record.pathname if record.pathname.startswith("<") else os.path.abspath(record.pathname)
        path = path.removeprefix(_PACKAGE)
        return f"{head} [{path}:{record.lineno}] {record.getMessage()}"


class _Once(logging.Filter):
    """Passes each message of torchspore once."""

    def __init__(self) -> None:
        super().__init__()
        self._seen_messages: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if not is_torchspore_file(record.pathname):
            return True
        text = record.getMessage()
        if text in self._seen_messages:
            return False
        if len(self._seen_messages) < _MAX_REMEMBERED:
            self._seen_messages.add(text)
        return True


def _level(name: str = "GLOG_v") -> str:
    value = os.environ.get(name, "2")
    if value not in LOGGER_LEVEL:
        raise ValueError(message(f"{name}={value!r}", "a number from 0 (debug) to 4 (critical)"))
    return value


def _logger() -> logging.Logger:
    global GLOBAL_LOGGER
    if GLOBAL_LOGGER is not None:
        return GLOBAL_LOGGER
    with _lock:
        if GLOBAL_LOGGER is None:
            logger = logging.getLogger("torchspore.mindspore")
            logger.setLevel(LOGGER_LEVEL[_level()])
            logger.propagate = False
            logger.handlers.clear()
            once = _Once()
            for handler in _handlers():
                handler.setFormatter(_Line())
                handler.addFilter(once)
                logger.addHandler(handler)
                once = _Once()
            GLOBAL_LOGGER = logger
    return GLOBAL_LOGGER


@contextmanager
def _begun_anew() -> Iterator[None]:
    """Run the block like a new program: read the environment again, and forget the messages so far."""
    global GLOBAL_LOGGER
    before, GLOBAL_LOGGER = GLOBAL_LOGGER, None
    try:
        yield
    finally:
        GLOBAL_LOGGER = before


def _handlers() -> list[logging.Handler]:
    shown = _Stderr()
    if os.environ.get("GLOG_logtostderr", "1") != "0":  # noqa: SIM112
        return [shown]
    folder = os.environ.get("GLOG_log_dir")  # noqa: SIM112
    if not folder:
        raise ValueError(message("GLOG_logtostderr=0 without GLOG_log_dir", "the folder for messages", hint="set GLOG_log_dir=logs"))
    path = _folder(folder) / f"mindspore.log.{os.getpid()}"
    shown.setLevel(LOGGER_LEVEL[_level("GLOG_stderrthreshold")])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError as error:                       # a log that can't be written must not end a training
        print(f"torchspore: GLOG_log_dir={folder}: {path} can't be written ({error.strerror}); messages go to stderr.", file=sys.stderr)
        shown.setLevel(logging.NOTSET)
        return [shown]
    max_bytes, backups = _count("logger_maxBytes", MAX_BYTES), _count("logger_backupCount", BACKUP_COUNT)
    file_handler = RotatingFileHandler(path, maxBytes=max_bytes, backupCount=backups)
    return [file_handler, shown]


def _folder(folder: str) -> Path:
    from torchspore.engine import process

    return Path(folder).expanduser().absolute() / process.folder() / "logs"


def _count(name: str, default: int) -> int:
    value = os.environ.get(name, str(default))
    if not value.isdigit():
        raise ValueError(message(f"{name}={value!r}", "an int from 0 on"))
    return int(value)


class _Stderr(logging.Handler):
    """Writes to the current `sys.stderr`, so that redirections work."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


def debug(msg: str, *args: Any, **kwargs: Any) -> None:
    """Writes a message of level 0."""
    _logger().debug(msg, *args, stacklevel=2, **kwargs)


def info(msg: str, *args: Any, **kwargs: Any) -> None:
    """Writes a message of level 1."""
    _logger().info(msg, *args, stacklevel=2, **kwargs)


def warning(msg: str, *args: Any, **kwargs: Any) -> None:
    """Writes a message of level 2."""
    _logger().warning(msg, *args, stacklevel=2, **kwargs)


def error(msg: str, *args: Any, **kwargs: Any) -> None:
    """Writes a message of level 3."""
    _logger().error(msg, *args, stacklevel=2, **kwargs)


def critical(msg: str, *args: Any, **kwargs: Any) -> None:
    """Writes a message of level 4."""
    _logger().critical(msg, *args, stacklevel=2, **kwargs)


def get_level() -> str:
    """Returns the lowest level that is shown, in the form of GLOG_v: '2' by default."""
    if GLOBAL_LOGGER is None:
        return _level()
    return next(number for number, name in LOGGER_LEVEL.items() if name == logging.getLevelName(GLOBAL_LOGGER.level))


def get_log_config() -> dict[str, Any]:
    """Returns the current settings."""
    config: dict[str, Any] = {"GLOG_v": get_level(), "GLOG_logtostderr": os.environ.get("GLOG_logtostderr", "1")}  # noqa: SIM112
    if config["GLOG_logtostderr"] == "0":
        config |= {
            "GLOG_log_dir": str(_folder(os.environ.get("GLOG_log_dir", ""))), "logger_maxBytes": _count("logger_maxBytes", MAX_BYTES),  # noqa: SIM112
            "logger_backupCount": _count("logger_backupCount", BACKUP_COUNT), "GLOG_stderrthreshold": _level("GLOG_stderrthreshold"),
        }
    return config


class _LogActionOnce:
    """Decorates a function: warnings of `logger` inside it appear only in its first call for this `key`, and never with `no_warning`."""

    is_logged: dict[str, bool] = {}

    def __init__(self, logger: Any, key: str, no_warning: bool = False) -> None:
        self.logger, self.key, self.no_warning = logger, key, no_warning

    def __call__(self, func: Any) -> Any:
        @functools.wraps(func)
        def quiet(*args: Any, **kwargs: Any) -> Any:
            if not self.no_warning and not self.is_logged.get(self.key):
                self.is_logged[self.key] = True
                return func(*args, **kwargs)
            before, self.logger.warning = self.logger.warning, lambda *_, **__: None
            try:
                return func(*args, **kwargs)
            finally:
                self.logger.warning = before

        return quiet
