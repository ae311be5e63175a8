"""Operators on COOTensor and CSRTensor: functions of each element, sums, products, and one form made of the other."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message, short
from torchspore.engine.core.tensor import TensorBase, raw, wrap
from torchspore.mindspore.common.sparse_tensor import COOTensor, CSRTensor, RowTensorInner
from torchspore.mindspore.ops import activation, elementwise, special
from torchspore.mindspore.ops.activation import as_dtype

T = torch.Tensor

_OF_ELEMENTS: dict[str, Callable[[Any], Any]] = {
    "abs": elementwise.abs, "acos": elementwise.acos, "acosh": elementwise.acosh, "asin": elementwise.asin, "asinh": elementwise.asinh,
    "atan": elementwise.atan, "atanh": elementwise.atanh, "ceil": elementwise.ceil, "cos": elementwise.cos, "cosh": elementwise.cosh,
    "exp": elementwise.exp, "expm1": elementwise.expm1, "floor": elementwise.floor, "inv": special.inv, "isfinite": elementwise.isfinite,
    "isinf": elementwise.isinf, "isnan": elementwise.isnan, "log": elementwise.log, "log1p": elementwise.log1p, "neg": elementwise.neg,
    "relu": activation.relu, "relu6": activation.relu6, "round": elementwise.round, "sigmoid": activation.sigmoid, "sin": elementwise.sin,
    "sinh": elementwise.sinh, "softsign": activation.softsign, "sqrt": elementwise.sqrt, "square": elementwise.square,
    "tan": elementwise.tan, "tanh": activation.tanh,
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
    """Makes `coo_name` and `csr_name`, which apply `function` to the elements that are kept."""

    def of_coo(x: COOTensor) -> COOTensor:
        return COOTensor(_coo(x).indices, function(x.values), x.shape)

    def of_csr(x: CSRTensor) -> CSRTensor:
        return _csr(x).with_values(function(x.values))

    for made, kind in ((of_coo, "coo"), (of_csr, "csr")):
        made.__name__ = made.__qualname__ = f"{kind}_{name}"
        made.__doc__ = f"`ops.{name}` of the elements that are kept; all others stay 0."
        globals()[made.__name__] = FUNCTIONS[made.__name__] = made


FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions that `mindspore.ops` has of these, by name."""

for _name, _function in _OF_ELEMENTS.items():
    _each(_name, _function)


def _offered(function: Callable[..., Any]) -> Callable[..., Any]:
    FUNCTIONS[function.__name__] = function
    return function


def _row_numbers(indptr: T, count: int) -> T:
    """The row of each of `count` elements."""
    return torch.searchsorted(indptr.long(), torch.arange(count, device=indptr.device), right=True) - 1


@_offered
def csr2coo(*args: Any) -> Any:
    """The rows of `nnz` elements of a matrix in rows: csr2coo(indptr, nnz)."""
    indptr, nnz = args
    return wrap(_row_numbers(raw(indptr), int(nnz)).to(raw(indptr).dtype))


@_offered
def coo2csr(*args: Any) -> Any:
    """Where each of `height` rows begins among elements sorted by row: coo2csr(row_indices, height)."""
    rows, height = args
    return wrap(_starts(raw(rows), int(height)).to(raw(rows).dtype))


def _starts(rows: T, height: int) -> T:
    return torch.searchsorted(rows.long().contiguous(), torch.arange(height + 1, device=rows.device))


@_offered
def csr_to_coo(tensor: CSRTensor) -> COOTensor:
    """The same matrix by the coordinates of its elements."""
    columns = raw(_csr(tensor, "tensor").indices)
    rows = _row_numbers(raw(tensor.indptr), columns.shape[0]).to(columns.dtype)
    return COOTensor(wrap(torch.stack([rows, columns], -1)), tensor.values, tensor.shape)


@_offered
def csr_to_dense(csr_tensor: CSRTensor) -> Any:
    """The larger value, zeros where nothing is kept."""
    columns, values = raw(_csr(csr_tensor, "csr_tensor").indices).long(), raw(csr_tensor.values)
    rows = _row_numbers(raw(csr_tensor.indptr), columns.shape[0])
    out = torch.zeros(csr_tensor.shape, dtype=values.dtype, device=values.device)
    return wrap(out.index_put((rows, columns), values, accumulate=True))


