"""Operators on COOTensor and CSRTensor: element-wise functions, sums, products, and conversions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message, short
from torchspore.engine.tensors.tensor import TensorBase, raw, wrap
from torchspore.mindspore.common.sparse_tensor import COOTensor, CSRTensor, RowTensorInner
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.elementwise import activation, special, unary

T = torch.Tensor

_OF_ELEMENTS: dict[str, Callable[[Any], Any]] = {
    "abs": unary.abs, "acos": unary.acos, "acosh": unary.acosh, "asin": unary.asin, "asinh": unary.asinh,
    "atan": unary.atan, "atanh": unary.atanh, "ceil": unary.ceil, "cos": unary.cos, "cosh": unary.cosh,
    "exp": unary.exp, "expm1": unary.expm1, "floor": unary.floor, "inv": special.inv, "isfinite": unary.isfinite,
    "isinf": unary.isinf, "isnan": unary.isnan, "log": unary.log, "log1p": unary.log1p, "neg": unary.neg,
    "relu": activation.relu, "relu6": activation.relu6, "round": unary.round, "sigmoid": activation.sigmoid, "sin": unary.sin,
    "sinh": unary.sinh, "softsign": activation.softsign, "sqrt": unary.sqrt, "square": unary.square,
    "tan": unary.tan, "tanh": activation.tanh,
}


def _coo(x: Any, name: str = "x") -> COOTensor:
    if not isinstance(x, COOTensor):
        raise TypeError(f"expected a COOTensor as {name}, got {type(x).__name__}.")
    return x


def _csr(x: Any, name: str = "x") -> CSRTensor:
    if not isinstance(x, CSRTensor):
        raise TypeError(f"expected a CSRTensor as {name}, got {type(x).__name__}.")
    return x


def _each(name: str, function: Callable[[Any], Any]) -> None:
    """Build `coo_name` and `csr_name`, which apply `function` to the stored elements."""

    def of_coo(x: COOTensor) -> COOTensor:
        return COOTensor(_coo(x).indices, function(x.values), x.shape)

    def of_csr(x: CSRTensor) -> CSRTensor:
        return _csr(x).with_values(function(x.values))

    for wrapper, kind in ((of_coo, "coo"), (of_csr, "csr")):
        wrapper.__name__ = wrapper.__qualname__ = f"{kind}_{name}"
        wrapper.__doc__ = f"`ops.{name}` of the stored elements; all others stay 0."
        globals()[wrapper.__name__] = FUNCTIONS[wrapper.__name__] = wrapper


FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions of this file in `mindspore.ops`, by name."""

for _name, _function in _OF_ELEMENTS.items():
    _each(_name, _function)


def _offered(function: Callable[..., Any]) -> Callable[..., Any]:
    FUNCTIONS[function.__name__] = function
    return function


def _row_numbers(indptr: T, count: int) -> T:
    """Return the row of each of `count` elements."""
    return torch.searchsorted(indptr.long(), torch.arange(count, device=indptr.device), right=True) - 1


@_offered
def csr2coo(*args: Any) -> Any:
    """Return the rows of `nnz` elements of a CSR matrix: csr2coo(indptr, nnz)."""
    indptr, nnz = args
    return wrap(_row_numbers(raw(indptr), int(nnz)).to(raw(indptr).dtype))


@_offered
def coo2csr(*args: Any) -> Any:
    """Return where each of `height` rows begins among elements sorted by row: coo2csr(row_indices, height)."""
    rows, height = args
    return wrap(_starts(raw(rows), int(height)).to(raw(rows).dtype))


def _starts(rows: T, height: int) -> T:
    return torch.searchsorted(rows.long().contiguous(), torch.arange(height + 1, device=rows.device))


@_offered
def csr_to_coo(tensor: CSRTensor) -> COOTensor:
    """Convert to a COOTensor."""
    columns = raw(_csr(tensor, "tensor").indices)
    rows = _row_numbers(raw(tensor.indptr), columns.shape[0]).to(columns.dtype)
    return COOTensor(wrap(torch.stack([rows, columns], -1)), tensor.values, tensor.shape)


