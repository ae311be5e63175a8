"""Operators that write into their Tensor (names that end in an underscore), and methods whose function has another form."""
from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message, with_type
from torchspore.engine.autograd import integer_gradients
from torchspore.engine.execution.precision import as_stored
from torchspore.engine.formulas import clamping, quotients
from torchspore.engine.random.generators import drawing
from torchspore.engine.tensors import creation, dtypes
from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.tensor import TensorBase, raw, unwrap, wrap, write
from torchspore.mindspore.ops.declaration.arguments import as_dtype, sizes
from torchspore.mindspore.ops.declaration.declare import OPERATORS, explaining, op, updating
from torchspore.mindspore.ops.declaration.indices import as_index, as_index_or_mask
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


def _declare_in_place(name: str, compute: Callable[[T], T], doc: str) -> Callable[..., Any]:
    """Build an operator that writes a function of a Tensor into the Tensor."""

    def body(input: T) -> T:
        return dtypes.fitting(compute(input), input.dtype)

    body.__doc__ = f"{doc} Written into the Tensor; returns it."
    return updating("input", name=name, methods=(name,))(body)


tanh_ = _declare_in_place("tanh_", torch.tanh, "The hyperbolic tangent.")
erfinv_ = _declare_in_place("erfinv_", torch.erfinv, "The inverse error function.")
zero_ = _declare_in_place("zero_", torch.zeros_like, "Zeros.")
inplace_sigmoid = _declare_in_place("inplace_sigmoid", torch.sigmoid, "1 / (1 + exp(-x)).")


@updating("input", name="clamp_")
def clamp_(input: T, min: Any = None, max: Any = None) -> T:
    """Clip x to the range from `min` to `max` in place; return the Tensor."""
    return clamping.clamp(input, min, max)


@updating("input", name="stop_gradient_")
def stop_gradient_(input: T) -> T:
    """Detach the Tensor itself from the autograd graph; return it."""
    return input.detach()


@updating("input", name="put_", methods=("put_",))
def put_(input: T, index: T, source: T, accumulate: bool = False) -> T:
    """Put `source` at (with `accumulate`, add it to) the elements `index` of the flat Tensor in place; return the Tensor."""
    return input.put(as_index(index), source.to(input.dtype), accumulate)


def _no_generator(generator: Any) -> None:
    if generator is not None:
        raise TypeError(f"generator={generator!r:.40}: expected None.\n\nhint: mindspore.set_seed starts the global stream.")


@updating("input", name="normal_", methods=("normal_",))
@drawing
def normal_(input: T, mean: float = 0, std: float = 1, *, generator: Any = None) -> T:
    """Fill the Tensor with normal numbers with this mean and standard deviation; return it."""
    _no_generator(generator)
    return mean + std * torch.randn_like(input)


@updating("input", name="uniform_", methods=("uniform_",))
@drawing
def uniform_(input: T, from_: float = 0, to: float = 1, *, generator: Any = None) -> T:
    """Fill the Tensor with uniform numbers in [from_, to); return it."""
    _no_generator(generator)
    return from_ + (to - from_) * torch.rand_like(input)


