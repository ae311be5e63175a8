"""Internal functions of saving and loading that packages call: `_exec_save`, `_parse_ckpt_proto`, `_update_param` and others."""
from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from torchspore.base import checkpoint_file, encryption
from torchspore.base.checkpoint_file import TEXT, Entry
from torchspore.base.text import message
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train import serialization


def _check_checkpoint_param(ckpt_file_name: str, filter_prefix: Any = None) -> tuple[str, tuple[str, ...]]:
    """Return the file's name and the prefixes as a tuple. Raises TypeError and ValueError for arguments that `load_checkpoint` refuses."""
    serialization._check_load(ckpt_file_name, "ckpt", (None, "AES-GCM"))
    return ckpt_file_name, serialization._prefixes("filter_prefix", filter_prefix)


def _exec_save(
    ckpt_file_name: str, data_list: dict[str, Any], enc_key: bytes | None = None, enc_mode: str = "AES-GCM", map_param_inc: bool = False,
    crc_check: bool = False, format: str = "ckpt", remove_redundancy: Any = None,
) -> None:
    """Write {name: [shape, type name, array or Tensor]} to the file of exactly this name.

    Every file has a checksum, with and without `crc_check`. Raises ValueError for unsupported files: incremental (`map_param_inc`), or with
    redundancy removed.
    """
    del crc_check
    for name, value in (("map_param_inc", map_param_inc), ("remove_redundancy", remove_redundancy)):
        if value:
            raise ValueError(message(f"_exec_save({name}={value!r})", "False", hint="write mindspore.save_checkpoint"))
    entries = [_entry(name, parts) for name, parts in data_list.items()]
    path = Path(ckpt_file_name).expanduser().absolute()
    if enc_key is not None:
        encryption.check("_exec_save", "enc", enc_key, enc_mode)
    serialization.wait_for_writers()
    serialization._write(path, entries, format, (enc_key, enc_mode))


def _entry(name: str, parts: Any) -> Entry:
    shape, type_name, values = parts
    if type_name == TEXT:
        return Entry(name, TEXT, (), str(values))
    if isinstance(values, Tensor):
        return serialization.to_entry(name, values)
    array = np.asarray(values)
    if type_name == "BFloat16":                  # an array of ml_dtypes.bfloat16, or of its bits
        array = array.view(np.uint16)
    return Entry(name, type_name, tuple(int(n) for n in shape) if array.ndim else (), array)


def _parse_ckpt_proto(ckpt_file_name: str, dec_key: bytes | None, dec_mode: str | None, crc_check: bool) -> SimpleNamespace:
    """Return a checkpoint file as a message: `value` lists entries with `tag` and `tensor` (dims, tensor_type, tensor_content).

    With `crc_check` a file without a checksum is a ValueError.
    """
    entries, is_checked = checkpoint_file.read(Path(ckpt_file_name), dec_key, dec_mode or "AES-GCM")
    if crc_check and not is_checked:
        raise ValueError(message(f"{ckpt_file_name}: no checksum", "one, as save_checkpoint(crc_check=True) writes it"))
    return SimpleNamespace(value=[SimpleNamespace(tag=entry.name, tensor=_described(entry)) for entry in entries])


def _described(entry: Entry) -> SimpleNamespace:
    is_text = entry.type_name == TEXT
    content = entry.values.encode("utf-32-le") if is_text else np.ascontiguousarray(entry.values).tobytes()
    return SimpleNamespace(dims=[0] if is_text else list(entry.shape), tensor_type=entry.type_name, tensor_content=content)


def _update_param(param: Parameter, new_param: Parameter, strict_load: bool) -> None:
    """Copy the values of `new_param` to `param`. Raises RuntimeError if a shape or a type does not fit."""
    serialization._check_fits(param, new_param, strict_load)
    param.set_data(new_param if tuple(new_param.shape) == tuple(param.shape) else new_param.reshape(param.shape))


def _load_dismatch_prefix_params(
    net: Cell, parameter_dict: dict[str, Parameter], param_not_load: list[str], strict_load: bool,
) -> None:
    """Load the Parameters of `param_not_load` that the dict has under an additional prefix, and remove them from this list."""
    parameters = {parameter.name: parameter for _, parameter in net.parameters_and_names()}
    for parameter, value in serialization._with_prefix([parameters[name] for name in param_not_load if name in parameters], parameter_dict):
        _update_param(parameter, value, strict_load)
        param_not_load.remove(parameter.name)


def _get_merged_param_data(net: Cell, parameter_layout_dict: Any, param_name: str, param_data: Any, integrated_save: bool) -> Any:
    """Return the full value of a sharded Parameter; with one process the part is the full value: `param_data`.

    Raises KeyError if it is not in the layout.
    """
    del net, integrated_save                     # both configure the transfer from other processes
    if parameter_layout_dict and param_name not in parameter_layout_dict:
        raise KeyError(f"_get_merged_param_data: {param_name!r} is not in the layout.")
    return param_data
