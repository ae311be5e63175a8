"""Transforms of functions apart from gradients: `vmap`, products with Jacobians, Jacobians, higher derivatives."""
from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from torchspore.base.text import message, with_type
from torchspore.engine.autograd import integer_gradients, jacobians
from torchspore.engine.autograd.grad import GradientInside
from torchspore.engine.autograd.gradient_frame import cut
from torchspore.engine.execution import thread_state
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase, is_recording, raw, tensors, transform, wrap, wrap_all
from torchspore.engine.tensors.torch_interop import entered
from torchspore.engine.torch_internals import torch_private
from torchspore.graph import forward_cache
from torchspore.mindspore.ops.gradients.gradient import GradOperation, named_after

T = torch.Tensor


class _Plain:
    """A user function as a function of torch tensors: those of `example`'s Tensors in, those of the result's Tensors out, in order."""

    def __init__(self, fn: Callable[..., Any], example: tuple[Any, ...]) -> None:
        self.fn, self.example = fn, example
        self.result: Any = None

    def _of(self, *values: T) -> tuple[T, ...]:
        result = entered(thread_state.in_pynative(self.fn, _filled(self.example, values), {}))
        self.result = transform(result, lambda tensor: tensor)
        return tuple(raw(tensor) for tensor in tensors(result))

    def shaped(self, values: Any) -> Any:
        """Return the values in the structure of the last result."""
        return _filled(self.result, list(values))


def _filled(structure: Any, values: Any) -> Any:
    """Replace the Tensors of `structure`, in order, by these torch tensors."""
    rest = iter(values)
    return transform(structure, lambda _: wrap(next(rest)))


def _inputs(inputs: Any) -> tuple[Any, ...]:
    return inputs if isinstance(inputs, tuple) else (inputs,)


def check_structure(name: str, expected: Any, v: Any) -> None:
    """Raises TypeError for a vector that is a tuple where the Tensor, or a Tensor where the tuple, of its structure is required."""
    is_tuple = isinstance(expected, (tuple, list))
    if is_tuple != isinstance(v, (tuple, list)) and not (is_tuple and len(expected) == 1):
        raise TypeError(message(f"{name}(v={type(v).__name__})", with_type("a tuple of Tensors" if is_tuple else "a Tensor", v)))


def _check_dtypes(values: Any, tangents: Any) -> None:
    """Raises TypeError for vectors of other dtypes than the inputs."""
    for value, tangent in zip(values, tangents):
        if value.dtype != tangent.dtype:
            raise TypeError(f"jvp: expected v with the dtypes of the inputs, got {tangent.dtype} for an input of {value.dtype}.")


def _check(name: str, fn: Any) -> None:
    if not callable(fn):
        raise TypeError(message(f"{name}({fn!r:.40})", "a function or a Cell"))


def _check_real(name: str, values: Any) -> None:
    """Raises TypeError for integers and bools: forward differentiation has no gradient for them."""
    for value in values:
        if not value.is_floating_point() and not value.is_complex():
            kind = repr(FROM_TORCH[value.dtype])
            hint = "ms.grad, ms.vjp and ms.jvp take integers; or cast them, with astype(mindspore.float32)"
            raise TypeError(message(f"{name}(inputs of {kind})", "floating-point Tensors", hint=hint))


