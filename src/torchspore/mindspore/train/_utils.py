"""Helpers of MindSpore's training that programs call: Tensors for datasets' shapes, checks, folders."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.common.dtype import dtype_to_nptype, pytype_to_dtype
from torchspore.mindspore.common.tensor import Tensor
from torchspore.public_names import missing


def _construct_tensor_list(types: Any, shapes: Any, batch_expand_num: int = 1) -> list[Tensor]:
    """Return a Tensor of zeros for each dtype and shape, whose first axis is `batch_expand_num` times as long.

    Raises ValueError if the numbers of shapes and dtypes differ.
    """
    if len(types) != len(shapes):
        raise ValueError(message(f"_construct_tensor_list of {len(types)} dtypes and {len(shapes)} shapes", "as many shapes as dtypes"))
    tensors = []
    for dtype, shape in zip(types, shapes):
        sizes = [size * batch_expand_num if axis == 0 else size for axis, size in enumerate(shape)]
        tensors.append(Tensor(np.zeros(sizes, dtype_to_nptype(dtype)), dtype))
    return tensors


def _construct_input_tensors(dataset_types: Any, dataset_shapes: Any, device_number: int = 1) -> tuple[list[Tensor], list[Tensor]]:
    """Return the Tensors of one device, and of all `device_number` devices."""
    return _construct_tensor_list(dataset_types, dataset_shapes), _construct_tensor_list(dataset_types, dataset_shapes, device_number)


def _convert_type(types: Any) -> list[Any]:
    """Return the MindSpore dtypes of NumPy dtypes."""
    return [pytype_to_dtype(np.dtype(numpy_type).type) for numpy_type in types]


def _get_types_and_shapes(dataset: Any) -> tuple[list[Any], list[Any]]:
    """Return the dtypes and the shapes of a dataset's columns."""
    return _convert_type(dataset.output_types()), dataset.output_shapes()


def _to_tensor(elem: Any, scaling_sens: Any = None) -> Any:
    """Convert the arrays of a tuple or list to Tensors (a single one without a tuple), followed by the number `scaling_sens` if present."""
    tensors = [Tensor(array) for array in (elem if isinstance(elem, (tuple, list)) else [elem])]
    if scaling_sens is not None:
        tensors.append(Tensor(np.float32(scaling_sens)))
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _transfer_tensor_to_tuple(inputs: Any) -> Any:
    """Return a Tensor in a tuple; anything else unchanged."""
    return (inputs,) if isinstance(inputs, Tensor) else inputs


def _make_directory(path: str, arg_name: str = "path") -> str:
    """Return the absolute path of a folder, created if it is missing. Raises TypeError if the path is not a str."""
    if not isinstance(path, str) or not path:
        raise TypeError(message(f"{arg_name}={short(path)}", "the path of a folder"))
    folder = Path(path).expanduser().absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def check_value_type(arg_name: str, arg_value: Any, valid_types: Any) -> None:
    """Raises TypeError unless `arg_value` is of one of the Python types; a bool is not an int."""
    kinds = tuple(valid_types) if isinstance(valid_types, (list, tuple)) else (valid_types,)
    if not isinstance(arg_value, kinds) or (isinstance(arg_value, bool) and bool not in kinds):
        words = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(message(f"{arg_name}={short(arg_value)}", f"{words}, got {type(arg_value).__name__}"))


__getattr__ = missing(__name__)
