"""The list of callbacks of a training, and the state that they read."""
from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.engine.execution import pynative
from torchspore.engine.tensors import tree
from torchspore.mindspore.common._callback import Callback, RunContext
from torchspore.mindspore.common.tensor import Tensor

CUR_NET: Any = None


def set_cur_net(net: Any) -> None:
    """Stores the network that currently runs."""
    global CUR_NET
    CUR_NET = net


class _StepSync(Callback):
    """Waits after each step until the device has finished it; copies of MindSpore's training loop add it in PyNative mode."""

    def step_end(self, run_context: RunContext) -> None:
        """Waits for the device."""
        pynative.wait()


class InternalCallbackParam(dict):
    """The state of the training for callbacks, as attributes or as items, under MindSpore's names."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(message(f"cb_params.{name}", f"one of {', '.join(sorted(self)) or 'nothing'}")) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        self.pop(name, None)


def state_of(callback: Callback, run_context: Any) -> Any:
    """Return the state of the training. Raises TypeError unless it is a RunContext; the items of a plain dict become attributes."""
    if not callable(getattr(run_context, "original_args", None)):
        subject = f"{type(callback).__name__}: run_context={short(run_context)}"
        raise TypeError(message(subject, f"a RunContext, got {type(run_context).__name__}"))
    state = run_context.original_args()
    return InternalCallbackParam(state) if type(state) is dict else state


class CallbackManager(Callback):
    """Calls every callback of a list in order. Raises TypeError for anything but Callbacks."""

    def __init__(self, callbacks: Any) -> None:
        listed = [] if callbacks is None else tree.listed(callbacks)
        for callback in listed:
            if not isinstance(callback, Callback):
                raise TypeError(message(f"callbacks={short(callbacks)}", f"a Callback or a list of them, got {type(callback).__name__}"))
        self._callbacks = list(listed)
        self._stack: ExitStack | None = None

    def __enter__(self) -> CallbackManager:
        self._stack = ExitStack().__enter__()
        self._callbacks = [self._stack.enter_context(callback) for callback in self._callbacks]
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._stack.__exit__(*error) if self._stack is not None else None


def _nothing(_run_context: RunContext) -> None:
    """The default hook of a callback without preparations."""


def _call_all(name: str) -> Any:
    def call(self: CallbackManager, run_context: RunContext) -> None:
        if name == "on_train_begin":           # built-in callbacks prepare here, because a program's subclass may override each event
            for callback in self._callbacks:
                getattr(callback, "_prepare_", _nothing)(run_context)
        for callback in self._callbacks:
            getattr(callback, name)(run_context)

    call.__name__ = name
    call.__doc__ = f"Calls `{name}` of each callback."
    return call


for _name in [name for name in vars(Callback) if not name.startswith("_")]:
    setattr(CallbackManager, _name, _call_all(_name))


def _handle_loss(net_outputs: Any) -> Any:
    """Return the loss among a step's outputs, as a number if possible: the first of a tuple or list, averaged."""
    if isinstance(net_outputs, (tuple, list)):
        if net_outputs and isinstance(net_outputs[0], Tensor):
            return float(np.mean(net_outputs[0].asnumpy()))
        return net_outputs[0] if net_outputs else None
    if isinstance(net_outputs, Tensor):
        return float(np.mean(net_outputs.asnumpy()))
    if isinstance(net_outputs, dict):
        return net_outputs.get("loss")
    return net_outputs


_InternalCallbackParam, _CallbackManager, _set_cur_net = InternalCallbackParam, CallbackManager, set_cur_net
