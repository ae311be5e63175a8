"""Conversion of checkpoints of several processes to another strategy, file by file; merging of strategy files and checkpoints."""
from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import list_choices, message, short
from torchspore.distributed.shard import strategy_file
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train.resharding import Resharding, read_entries, write_all
from torchspore.mindspore.train.serialization import load_checkpoint, load_param_into_net
from torchspore.mindspore.train.slices import ParameterSharding, processes, shardings_of

FORMATS = ("ckpt", "safetensors")


def _read_shardings(call: str, key: str, file: Any) -> dict[str, ParameterSharding] | None:
    """Return the shardings of a strategy file; None without one. Raises TypeError and ValueError for any other file."""
    if file is None:
        return None
    if not isinstance(file, str):
        raise TypeError(message(f"{call}({key}={short(file)})", f"a file name or None, got {type(file).__name__}"))
    if not Path(file).is_file():
        raise ValueError(message(f"{call}({key}={file!r})", "an existing file"))
    return shardings_of(strategy_file.read(Path(file)))


def _read_both_shardings(
    call: str, source: Any, target: Any
) -> tuple[dict[str, ParameterSharding] | None, dict[str, ParameterSharding] | None]:
    return _read_shardings(call, "src_strategy_file", source), _read_shardings(call, "dst_strategy_file", target)


def _check_rank(call: str, rank: Any, target: dict[str, ParameterSharding] | None) -> None:
    if not is_int(rank):
        raise TypeError(message(f"{call}({short(rank)})", f"an int, got {type(rank).__name__}"))
    count = processes(target or {})
    if not 0 <= rank < count:
        expected = f"a number below {count}, as dst_strategy_file states" if target else "0 without a dst_strategy_file"
        raise ValueError(message(f"{call}({rank})", expected))


def rank_list_for_transform(rank_id: int, src_strategy_file: str | None = None, dst_strategy_file: str | None = None) -> list[int]:
    """Returns the processes whose files are needed for the file of process `rank_id`, the largest number first; [0] without a source.

    Raises TypeError and ValueError for invalid arguments.
    """
    call = "rank_list_for_transform"
    source, target = _read_both_shardings(call, src_strategy_file, dst_strategy_file)
    if source is None and not isinstance(rank_id, bool) and isinstance(rank_id, int):
        return [0]
    _check_rank(call, rank_id, target)
    return sorted(Resharding(source, target).needed(rank_id), reverse=True)


def transform_checkpoint_by_rank(
    rank_id: int, checkpoint_files_map: dict[int, str], save_checkpoint_file_name: str, src_strategy_file: str | None = None,
    dst_strategy_file: str | None = None,
) -> None:
    """Converts the files {number: name} of several processes to the checkpoint of process `rank_id`, from one strategy file to another.

    Without a strategy file the source, or the target, is one process with all Parameters. Names end with .ckpt or .safetensors. Raises
    TypeError and ValueError for invalid arguments and if a part is missing; nothing is written then.
    """
    call = "transform_checkpoint_by_rank"
    source, target = _read_both_shardings(call, src_strategy_file, dst_strategy_file)
    _check_rank(call, rank_id, target)
    if not isinstance(checkpoint_files_map, dict) or not checkpoint_files_map:
        raise TypeError(message(f"{call}(checkpoint_files_map={short(checkpoint_files_map)})", "a dict from numbers to file names"))
    for rank, name in checkpoint_files_map.items():
        if not is_int(rank) or not isinstance(name, str) or not Path(name).is_file():
            call_text = f"{call}(checkpoint_files_map={{{short(rank)}: {short(name)}}})"
            raise ValueError(message(call_text, "numbers of processes with names of existing files"))
    name = save_checkpoint_file_name
    if not isinstance(name, str) or Path(name).suffix[1:] not in FORMATS:
        raise ValueError(message(f"{call}(save_checkpoint_file_name={short(name)})", "a name that ends with .ckpt or .safetensors"))
    files = {rank: read_entries(Path(file)) for rank, file in checkpoint_files_map.items()}
    write_all({Path(name): lambda: Resharding(source, target).entries(rank_id, files)})


