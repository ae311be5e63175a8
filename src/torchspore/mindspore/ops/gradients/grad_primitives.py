"""The primitives of MindSpore's `_grad_ops` for gradients of element-wise functions of one input: `ReluGrad`, `SigmoidGrad`, …

Some take the forward output (`y`), others the forward input (`x`): the argument names show which. `dout`, `dy`, … are the gradient of
the output.
"""
from __future__ import annotations

import inspect
import math
from collections.abc import Callable

import torch
from torch.nn import functional as F

from torchspore.engine.torch_internals import torch_private
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772     # Klambauer and others, Self-Normalizing Neural Networks, 2017


def vjp(forward: Callable[..., T], inputs: tuple[T, ...], cotangent: T) -> tuple[T, ...]:
    """Return the gradients of `forward(*inputs)` for its inputs, with the output's `cotangent`; differentiable again."""
    with torch_private.without_saved_hooks():
        return tuple(torch.func.vjp(forward, *inputs)[1](cotangent))


def vjp_of_many(forward: Callable[..., tuple[T, ...]], inputs: tuple[T, ...], cotangents: tuple[T, ...]) -> tuple[T, ...]:
    """As `vjp`, for a function with several outputs."""
    with torch_private.without_saved_hooks():
        return tuple(torch.func.vjp(forward, *inputs)[1](cotangents))


def _gradient(primitive: str, names: tuple[str, str], compute: Callable[[T, T], T], of: str) -> None:
    """Build the primitive of two Tensors called `names`, which computes the gradient of `of`."""

    def body(*inputs: T) -> T:
        return compute(*inputs)

    body.__name__ = body.__qualname__ = f"_{primitive.lower()}"
    body.__doc__ = f"The gradient of {of}."
    body.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    op(primitive=primitive)(body)


def _of_input(function: Callable[[T], T]) -> Callable[[T, T], T]:
    """Return the function (output gradient, input) -> input gradient of an element-wise function."""
    return lambda dy, x: vjp(function, (x,), dy)[0]


def _tanh_gelu(x: T) -> T:
    return F.gelu(x, approximate="tanh")


def _fast_gelu(x: T) -> T:
    """x * sigmoid(1.702 x), by MindSpore's documented formula."""
    return x * torch.exp(0.851 * (x - x.abs())) / (1 + torch.exp(-1.702 * x.abs()))


def _hswish(dy: T, x: T) -> T:
    return dy * torch.where(x < -3, 0, torch.where(x > 3, 1, (2 * x + 3) / 6))


_X = ("x", "dout")
_gradient("AbsGrad", _X, lambda x, dout: dout * torch.sign(x), "|x|")
_gradient("ACosGrad", _X, lambda x, dout: -dout * torch.rsqrt(1 - x * x).conj(), "arccos(x)")
_gradient("AsinGrad", _X, lambda x, dout: dout * torch.rsqrt(1 - x * x).conj(), "arcsin(x)")
_gradient("AtanGrad", _X, lambda x, dout: dout / (1 + x * x).conj(), "arctan(x)")
_gradient("AcoshGrad", ("out", "dout"), lambda out, dout: dout / torch.sinh(out).conj(), "arcosh, of its output")
_gradient("AsinhGrad", ("out", "dout"), lambda out, dout: dout / torch.cosh(out).conj(), "arsinh, of its output")
_gradient("InvGrad", ("x", "grad"), lambda x, grad: -grad * x * x, "1 / x, of its output")
_gradient("ReciprocalGrad", ("y", "dy"), lambda y, dy: -dy * (y * y).conj(), "1 / x, of its output")
_gradient(
    "RsqrtGrad", ("y_backprop", "x"),
    lambda y, dy: -0.5 * dy * (y * y * y).conj(), "1 / sqrt(x), from its output and its output's gradient",
)
_gradient("SqrtGrad", ("dy", "y"), lambda y, dy: dy / (2 * y).conj(), "sqrt(x), from its output and its output's gradient")
_gradient("SigmoidGrad", ("y", "dy"), lambda y, dy: dy * (y * (1 - y)).conj(), "sigmoid, of its output")
_gradient("TanhGrad", ("y", "dy"), lambda y, dy: dy * (1 - y * y), "tanh, of its output")
_gradient("SoftmaxGrad", ("y", "dy"), lambda y, dy: y * (dy - torch.sum(dy * y, -1, keepdim=True)), "softmax, of its output")
_gradient("ReluGrad", ("y_backprop", "x"), lambda dy, x: torch.where(x > 0, dy, 0), "max(x, 0)")
_gradient("ReLU6Grad", ("y_backprop", "x"), lambda dy, x: torch.where((x > 0) & (x < 6), dy, 0), "min(max(x, 0), 6)")
_gradient("EluGrad", ("dout", "out"), lambda dout, out: dout * torch.where(out > 0, 1, out + 1), "elu, of its output")
_gradient(
    "SeluGrad", ("gradient", "out"),
    lambda dout, out: dout * torch.where(out > 0, _SELU_SCALE, out + _SELU_SCALE * _SELU_ALPHA), "selu, of its output",
)
_gradient("SoftplusGrad", ("gradients", "features"), lambda dy, x: dy * torch.sigmoid(x), "log(1 + exp(x))")
_gradient("SiLUGrad", ("dout", "x"), _of_input(F.silu), "x * sigmoid(x)")
_gradient("HSigmoidGrad", ("grads", "input_x"), _of_input(F.hardsigmoid), "hsigmoid")
_gradient("HSwishGrad", ("y_grad", "x"), _hswish, "hswish; at -3 and 3 the gradient of the piece between them")
_gradient("FastGeLUGrad", ("dy", "x"), _of_input(_fast_gelu), "fast_gelu")