@_offered
def csr_to_dense(csr_tensor: CSRTensor) -> Any:
    """The larger value of each element; unstored elements are 0."""
    columns, values = raw(_csr(csr_tensor, "csr_tensor").indices).long(), raw(csr_tensor.values)
    rows = _row_numbers(raw(csr_tensor.indptr), columns.shape[0])
    out = torch.zeros(csr_tensor.shape, dtype=values.dtype, device=values.device)
    return wrap(out.index_put((rows, columns), values, accumulate=True))


def coo_to_csr(tensor: COOTensor) -> CSRTensor:
    """Convert to a CSRTensor."""
    if len(tensor.shape) != 2:
        raise ValueError(f"expected a matrix, got shape {tensor.shape}.")
    at, values = raw(tensor.indices), raw(tensor.values)
    order = torch.argsort(at[:, 0].long() * tensor.shape[1] + at[:, 1].long(), stable=True)
    at, values = at[order], values[order]
    return CSRTensor(wrap(_starts(at[:, 0], tensor.shape[0]).to(at.dtype)), wrap(at[:, 1].clone()), wrap(values), tensor.shape)


def _summed(at: T, values: T, shape: tuple[int, ...]) -> tuple[T, T]:
    """Sum the values with equal coordinates (n, axes), and sort them."""
    flat = torch.zeros_like(at[:, 0], dtype=torch.int64)
    for axis, length in enumerate(shape):
        flat = flat * length + at[:, axis]
    unique, inverse = torch.unique(flat, return_inverse=True)
    sums = torch.zeros(unique.shape[0], dtype=values.dtype, device=values.device).index_add(0, inverse, values)
    return torch.stack(torch.unravel_index(unique, shape), -1).to(at.dtype), sums


def coo_coalesced(tensor: COOTensor) -> COOTensor:
    """Sum the values with equal coordinates, and sort them."""
    at, sums = _summed(raw(tensor.indices), raw(tensor.values), tensor.shape)
    return COOTensor(wrap(at), wrap(sums), tensor.shape)


@_offered
def coo_add(x1: COOTensor, x2: COOTensor, thresh: Any) -> COOTensor:
    """The sum of two sparse Tensors, without elements with an absolute value below `thresh`."""
    if _coo(x1, "x1").shape != _coo(x2, "x2").shape:
        raise ValueError(f"expected equal shapes, got {x1.shape} and {x2.shape}.")
    at, sums = _summed(torch.cat([raw(x1.indices), raw(x2.indices)]), torch.cat([raw(x1.values), raw(x2.values)]), x1.shape)
    keep = torch.abs(sums) >= (raw(thresh) if isinstance(thresh, TensorBase) else thresh)
    return COOTensor(wrap(at[keep]), wrap(sums[keep]), x1.shape)


def coo_plus(x: COOTensor, other: Any) -> Any:
    """`x + other`: a COOTensor for a COOTensor, a Tensor for a Tensor."""
    if isinstance(other, COOTensor):
        return coo_add(x, other, 0)
    return x.to_dense() + other


def at_stored_positions(other: Any, x: COOTensor) -> Any:
    """Return a number unchanged, or the elements of a Tensor at the stored positions of x."""
    if not isinstance(other, TensorBase):
        return other
    values = raw(other).expand(x.shape)
    return wrap(values[tuple(raw(x.indices).long().unbind(-1))])


@_offered
def coo_concat(sp_input: Any, concat_dim: int = 0) -> COOTensor:
    """Concatenate COOTensors along an axis, with sorted elements."""
    if not isinstance(sp_input, (list, tuple)) or not sp_input:
        raise TypeError(message(f"coo_concat({short(sp_input)})", f"a tuple of COOTensors, got {type(sp_input).__name__}"))
    first = _coo(sp_input[0], "sp_input")
    axis = concat_dim % len(first.shape)
    at, values, start = [], [], 0
    for coo_tensor in sp_input:
        shift = torch.zeros(len(first.shape), dtype=raw(coo_tensor.indices).dtype)
        shift[axis] = start
        at.append(raw(coo_tensor.indices) + shift.to(raw(coo_tensor.indices).device))
        values.append(raw(coo_tensor.values))
        start += coo_tensor.shape[axis]
    shape = tuple(start if i == axis else s for i, s in enumerate(first.shape))
    indices, all_values = torch.cat(at), torch.cat(values)
    flat = torch.zeros_like(indices[:, 0], dtype=torch.int64)
    for i, length in enumerate(shape):
        flat = flat * length + indices[:, i]
    order = torch.argsort(flat, stable=True)
    return COOTensor(wrap(indices[order]), wrap(all_values[order]), shape)


