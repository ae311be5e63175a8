"""Parameters of a worker whose values servers store: tables of embeddings, and the states of optimizers."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torchspore.base.frames import user_line
from torchspore.base.lazy_modules import import_lazily
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.mindspore.common.parameter import Parameter

if TYPE_CHECKING:
    from torchspore.distributed.parameter_server import operators, values
else:
    import_lazily(globals(), "torchspore.distributed.parameter_server.operators", "torchspore.distributed.parameter_server.values")


class RemoteParameter(Parameter):
    """A Parameter with its shape in this process and its values on servers."""

    __slots__ = ()

    def asnumpy(self) -> Any:
        """Return all values, fetched from the servers."""
        return self.value().asnumpy()

    def value(self) -> Any:
        """Return a Tensor of all values, fetched from the servers."""
        key, index, state = self.__dict__["remote"]
        return wrap(operators.CONNECTION.client.pull(key, index, self._t, state))

    def row_blocks(self) -> Iterator[Any]:
        """Yield all values as Tensors of some megabytes, in the order of the rows."""
        key, index, state = self.__dict__["remote"]
        yield from map(wrap, operators.CONNECTION.client.blocks(key, index, self._t, state))

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:  # noqa: ARG002
        """Send values to the servers: those of worker 0. Return the Parameter. Raises ValueError for another shape."""
        key, index, state = self.__dict__["remote"]
        new_values = raw(data).to(self._t.dtype)
        if new_values.shape != self._t.shape:
            raise ValueError(f"{user_line()}: set_data of {self.name!r}, which servers store: expected shape {list(self._t.shape)}, got "
                             f"{list(new_values.shape)}.")
        operators.CONNECTION.client.load(key, index, new_values, state)
        return self

    def __repr__(self) -> str:
        return f"Parameter (name={self.name}, shape={tuple(self.shape)}, dtype={self.dtype}, stored on servers)"

    __str__ = __repr__


def make_remote(parameter: Any, key: str, index: int, state: str | None = None) -> None:
    """Release the values of a Parameter, which servers store from now on: those of a plan's item, or a state of its optimizer."""
    parameter._t = values.unreadable(parameter._t)
    parameter.__dict__["remote"] = key, index, state
    parameter.__class__ = RemoteParameter


def is_remote(parameter: Any) -> bool:
    """Return whether servers store the values of a Parameter."""
    return type(parameter) is RemoteParameter


def lookup(parameter: Any, indices: Any) -> Any:
    """Return the rows of a remote table at `indices` (n,); in a graph, the lookup is an operator."""
    key, index, _ = parameter.__dict__["remote"]
    return operators.rows(indices.long(), key, index, list(parameter.shape[1:]), parameter._t.dtype)
