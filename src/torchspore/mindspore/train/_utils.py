"""Small helpers of MindSpore's training that programs call: Tensors for datasets' shapes, checks, folders."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.common.dtype import dtype_to_nptype, pytype_to_dtype
from torchspore.mindspore.common.tensor import Tensor
from torchspore.names import missing


def _construct_tensor_list(types: Any, shapes: Any, batch_expand_num: int = 1) -> list[Tensor]:
    """A Tensor of zeros for each dtype and shape, whose first axis is `batch_expand_num` times as long.

    Raises ValueError where there are not as many shapes as dtypes.
    """
    if len(types) != len(shapes):
        raise ValueError(message(f"_construct_tensor_list of {len(types)} dtypes and {len(shapes)} shapes", "as many shapes as dtypes"))
    made = []
    for dtype, shape in zip(types, shapes):
        sizes = [size * batch_expand_num if axis == 0 else size for axis, size in enumerate(shape)]
        made.append(Tensor(np.zeros(sizes, dtype_to_nptype(dtype)), dtype))
    return made


def _construct_input_tensors(dataset_types: Any, dataset_shapes: Any, device_number: int = 1) -> tuple[list[Tensor], list[Tensor]]:
    """The Tensors of one device, and of all of `device_number` together."""
    return _construct_tensor_list(dataset_types, dataset_shapes), _construct_tensor_list(dataset_types, dataset_shapes, device_number)


def _convert_type(types: Any) -> list[Any]:
    """The dtypes of NumPy's."""
    return [pytype_to_dtype(np.dtype(one).type) for one in types]


def _get_types_and_shapes(dataset: Any) -> tuple[list[Any], list[Any]]:
    """The dtypes and the shapes of a dataset's columns."""
    return _convert_type(dataset.output_types()), dataset.output_shapes()


def _to_tensor(elem: Any, scaling_sens: Any = None) -> Any:
    """The arrays of a tuple or list as Tensors (one alone by itself), and the number `scaling_sens` behind where it is given."""
    made = [Tensor(array) for array in (elem if isinstance(elem, (tuple, list)) else [elem])]
    if scaling_sens is not None:
        made.append(Tensor(np.float32(scaling_sens)))
    return made[0] if len(made) == 1 else tuple(made)


def _transfer_tensor_to_tuple(inputs: Any) -> Any:
    """A Tensor as a tuple of one; anything else as it is."""
    return (inputs,) if isinstance(inputs, Tensor) else inputs


def _make_directory(path: str, arg_name: str = "path") -> str:
    """The absolute path of a folder, made where it is not there. Raises TypeError for what is no text."""
    if not isinstance(path, str) or not path:
        raise TypeError(message(f"{arg_name}={short(path)}", "the path of a folder"))
    folder = Path(path).expanduser().absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def check_value_type(arg_name: str, arg_value: Any, valid_types: Any) -> None:
    """Raises TypeError unless `arg_value` is of one of the Python types; a bool is no int."""
    kinds = tuple(valid_types) if isinstance(valid_types, (list, tuple)) else (valid_types,)
    if not isinstance(arg_value, kinds) or (isinstance(arg_value, bool) and bool not in kinds):
        words = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(message(f"{arg_name}={short(arg_value)}", f"{words}, got {type(arg_value).__name__}"))


__getattr__ = missing(__name__)
