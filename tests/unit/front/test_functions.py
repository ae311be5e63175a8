"""`_Function`: operations with a gradient of the user's own, as 2.10 answers in PyNative mode."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import pytest
from mindspore import Parameter, Tensor, ops
from mindspore.common._grad_function import _Function

SEEN: list[Any] = []


class Scaled(_Function):
    """x * y * factor, with a gradient for x alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, factor: int = 2) -> Tensor:
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        SEEN.append(ctx.needs_input_grad)
        return x * y * factor

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        y = ctx.saved_tensors[1]
        return gradient * y * ctx.factor, None, None


class Two(_Function):
    """Two outputs and a number; the second has no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(b)
        ctx.set_materialize_grads(False)
        return a, b, 5

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        SEEN.append([g if g is None else g.asnumpy().tolist() for g in gradients])
        return gradients[0]


class Late(_Function):
    """`forward` without a context."""

    @staticmethod
    def forward(x: Tensor, y: int = 3) -> Tensor:  # type: ignore[override]
        return x * y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.y = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient * ctx.y * 100, None


X, Y = [1.0, 2.0], [3.0, 4.0]


def _lists(values: Any) -> Any:
    return [v.asnumpy().tolist() for v in values] if isinstance(values, tuple) else values.asnumpy().tolist()


def test_the_gradient_is_backwards() -> None:
    SEEN.clear()
    assert _lists(Scaled.apply(Tensor(X), Tensor(Y))) == [6.0, 16.0]
    both = ops.grad(lambda x, y: Scaled.apply(x, y, 3), (0, 1))(Tensor(X), Tensor(Y))
    assert _lists(both) == [[9.0, 12.0], [0.0, 0.0]] and SEEN == [(False, False), (True, True, False)]
    twice = ops.grad(ops.grad(lambda x: Scaled.apply(x * x, Tensor(Y), 3).sum()))
    assert _lists(twice(Tensor(X))) == [18.0, 24.0]


def test_several_outputs() -> None:
    SEEN.clear()
    assert Two.apply(Tensor(X))[2] == 5
    assert _lists(ops.grad(lambda x: Two.apply(x)[0] + Two.apply(x)[1])(Tensor(X))) == [1.0, 1.0]
    assert [1.0, 1.0] in [seen[0] for seen in SEEN] and all(seen[1:] == [None, None] for seen in SEEN)


def test_a_context_of_a_custom_step_and_parameters() -> None:
    assert _lists(ops.grad(lambda x: Late.apply(x))(Tensor(X))) == [300.0, 300.0]
    weight = Parameter(Tensor(X), name="weight")
    gradients = ops.grad(lambda x: Scaled.apply(weight, x), None, [weight])(Tensor(Y))
    assert _lists(gradients) == [[6.0, 8.0]]


def test_what_does_not_fit() -> None:
    class Few(Scaled):
        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            return gradient

    class Shape(Scaled):
        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            return gradient.sum(), None, None

    with pytest.raises(RuntimeError, match="backward: expected 3 gradients, one for each argument of forward, got 1"):
        ops.grad(lambda x, y: Few.apply(x, y, 3))(Tensor(X), Tensor(Y))
    with pytest.raises(RuntimeError, match=r"backward: gradient 0 has the shape \(\), expected \(2,\)"):
        ops.grad(lambda x, y: Shape.apply(x, y, 3))(Tensor(X), Tensor(Y))
    with pytest.raises(NotImplementedError, match="_Function without forward"):
        _Function.apply(Tensor(X))


def test_writing_into_an_argument_has_no_gradient() -> None:
    class Doubled(_Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    assert Doubled.apply(Tensor([1.0, 2.0])).asnumpy().tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match=r"Doubled\.forward writes into an argument while a gradient is taken"):
        ms.grad(lambda x: Doubled.apply(x * 1).sum())(Tensor([1.0, 2.0]))