@op(primitive="GeLUGrad")
def _gelu_grad(dy: T, x: T, y: T) -> T:
    """The gradient of gelu (tanh form) at `x`. Its output `y` must have x's shape, but is not used."""
    if y.shape != x.shape:
        raise ValueError(f"expected y in x's shape, got {tuple(y.shape)} and {tuple(x.shape)}.")
    return vjp(_tanh_gelu, (x,), dy)[0]


@op(primitive="HShrinkGrad", init=("lambd",))
def _hshrink_grad(gradients: T, features: T, lambd: float = 0.5) -> T:
    """The gradient of hardshrink: the output's gradient where |x| > lambd, else 0."""
    return torch.where(features.abs() > lambd, gradients, 0)


@op(primitive="SoftShrinkGrad", init=("lambd",))
def _soft_shrink_grad(input_grad: T, input_x: T, lambd: float = 0.5) -> T:
    """The gradient of softshrink: the output's gradient where |x| > lambd, else 0."""
    return torch.where(input_x.abs() > lambd, input_grad, 0)


@op(primitive="LogitGrad", init=("eps",))
def _logit_grad(grad: T, input: T, eps: float = -1.0) -> T:
    """The gradient of logit: 0 where `eps` clipped x; NaN outside of [0, 1] if `eps` is negative."""
    low, high, beyond = (0.0, 1.0, math.nan) if eps < 0 else (eps, 1 - eps, 0.0)
    return torch.where((input < low) | (input > high), beyond, grad / (input * (1 - input)))


@op(primitive="DropoutGrad", init=("keep_prob",))
def _dropout_grad(y_backprop: T, mask: T, keep_prob: float = 0.5) -> T:
    """The gradient of dropout: the output's gradient times `mask` over `keep_prob`."""
    return y_backprop * mask.to(y_backprop.dtype) / keep_prob


@op(primitive="LogSoftmaxGrad", init=("axis",))
def _log_softmax_grad(logits: T, grad: T, axis: int = -1) -> T:
    """The gradient of log_softmax along `axis`, from its output `logits`."""
    return grad - torch.exp(logits) * torch.sum(grad, axis, keepdim=True)


@op(primitive="GluGrad", init=("axis",))
def _glu_grad(grads: T, x: T, axis: int) -> T:
    """The gradient of glu along `axis`."""
    return vjp(lambda x: F.glu(x, axis), (x,), grads)[0]


@op(primitive="PReLUGrad")
def _prelu_grad(dy: T, x: T, weight: T) -> tuple[T, ...]:
    """The gradients of prelu by x and by its weight."""
    return vjp(F.prelu, (x, weight), dy)
