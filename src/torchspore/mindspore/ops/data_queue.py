"""`ops.GetNext`: the next row of a dataset's queue, inside a network."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.engine.core import dtypes
from torchspore.engine.core.tensor import TensorBase
from torchspore.graph.capture import trace_guard_hooks
from torchspore.graph.refusal import Kind
from torchspore.mindspore.ops.primitive import Primitive


class GetNext(Primitive):
    """The next row of the queue `shared_name` (see `Dataset.device_que`): a tuple of `output_num` Tensors, of these dtypes and shapes.

    A length of -1 or None may be any. Raises TypeError where `types` or `shapes` is no list or tuple, ValueError where their number is
    not `output_num`; when called, ValueError for a name that no queue has and for a row of other dtypes or shapes, RuntimeError where
    no row is left. In GRAPH_MODE the call takes its row between two graphs.
    """

    def __init__(self, types: Any, shapes: Any, output_num: int, shared_name: str) -> None:
        super().__init__("GetNext")
        for name, value in (("types", types), ("shapes", shapes)):
            if not isinstance(value, (list, tuple)):
                raise TypeError(message(f"GetNext({name}={short(value)})", f"a list or tuple, got {type(value).__name__}"))
        if isinstance(output_num, bool) or not isinstance(output_num, int):
            raise TypeError(message(f"GetNext(output_num={short(output_num)})", f"an int, got {type(output_num).__name__}"))
        if not isinstance(shared_name, str):
            raise TypeError(message(f"GetNext(shared_name={short(shared_name)})", f"a str, got {type(shared_name).__name__}"))
        if not len(types) == len(shapes) == output_num:
            given = f"GetNext of {len(types)} types, {len(shapes)} shapes and output_num={output_num}"
            raise ValueError(message(given, "as many of each"))
        self._shapes = [_shape(one) for one in shapes]
        self._types = [dtypes.to_torch(one) for one in types]
        for name, value in (("types", types), ("shapes", shapes), ("output_num", output_num), ("shared_name", shared_name)):
            self.add_prim_attr(name, value)

    def __call__(self) -> tuple[Any, ...]:
        from torchspore.mindspore.dataset.engine import device_queue

        trace_guard_hooks.ends_trace("takes a row of a data queue", Kind.READS_VALUES)
        row = tuple(device_queue.take(self.attrs["shared_name"]))
        fits = len(row) == len(self._types) and all(map(_fits, row, self._types, self._shapes))
        if not fits:
            given = ", ".join(f"{getattr(one, 'dtype', type(one).__name__)}{list(getattr(one, 'shape', ()))}" for one in row)
            wanted = ", ".join(f"{kind}{list(shape)}" for kind, shape in zip(self.attrs["types"], self.attrs["shapes"]))
            raise ValueError(message(f"GetNext of {self.attrs['shared_name']!r}: a row of {given}", wanted))
        return row


def _shape(value: Any) -> tuple[int | None, ...]:
    if not isinstance(value, (list, tuple)) or not all(one is None or type(one) is int for one in value):
        raise TypeError(message(f"GetNext(shapes=[{short(value)}, ...])", "lists of ints, -1 or None for a length that may be any"))
    return tuple(None if one == -1 else one for one in value)


def _fits(value: Any, kind: Any, shape: tuple[int | None, ...]) -> bool:
    if not isinstance(value, TensorBase) or dtypes.to_torch(value.dtype) != kind or len(value.shape) != len(shape):
        return False
    return all(wanted in (None, given) for wanted, given in zip(shape, value.shape))