@_offered
def csr_mv(csr_tensor: CSRTensor, dense: Any) -> Any:
    """The product with a vector of shape (columns, 1): shape (rows, 1)."""
    return _times(_csr(csr_tensor, "csr_tensor"), raw(dense))


def _times(a: CSRTensor, dense: T) -> Any:
    columns = raw(a.indices).long()
    rows = _row_numbers(raw(a.indptr), columns.shape[0])
    out = torch.zeros(a.shape[0], dense.shape[-1], dtype=dense.dtype, device=dense.device)
    return wrap(out.index_add(0, rows, raw(a.values).unsqueeze(-1) * dense.index_select(0, columns)))


@_offered
def csr_mm(a: CSRTensor, b: Any, trans_a: bool = False, trans_b: bool = False, adjoint_a: bool = False, adjoint_b: bool = False) -> Any:
    """a @ b for a matrix, or for another CSRTensor, whose product is a CSRTensor; after the requested transpositions."""
    if isinstance(b, CSRTensor):
        first_dense, second_dense = (raw(csr_to_dense(matrix)) for matrix in (a, b))
        return dense_to_sparse_csr(wrap(_turned(first_dense, trans_a, adjoint_a) @ _turned(second_dense, trans_b, adjoint_b)))
    dense = _turned(raw(b), trans_b, adjoint_b)
    if trans_a or adjoint_a:
        return wrap(_turned(raw(csr_to_dense(a)), trans_a, adjoint_a) @ dense)
    return _times(_csr(a, "a"), dense)


def _turned(t: T, transposed: bool, adjoint: bool) -> T:
    return t.mH if adjoint else t.mT if transposed else t


@_offered
def csr_reduce_sum(csr_tensor: CSRTensor, axis: int) -> Any:
    """The sums of the rows (axis 1): shape (rows, 1)."""
    if axis not in (1, 1 - len(_csr(csr_tensor, "csr_tensor").shape)):
        raise ValueError(f"axis={axis}: expected 1, the axis of the elements of a row.")
    values = raw(csr_tensor.values)
    rows = _row_numbers(raw(csr_tensor.indptr), values.shape[0])
    out = torch.zeros(csr_tensor.shape[0], *values.shape[1:], dtype=values.dtype, device=values.device)
    return wrap(out.index_add(0, rows, values).unsqueeze(1))


@_offered
def csr_gather(*args: Any) -> Any:
    """The elements of a dense matrix at the stored positions of a CSR matrix: csr_gather(indptr, indices, dense, sparse_shape)."""
    indptr, indices, dense, _ = args
    columns = raw(indices).long()
    return wrap(raw(dense)[_row_numbers(raw(indptr), columns.shape[0]), columns])


def _values_at(x: CSRTensor, y: Any) -> Any:
    """Return a number unchanged, or the elements of a Tensor, broadcast to x's shape, at the stored positions of x."""
    if not isinstance(y, TensorBase):
        return y
    values = raw(y)
    if not values.ndim or values.numel() == 1:
        return wrap(values.reshape(()))
    columns = raw(x.indices).long()
    return wrap(values.expand(x.shape)[_row_numbers(raw(x.indptr), columns.shape[0]), columns])


@_offered
def csr_mul(x: CSRTensor, y: Any) -> CSRTensor:
    """x times a number or a Tensor that broadcasts to x's shape."""
    return _csr(x).with_values(x.values * _values_at(x, y))


@_offered
def csr_div(x: CSRTensor, y: Any) -> CSRTensor:
    """x divided by a number or a Tensor that broadcasts to x's shape."""
    return _csr(x).with_values(x.values / _values_at(x, y))


