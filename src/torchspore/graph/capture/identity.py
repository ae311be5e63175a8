"""Which Tensors of a call are the same object, and the form of each: a graph has one input for a Tensor with two names."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture.state import Read, current, tensors_in
from torchspore.graph.capture.trace_guard import TraceGuard


class Identities:
    """The arguments, inputs and variables of a trace that were the same Tensor."""

    def __init__(self, watch: TraceGuard, arguments: Sequence[TensorBase], inputs: Sequence[Any]) -> None:
        homes, met = watch.homes, watch.roads.tensors()
        positions = [(position, item) for position, item in enumerate(arguments) if id(item) in met]
        self.in_attributes: list[tuple[int, Read]] = [(index, homes[id(item)]) for index, item in positions if id(item) in homes]
        """The arguments that the trace also met in attributes and variables, with their positions."""
        self.in_containers: list[tuple[int, TensorBase]] = [(index, item) for index, item in positions if id(item) not in homes]
        """Those that it met inside of a list, a dict or an object, whose contents count by identity."""
        reads = list(watch.reads.values())
        self.ids_in_containers = frozenset(watch.contents.tensors().union(id(item) for read in reads for item in tensors_in(read.value)))
        """The ids of all Tensors inside of lists, dicts and objects that the trace read."""
        self.pinned = [read for read in reads if id(read.value) in self.ids_in_containers and isinstance(read.value, TensorBase)]
        """Names of such Tensors: the graph has one input for both, and serves while the name has this very Tensor."""
        self.tensors = [read for read in reads if isinstance(read.value, TensorBase)]
        """The names that have Tensors."""
        self._first = _first_positions([read.value for read in self.tensors])
        self.forms = [form_of(item) if isinstance(item, TensorBase) else None for item in inputs]
        """The form of each input that is a Tensor."""

    def are_held(self) -> bool:
        """Return whether the names that had one Tensor have one, and those of `pinned` the Tensor that they had."""
        return _first_positions(current(self.tensors)) == self._first and all(read.now() is read.value for read in self.pinned)

    def fit(self, inputs: Sequence[Any]) -> bool:
        """Return whether the inputs that are Tensors have the forms that they had."""
        return all(not isinstance(item, TensorBase) or form_of(item) == form for item, form in zip(inputs, self.forms))


def _first_positions(values: Iterable[Any]) -> list[int]:
    """For each value the first position of the same object."""
    first: dict[int, int] = {}
    return [first.setdefault(id(value), position) for position, value in enumerate(values)]


def form_of(tensor: TensorBase) -> Any:
    """Return the properties of an input other than an argument that a graph depends on."""
    t = tensor._t
    return (t.shape, t.stride(), t.dtype, t.device, tensor.__dict__.get("_requires_grad"))
