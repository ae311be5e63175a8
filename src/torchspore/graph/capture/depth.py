"""The depth of nested calls during capture: `max_call_depth`, and a thread with a large stack if Python's limit is too low.

Python counts every frame and stops at 1000 by default, which is about 300 nested Cells; more frames than fit into the stack would end the
process. A capture that meets Python's limit is therefore repeated in a thread whose stack is large enough for `max_call_depth`.
"""
from __future__ import annotations

import contextvars
import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.tensors import tensor
from torchspore.engine.torch_internals.torch_private import modes_of_now
from torchspore.translations import translate

Result = TypeVar("Result")

_FRAME = 2048
"""Bytes of stack for one Python frame with the C calls between two of them; measured: 500 (CPython 3.11)."""
_FRAMES = 12
"""Frames for one nested call: Cell.__call__, its parts and construct, comprehensions and library functions between them."""
_LEAST, _MOST = 64 << 20, 4 << 30
_lock = threading.Lock()


def limit() -> int:
    """Return how deep calls may nest; report it to `torchspore explain`."""
    depth_limit = int(STORE.get("max_call_depth"))
    if STORE.source("max_call_depth")[0] != "default":
        effects.report("max_call_depth", Outcome.applied(
            translate("calls nest at most {count} deep while a graph is captured").format(count=depth_limit)))
    return depth_limit


def with_room(function: Callable[[], Result]) -> Result:
    """Calls `function` in a thread whose stack has room for `max_call_depth` nested calls, and gives its result or raises its error.

    The thread sees what this one sees: context variables, frames, gradient and autocast mode, tracing. Ctrl-C ends `function` with a
    KeyboardInterrupt before it is raised here.
    """
    size = max(_LEAST, min(_MOST, limit() * _FRAMES * _FRAME))
    outcome: list[Any] = []
    context, carried = contextvars.copy_context(), _Carried()
    ended = threading.Event()
    idents: list[int] = []
    gone: list[bool] = []

    def body() -> None:
        idents.append(threading.get_ident())
        try:
            with carried.over():
                if gone:
                    return
                outcome[:] = [True, context.run(function)]
        except BaseException as error:
            outcome[:] = [False, error]
        finally:
            ended.set()

    with _frames_allowed(size // _FRAME):
        try:
            _start(body, size)
            while not ended.wait(1.0):
                pass
        except BaseException as error:
            gone.append(True)
            if idents and not ended.is_set():
                _stop(idents[0], type(error))
                ended.wait()
            raise
    for variable in context:
        if variable.get(None) is not context[variable]:
            variable.set(context[variable])
    succeeded, value = outcome
    if not succeeded:
        raise value
    return value


def _start(body: Callable[[], None], size: int) -> None:
    """Starts a thread with a stack of `size` bytes, or of as much as the system gives."""
    with _lock:
        before = threading.stack_size()
        while True:
            try:
                threading.stack_size(size)
                threading.Thread(target=body, name="torchspore-deep", daemon=True).start()
                return
            except (RuntimeError, ValueError):
                if size <= _LEAST:
                    raise
                size //= 2
                sys.setrecursionlimit(max(1000, size // _FRAME))
            finally:
                threading.stack_size(before)


def _stop(thread: int, kind: type[BaseException]) -> None:
    """Raises `kind` in a thread, at its next line of Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


@contextmanager
def _frames_allowed(count: int) -> Iterator[None]:
    """Raises Python's limit, which is one for all threads, for a while."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, count))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Carried:
    """The state of this thread that must hold in the other."""

    def __init__(self) -> None:
        self.frame = tensor.thread_state.frame
        self.trace, self.profile = sys.gettrace(), sys.getprofile()
        self.gradients, self.inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        devices = ["cpu"] if accelerator is None else ["cpu", accelerator.type]
        self.autocast = {name: (torch.get_autocast_dtype(name), torch.is_autocast_enabled(name)) for name in devices}
        self.cached = torch.is_autocast_cache_enabled()
        self.modes = [mode for mode in modes_of_now() if getattr(mode, "looks_on", False)]
        """The modes that observe operators, in whatever thread the program continues: a dump."""

    @contextmanager
    def over(self) -> Iterator[None]:
        """Apply the limit in the thread that enters."""
        tensor.thread_state.frame = self.frame
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.gradients))
            for name, (dtype, enabled) in self.autocast.items():
                stack.enter_context(torch.autocast(name, dtype, enabled, self.cached))
            for mode in self.modes:
                stack.enter_context(mode)
            sys.settrace(self.trace)
            sys.setprofile(self.profile if callable(self.profile) else None)
            yield
