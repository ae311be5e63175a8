"""What an operator's schema says of its operands, and what a device refuses of them."""
from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from stand_in.counting import count_transfer, count_wait
from stand_in.memory import NAME, is_on_device

_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"}
"""Operators that take indices of the host for a tensor of the device, and wait for their transfer."""
_WRITING_INDEXED = _INDEXING - {"index", "_unsafe_index"}
_aten = torch.ops.aten
_WAITING = {
    _aten._local_scalar_dense.default, _aten.nonzero.default, _aten.masked_select.default, _aten.equal.default, _aten._unique2.default,
    _aten.is_nonzero.default, _aten.bincount.default, _aten.unique_dim.default, _aten.unique_consecutive.default,
    _aten.unique_dim_consecutive.default, _aten._linalg_check_errors.default, _aten._linalg_eigh.eigenvalues, _aten._linalg_svd.U,
    _aten.linalg_eig.default, _aten._linalg_eigvals.default, _aten.linalg_lstsq.default,
}
"""Operators that need values on the host before Python goes on: numbers, shapes that depend on values, checks of results."""
_NUMBERS_AS_TENSORS = {
    f"{name}{suffix}" for name in ("add", "div", "divide", "mul", "multiply", "sub", "subtract", "true_divide", "floor_divide")
    for suffix in ("", "_")
}
"""Operators that take a Python number where their schema has a tensor; the number does not decide the dtype of the result."""


def with_tensors(operator: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with a tensor for each number that stands where the schema has a tensor.

    torch hands numbers over to a Python kernel as numbers. Those operators that take them so keep torch's promotion of numbers.
    """
    if operator.overloadpacket.__name__ in _NUMBERS_AS_TENSORS or not any(isinstance(v, (int, float, complex)) for v in arguments):
        return arguments
    kinds = [str(argument.type) for argument in operator._schema.arguments]
    return tuple(
        torch.as_tensor(value) if kind in ("Tensor", "Optional[Tensor]") and isinstance(value, (int, float, complex)) else value
        for kind, value in zip(kinds, arguments)
    )


def written_ids(operator: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> set[int]:
    """Return the ids of the tensors that an operator writes."""
    ids: set[int] = set()
    for position, argument in enumerate(operator._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = keywords.get(argument.name) if position >= len(arguments) else arguments[position]
            ids.update(id(leaf) for leaf in pytree.tree_leaves(value))
    return ids


def is_view(operator: Any) -> bool:
    """Return whether an operator's results only show the memory of its operands, so that it reads no values."""
    results = operator._schema.returns
    return bool(results) and all(result.alias_info is not None and not result.alias_info.is_write for result in results)


def needs_values(operator: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Return whether CUDA's kernel needs values on the host before Python goes on."""
    if operator in _WAITING or (torch.Tag.dynamic_output_shape in operator.tags and operator is not _aten.index.Tensor):
        named = _by_name(operator, arguments, keywords)
        return operator is not _aten.repeat_interleave.Tensor or named.get("output_size") is None
    name = operator.overloadpacket.__name__
    if name in _WRITING_INDEXED:                          # a mask becomes indices; torch fills in one number of the host without them
        named = _by_name(operator, arguments, keywords)
        is_number = named["values"].numel() == 1 and not is_on_device(named["values"])
        return not is_number and any(is_on_device(index) and index.dtype in (torch.bool, torch.uint8) for index in named["indices"])
    if name == "multinomial":                             # CUDA's algorithm for draws without replacement checks the sums
        named = _by_name(operator, arguments, keywords)
        return not named.get("replacement") or named["num_samples"] == 1
    if name == "histc":                                   # the bounds of the data are asked for
        named = _by_name(operator, arguments, keywords)
        return bool(named.get("min", 0) == named.get("max", 0))
    return False


def _by_name(operator: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
    return {**{argument.name: value for argument, value in zip(operator._schema.arguments, arguments)}, **keywords}


def check_devices(operator: Any, arguments: Any, keywords: Any) -> None:
    """Refuse operands on different devices, as a GPU does. A tensor of the host without dimensions may stand for a number.

    Raises:
        RuntimeError: an operand with dimensions is on another device. Indices may be on the host; Python waits for their transfer.
    """
    device = None
    for tensor in pytree.tree_leaves((arguments, keywords)):
        if not isinstance(tensor, torch.Tensor):
            continue
        if is_on_device(tensor):
            if device is not None and tensor.device != device:
                raise RuntimeError(_different_devices(device, tensor.device))
            device = tensor.device
        elif tensor.dim():
            if operator.overloadpacket.__name__ not in _INDEXING:
                raise RuntimeError(_different_devices(f"{NAME}:0", tensor.device))
            count_transfer("to_device")
            count_wait("indices of the host")


def _different_devices(first: Any, second: Any) -> str:
    return f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!"
