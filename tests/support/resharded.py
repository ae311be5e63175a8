"""Parameters that several processes store by layouts of many kinds, their files, and their strategy files."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from torchspore.distributed.shard import strategy_file
from torchspore.distributed.shard.strategy_file import StrategyFile, stored
from torchspore.distributed.shard.strategy_validation import TensorLayout as On

SOURCE = np.random.default_rng(0)
FULL = {name: SOURCE.normal(size=shape).astype(np.float32) for name, shape in (
    ("w", (16, 32)), ("v", (16, 32)), ("b", (16,)), ("z", (16, 8)), ("o", (16, 8)),
)}
LAYOUTS: dict[int, dict[str, tuple[Any, ...]]] = {
    8: {"w": (On((2, 4), (1, 0)),), "v": (On((2, 2, 2), ((2, 0), 1)),), "b": (On((8,), (-1,)),), "z": (On((4, 2), (1, -1)),),
        "o": (On((2, 4), (-1, 0)), 4, 2)},
    4: {
        "w": (On((4,), (0, -1)),), "v": (On((2, 2), (-1, 0)),), "b": (On((4,), (0,)),), "z": (On((4,), (-1, -1)),),
        "o": (On((2, 2), (1, 0)),),
    },
    2: {"w": (On((2,), (-1, 0)),), "v": (On((2,), (0, -1)),), "b": (On((2,), (-1,)),), "z": (On((2,), (-1, 0)),),
        "o": (On((2,), (-1, -1)), 1, 2)},
}
"""By number of processes: layouts, with step and size of the optimizer's cuts."""


def strategy(folder: Path, count: int, suffix: str = "ckpt") -> str:
    path = folder / f"{count}.{suffix}"
    layouts = {name: stored(layout, FULL[name].shape, *more) for name, (layout, *more) in LAYOUTS[count].items()}
    strategy_file.write(path, StrategyFile(layouts, {"MatMul_w": (0, [[2, 4], [4, 1]])}))
    return str(path)


def parts_of_process(rank: int, count: int) -> dict[str, np.ndarray]:
    """What a process holds, written down without the code under test."""
    results = {}
    for name, (layout, *more) in LAYOUTS[count].items():
        part = FULL[name]
        at = np.unravel_index(rank, layout.device_matrix)
        for axis, mesh_axes in enumerate(layout.tensor_map):
            for mesh_axis in (mesh_axes if isinstance(mesh_axes, tuple) else (mesh_axes,)):
                if mesh_axis != -1:
                    grid = len(layout.device_matrix) - 1 - mesh_axis
                    part = np.split(part, layout.device_matrix[grid], axis)[int(at[grid])]
        results[name] = np.split(part, more[1])[rank // more[0] % more[1]] if more else part
    return results


def write_checkpoints(folder: Path, count: int, suffix: str = "ckpt") -> str:
    for rank in range(count):
        (folder / f"rank_{rank}").mkdir(parents=True)
        entries = [{"name": name, "data": Tensor(np.ascontiguousarray(part))} for name, part in parts_of_process(rank, count).items()]
        ms.save_checkpoint(entries, str(folder / f"rank_{rank}" / f"c.{suffix}"), format=suffix, append_dict={"epoch_num": 3})
    return str(folder)
