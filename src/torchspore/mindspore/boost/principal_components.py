"""The principal directions of the weights' changes in an earlier training: computed once, cut among processes, stored in NumPy files."""
from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base import checkpoint_file
from torchspore.base.text import message, short
from torchspore.mindspore.common.process_groups import get_group_size, get_rank
from torchspore.mindspore.nn.cell import Cell

_END = "save_pca_end.txt"


def local_components(folder: Any, path: Any, n_components: int, device_number: int, network: Cell) -> str:
    """Return the path of this process's rows of the directions (n_components, weights).

    They are read from the .npy file `path`, or the first process of a server computes them from the checkpoints in `folder`. Raises
    ValueError if neither exists, and if there are fewer checkpoints than directions.
    """
    has_file = isinstance(path, str) and path.endswith(".npy") and os.path.isfile(path)
    if not has_file and (folder is None or not os.path.isdir(folder)):
        raise ValueError(message(
            f"dim_reduce with pca_mat_path={short(path)}, weight_load_dir={short(folder)}", "a .npy file, or a folder of checkpoints",
        ))
    full_path = path if has_file else os.path.join(folder, "pca_mat_temp.npy")
    local_path = _path_of(full_path, get_rank())
    for stale in (os.path.join(os.path.dirname(full_path), _END), local_path):
        if os.path.exists(stale):
            os.remove(stale)
    if get_rank() % device_number:
        return local_path
    if has_file:
        components = np.load(full_path)
    else:
        components = principal_components(_weights(folder, network), n_components)
        np.save(full_path, components)
    _save_parts(components, full_path, n_components)
    return local_path


def _path_of(full_path: str, rank: int) -> str:
    return f"{full_path[:-4]}_rank_{rank}.npy"


def _weights(folder: str, network: Cell) -> np.ndarray:
    """Return a row for each checkpoint of `folder`: the concatenated trained weights."""
    names = [parameter.name for parameter in network.trainable_params()]
    rows = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".ckpt"):
            entries, _ = checkpoint_file.read(Path(folder, name))
            values = {entry.name: entry.array().reshape(-1) for entry in entries if entry.type_name != checkpoint_file.TEXT}
            rows.append(np.concatenate([values[name] for name in names if name in values]))
    return np.stack(rows) if rows else np.zeros((0, 0), np.float32)


def principal_components(data: np.ndarray, n_components: int) -> np.ndarray:
    """Return the `n_components` directions (n_components, m) of largest variance of the rows of `data` (n, m), each of length 1.

    The largest coefficient of each direction is positive. Raises ValueError for fewer rows than directions.
    """
    if data.shape[0] < n_components:
        raise ValueError(message(f"{data.shape[0]} checkpoints for n_components={n_components}", "a checkpoint for each direction"))
    left_vectors, _, right = np.linalg.svd(data - data.mean(axis=0), full_matrices=False)
    signs = np.sign(left_vectors[np.abs(left_vectors).argmax(axis=0), np.arange(left_vectors.shape[1])])
    return (right * signs[:, None])[:n_components]


def _save_parts(components: np.ndarray, full_path: str, n_components: int) -> None:
    """Write the rows of each process, zeros if there are none left, and then the file that marks completion."""
    processes = get_group_size()
    each = n_components // processes
    for rank in range(processes):
        rows = components[rank * each:(rank + 1) * each]
        part = np.zeros((each, components.shape[1]))
        part[:len(rows)] = rows
        np.save(_path_of(full_path, rank), part)
    with open(os.path.join(os.path.dirname(full_path), _END), "w", encoding="utf-8"):
        pass


def load_components(path: str, timeout: float) -> np.ndarray:
    """Return the path of this process's rows, once they are written. Raises RuntimeError after `timeout` seconds."""
    end, begun = os.path.join(os.path.dirname(path), _END), time.monotonic()
    while not os.path.exists(end):
        if time.monotonic() - begun > timeout:
            raise RuntimeError(message(f"dim_reduce waited {timeout:g} s for {end}", "the first process of the server to write it"))
        time.sleep(0.5)
    components: np.ndarray = np.load(path)
    return components
