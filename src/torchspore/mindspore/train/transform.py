"""Checkpoints of several processes made into one for one process, file by file; and strategy files and folders of checkpoints joined."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train.distributed import _dims, _whole, build_searched_strategy
from torchspore.mindspore.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint


def _layouts(call: str, source: Any, target: Any) -> dict[str, Any]:
    """The layouts of the source; a target that cuts is refused. Raises TypeError and ValueError for what is no strategy file."""
    for key, file in (("src_strategy_file", source), ("dst_strategy_file", target)):
        if file is not None and not isinstance(file, str):
            raise TypeError(message(f"{call}({key}={short(file)})", f"a file name or None, got {type(file).__name__}"))
    if target is not None:
        for name, layout in build_searched_strategy(target).items():
            if int(np.prod(_dims(layout.dev_matrix) or [1])) > 1:
                wrote = f"{call}(dst_strategy_file={target!r})"
                raise ValueError(message(wrote, f"None: files for several processes ({name}) are not written"))
    return build_searched_strategy(source) if source is not None else {}


def rank_list_for_transform(rank_id: int, src_strategy_file: str | None = None, dst_strategy_file: str | None = None) -> list[int]:
    """The numbers of the processes whose files are needed for the file of process `rank_id`: all of the source's; 0 without a strategy.

    Raises TypeError and ValueError for what does not fit, and for a target of several processes.
    """
    _check_rank("rank_list_for_transform", rank_id)
    layouts = _layouts("rank_list_for_transform", src_strategy_file, dst_strategy_file)
    return list(range(max((int(np.prod(_dims(one.dev_matrix) or [1])) for one in layouts.values()), default=1)))


def _check_rank(call: str, rank: Any) -> None:
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise TypeError(message(f"{call}({short(rank)})", f"an int, got {type(rank).__name__}"))
    if rank != 0:
        raise ValueError(message(f"{call}({rank})", "0: what is written is for one process"))


def transform_checkpoint_by_rank(
    rank_id: int, checkpoint_files_map: dict[int, str], save_checkpoint_file_name: str, src_strategy_file: str | None = None,
    dst_strategy_file: str | None = None,
) -> None:
    """Writes the checkpoint of one process of the files {number: name} of several, cut as `src_strategy_file` says.

    Raises TypeError and ValueError for what does not fit, and for a target of several processes.
    """
    call = "transform_checkpoint_by_rank"
    _check_rank(call, rank_id)
    if not isinstance(checkpoint_files_map, dict) or not checkpoint_files_map:
        raise TypeError(message(f"{call}(checkpoint_files_map={short(checkpoint_files_map)})", "a dict from numbers to file names"))
    for rank, name in checkpoint_files_map.items():
        if not isinstance(name, str) or not Path(name).is_file():
            raise ValueError(message(f"{call}(checkpoint_files_map={{{rank}: {short(name)}}})", "names of files that are there"))
    if not isinstance(save_checkpoint_file_name, str) or not save_checkpoint_file_name.endswith(".ckpt"):
        raise ValueError(message(f"{call}(save_checkpoint_file_name={short(save_checkpoint_file_name)})", "a name that ends with .ckpt"))
    layouts = _layouts(call, src_strategy_file, dst_strategy_file)
    loaded = [load_checkpoint(checkpoint_files_map[rank]) for rank in sorted(checkpoint_files_map)]
    entries = []
    for name, first in {name: value for one in reversed(loaded) for name, value in one.items()}.items():
        parts = [one[name] for one in loaded if name in one]
        is_cut = name in layouts and isinstance(first, Parameter)
        entries.append({"name": name, "data": Tensor(_whole(name, [p.asnumpy() for p in parts], layouts[name])) if is_cut else parts[0]})
    Path(save_checkpoint_file_name).parent.mkdir(parents=True, exist_ok=True)
    save_checkpoint(entries, save_checkpoint_file_name)


def transform_checkpoints(
    src_checkpoints_dir: str, dst_checkpoints_dir: str, ckpt_prefix: str, src_strategy_file: str | None = None,
    dst_strategy_file: str | None = None, process_num: int = 1, output_format: str = "ckpt",
) -> None:
    """Writes rank_0/`ckpt_prefix`0.ckpt into `dst_checkpoints_dir`: the last file of each folder rank_N in `src_checkpoints_dir`, joined.

    Raises TypeError and ValueError for what does not fit, and for a target of several processes.
    """
    call = "transform_checkpoints"
    if not isinstance(src_checkpoints_dir, str) or not Path(src_checkpoints_dir).is_dir():
        raise NotADirectoryError(message(f"{call}({short(src_checkpoints_dir)})", "a folder that is there"))
    if not isinstance(ckpt_prefix, str):
        raise TypeError(message(f"{call}(ckpt_prefix={short(ckpt_prefix)})", f"a str, got {type(ckpt_prefix).__name__}"))
    if isinstance(process_num, bool) or not isinstance(process_num, int) or process_num < 1:
        raise ValueError(message(f"{call}(process_num={short(process_num)})", "an int from 1 on"))
    if output_format != "ckpt":
        raise ValueError(message(f"{call}(output_format={short(output_format)})", "'ckpt'", hint="ms.ckpt_to_safetensors converts it"))
    files = {}
    for folder in Path(src_checkpoints_dir).glob("rank_*"):
        found = sorted(folder.glob("*.ckpt"))
        if found and folder.name[5:].isdigit():
            files[int(folder.name[5:])] = str(found[-1])
    if not files:
        raise ValueError(message(f"{call}({src_checkpoints_dir!r})", "folders rank_0, rank_1, ... with .ckpt files"))
    target = str(Path(dst_checkpoints_dir) / "rank_0" / f"{ckpt_prefix}0.ckpt")
    transform_checkpoint_by_rank(0, files, target, src_strategy_file, dst_strategy_file)


def merge_pipeline_strategys(src_strategy_dirs: str, dst_strategy_file: str) -> None:
    """Writes the strategies in all files of a folder, one for each stage of a pipeline, into one file.

    Raises NotADirectoryError for what is no folder, ValueError for a file that holds no strategies.
    """
    if not isinstance(src_strategy_dirs, str) or not Path(src_strategy_dirs).is_dir():
        raise NotADirectoryError(message(f"merge_pipeline_strategys({short(src_strategy_dirs)})", "a folder that is there"))
    files = sorted(one for one in Path(src_strategy_dirs).iterdir() if one.is_file())
    for one in files:
        build_searched_strategy(str(one))
    Path(dst_strategy_file).parent.mkdir(parents=True, exist_ok=True)
    Path(dst_strategy_file).write_bytes(b"".join(one.read_bytes() for one in files))      # messages behind each other are one message


def load_segmented_checkpoints(
    ckpt_file_dir: str, net: Cell | None = None, strict_load: bool = False, filter_prefix: Any = None, dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM", specify_prefix: Any = None, choice_func: Callable[[str], bool] | None = None,
) -> dict[str, Any]:
    """The Parameters of all .ckpt files in a folder in one dict, put into `net` where one is given.

    The other arguments are those of `load_checkpoint`. Raises ValueError for what is no folder with such files, and where nothing is left.
    """
    if not isinstance(ckpt_file_dir, str) or not Path(ckpt_file_dir).is_dir():
        raise ValueError(message(f"load_segmented_checkpoints({short(ckpt_file_dir)})", "a folder that is there"))
    files = sorted(Path(ckpt_file_dir).glob("*.ckpt"))
    if not files:
        raise ValueError(message(f"load_segmented_checkpoints({ckpt_file_dir!r})", "a folder with .ckpt files"))
    loaded: dict[str, Any] = {}
    for file in files:
        loaded.update(load_checkpoint(
            str(file), filter_prefix=filter_prefix, dec_key=dec_key, dec_mode=dec_mode, specify_prefix=specify_prefix,
            choice_func=choice_func,
        ))
    if net is not None:
        load_param_into_net(net, {name: value for name, value in loaded.items() if isinstance(value, Parameter)}, strict_load)
    return loaded
