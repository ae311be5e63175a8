"""The layouts of the Parameters of split graphs on each process, recorded while `enable_save_strategy_online` is set."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchspore.context.store import STORE
from torchspore.engine.tensors.tensor import TensorBase

if TYPE_CHECKING:
    from torchspore.distributed.shard.sharded_capture import ShardedCapture


@dataclass(frozen=True)
class Lying:
    """A Parameter: device matrix, tensor map, dtype, the full shape, and the processes that store it."""

    matrix: tuple[int, ...]
    tensor_map: tuple[Any, ...]
    dtype: str
    shape: tuple[int, ...]
    ranks: tuple[int, ...]


class _Recording:
    """The switch that makes graphs record their layouts."""

    def __init__(self) -> None:
        self.is_on = False
        """True if graphs are noted."""


RECORDING = _Recording()
_graphs: list[tuple[list[Any], dict[str, Lying]]] = []
"""The Parameters of each graph with their layouts by name, the latest graph last."""


def enable() -> None:
    """Record each graph that is compiled from now on."""
    RECORDING.is_on = True


def clear() -> None:
    """Forget all graphs."""
    _graphs.clear()


def note(sharded_capture: ShardedCapture, lifted: Sequence[Any]) -> None:
    """Record a graph that was split."""
    if not RECORDING.is_on:
        return
    only_trained = bool(STORE.get("auto_parallel.strategy_ckpt_config.only_trainable_params"))
    layouts = {}
    parameters = {str(item.name): item for item in lifted if isinstance(item, TensorBase) and hasattr(item, "name")}
    for name, (matrix, tensor_map, shape, is_trained) in sharded_capture.parameters.items():
        is_weight = is_trained and len(shape) > 0 and parameters[name]._t.is_floating_point()
        if is_weight or not only_trained:
            stage = sharded_capture.homes.get(name)
            stages = range(sharded_capture.stages) if stage is None else (stage,)
            ranks = tuple(stage * sharded_capture.count + at for stage in stages for at in range(sharded_capture.count))
            layouts[name] = Lying(matrix, tensor_map, str(parameters[name]._t.dtype).removeprefix("torch."), shape, ranks)
    ids = {id(parameter) for parameter in parameters.values()}
    _graphs[:] = [graph_entry for graph_entry in _graphs if {id(p) for p in graph_entry[0]} != ids]
    _graphs.append((list(parameters.values()), layouts))


def of(parameters: Iterable[Any]) -> dict[str, Lying] | None:
    """Return the layouts of the Parameters of the last graph that contains one of these, or None."""
    ids = {id(parameter) for parameter in parameters}
    return next((layouts for inputs, layouts in reversed(_graphs) if any(id(parameter) in ids for parameter in inputs)), None)
