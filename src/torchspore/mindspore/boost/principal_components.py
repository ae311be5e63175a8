"""The directions in which weights moved during an earlier training: found once, cut among processes, kept in files of NumPy's."""
from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.communication.management import get_group_size, get_rank
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train.serialization import load_checkpoint

_END = "save_pca_end.txt"


def local_components(folder: Any, path: Any, n_components: int, device_number: int, network: Cell) -> str:
    """The path of this process's rows of the directions (n_components, weights).

    They are read of the .npy file `path`, or found from the checkpoints in `folder` by the first process of a server. Raises ValueError
    where there is neither, and where there are fewer checkpoints than directions.
    """
    has_file = isinstance(path, str) and path.endswith(".npy") and os.path.isfile(path)
    if not has_file and (folder is None or not os.path.isdir(folder)):
        raise ValueError(message(
            f"dim_reduce with pca_mat_path={short(path)}, weight_load_dir={short(folder)}", "a .npy file, or a folder of checkpoints",
        ))
    whole = path if has_file else os.path.join(folder, "pca_mat_temp.npy")
    own = _path_of(whole, get_rank())
    for stale in (os.path.join(os.path.dirname(whole), _END), own):
        if os.path.exists(stale):
            os.remove(stale)
    if get_rank() % device_number:
        return own
    if has_file:
        found = np.load(whole)
    else:
        found = principal_components(_weights(folder, network), n_components)
        np.save(whole, found)
    _save_parts(found, whole, n_components)
    return own


def _path_of(whole: str, rank: int) -> str:
    return f"{whole[:-4]}_rank_{rank}.npy"


def _weights(folder: str, network: Cell) -> np.ndarray:
    """A row for each checkpoint of `folder`: the trained weights one after the other."""
    names = [parameter.name for parameter in network.trainable_params()]
    rows = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".ckpt"):
            kept = load_checkpoint(os.path.join(folder, name))
            rows.append(np.concatenate([kept[one].asnumpy().reshape(-1) for one in names if one in kept]))
    return np.stack(rows) if rows else np.zeros((0, 0), np.float32)


def principal_components(data: np.ndarray, n_components: int) -> np.ndarray:
    """The `n_components` directions (n_components, m) in which the rows of `data` (n, m) differ most, each of length 1.

    The largest part of each row's share is positive. Raises ValueError for fewer rows than directions.
    """
    if data.shape[0] < n_components:
        raise ValueError(message(f"{data.shape[0]} checkpoints for n_components={n_components}", "a checkpoint for each direction"))
    left, _, right = np.linalg.svd(data - data.mean(axis=0), full_matrices=False)
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])])
    return (right * signs[:, None])[:n_components]


def _save_parts(components: np.ndarray, whole: str, n_components: int) -> None:
    """Writes the rows of each process, zeros where there are none left, and then the file that says so."""
    processes = get_group_size()
    each = n_components // processes
    for rank in range(processes):
        rows = components[rank * each:(rank + 1) * each]
        part = np.zeros((each, components.shape[1]))
        part[:len(rows)] = rows
        np.save(_path_of(whole, rank), part)
    with open(os.path.join(os.path.dirname(whole), _END), "w", encoding="utf-8"):
        pass


def load_components(path: str, timeout: float) -> np.ndarray:
    """This process's rows, once they are written. Raises RuntimeError where they are not after `timeout` seconds."""
    end, begun = os.path.join(os.path.dirname(path), _END), time.monotonic()
    while not os.path.exists(end):
        if time.monotonic() - begun > timeout:
            raise RuntimeError(message(f"dim_reduce waited {timeout:g} s for {end}", "the first process of the server to write it"))
        time.sleep(0.5)
    found: np.ndarray = np.load(path)
    return found