def coo_to_csr(tensor: COOTensor) -> CSRTensor:
    """The same matrix in rows."""
    if len(tensor.shape) != 2:
        raise ValueError(f"expected a matrix, got shape {tensor.shape}.")
    at, values = raw(tensor.indices), raw(tensor.values)
    order = torch.argsort(at[:, 0].long() * tensor.shape[1] + at[:, 1].long(), stable=True)
    at, values = at[order], values[order]
    return CSRTensor(wrap(_starts(at[:, 0], tensor.shape[0]).to(at.dtype)), wrap(at[:, 1].clone()), wrap(values), tensor.shape)


def _summed(at: T, values: T, shape: tuple[int, ...]) -> tuple[T, T]:
    """Coordinates (n, axes) and values with each place once, in order."""
    place = torch.zeros_like(at[:, 0], dtype=torch.int64)
    for axis, length in enumerate(shape):
        place = place * length + at[:, axis]
    unique, inverse = torch.unique(place, return_inverse=True)
    sums = torch.zeros(unique.shape[0], dtype=values.dtype, device=values.device).index_add(0, inverse, values)
    return torch.stack(torch.unravel_index(unique, shape), -1).to(at.dtype), sums


def coo_coalesced(tensor: COOTensor) -> COOTensor:
    """The same value with each place once, in order."""
    at, sums = _summed(raw(tensor.indices), raw(tensor.values), tensor.shape)
    return COOTensor(wrap(at), wrap(sums), tensor.shape)


@_offered
def coo_add(x1: COOTensor, x2: COOTensor, thresh: Any) -> COOTensor:
    """The sum of two, without elements whose size is below `thresh`."""
    if _coo(x1, "x1").shape != _coo(x2, "x2").shape:
        raise ValueError(f"expected equal shapes, got {x1.shape} and {x2.shape}.")
    at, sums = _summed(torch.cat([raw(x1.indices), raw(x2.indices)]), torch.cat([raw(x1.values), raw(x2.values)]), x1.shape)
    keep = torch.abs(sums) >= (raw(thresh) if isinstance(thresh, TensorBase) else thresh)
    return COOTensor(wrap(at[keep]), wrap(sums[keep]), x1.shape)


def coo_plus(x: COOTensor, other: Any) -> Any:
    """`x + other`: with another COOTensor one again, with a Tensor a Tensor."""
    if isinstance(other, COOTensor):
        return coo_add(x, other, 0)
    return x.to_dense() + other


def at_places(other: Any, x: COOTensor) -> Any:
    """A number as it is, or the elements of a Tensor at the places that x keeps."""
    if not isinstance(other, TensorBase):
        return other
    values = raw(other).expand(x.shape)
    return wrap(values[tuple(raw(x.indices).long().unbind(-1))])


@_offered
def coo_concat(sp_input: Any, concat_dim: int = 0) -> COOTensor:
    """COOTensors one after the other along an axis, their elements in order."""
    if not isinstance(sp_input, (list, tuple)) or not sp_input:
        raise TypeError(message(f"coo_concat({short(sp_input)})", f"a tuple of COOTensors, got {type(sp_input).__name__}"))
    first = _coo(sp_input[0], "sp_input")
    axis = concat_dim % len(first.shape)
    at, values, start = [], [], 0
    for one in sp_input:
        shift = torch.zeros(len(first.shape), dtype=raw(one.indices).dtype)
        shift[axis] = start
        at.append(raw(one.indices) + shift.to(raw(one.indices).device))
        values.append(raw(one.values))
        start += one.shape[axis]
    shape = tuple(start if i == axis else s for i, s in enumerate(first.shape))
    places, kept = torch.cat(at), torch.cat(values)
    flat = torch.zeros_like(places[:, 0], dtype=torch.int64)
    for i, length in enumerate(shape):
        flat = flat * length + places[:, i]
    order = torch.argsort(flat, stable=True)
    return COOTensor(wrap(places[order]), wrap(kept[order]), shape)


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
    """a @ b with a matrix, or with another CSRTensor, which gives one; each transposed (or conjugated too) first if so asked."""
    if isinstance(b, CSRTensor):
        left, right = (raw(csr_to_dense(one)) for one in (a, b))
        return dense_to_sparse_csr(wrap(_turned(left, trans_a, adjoint_a) @ _turned(right, trans_b, adjoint_b)))
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
        raise ValueError(f"axis={axis}: expected 1, along which rows are kept together.")
    values = raw(csr_tensor.values)
    rows = _row_numbers(raw(csr_tensor.indptr), values.shape[0])
    out = torch.zeros(csr_tensor.shape[0], *values.shape[1:], dtype=values.dtype, device=values.device)
    return wrap(out.index_add(0, rows, values).unsqueeze(1))


