"""`ops.GetNext`: the next row of a dataset's queue, inside a network."""
from __future__ import annotations

from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.text import message, short
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture import running_trace
from torchspore.graph.refusal import Kind
from torchspore.mindspore.common import data_queues
from torchspore.mindspore.ops.declaration.primitive import Primitive


class GetNext(Primitive):
    """Return the next row of the queue `shared_name` (see `Dataset.device_que`): `output_num` Tensors of these dtypes and shapes.

    A length of -1 or None may be any. Raises TypeError if `types` or `shapes` is not a list or tuple, ValueError if their number is not
    `output_num`. A call raises ValueError for a name that no queue has and for a row of other dtypes or shapes, RuntimeError if no row
    remains. In GRAPH_MODE the call takes its row between two graphs.
    """

    def __init__(self, types: Any, shapes: Any, output_num: int, shared_name: str) -> None:
        super().__init__("GetNext")
        for name, value in (("types", types), ("shapes", shapes)):
            if not isinstance(value, (list, tuple)):
                raise TypeError(message(f"GetNext({name}={short(value)})", f"a list or tuple, got {type(value).__name__}"))
        check_int_type("GetNext", "output_num", output_num)
        if not isinstance(shared_name, str):
            raise TypeError(message(f"GetNext(shared_name={short(shared_name)})", f"a str, got {type(shared_name).__name__}"))
        if not len(types) == len(shapes) == output_num:
            description = f"GetNext of {len(types)} types, {len(shapes)} shapes and output_num={output_num}"
            raise ValueError(message(description, "as many of each"))
        self._shapes = [_shape(shape) for shape in shapes]
        self._types = [dtypes.to_torch(dtype) for dtype in types]
        for name, value in (("types", types), ("shapes", shapes), ("output_num", output_num), ("shared_name", shared_name)):
            self.add_prim_attr(name, value)

    def __call__(self) -> tuple[Any, ...]:
        running_trace.ends_trace("reads a row of a data queue", Kind.READS_VALUES)
        row = tuple(data_queues.take(self.attrs["shared_name"]))
        fits = len(row) == len(self._types) and all(map(_fits, row, self._types, self._shapes))
        if not fits:
            actual_row = ", ".join(f"{getattr(value, 'dtype', type(value).__name__)}{list(getattr(value, 'shape', ()))}" for value in row)
            expected_row = ", ".join(f"{kind}{list(shape)}" for kind, shape in zip(self.attrs["types"], self.attrs["shapes"]))
            raise ValueError(message(f"GetNext of {self.attrs['shared_name']!r}: a row of {actual_row}", expected_row))
        return row


def _shape(value: Any) -> tuple[int | None, ...]:
    if not isinstance(value, (list, tuple)) or not all(length is None or type(length) is int for length in value):
        raise TypeError(message(f"GetNext(shapes=[{short(value)}, ...])", "lists of ints, with -1 or None for a length that varies"))
    return tuple(None if length == -1 else length for length in value)


def _fits(value: Any, kind: Any, shape: tuple[int | None, ...]) -> bool:
    if not isinstance(value, TensorBase) or dtypes.to_torch(value.dtype) != kind or len(value.shape) != len(shape):
        return False
    return all(expected_length in (None, length) for expected_length, length in zip(shape, value.shape))
