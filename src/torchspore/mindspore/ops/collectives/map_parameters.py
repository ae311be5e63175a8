"""The primitives of MapParameter, which are equal to its methods."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore.ops.declaration.declare import explaining, op


def _table(value: Any) -> Any:
    if not hasattr(value, "get_keys"):
        raise TypeError(f"expected a MapParameter, got {type(value).__name__}.")
    return value


@op(primitive="MapTensorGet", init=("insert_default_value",), raw_arguments=True)
@explaining
def _map_tensor_get(map_tensor: Any, key_tensor: Any, insert_default_value: bool) -> Any:
    """The values of the keys of a MapParameter; see its `get`."""
    return _table(map_tensor).get(key_tensor, insert_default_value)


@op(primitive="MapTensorPut", raw_arguments=True)
@explaining
def _map_tensor_put(map_tensor: Any, key_tensor: Any, value_tensor: Any) -> Any:
    """Set the values of keys of a MapParameter."""
    return _table(map_tensor).put(key_tensor, value_tensor)


@op(primitive="MapTensorErase", raw_arguments=True)
@explaining
def _map_tensor_erase(map_tensor: Any, key_tensor: Any) -> Any:
    """Remove keys from a MapParameter."""
    return _table(map_tensor).erase(key_tensor)


@op(primitive="MapTensorGetKeys", raw_arguments=True)
@explaining
def _map_tensor_get_keys(map_tensor: Any) -> Any:
    """All keys of a MapParameter."""
    return _table(map_tensor).get_keys()


@op(primitive="MapTensorGetValues", raw_arguments=True)
@explaining
def _map_tensor_get_values(map_tensor: Any) -> Any:
    """The values of all keys of a MapParameter."""
    return _table(map_tensor).get_values()


@op(primitive="MapTensorGetData", raw_arguments=True)
@explaining
def _map_tensor_get_data(map_tensor: Any) -> Any:
    """All keys of a MapParameter, and their values."""
    return _table(map_tensor).get_data()