@_offered
def csr_gather(*args: Any) -> Any:
    """The elements of a dense matrix at the places of a matrix in rows: csr_gather(indptr, indices, dense, sparse_shape)."""
    indptr, indices, dense, _ = args
    columns = raw(indices).long()
    return wrap(raw(dense)[_row_numbers(raw(indptr), columns.shape[0]), columns])


def _beside(x: CSRTensor, y: Any) -> Any:
    """A number as it is, or the elements of a Tensor, stretched to x's shape, at the places that x keeps."""
    if not isinstance(y, TensorBase):
        return y
    values = raw(y)
    if not values.ndim or values.numel() == 1:
        return wrap(values.reshape(()))
    columns = raw(x.indices).long()
    return wrap(values.expand(x.shape)[_row_numbers(raw(x.indptr), columns.shape[0]), columns])


@_offered
def csr_mul(x: CSRTensor, y: Any) -> CSRTensor:
    """x times a number or a Tensor whose shape stretches to x's."""
    return _csr(x).with_values(x.values * _beside(x, y))


@_offered
def csr_div(x: CSRTensor, y: Any) -> CSRTensor:
    """x divided by a number or a Tensor whose shape stretches to x's."""
    return _csr(x).with_values(x.values / _beside(x, y))


@_offered
def csr_add(a: CSRTensor, b: CSRTensor, alpha: Any, beta: Any) -> CSRTensor:
    """alpha * a + beta * b, of one shape."""
    if _csr(a, "a").shape != _csr(b, "b").shape:
        raise ValueError(f"expected equal shapes, got {a.shape} and {b.shape}.")
    first, second = csr_to_coo(a), csr_to_coo(b)
    values = torch.cat([raw(first.values * alpha), raw(second.values * beta)])
    at, sums = _summed(torch.cat([raw(first.indices), raw(second.indices)]), values, a.shape)
    return coo_to_csr(COOTensor(wrap(at), wrap(sums), a.shape))


def csr_plus(x: CSRTensor, other: Any) -> CSRTensor:
    """`x + other`, of two CSRTensors. Raises TypeError for anything else."""
    return csr_add(x, _csr(other, "other"), 1, 1)


@_offered
def csr_softmax(logits: CSRTensor, dtype: Any) -> CSRTensor:
    """exp(x) divided by its sum along each row, of the elements that are kept."""
    values = raw(_csr(logits, "logits").values).to(as_dtype(dtype))
    rows = _row_numbers(raw(logits.indptr), values.shape[0])
    most = torch.full((logits.shape[0],), -torch.inf, dtype=values.dtype, device=values.device).scatter_reduce(0, rows, values, "amax")
    powers = torch.exp(values - most[rows])
    sums = torch.zeros(logits.shape[0], dtype=values.dtype, device=values.device).index_add(0, rows, powers)
    return logits.with_values(wrap(powers / sums[rows]))


@_offered
def dense_to_sparse_coo(tensor: Any) -> COOTensor:
    """The elements of a Tensor that are not zero, with their coordinates (int32)."""
    at = torch.nonzero(raw(tensor))
    return COOTensor(wrap(at.to(torch.int32)), wrap(raw(tensor)[tuple(at.unbind(-1))]), tuple(raw(tensor).shape))


@_offered
def dense_to_sparse_csr(tensor: Any) -> CSRTensor:
    """The elements of a matrix that are not zero, in rows (int32)."""
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
    one, other = args
    return RowTensorInner(
        wrap(torch.cat([raw(one.indices), raw(other.indices)])), wrap(torch.cat([raw(one.values), raw(other.values)])), one.dense_shape,
    )


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
