"""Errors of a pipeline: the operation and the dataset that failed, and the line of the user's program."""
from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from torchspore.base import user_threads
from torchspore.base.frames import is_user_file
from torchspore.translations import translate


class PipelineError(RuntimeError):
    """A function that a pipeline called raised, or returned an unusable value; `__cause__` is the function's error.

    A RuntimeError, as in MindSpore, where such an error also ends the iteration.
    """


def name_of(function: Any) -> str:
    """Return the name of a user's function or a transform for a message."""
    return getattr(function, "__name__", None) or type(function).__name__


def failed(where: str, error: BaseException) -> PipelineError:
    """Return the error to raise for `error`, which a user's function raised inside the operation `where`."""
    if isinstance(error, PipelineError):
        return error
    location = next(
        (
            f"{frame.filename}:{frame.lineno}: "
            for frame in reversed(traceback.extract_tb(error.__traceback__))
            if is_user_file(frame.filename)
        ),
        "",
    )
    kind, text = type(error).__name__, str(error) or translate("no message")
    sentence = translate("{operation}: expected a function that returns, it raised {error}.").format(operation=where, error=kind)
    return PipelineError(f"{location}{kind}: {text}\n{sentence}")


def guarded(where: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Call a user's function; its error becomes a PipelineError that names `where`."""
    entered = user_threads.enter()
    try:
        return call(*arguments)
    except PipelineError:
        raise
    except Exception as error:
        raise failed(where, error) from error
    finally:
        user_threads.leave(entered)