def transform_checkpoints(
    src_checkpoints_dir: str, dst_checkpoints_dir: str, ckpt_prefix: str, src_strategy_file: str | None = None,
    dst_strategy_file: str | None = None, process_num: int = 1, output_format: str = "ckpt",
) -> None:
    """Writes rank_N/`ckpt_prefix`N.ckpt into `dst_checkpoints_dir` for each process N of the target's strategy, or for one without it.

    The last .ckpt or .safetensors file of each folder rank_N in `src_checkpoints_dir` is read, with the shardings of `src_strategy_file`.
    `output_format` is 'ckpt' or 'safetensors'. One process does all the work, for any `process_num`. Raises TypeError and ValueError for
    invalid arguments and if a part is missing; nothing is written then.
    """
    call = "transform_checkpoints"
    if not isinstance(src_checkpoints_dir, str) or not Path(src_checkpoints_dir).is_dir():
        raise NotADirectoryError(message(f"{call}({short(src_checkpoints_dir)})", "an existing folder"))
    for key, value in (("dst_checkpoints_dir", dst_checkpoints_dir), ("ckpt_prefix", ckpt_prefix)):
        if not isinstance(value, str):
            raise TypeError(message(f"{call}({key}={short(value)})", f"a str, got {type(value).__name__}"))
    if not is_int(process_num) or process_num < 1:
        raise ValueError(message(f"{call}(process_num={short(process_num)})", "an int from 1 on"))
    if output_format not in FORMATS:
        raise ValueError(message(f"{call}(output_format={short(output_format)})", list_choices(FORMATS)))
    source, target = _read_both_shardings(call, src_strategy_file, dst_strategy_file)
    resharding = Resharding(source, target)
    files = {rank: read_entries(file) for rank, file in files_of_ranks(call, Path(src_checkpoints_dir)).items()}
    folder = Path(dst_checkpoints_dir)
    write_all({
        folder / f"rank_{rank}" / f"{ckpt_prefix}{rank}.{output_format}": functools.partial(resharding.entries, rank, files)
        for rank in range(processes(target or {}))
    })


def files_of_ranks(call: str, folder: Path, formats: tuple[str, ...] = FORMATS, ends: str = "") -> dict[int, Path]:
    """Return the last file of a format in each folder rank_N. Raises ValueError if there is none."""
    files_by_rank = {}
    for child in folder.glob("rank_*"):
        if not child.name[5:].isdigit():
            continue
        for format in formats:
            files = sorted(child.glob(f"*{ends}.{format}"))
            if files:
                files_by_rank[int(child.name[5:])] = files[-1]
                break
    if not files_by_rank:
        raise ValueError(message(f"{call}({str(folder)!r})", f"folders rank_0, rank_1, ... with .{' or .'.join(formats)} files"))
    return files_by_rank


def merge_pipeline_strategys(src_strategy_dirs: str, dst_strategy_file: str) -> None:
    """Merges the strategies in all files of a folder, one for each pipeline stage, into one file, in which the stage prefixes each name.

    Several files of a stage may have the same content, like those of all its processes. Files that already have stages in their names, as
    this function writes them, are merged unchanged. Raises NotADirectoryError unless the path is a folder, ValueError for a file without
    strategies, and if two files of one stage differ.
    """
    call = "merge_pipeline_strategys"
    if not isinstance(src_strategy_dirs, str) or not Path(src_strategy_dirs).is_dir():
        raise NotADirectoryError(message(f"{call}({short(src_strategy_dirs)})", "an existing folder"))
    if not isinstance(dst_strategy_file, str) or not dst_strategy_file:
        raise ValueError(message(f"{call}(dst_strategy_file={short(dst_strategy_file)})", "a file name"))
    merged = strategy_file.StrategyFile()
    stages: dict[int | None, tuple[str, Any]] = {}
    for path in sorted(child for child in Path(src_strategy_dirs).iterdir() if child.is_file()):
        read = strategy_file.read(path)
        stage = next((stage for stage, _ in read.strategies.values()), None)
        if stage is None and not all(strategy_file.stage_of(name)[0] is not None for name in read.layouts):
            raise ValueError(message(f"{call}: {path}", "strategies of operators, which name the stage"))
        named = {
            name if strategy_file.stage_of(name)[0] is not None else f"{stage}-{name}": layout for name, layout in read.layouts.items()
        }
        if stage in stages and stages[stage][1] != named:
            raise ValueError(message(f"{call}: {stages[stage][0]} and {path.name} of stage {stage}", "one file for each stage"))
        stages[stage] = path.name, named
        merged.strategies.update(read.strategies)
        merged.layouts.update(named)
    if not stages:
        raise ValueError(message(f"{call}({src_strategy_dirs!r})", "a folder with strategy files"))
    Path(dst_strategy_file).parent.mkdir(parents=True, exist_ok=True)
    strategy_file.write(Path(dst_strategy_file), merged)


def load_segmented_checkpoints(
    ckpt_file_dir: str, net: Cell | None = None, strict_load: bool = False, filter_prefix: Any = None, dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM", specify_prefix: Any = None, choice_func: Callable[[str], bool] | None = None,
) -> dict[str, Any]:
    """Returns the Parameters of all .ckpt files in a folder in one dict, and loads them into `net` if there is one.

    The other arguments are those of `load_checkpoint`. Raises ValueError without such files, and for an empty selection.
    """
    if not isinstance(ckpt_file_dir, str) or not Path(ckpt_file_dir).is_dir():
        raise ValueError(message(f"load_segmented_checkpoints({short(ckpt_file_dir)})", "an existing folder"))
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