def vmap(fn: Any, in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return a function that runs `fn` for each slice of its arguments along `in_axes` and stacks the results along `out_axes`.

    An axis is an int, None for a value that all slices share, or a tuple of these in the structure of the arguments or results. A CellList
    (or a list or tuple) of Cells is an ensemble: each gets a separate slice, and stores what it writes in its Parameters.
    """
    if isinstance(fn, (list, tuple)) or type(fn).__name__ == "CellList":
        return _ensemble(list(fn), in_axes, out_axes)
    _check("vmap", fn)

    @named_after(fn)
    def mapped(*args: Any) -> Any:
        axes = _axes(in_axes, args, "in_axes")
        if all(axis is None for axis in axes):
            raise ValueError("vmap: expected an axis in in_axes for at least one argument.")
        plain = _Plain(fn, args)
        values = [raw(tensor) for tensor in tensors(args)]
        try:
            results = list(torch.vmap(plain._of, tuple(axes), randomness="different")(*values))
        except RuntimeError as error:
            text = str(error)
            if not isinstance(error, GradientInside) and "inside of a function being transformed" not in text and "vmap" not in text:
                raise
            results = _map_by_slices(plain, values, axes)     # torch cannot map this function
        ends = _axes(out_axes, plain.result, "out_axes")
        mapped_result = plain.shaped([result[0] if end is None else result.movedim(0, end) for result, end in zip(results, ends)])
        return _repeated(mapped_result, out_axes, _length(values, axes))

    return mapped


def _ensemble(cells: list[Any], in_axes: Any, out_axes: Any) -> Callable[..., Any]:
    """Return `vmap` of several Cells: cell i runs on slice i."""
    if len(cells) < 2 or not all(hasattr(cell, "construct") for cell in cells):
        raise TypeError(f"vmap of a list of {len(cells)}: expected two Cells or more.")

    def mapped(*args: Any) -> Any:
        values = list(tensors(args))
        axes = _axes(in_axes, args, "in_axes")
        for value, axis in zip(values, axes):
            if axis is not None and value.shape[axis] != len(cells):
                raise ValueError(f"vmap of {len(cells)} Cells: expected as many slices along axis {axis}, got shape {value.shape}.")
        results = []
        for index, cell in enumerate(cells):
            cell_inputs = [value if axis is None else wrap(raw(value).select(axis, index)) for value, axis in zip(values, axes)]
            results.append(entered(cell(*_filled(args, [raw(cell_input) for cell_input in cell_inputs]))))
        ends = _axes(out_axes, results[0], "out_axes")
        columns = zip(*[[raw(tensor) for tensor in tensors(result)] for result in results])
        stacked = [column[0] if end is None else torch.stack(column, end) for column, end in zip(columns, ends)]
        return _repeated(_filled(results[0], stacked), out_axes, len(cells))

    return mapped


def _length(values: list[T], axes: list[int | None]) -> int:
    """Return the number of slices."""
    return next(value.shape[axis] for value, axis in zip(values, axes) if axis is not None)


def _repeated(result: Any, axes: Any, length: int) -> Any:
    """Repeat Python numbers in `result` that have an axis: they are the result for each slice."""
    if isinstance(result, (tuple, list)):
        part_axes = axes if isinstance(axes, (tuple, list)) else [axes] * len(result)
        return type(result)(_repeated(part, axis, length) for part, axis in zip(result, part_axes))
    if axes is None or isinstance(result, TensorBase) or not isinstance(result, (int, float)):
        return result
    return wrap(torch.full((length,), result))


def _map_by_slices(plain: _Plain, values: list[T], axes: list[int | None]) -> list[T]:
    length = _length(values, axes)
    rows = [plain._of(*[v if a is None else v.select(a, i) for v, a in zip(values, axes)]) for i in range(length)]
    return [torch.stack(parts) for parts in zip(*rows)]


def _axes(axes: Any, structure: Any, name: str) -> list[int | None]:
    """Return one axis for each Tensor of `structure`: `axes` is one for all, or a tuple in its structure."""
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return [axes for _ in tensors(structure)]
    if not isinstance(axes, (tuple, list)):
        raise TypeError(f"vmap({name}={axes!r:.40}): expected an int, None or a tuple of these.")
    if not isinstance(structure, (tuple, list)) or len(axes) != len(structure):
        count = len(structure) if isinstance(structure, (tuple, list)) else 1
        raise ValueError(f"vmap({name}={axes!r:.40}): expected one axis for each of {count} values.")
    return [part_axis for axis, part in zip(axes, structure) for part_axis in _axes(axis, part, name)]


@functools.cache
def _load_forward_mode() -> None:
    """Make torch load its rules of forward differentiation, which warn about deprecated parts of torch, before the first use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.func.jvp(torch.sin, (torch.zeros(()),), (torch.zeros(()),))


def jvp(fn: Any, inputs: Any, v: Any, has_aux: bool = False) -> Any:
    """Return the result of `fn` and the product of its Jacobian with the vector v, in the structure of the result.

    With `has_aux` only the first result is differentiated; the others follow unchanged.
    """
    _check("jvp", fn)
    args = _inputs(inputs)
    check_structure("jvp", inputs, v)
    plain = _Plain(fn, args)
    tangents = [raw(tensor) for tensor in tensors(_inputs(v))]
    values = [raw(tensor) for tensor in tensors(args)]
    if len(tangents) != len(values):
        raise ValueError(f"jvp: expected as many Tensors in v as in inputs, which are {len(values)}, got {len(tangents)}.")
    _check_dtypes(values, tangents)
    _load_forward_mode()
    typed_tangents = tuple(t.to(_real(x).dtype) for t, x in zip(tangents, values))
    try:
        outputs, products = _pushed(plain._of, tuple(map(_real, values)), typed_tangents)
        if any(_real(value) is not value for value in values):
            outputs = plain._of(*values)
            products = _like(products, outputs)
        result = plain.shaped(outputs)
    except GradientInside:
        result, products = jacobians.product(_in_pynative(fn), args, tangents, has_aux)
    if not has_aux:
        return result, _filled(result, products)
    first = sum(1 for _ in tensors(result[0]))
    return (result[0], _filled(result[0], products[:first]), *result[1:])


def _real(value: T) -> T:
    """Convert integers and bools to float64, which supports tangents in forward differentiation."""
    return value if value.is_floating_point() or value.is_complex() else value.double()


def _like(products: Any, outputs: Any) -> Any:
    """Return the products in the dtypes of their results."""
    leaves = iter(_leaves(outputs))
    return tree.mapped(products, lambda product: product.to(next(leaves).dtype))


def _leaves(outputs: Any) -> list[T]:
    leaves: list[T] = []
    tree.mapped(outputs, leaves.append)
    return leaves


def _in_pynative(fn: Any) -> Callable[..., Any]:
    return lambda *arguments: thread_state.in_pynative(fn, arguments, {})


def _pushed(function: Any, values: tuple[T, ...], tangents: tuple[T, ...]) -> tuple[Any, Any]:
    """Return (the results, the Jacobian times the tangents), by forward differentiation if possible."""
    try:
        with integer_gradients.forward():
            results: tuple[Any, Any] = torch.func.jvp(function, values, tangents)  # type: ignore[misc]
            return results
    except integer_gradients.NeedsReverse:
        return _product(function, values, tangents)


def _product(function: Any, values: tuple[T, ...], tangents: tuple[T, ...]) -> tuple[Any, Any]:
    """Return (the results, the Jacobian times the tangents), by reverse differentiation of reverse differentiation."""
    with torch_private.without_saved_hooks(), integer_gradients.Block():
        outputs, pull = torch.func.vjp(function, *values)
        zeros = tree.mapped(outputs, torch.zeros_like)
        _, push = torch.func.vjp(pull, zeros)
        return outputs, push(tangents)[0]


def vjp(fn: Any, *inputs: Any, weights: Any = None, has_aux: bool = False) -> Any:
    """Return the result of `fn`, and a function that multiplies a vector by the Jacobian for the inputs (a tuple) and `weights`.

    With `has_aux` only the first result is differentiated; the others follow after the function. In PyNative mode the first product uses
    the forward pass of this call, as in MindSpore; later products run it again.
    """
    _check("vjp", fn)
    for value in inputs:
        if isinstance(value, (int, float)):
            raise TypeError(message(f"vjp(inputs={value!r})", with_type("Tensors", value)))
    aux: list[Any] = []

    @named_after(fn)
    def first(*args: Any) -> Any:
        result = fn(*args)
        aux[:] = result[1:]
        return result[0]

    result, differentiated, as_recorded = forward_cache.call_recorded(first if has_aux else fn, inputs)
    if not is_recording():
        cut(aux)
    others = tuple(aux)

    def product(*sens: Any) -> Any:
        cotangents = sens[0] if len(sens) == 1 else sens
        check_structure("vjp", result, cotangents)
        with as_recorded():
            if weights is None:
                return GradOperation(get_all=True, sens_param=True)(differentiated)(*inputs, cotangents)
            return GradOperation(get_all=True, get_by_list=True, sens_param=True)(differentiated, weights)(*inputs, cotangents)

    return result, product, *others


def linearize(fn: Any, inputs: Any) -> Any:
    """Return the result of `fn`, and the function that multiplies its Jacobian at `inputs` by a vector."""
    _check("linearize", fn)
    return entered(fn(*_inputs(inputs))), lambda v: jvp(fn, inputs, v)[1]


def jacfwd(fn: Any, grad_position: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `fn` for the inputs at `grad_position`, column by column (for few inputs)."""
    return _jacobian("jacfwd", torch.func.jacfwd, fn, grad_position, has_aux)


def jacrev(fn: Any, grad_position: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `fn` for the inputs at `grad_position`, row by row (for few outputs)."""
    return _jacobian("jacrev", torch.func.jacrev, fn, grad_position, has_aux)


def _rows_of(compute: Any, function: Any, count: int, values: tuple[T, ...]) -> Any:
    """Return the Jacobians of `function` for its first `count` arguments, forward if `compute` requests that and it is possible."""
    is_forward = compute is torch.func.jacfwd
    with torch_private.without_saved_hooks(), integer_gradients.Block():     # these hooks belong to memory_offload and recomputed Cells
        try:
            with integer_gradients.forward() if is_forward else nullcontext():
                return compute(function, argnums=tuple(range(count)))(*values)
        except integer_gradients.NeedsReverse:
            return torch.func.jacrev(function, argnums=tuple(range(count)))(*values)


def _jacobian(name: str, compute: Any, fn: Any, grad_position: Any, has_aux: bool) -> Callable[..., Any]:
    _check(name, fn)
    alone = isinstance(grad_position, int) and not isinstance(grad_position, bool)
    positions = (grad_position,) if alone else grad_position
    if not isinstance(positions, tuple) or not all(isinstance(p, int) and p >= 0 for p in positions):
        raise TypeError(f"{name}(grad_position={grad_position!r:.40}): expected an int from 0 on or a tuple of them.")

    @named_after(fn)
    def jacobian(*args: Any) -> Any:
        if max(positions) >= len(args):
            raise ValueError(f"{name}(grad_position={grad_position}): expected positions below {len(args)}, the number of arguments.")
        aux_results: list[Any] = []

        def plain(*values: T) -> Any:
            all_arguments = list(args)
            for position, value in zip(positions, values):
                all_arguments[position] = wrap(value)
            result = entered(thread_state.in_pynative(fn, tuple(all_arguments), {}))
            if has_aux:
                aux_results[:] = [transform(result[1:], lambda t: wrap(raw(t).detach()))]
                result = result[0]
            return tree.mapped(result, _lowered)

        values = tuple(raw(args[position]) for position in positions)
        _check_real(name, values)
        _load_forward_mode()
        try:
            nested = wrap_all(_rows_of(compute, plain, len(positions), values))
        except GradientInside:
            result, by_rows = jacobians.rows(_in_pynative(fn), args, positions, has_aux)
            aux_results[:] = [result[1:]] if has_aux else []
            row_iterator = iter(by_rows)
            nested = tree.mapped(result[0] if has_aux else result,
                                lambda leaf: tuple(map(wrap, next(row_iterator))) if isinstance(leaf, TensorBase) else leaf)
        nested = _without_tuples(nested, len(positions)) if alone else nested
        if has_aux:
            aux = transform(aux_results[0], lambda t: wrap(torch_private.outside_of_transforms(raw(t))))
            return (nested, *aux)
        return nested

    return jacobian


def _lowered(leaf: Any) -> Any:
    return raw(leaf) if isinstance(leaf, TensorBase) else leaf


def _without_tuples(nested: Any, count: int) -> Any:
    """Return Jacobians for one input without the tuples of one element."""
    if isinstance(nested, tuple) and len(nested) == count == 1 and isinstance(nested[0], TensorBase):
        return nested[0]
    return tuple(_without_tuples(item, count) for item in nested) if isinstance(nested, tuple) else nested


def derivative(fn: Any, primals: Any, order: int) -> Any:
    """Return the result of `fn` and its derivative of `order` in the direction of ones: `jet` for the series 1, 0, 0, …"""
    _check("derivative", fn)
    if not isinstance(order, int) or isinstance(order, bool) or order < 1:
        raise ValueError(message(f"derivative(order={order!r:.40})", "an int from 1 on"))
    args = _inputs(primals)
    series = [[torch.ones_like(raw(tensor)) if k == 0 else torch.zeros_like(raw(tensor)) for k in range(order)] for tensor in tensors(args)]
    plain, outputs, derivatives = _taylor(fn, args, series)
    return plain.shaped(outputs), plain.shaped(derivatives[-1])


def jet(fn: Any, primals: Any, series: Any) -> Any:
    """Return the result of `fn` and its derivatives 1, 2, … by t for inputs with the derivatives `series`, along a new axis 0."""
    _check("jet", fn)
    args = _inputs(primals)
    coefficients = [list(raw(tensor).unbind(0)) for tensor in tensors(_inputs(series))]
    plain, outputs, derivatives = _taylor(fn, args, coefficients)
    return plain.shaped(outputs), plain.shaped([torch.stack(parts) for parts in zip(*derivatives)])


def _taylor(fn: Any, args: tuple[Any, ...], series: list[list[T]]) -> tuple[_Plain, Any, list[Any]]:
    """Evaluate `fn` along the curve whose derivatives at 0 are `series`: its values there and its derivatives from the first on."""
    plain = _Plain(fn, args)
    starts = [raw(tensor) for tensor in tensors(args)]
    order = len(series[0])

    def along(t: T) -> tuple[T, ...]:
        return plain._of(*[
            start + sum(part * t ** (k + 1) / math.factorial(k + 1) for k, part in enumerate(parts)) for start, parts in zip(starts, series)
        ])

    def derived(function: Callable[[T], Any]) -> Callable[[T], Any]:
        return lambda t: torch.func.jvp(function, (t,), (torch.ones_like(t),))[1]

    _load_forward_mode()
    zero = torch.zeros((), dtype=starts[0].dtype, device=starts[0].device)
    outputs, derivatives = along(zero), []
    function: Callable[[T], Any] = along
    for _ in range(order):
        function = derived(function)
        derivatives.append(function(zero))
    plain._of(*starts)                                # records the structure of the result, outside every transform
    return plain, outputs, derivatives
