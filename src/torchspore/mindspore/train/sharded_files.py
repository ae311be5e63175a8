"""`format='dcp'` of `save_checkpoint` and `load_checkpoint`: a folder to which each process writes the parts that it stores."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.checkpoint_file import TEXT, Entry
from torchspore.base.text import message
from torchspore.distributed.checkpoints import index, loading, saving
from torchspore.distributed.comm import groups
from torchspore.engine.tensors.delayed_values import DelayedValue
from torchspore.engine.tensors.tensor import wrap
from torchspore.mindspore.common import remote_parameters
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.experimental.map_parameter import MapParameter
from torchspore.mindspore.train import writer_threads

FORMAT = "dcp"
remove = saving.remove


def save(path: Path, values: dict[str, Any], is_async: bool, then: Callable[[], None] | None, description: str) -> None:
    """Save values as the checkpoint `path`; all processes must call it. `then()` runs in the first process when it is complete."""
    mine = saving.contents(path, {name: _tensor(name, value) for name, value in values.items()})
    writer_threads.wait()
    process_group = saving.prepare(is_async)

    def write() -> None:
        saving.save(mine, process_group)
        if then is not None and groups.rank() == 0:
            then()

    if is_async:
        mine = mine.copied()
        writer_threads.start(write, description)
    else:
        write()


def _tensor(name: str, value: Any) -> Any:
    """Return a Tensor or a text. Raises TypeError for values that have no parts in this process."""
    if isinstance(value, MapParameter) or remote_parameters.is_remote(value):
        kind = "a MapParameter" if isinstance(value, MapParameter) else "on a parameter server"
        hint = "choice_func=... leaves it out; format='ckpt' saves values of servers"
        raise TypeError(message(f"save_checkpoint(format='dcp'): {name!r} is {kind}", "Tensors of the processes", hint=hint))
    if getattr(value, "layerwise_parallel", False) and groups.size() > 1:
        raise TypeError(message(f"save_checkpoint(format='dcp'): {name!r} has layerwise_parallel=True, so that it differs by process",
                                "Parameters that all processes share", hint="choice_func=... leaves it out"))
    if isinstance(value, (Tensor, str)):
        return value
    if isinstance(value, np.ndarray):
        return Tensor(value)
    kinds: tuple[tuple[type, Any], ...] = ((bool, np.bool_), (int, np.int64), (float, np.float32))
    return Tensor(np.array(value, next(numpy_type for kind, numpy_type in kinds if isinstance(value, kind))))


def load(path: Path, is_chosen: Callable[[str], bool], checks_all: bool) -> dict[str, Any]:
    """Return the chosen values of a checkpoint. One of several processes reads elements when they are needed: its part alone."""
    checkpoint = loading.Checkpoint(path, checks_all)
    return {
        name: value if isinstance(value, str) else _parameter(checkpoint, name, value)
        for name, value in checkpoint.values.items() if is_chosen(name)
    }


def _parameter(checkpoint: loading.Checkpoint, name: str, value: index.StoredValue) -> Parameter:
    stored = loading.StoredElements(checkpoint, name, value.shape, index.TORCH_TYPES[value.type_name])
    return Parameter(wrap(stored.draw() if groups.size() == 1 else DelayedValue(stored)), name=name)


def entries(path: Path) -> Iterator[Entry]:
    """Yield the full values of a checkpoint as entries of a file, one at a time."""
    checkpoint = loading.Checkpoint(path)
    for name, value in checkpoint.values.items():
        if isinstance(value, str):
            yield Entry(name, TEXT, (), value)
        else:
            t = checkpoint.read(name)
            array = t.view(index.TORCH_TYPES["UInt16"]).numpy() if value.type_name == "BFloat16" else t.numpy()
            yield Entry(name, value.type_name, value.shape, array)
