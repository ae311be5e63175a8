"""`_Function`: an operation with a user-defined gradient, as two static methods."""
from __future__ import annotations

import inspect
from typing import Any

from torchspore.base.text import message


class _Function:
    """The base of operations with a user-defined gradient: a subclass has `forward(ctx, ...)` and `backward(ctx, ...)`.

    `apply(...)` calls `forward`; `ctx` is an object of the subclass that carries data for `backward`, Tensors by `save_for_backward`.
    `backward` gets one gradient for each output of `forward` (None for an output that is not a Tensor) and returns one for each argument.
    With `setup_context(ctx, inputs, output)`, `forward` takes no `ctx`.
    """

    saved_tensors: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()
    dirty_tensors: tuple[Any, ...] | None = None
    non_differentiable: tuple[Any, ...] | None = None
    materialize_grads = True

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the result of `apply`; a subclass defines it."""
        raise NotImplementedError(message("_Function without forward", "a static method forward(ctx, ...)"))

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return one gradient for each argument of `forward`; a subclass defines it."""
        raise NotImplementedError(message("_Function without backward", "a static method backward(ctx, ...)"))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Store data for `backward` in `ctx`, if `forward` takes no `ctx`; a subclass may define it."""
        raise NotImplementedError(message("_Function without setup_context", "a static method setup_context(ctx, inputs, output)"))

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward`; in a gradient, `backward` is its gradient."""
        from torchspore.engine.autograd import custom_functions

        ctx = cls()
        if cls.setup_context is _Function.setup_context:
            return custom_functions.apply(
                ctx, lambda *arguments, **named: cls.forward(ctx, *arguments, **named), _backward_of(ctx), args, kwargs
            )
        bound = inspect.signature(cls.forward).bind(*args, **kwargs)
        bound.apply_defaults()

        def forward(*arguments: Any, **named: Any) -> Any:
            output = cls.forward(*arguments, **named)
            cls.setup_context(ctx, arguments, output)
            return output

        return custom_functions.apply(ctx, forward, _backward_of(ctx), bound.args, bound.kwargs)

    def save_for_backward(self, *tensors: Any) -> None:
        """Store Tensors for `backward`, which reads them from `saved_tensors`."""
        self.saved_tensors = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Name arguments that `forward` writes into; it returns them as outputs."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Name outputs that have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` gets zeros (the default) or None for an output without a gradient."""
        self.materialize_grads = value


def _backward_of(ctx: _Function) -> Any:
    return lambda *gradients: type(ctx).backward(ctx, *gradients)
