"""`_Function`: an operation with a gradient of the user's own, as two static methods."""
from __future__ import annotations

import inspect
from typing import Any

from torchspore.base.text import message


class _Function:
    """The base of operations with a gradient of their own: a subclass has `forward(ctx, ...)` and `backward(ctx, ...)`.

    `apply(...)` calls `forward`; `ctx` is an object of the subclass that carries what `backward` needs, Tensors by `save_for_backward`.
    `backward` is given one gradient for each output of `forward` (None for what is no Tensor) and gives one for each argument. Where
    `setup_context(ctx, inputs, output)` is written, `forward` takes no `ctx`.
    """

    saved_tensors: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()
    dirty_tensors: tuple[Any, ...] | None = None
    non_differentiable: tuple[Any, ...] | None = None
    materialize_grads = True

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """What `apply` gives; a subclass writes it."""
        raise NotImplementedError(message("_Function without forward", "a static method forward(ctx, ...)"))

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """One gradient for each argument of `forward`; a subclass writes it."""
        raise NotImplementedError(message("_Function without backward", "a static method backward(ctx, ...)"))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keeps in `ctx` what `backward` needs, where `forward` takes no `ctx`; a subclass may write it."""
        raise NotImplementedError(message("_Function without setup_context", "a static method setup_context(ctx, inputs, output)"))

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls `forward`; in a gradient, `backward` is its gradient."""
        from torchspore.engine.autograd import custom_functions

        ctx = cls()
        if cls.setup_context is _Function.setup_context:
            return custom_functions.apply(ctx, lambda *given, **named: cls.forward(ctx, *given, **named), _backward_of(ctx), args, kwargs)
        bound = inspect.signature(cls.forward).bind(*args, **kwargs)
        bound.apply_defaults()

        def forward(*given: Any, **named: Any) -> Any:
            output = cls.forward(*given, **named)
            cls.setup_context(ctx, given, output)
            return output

        return custom_functions.apply(ctx, forward, _backward_of(ctx), bound.args, bound.kwargs)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps Tensors for `backward`, which finds them in `saved_tensors`."""
        self.saved_tensors = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Names arguments that `forward` writes into; it gives them back as outputs."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Names outputs that have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Says whether `backward` is given zeros (the default) or None for an output that nothing came of."""
        self.materialize_grads = value


def _backward_of(ctx: _Function) -> Any:
    return lambda *gradients: type(ctx).backward(ctx, *gradients)