@_offered
def csr_add(a: CSRTensor, b: CSRTensor, alpha: Any, beta: Any) -> CSRTensor:
    """alpha * a + beta * b, of equal shapes."""
    if _csr(a, "a").shape != _csr(b, "b").shape:
        raise ValueError(f"expected equal shapes, got {a.shape} and {b.shape}.")
    first, second = csr_to_coo(a), csr_to_coo(b)
    values = torch.cat([raw(first.values * alpha), raw(second.values * beta)])
    at, sums = _summed(torch.cat([raw(first.indices), raw(second.indices)]), values, a.shape)
    return coo_to_csr(COOTensor(wrap(at), wrap(sums), a.shape))


def csr_plus(x: CSRTensor, other: Any) -> CSRTensor:
    """`x + other` of two CSRTensors. Raises TypeError for other values."""
    return csr_add(x, _csr(other, "other"), 1, 1)


@_offered
def csr_softmax(logits: CSRTensor, dtype: Any) -> CSRTensor:
    """exp(x) divided by its sum along each row, over the stored elements."""
    values = raw(_csr(logits, "logits").values).to(as_dtype(dtype))
    rows = _row_numbers(raw(logits.indptr), values.shape[0])
    most = torch.full((logits.shape[0],), -torch.inf, dtype=values.dtype, device=values.device).scatter_reduce(0, rows, values, "amax")
    powers = torch.exp(values - most[rows])
    sums = torch.zeros(logits.shape[0], dtype=values.dtype, device=values.device).index_add(0, rows, powers)
    return logits.with_values(wrap(powers / sums[rows]))


@_offered
def dense_to_sparse_coo(tensor: Any) -> COOTensor:
    """Convert a Tensor to a COOTensor of its nonzero elements (int32 indexes)."""
    at = torch.nonzero(raw(tensor))
    return COOTensor(wrap(at.to(torch.int32)), wrap(raw(tensor)[tuple(at.unbind(-1))]), tuple(raw(tensor).shape))


@_offered
def dense_to_sparse_csr(tensor: Any) -> CSRTensor:
    """Convert a matrix to a CSRTensor of its nonzero elements (int32 indexes)."""
    return coo_to_csr(dense_to_sparse_coo(tensor))


@_offered
def make_coo_tensor(*args: Any) -> COOTensor:
    """COOTensor(indices, values, shape)."""
    return COOTensor(*args)


@_offered
def make_sparse_tensor(indices: Any, values: Any, dense_shape: Any) -> COOTensor:
    """COOTensor(indices, values, dense_shape)."""
    return COOTensor(indices, values, dense_shape)


@_offered
def make_csr_tensor(*args: Any) -> CSRTensor:
    """CSRTensor(indptr, indices, values, shape)."""
    return CSRTensor(*args)


@_offered
def make_row_tensor(indices: Any, values: Any, dense_shape: Any) -> RowTensorInner:
    """RowTensor(indices, values, dense_shape)."""
    return RowTensorInner(indices, values, dense_shape)


@_offered
def make_row_tensor_inner(*args: Any) -> RowTensorInner:
    """RowTensor(indices, values, dense_shape)."""
    return RowTensorInner(*args)


@_offered
def row_tensor_add(*args: Any) -> RowTensorInner:
    """The sum of two RowTensors: the rows of both."""
    first, second = args
    indices = torch.cat([raw(first.indices), raw(second.indices)])
    values = torch.cat([raw(first.values), raw(second.values)])
    return RowTensorInner(wrap(indices), wrap(values), first.dense_shape)


def _reader(name: str, attribute: str, doc: str) -> None:
    def read(*args: Any) -> Any:
        (sparse,) = args
        return getattr(sparse, attribute)

    read.__name__ = read.__qualname__ = name
    read.__doc__ = doc
    globals()[name] = FUNCTIONS[name] = read


for _kind, _attributes in {
    "coo_tensor": {"indices": "indices", "values": "values", "dense_shape": "shape"},
    "csr_tensor": {"indptr": "indptr", "indices": "indices", "values": "values", "dense_shape": "shape"},
    "row_tensor": {"indices": "indices", "values": "values", "dense_shape": "dense_shape"},
}.items():
    for _part, _attribute in _attributes.items():
        _reader(f"{_kind}_get_{_part}", _attribute, f"The {_part.replace('_', ' ')} of a sparse Tensor.")