@updating("input", name="random_", methods=("random_",))
@drawing
def random_(input: T, from_: int = 0, to: int | None = None, *, generator: Any = None) -> T:
    """Fill the Tensor with uniform integers in [from_, to), by default all that the dtype represents exactly; return it."""
    _no_generator(generator)
    if to is None:
        to = 2 ** (torch.finfo(input.dtype).bits * 3 // 4) if input.is_floating_point() else torch.iinfo(input.dtype).max
    return torch.randint(from_, to, input.shape, device=input.device)


@updating("input", name="bernoulli_", methods=("bernoulli_",))
@drawing
def bernoulli_(input: T, p: Any = 0.5, *, generator: Any = None) -> T:
    """Fill the Tensor with 1 with probability `p`, else 0; return it."""
    _no_generator(generator)
    return torch.rand(input.shape, device=input.device) < p


@updating("input", name="exponential_", methods=("exponential_",))
@drawing
def exponential_(input: T, lambd: float = 1, *, generator: Any = None) -> T:
    """Fill the Tensor with numbers of an exponential distribution of rate `lambd`; return it."""
    _no_generator(generator)
    return -torch.log1p(-torch.rand_like(input)) / lambd


@op()
@drawing
def bernoulli_ext(input: T, *, generator: Any = None) -> T:
    """1 with the probability in each element, else 0."""
    _no_generator(generator)
    return torch.bernoulli(input)


@op()
def take(input: T, index: T) -> T:
    """The elements of the flat Tensor at `index`, in the shape of `index`."""
    return torch.take(input, as_index(index))


@op()
def type_as(input: T, other: T) -> T:
    """The values in the dtype of `other`."""
    return integer_gradients.cast(input, other.dtype)


@op()
def view_as(input: T, other: T) -> T:
    """The same elements in the shape of `other`."""
    return input.view(other.shape)


@op()
def baddbmm_ext(input: T, batch1: T, batch2: T, *, beta: Any = 1, alpha: Any = 1) -> T:
    """beta * input + alpha * (batch1 @ batch2)."""
    return input * beta + alpha * torch.bmm(batch1, batch2)


@op(wide=Widening())
def diff_ext(input: T, n: int = 1, dim: int = -1, prepend: T | None = None, append: T | None = None) -> T:
    """The n-th differences along `dim`."""
    return torch.diff(input, n, dim, prepend, append)


@op()
def einsum_ext(equation: str, *operands: Any) -> T:
    """The sum of products that `equation` describes."""
    return torch.einsum(equation, *operands)


@op()
def float_power_ext(input: Any, exponent: Any) -> T:
    """`input` to the power `exponent`, computed and returned in float64 (complex128)."""
    return torch.float_power(input, exponent)


@op()
def isnan_ext(tensor: T) -> T:
    """Test whether x is not a number."""
    return torch.isnan(tensor)


@op(methods=("allclose",))
def _allclose(input: T, other: T, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Test whether all elements are close: |input - other| <= atol + rtol * |other|."""
    return torch.allclose(input, other, rtol, atol, equal_nan)


@op(methods=("kthvalue",))
def _kthvalue(input: T, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest value along `dim`, counted from 1, and its index (int64)."""
    return tuple(torch.kthvalue(input, k, dim, keepdim))


@op(methods=("argmax_with_value",), wide=Widening(compares=True))
def _argmax_with_value_method(input: T, axis: int = 0, keep_dims: bool = False) -> Any:
    """The largest value along `axis` and its index (int64); for None, the largest of all and 0."""
    return tuple(torch.max(input, axis, keep_dims)) if axis is not None else (input.max(), _zero_index(input))


@op(methods=("argmin_with_value",), wide=Widening(compares=True))
def _argmin_with_value_method(input: T, axis: int = 0, keep_dims: bool = False) -> Any:
    """The smallest value along `axis` and its index (int64); for None, the smallest of all and 0."""
    return tuple(torch.min(input, axis, keep_dims)) if axis is not None else (input.min(), _zero_index(input))


def _zero_index(input: T) -> T:
    return torch.zeros((), dtype=torch.int64, device=input.device)


@op(methods=("choose",), wide=Widening())
def _choose(input: T, choices: Any, mode: str = "clip") -> T:
    """Select each element from the choice whose number the Tensor has; out of range, 'clip' takes the nearest end, 'wrap' wraps around."""
    if mode not in ("clip", "wrap", "raise"):
        raise ValueError(f"mode={mode!r}: expected 'clip', 'wrap' or 'raise'.")
    options = list(choices.unbind(0)) if isinstance(choices, T) else [
        choice if isinstance(choice, T) else constant(choice, input.device) for choice in choices
    ]
    stacked = torch.stack(torch.broadcast_tensors(*options, input)[:-1])
    at = input.long()
    if mode == "raise" and bool(((at < 0) | (at >= len(options))).any()):
        raise ValueError(f"expected numbers from 0 to {len(options) - 1}.")
    at = torch.remainder(at, len(options)) if mode == "wrap" else at.clamp(0, len(options) - 1)
    return torch.gather(stacked, 0, at.expand(stacked.shape[1:]).unsqueeze(0))[0]


@op(methods=("reverse_sequence",), wide=Widening())
def _reverse_sequence_method(input: T, seq_lengths: T, seq_dim: int = 0, batch_dim: int = 0) -> T:
    """Reverse the first seq_lengths[i] elements along `seq_dim`, for each i along `batch_dim`."""
    return OPERATORS["reverse_sequence"].body(input, seq_lengths, seq_dim, batch_dim)  # type: ignore[no-any-return]


@op(methods=("sum_to_size",))
def _sum_to_size(input: T, *size: Any) -> T:
    """Sum over the axes along which a Tensor of `size` broadcasts to this one's shape."""
    return input.sum_to_size(*sizes(size))


@op(methods=("triangular_solve",))
def _triangular_solve_method(input: T, A: T, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    """The solution x of A @ x = input for a triangular matrix, and A."""
    matrix = A.mT if transpose else A
    return torch.linalg.solve_triangular(matrix, input, upper=upper != transpose, unitriangular=unitriangular), A.clone()


@op(methods=("uniform",))
@drawing
def _uniform_method(input: T, from_: float = 0.0, to: float = 1.0, generator: Any = None) -> T:
    """Uniform numbers in [from_, to) in the shape and dtype of the Tensor."""
    _no_generator(generator)
    return from_ + (to - from_) * torch.rand_like(input)


@op(methods=("cauchy",))
@drawing
def _cauchy_method(input: T, median: float = 0.0, sigma: float = 1.0) -> T:
    """Cauchy numbers with this median and scale in the shape and dtype of the Tensor."""
    return median + sigma * torch.tan(math.pi * (torch.rand_like(input) - 0.5))


@op(methods=("log_normal",))
@drawing
def _log_normal_method(input: T, mean: float = 1.0, std: float = 2.0) -> T:
    """exp of normal numbers with this mean and standard deviation, in the shape and dtype of the Tensor."""
    return torch.exp(mean + std * torch.randn_like(input))


@op(methods=("scatter_add",))
def _scatter_add_method(input: T, *arguments: Any, **keywords: Any) -> T:
    """`scatter_add(dim, index, src)` adds elements along an axis, `scatter_add(indices, updates)` adds rows at `indices`; in a copy."""
    if isinstance(arguments[0] if arguments else None, T) or "indices" in keywords:
        return _at_points(input, *arguments, **keywords)
    return _along(input, *arguments, **keywords)


def _at_points(input: T, indices: T, updates: T) -> T:
    return input.index_put(tuple(as_index(indices).unbind(-1)), updates, accumulate=True)


def _along(input: T, dim: int, index: T, src: Any) -> T:
    return input.scatter_add(dim, as_index(index), src.to(input.dtype))


@op(methods=("index_put",), wide=Widening())
def _index_put_method(input: T, indices: Any, values: T, accumulate: bool = False) -> T:
    """A copy with `values` at (with `accumulate`, added to) the indexes along the first axes."""
    return input.index_put(_indexes(indices), values, accumulate)


def _indexes(indices: Any) -> tuple[T, ...]:
    return tuple(as_index_or_mask(i) for i in indices)


def _writing(compute: Callable[..., T], doc: str) -> Callable[..., Any]:
    """Return a method that writes the result of `compute` into its Tensor and returns the Tensor."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        write(self, dtypes.fitting(compute(raw(as_stored(self)), *unwrap(args), **unwrap(kwargs)), self._t.dtype).expand(self._t.shape))
        return self

    with contextlib.suppress(ValueError):              # torch's own functions have no signature
        first, *others = inspect.signature(compute).parameters.values()
        method.__signature__ = inspect.Signature([first.replace(name="self"), *others])  # type: ignore[attr-defined]

    method.__doc__ = f"{doc} Written into the Tensor; returns it."
    return explaining(method)


def _set_data(self: Any, value: Any) -> None:
    if not isinstance(value, TensorBase):
        raise TypeError(message("Tensor.data = ...", with_type("a Tensor", value)))
    write(self, raw(value).to(self._t.dtype))


def _new_full(self: Any, size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    """A Tensor of `size` filled with a number, with this one's dtype unless `dtype` says otherwise."""
    return wrap(creation.filled(sizes(size), fill_value, self.dtype if dtype is None else dtype))


def _new_empty(self: Any, *size: Any, dtype: Any = None) -> Any:
    """A Tensor of `size` with unspecified values (they are zeros), with this one's dtype unless `dtype` says otherwise."""
    return wrap(torch.zeros(sizes(size), dtype=as_dtype(dtype) or self._t.dtype, device=self._t.device))


def _resize(self: Any, *new_shape: Any) -> Any:
    """A copy in another shape: its elements in order, truncated or padded with zeros."""
    shape = sizes(new_shape)
    count = math.prod(shape)
    flat = raw(self).reshape(-1)[:count]
    return wrap(torch.nn.functional.pad(flat, [0, count - flat.shape[0]]).reshape(shape))


def _select(self: Any, *args: Any, **kwargs: Any) -> Any:
    """`select(dim, index)`: the slice at an index. `select(condition, y)`: this Tensor where the condition is true, else y."""
    first = args[0] if args else kwargs.get("condition")
    if len(args) + len(kwargs) != 2 or (isinstance(first, TensorBase) and len(args) < 2 and "y" not in kwargs):
        raise TypeError(f"Tensor.select takes a dim and an index, or a condition and y, got {len(args) + len(kwargs)} arguments.")
    if isinstance(first, TensorBase):
        other = args[1] if len(args) > 1 else kwargs["y"]
        return OPERATORS["select"].function(first, self, other)
    axis, index = (*args, *kwargs.values())
    return wrap(raw(self).select(int(axis), int(index)))


def _to_coo(self: Any) -> Any:
    """Return the elements that are not zero as a sparse Tensor with coordinates."""
    from torchspore.mindspore.ops.sparse_formats import sparse_tensors

    return sparse_tensors.dense_to_sparse_coo(self)


def _to_csr(self: Any) -> Any:
    """Return the elements of a matrix that are not zero as a CSR Tensor."""
    from torchspore.mindspore.ops.sparse_formats import sparse_tensors

    return sparse_tensors.dense_to_sparse_csr(self)


METHODS: dict[str, Any] = {
    "exp_": _writing(torch.exp, "e to the power x."), "log_": _writing(torch.log, "The natural logarithm."),
    "floor_": _writing(torch.floor, "The largest integer not above x."), "sign_": _writing(torch.sign, "-1, 0 or 1."),
    "sigmoid_": _writing(torch.sigmoid, "1 / (1 + exp(-x))."), "addmm_": _writing(
        lambda t, mat1, mat2, *, beta=1, alpha=1: t * beta + alpha * (mat1 @ mat2), "beta * x + alpha * (mat1 @ mat2).",
    ),
    "floor_divide_": _writing(quotients.floor_divide, "The quotient rounded towards minus infinity."),
    "remainder_": _writing(quotients.remainder, "The remainder with the sign of the divisor."),
    "fill_diagonal_": _writing(lambda t, fill_value, wrap=False: t.clone().fill_diagonal_(fill_value, wrap), "A number on the diagonal."),
    "masked_fill_": _writing(lambda t, mask, value: t.masked_fill(mask, value), "`value` where `mask` is true."),
    "masked_scatter_": _writing(torch.masked_scatter, "The elements of `source` where `mask` is true."),
    "index_add_": _writing(
        lambda t, dim, index, source, *, alpha=1: t.index_add(dim, as_index(index), source, alpha=alpha), "`source` added to slices.",
    ),
    "index_copy_": _writing(lambda t, dim, index, tensor: t.index_copy(dim, as_index(index), tensor), "`tensor` in place of slices."),
    "index_fill_": _writing(lambda t, dim, index, value: t.index_fill(dim, as_index(index), value), "`value` in slices."),
    "index_put_": _writing(
        lambda t, indices, values, accumulate=False: t.index_put(_indexes(indices), values, accumulate), "`values` at indexes.",
    ),
    "scatter_": _writing(lambda t, dim, index, src: t.scatter(dim, as_index(index), src), "The elements of `src` along an axis."),
    "scatter_add_": _writing(lambda t, dim, index, src: t.scatter_add(dim, as_index(index), src), "The elements of `src` added."),
    "new_full": _new_full, "new_empty": _new_empty, "resize": _resize, "select": _select, "to_coo": _to_coo, "to_csr": _to_csr,
    "get_bytes": lambda self: creation.to_numpy(self).tobytes(), "data": property(lambda self: wrap(raw(self).detach()), _set_data),
    "is_pinned": lambda self: self._t.is_pinned(),
    "H": property(lambda self: wrap(raw(self).mH)), "mH": property(lambda self: wrap(raw(self).mH)),
}
"""Methods of Tensor that differ from every operator function."""
for _name, _method in METHODS.items():
    if inspect.isfunction(_method):
        _method.__name__ = _method.__qualname__ = _name
