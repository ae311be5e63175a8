"""Merging of the checkpoints of several processes: their slices are joined according to a strategy."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.checkpoint_file import Entry
from torchspore.base.text import list_choices, message, short
from torchspore.context.public import get_auto_parallel_context
from torchspore.distributed.shard import strategy_file
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train import resharding, unified_files
from torchspore.mindspore.train.serialization import load_checkpoint, load_param_into_net, to_entry, to_value
from torchspore.mindspore.train.slices import ParameterSharding, shardings_of


def build_searched_strategy(strategy_filename: str) -> dict[str, Any]:
    """Returns the layouts of Parameters in a strategy file, by name. Raises TypeError and ValueError for anything else."""
    return strategy_file.layouts(_file("build_searched_strategy", strategy_filename))


def _file(call: str, name: str) -> Path:
    if not isinstance(name, str):
        raise TypeError(message(f"{call}({short(name)})", f"a file name, got {type(name).__name__}"))
    if not Path(name).is_file():
        raise ValueError(message(f"{call}({name!r})", "an existing file"))
    return Path(name)


def merge_sliced_parameter(sliced_parameters: list[Parameter], strategy: dict[str, Any] | None = None) -> Parameter:
    """Merges the slices of a Parameter, in order of the processes: along axis 0, or according to the Parameter's strategy.

    Raises TypeError and ValueError for anything but a list of Parameters with one name, KeyError for a name without a strategy.
    """
    call_text = f"merge_sliced_parameter({short(sliced_parameters)})"
    if not isinstance(sliced_parameters, list):
        raise TypeError(message(call_text, f"a list, got {type(sliced_parameters).__name__}"))
    if not sliced_parameters:
        raise ValueError(message(call_text, "Parameters"))
    for parameter in sliced_parameters:
        if not isinstance(parameter, Parameter):
            raise TypeError(message(call_text, f"Parameters, got {type(parameter).__name__}"))
    if strategy is not None and not isinstance(strategy, dict):
        raise TypeError(message(f"merge_sliced_parameter(strategy={short(strategy)})", f"a dict, got {type(strategy).__name__}"))
    first = sliced_parameters[0]
    names = {parameter.name for parameter in sliced_parameters}
    if len(names) > 1:
        raise ValueError(message(f"merge_sliced_parameter of {', '.join(sorted(names))}", "slices of one Parameter"))
    if strategy is not None and first.name not in strategy:
        call = f"merge_sliced_parameter(strategy=...) of {first.name!r}"
        raise KeyError(message(call, f"a strategy for it beside {list_choices(strategy)}"))
    slices = [parameter.asnumpy() for parameter in sliced_parameters]
    merged = np.concatenate(slices) if strategy is None else _joined(first.name, slices, strategy[first.name])
    return Parameter(Tensor(merged), first.name, first.requires_grad, first.layerwise_parallel)


def _joined(name: str, slices: list[np.ndarray], layout: Any) -> np.ndarray:
    sharding = sharding_of(name, layout)
    if sharding.layout.rows:
        return np.concatenate(slices)
    if len(slices) != sharding.devices:
        raise ValueError(message(f"{len(slices)} slices of {name!r}", f"{sharding.devices}, one for each process of its strategy"))
    return sharding.merged(name, dict(enumerate(slices)))


def _lists(part: Any) -> list[list[int]]:
    """Return the lists of numbers in a part of a layout, in any representation: a message, messages, or numbers."""
    if hasattr(part, "dim"):
        return [[int(number) for number in part.dim]]
    if isinstance(part, Iterable) and not isinstance(part, (str, bytes)):
        items = list(part)
        return [[int(n) for n in item.dim] for item in items] if items and hasattr(items[0], "dim") else [[int(item) for item in items]]
    return []


def sharding_of(name: str, layout: Any) -> ParameterSharding:
    """Return the sharding of a result of `build_searched_strategy` or a list [dev_matrix, tensor_map, ...]. Raises ValueError otherwise."""
    if isinstance(layout, (list, tuple)) and len(layout) == 1 and hasattr(layout[0], "dev_matrix"):
        layout = layout[0]
    try:
        if isinstance(layout, (list, tuple)):
            devices, tensor_map = _lists(layout[0]), _lists(layout[1])
            step, size = (number if type(number) is int else 0 for number in (*layout[4:6], 0, 0)[:2])
            rows: list[int] = []
        else:
            devices, tensor_map = _lists(layout.dev_matrix), _lists(layout.tensor_map)
            step, size = (int(getattr(layout, f"opt_weight_shard_{part}", 0) or 0) for part in ("step", "size"))
            rows = (_lists(getattr(layout, "param_split_shape", ())) or [[]])[0]
    except (AttributeError, TypeError, ValueError, IndexError):
        raise ValueError(message(f"the strategy of {name!r}, {short(layout)}", "a layout that build_searched_strategy returned")) from None
    nested = tuple(tuple(number for number in part if number != -1) for part in tensor_map) if len(tensor_map) > 1 else None
    flat = tuple(number for part in tensor_map for number in part)
    return ParameterSharding(strategy_file.StoredLayout(tuple((devices or [[]])[0]), flat, None, step, size, nested, tuple(rows)))


def load_distributed_checkpoint(
    network: Cell | None, checkpoint_filenames: Any = None, predict_strategy: Any = None, train_strategy_filename: str | None = None,
    strict_load: bool = False, dec_key: bytes | None = None, dec_mode: str = "AES-GCM", format: str = "ckpt",
    unified_safetensors_dir: str | None = None, dst_safetensors_dir: str | None = None, rank_id: int | None = None,
    output_format: str = "safetensors", name_map: dict[str, str] | None = None, max_process_num: int = 64, return_param_dict: bool = False,
) -> Any:
    """Loads the Parameters of several processes' checkpoint files, in order of the processes, into the network of one process.

    `train_strategy_filename`, or the context's strategy file, defines the sharding; one file needs none. A Parameter without an entry comes
    from the first file. `predict_strategy`, a strategy file or the result of `build_searched_strategy`, defines the part of each Parameter
    on this process (`rank_id`, by default its rank); None: all. `name_map` renames the Parameters of the files. Instead of files,
    `unified_safetensors_dir` may name a folder that `unified_safetensors` wrote; then, if `network` is None, the parts of process `rank_id`
    are written to `dst_safetensors_dir`/rank_N/net.safetensors (`output_format` 'ckpt' or 'safetensors') and the result is True. With
    `return_param_dict` the Parameters are returned. One process does all the work, for any `max_process_num`. Raises TypeError and
    ValueError for invalid arguments.
    """
    call = "load_distributed_checkpoint"
    if not is_int(max_process_num) or max_process_num < 1:
        raise ValueError(message(f"{call}(max_process_num={short(max_process_num)})", "an int from 1 on"))
    if output_format not in ("ckpt", "safetensors"):
        raise ValueError(message(f"{call}(output_format={short(output_format)})", list_choices(["ckpt", "safetensors"])))
    if not isinstance(network, Cell) and (network is not None or dst_safetensors_dir is None):
        expected = "a Cell, or None with unified_safetensors_dir, dst_safetensors_dir and rank_id"
        raise ValueError(message(f"{call}({short(network)})", f"{expected}, got {type(network).__name__}"))
    if network is None and (unified_safetensors_dir is None or rank_id is None):
        raise ValueError(message(f"{call}(None, dst_safetensors_dir={dst_safetensors_dir!r})", "unified_safetensors_dir and rank_id, too"))
    shardings = _predicted(call, predict_strategy)
    rank = _rank_of(call, rank_id) if shardings or rank_id is not None else 0
    if unified_safetensors_dir is not None:
        names = network and [parameter.name for parameter in network.get_parameters()]
        entries = dict(unified_files.entries(call, unified_safetensors_dir, names, name_map))
    else:
        entries = _from_files(call, checkpoint_filenames, train_strategy_filename, format, (dec_key, dec_mode), name_map or {})
    parts = {name: resharding.part_of(entry, shardings.get(name), rank) for name, entry in entries.items()}
    if network is None:
        target = Path(dst_safetensors_dir or "") / f"rank_{rank}" / f"net.{output_format}"
        resharding.write_all({target: lambda: list(parts.values())})
        return True
    values = {name: to_value(entry) for name, entry in parts.items()}
    unloaded = load_param_into_net(network, {name: p for name, p in values.items() if isinstance(p, Parameter)}, strict_load)
    return values if return_param_dict else unloaded if unified_safetensors_dir is not None else None


def _predicted(call: str, strategy: Any) -> dict[str, ParameterSharding]:
    """Return the shardings of a strategy for this process; empty without a strategy."""
    if strategy is None:
        return {}
    if isinstance(strategy, str):
        return shardings_of(strategy_file.read(_file(call, strategy)))
    if not isinstance(strategy, dict):
        raise ValueError(message(f"{call}(predict_strategy={short(strategy)})", f"a dict or a file, got {type(strategy).__name__}"))
    return {name: sharding_of(name, layout) for name, layout in strategy.items()}


def _rank_of(call: str, rank_id: Any) -> int:
    if rank_id is None:
        from torchspore.distributed.comm import groups

        return groups.rank() if groups.is_started() else int(get_auto_parallel_context("global_rank"))
    if not is_int(rank_id) or rank_id < 0:
        raise ValueError(message(f"{call}(rank_id={short(rank_id)})", "the number of a process"))
    return rank_id


def _from_files(
    call: str, names: Any, strategy: str | None, format: str, secret: tuple[bytes | None, str], renamed: dict[str, str],
) -> dict[str, Entry]:
    """Return the full Parameters from the files of all processes."""
    files = _files(call, names, format)
    shardings = _trained(call, strategy, len(files))
    loaded = {
        rank: {
            key: to_entry(key, value) for key, value in load_checkpoint(name, dec_key=secret[0], dec_mode=secret[1], format=format).items()
        }
        for rank, name in enumerate(files)
    }
    return {renamed.get(entry.name, entry.name): entry for entry in resharding.Resharding(shardings, None).entries(0, loaded)}


def _files(call: str, names: Any, format: str) -> list[str]:
    if not isinstance(names, (list, tuple)) or not names:
        raise TypeError(message(f"{call}(checkpoint_filenames={short(names)})", "a list of file names"))
    for name in names:
        if not isinstance(name, str) or not name.endswith(f".{format}") or not Path(name).is_file():
            raise ValueError(message(f"{call}(checkpoint_filenames=[{short(name)}])", f"names of existing .{format} files"))
    return list(names)


def _trained(call: str, file: Any, count: int) -> dict[str, ParameterSharding]:
    path = file if file is not None else get_auto_parallel_context("strategy_ckpt_load_file")
    if not path:
        if count > 1:
            raise ValueError(message(f"{call} of {count} files", "train_strategy_filename, which states how they were split"))
        return {}
    return shardings_of(strategy_file.read(_file(call, path)))


def restore_group_info_list(group_info_file_name: str) -> list[int]:
    """Returns the ranks of the processes with equal checkpoints, from the file that GROUP_INFO_FILE named in the training.

    Raises TypeError and ValueError for any other file.
    """
    return strategy_file.ranks_with_equal_layout(_file("restore_group_info_list", group_info_file_name))
