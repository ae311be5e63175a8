"""Checkpoints of several processes made one: their slices are put together as a strategy says."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from torchspore.base.text import message, one_of, short
from torchspore.context.public import get_auto_parallel_context
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train import strategy_file
from torchspore.mindspore.train.serialization import load_checkpoint, load_param_into_net


def build_searched_strategy(strategy_filename: str) -> dict[str, Any]:
    """The layouts of Parameters in a strategy file, by name. Raises TypeError and ValueError for what is no such file."""
    return strategy_file.layouts(_file("build_searched_strategy", strategy_filename))


def _file(call: str, name: str) -> Path:
    if not isinstance(name, str):
        raise TypeError(message(f"{call}({short(name)})", f"a file name, got {type(name).__name__}"))
    if not Path(name).is_file():
        raise ValueError(message(f"{call}({name!r})", "a file that is there"))
    return Path(name)


def merge_sliced_parameter(sliced_parameters: list[Parameter], strategy: dict[str, Any] | None = None) -> Parameter:
    """One Parameter of the slices that processes hold, in order of their numbers: along axis 0, or as the Parameter's strategy says.

    Raises TypeError and ValueError for what is no list of Parameters of one name, KeyError for a name without a strategy.
    """
    wrote = f"merge_sliced_parameter({short(sliced_parameters)})"
    if not isinstance(sliced_parameters, list):
        raise TypeError(message(wrote, f"a list, got {type(sliced_parameters).__name__}"))
    if not sliced_parameters:
        raise ValueError(message(wrote, "Parameters"))
    for one in sliced_parameters:
        if not isinstance(one, Parameter):
            raise TypeError(message(wrote, f"Parameters, got {type(one).__name__}"))
    if strategy is not None and not isinstance(strategy, dict):
        raise TypeError(message(f"merge_sliced_parameter(strategy={short(strategy)})", f"a dict, got {type(strategy).__name__}"))
    first = sliced_parameters[0]
    names = {one.name for one in sliced_parameters}
    if len(names) > 1:
        raise ValueError(message(f"merge_sliced_parameter of {', '.join(sorted(names))}", "slices of one Parameter"))
    if strategy is not None and first.name not in strategy:
        raise KeyError(message(f"merge_sliced_parameter(strategy=...) of {first.name!r}", f"a strategy for it beside {one_of(strategy)}"))
    slices = [one.asnumpy() for one in sliced_parameters]
    whole = np.concatenate(slices) if strategy is None else _whole(first.name, slices, strategy[first.name])
    return Parameter(Tensor(whole), first.name, first.requires_grad, first.layerwise_parallel)


def _dims(part: Any) -> list[int]:
    """The numbers of one message of a layout, however it is held."""
    found = part[0] if isinstance(part, Sequence) and part and hasattr(part[0], "dim") else part
    return [int(one) for one in getattr(found, "dim", found or ())]


def _whole(name: str, slices: list[np.ndarray], layout: Any) -> np.ndarray:
    """The array that is cut along each axis as `tensor_map` says: by the axis of `dev_matrix` that it counts from behind, -1 by none."""
    if not all(hasattr(layout, part) for part in ("dev_matrix", "tensor_map")):
        raise ValueError(message(f"the strategy of {name!r}, {short(layout)}", "a layout as build_searched_strategy gives it"))
    devices, places = _dims(layout.dev_matrix), _dims(layout.tensor_map)
    count = int(np.prod(devices)) if devices else 1
    if len(slices) != count:
        raise ValueError(message(f"{len(slices)} slices of {name!r}", f"{count}, one for each process of its strategy"))
    slices = _joined_by_optimizer(slices, layout)
    cuts = [1 if place == -1 else devices[len(devices) - 1 - place] for place in places]
    found: dict[tuple[int, ...], np.ndarray] = {}
    for rank, part in enumerate(slices):
        at = np.unravel_index(rank, devices) if devices else ()
        found.setdefault(tuple(0 if place == -1 else int(at[len(devices) - 1 - place]) for place in places), part)
    whole = np.empty([size * cut for size, cut in zip(slices[0].shape, cuts)], slices[0].dtype)
    for corner, part in found.items():
        whole[tuple(slice(at * size, (at + 1) * size) for at, size in zip(corner, part.shape))] = part
    return whole


def _joined_by_optimizer(slices: list[np.ndarray], layout: Any) -> list[np.ndarray]:
    """The slices with what the optimizer cut once more along axis 0 joined again, for each process the whole of its group."""
    size, step = int(getattr(layout, "opt_weight_shard_size", 0) or 0), int(getattr(layout, "opt_weight_shard_step", 0) or 0)
    if size <= 1 or step < 1:
        return slices
    joined: list[Any] = [None] * len(slices)
    for rank in range(len(slices)):
        if joined[rank] is None:
            group = [rank + place * step for place in range(size)]
            together = np.concatenate([slices[member] for member in group])
            for member in group:
                joined[member] = together
    return joined


def load_distributed_checkpoint(
    network: Cell | None, checkpoint_filenames: Any = None, predict_strategy: Any = None, train_strategy_filename: str | None = None,
    strict_load: bool = False, dec_key: bytes | None = None, dec_mode: str = "AES-GCM", format: str = "ckpt",
    unified_safetensors_dir: str | None = None, dst_safetensors_dir: str | None = None, rank_id: int | None = None,
    output_format: str = "safetensors", name_map: dict[str, str] | None = None, max_process_num: int = 64, return_param_dict: bool = False,
) -> Any:
    """Puts the Parameters of several processes' checkpoint files, in order of their numbers, into the network of one process.

    `train_strategy_filename`, or the context's strategy file, says how they were cut; one file needs none. A Parameter that it does not
    name is taken from the first file. `predict_strategy` must cut nothing. `name_map` renames what is in the files. With
    `return_param_dict` the whole Parameters are given too. What writes files for several processes (`dst_safetensors_dir`, `rank_id`,
    `unified_safetensors_dir`, another `output_format`) is refused. Raises TypeError and ValueError for what does not fit.
    """
    call = "load_distributed_checkpoint"
    for key, value, usual in (
        ("unified_safetensors_dir", unified_safetensors_dir, None), ("dst_safetensors_dir", dst_safetensors_dir, None),
        ("rank_id", rank_id, None), ("output_format", output_format, "safetensors"),
    ):
        if value != usual:
            raise ValueError(message(f"{call}({key}={short(value)})", "a network to load into: files of several processes are not written"))
    if not isinstance(network, Cell):
        raise ValueError(message(f"{call}({short(network)})", f"a Cell, got {type(network).__name__}"))
    if isinstance(max_process_num, bool) or not isinstance(max_process_num, int) or max_process_num < 1:
        raise ValueError(message(f"{call}(max_process_num={short(max_process_num)})", "an int from 1 on"))
    _check_uncut(call, predict_strategy)
    files = _files(call, checkpoint_filenames, format)
    layouts = _layouts_of(call, train_strategy_filename, len(files))
    loaded = [load_checkpoint(name, dec_key=dec_key, dec_mode=dec_mode, format=format) for name in files]
    whole: dict[str, Any] = {}
    for name, first in loaded[0].items():
        parts = [one[name] for one in loaded if name in one]
        is_cut = name in layouts and isinstance(first, Parameter)
        found = Parameter(Tensor(_whole(name, [p.asnumpy() for p in parts], layouts[name])), name) if is_cut else first
        whole[(name_map or {}).get(name, name)] = found
    load_param_into_net(network, {name: p for name, p in whole.items() if isinstance(p, Parameter)}, strict_load)
    return whole if return_param_dict else None


def _check_uncut(call: str, strategy: Any) -> None:
    if strategy is None:
        return
    if isinstance(strategy, str):
        strategy = build_searched_strategy(strategy)
    if not isinstance(strategy, dict):
        raise ValueError(message(f"{call}(predict_strategy={short(strategy)})", f"a dict or a file, got {type(strategy).__name__}"))
    for name, layout in strategy.items():
        first = layout[0] if isinstance(layout, (list, tuple)) and layout else getattr(layout, "dev_matrix", ())
        if int(np.prod(_dims(first) or [1])) > 1:
            raise ValueError(message(f"{call}(predict_strategy={{{name!r}: ...}})", "a strategy for one process, or None"))


def _files(call: str, names: Any, format: str) -> list[str]:
    if not isinstance(names, (list, tuple)) or not names:
        raise TypeError(message(f"{call}(checkpoint_filenames={short(names)})", "a list of file names"))
    for name in names:
        if not isinstance(name, str) or not name.endswith(f".{format}") or not Path(name).is_file():
            raise ValueError(message(f"{call}(checkpoint_filenames=[{short(name)}])", f"names of .{format} files that are there"))
    return list(names)


def _layouts_of(call: str, file: Any, count: int) -> dict[str, Any]:
    path = file if file is not None else get_auto_parallel_context("strategy_ckpt_load_file")
    if not path:
        if count > 1:
            raise ValueError(message(f"{call} of {count} files", "train_strategy_filename, which says how they were cut"))
        return {}
    return build_searched_strategy(path)


def restore_group_info_list(group_info_file_name: str) -> list[int]:
    """The numbers of the processes whose checkpoints hold the same, from the file that GROUP_INFO_FILE named in the training.

    Raises TypeError and ValueError for what is no such file.
    """
    return strategy_file.same_ranks(_file("restore_group_info_list", group_info_file_name))


def layout(dev_matrix: Iterable[int], tensor_map: Iterable[int], step: int = 0, size: int = 0) -> SimpleNamespace:
    """A layout as a strategy file has it."""
    return SimpleNamespace(
        dev_matrix=[SimpleNamespace(dim=list(dev_matrix))], tensor_map=[SimpleNamespace(dim=list(tensor_map))],
        opt_weight_shard_step=step, opt_weight_shard_size=size,
    )
