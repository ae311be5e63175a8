"""`MapParameter`: rows of values with integer keys, for embeddings of open vocabularies."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from torchspore.engine.tensors import creation, dtypes
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture import running_trace
from torchspore.graph.refusal import Kind
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.initializer import initializer
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor

_UNCHANGED, _CHANGED, _ERASED = 0, 1, 2


class MapParameter(Parameter):
    """A Parameter whose rows of `value_shape` have integer keys; a new key gets a row of `default_value` when it is first requested.

    `key_dtype` and `value_dtype` are those of keys and values, or of `key_tensor` and `value_tensor`, the initial contents. `default_value`
    is a number or an initializer's name. A key gets its row when it is requested for the `permit_filter_value`th time. Nothing is
    evicted, so `evict_filter_value` must have MindSpore's default. Raises ValueError if a dtype or shape differs from that of the Tensor
    for it. Optimizers train its values, (number of keys, *value_shape); a key that is first requested while a
    gradient is computed is refused.
    """

    def __init__(
        self, key_dtype: Any = None, value_dtype: Any = None, value_shape: Any = None, key_tensor: Any = None, value_tensor: Any = None,
        default_value: Any = "normal", permit_filter_value: int = 1, evict_filter_value: int = sys.maxsize, name: str | None = None,
        requires_grad: bool = True,
    ) -> None:
        shape = (value_shape,) if isinstance(value_shape, int) else None if value_shape is None else tuple(value_shape)
        keys = [] if key_tensor is None else key_tensor.asnumpy().reshape(-1).tolist()
        self.key_dtype = _agreed("key_dtype", key_dtype, None if key_tensor is None else key_tensor.dtype) or mstype.int32
        self.value_dtype = _agreed("value_dtype", value_dtype, None if value_tensor is None else value_tensor.dtype) or mstype.float32
        if value_tensor is not None and value_tensor.shape[:1] != (len(keys),):
            raise ValueError(f"MapParameter: expected a value for each of the {len(keys)} keys, got values of shape {value_tensor.shape}.")
        if value_tensor is not None:
            shape = shape[1:] if shape == value_tensor.shape else shape
        self.value_shape = _agreed("value_shape", shape, None if value_tensor is None else value_tensor.shape[1:]) or (1,)
        if not dtypes.to_torch(self.key_dtype).is_signed or dtypes.to_torch(self.key_dtype).is_floating_point:
            raise TypeError(f"MapParameter(key_dtype={self.key_dtype}): expected a signed integer dtype.")
        if evict_filter_value != sys.maxsize:
            raise ValueError(f"MapParameter(evict_filter_value={evict_filter_value}): expected {sys.maxsize}: no key is evicted here.")
        values = Tensor(np.zeros((0, *self.value_shape)), self.value_dtype) if value_tensor is None else value_tensor
        super().__init__(values, name=name, requires_grad=requires_grad)
        self.default_value, self.permit_filter_value, self.evict_filter_value = default_value, permit_filter_value, evict_filter_value
        self.key_tensor, self.value_tensor = key_tensor, value_tensor
        self._rows_by_key = {key: row for row, key in enumerate(keys)}
        self._status = dict.fromkeys(keys, _UNCHANGED)
        self._request_counts: dict[int, int] = {}

    # ---- rows

    def get(self, key_tensor: Any, insert_default_value: bool = True) -> Any:
        """The values of the keys, in key_tensor's shape plus `value_shape`; without `insert_default_value` new keys are not inserted."""
        keys = self._keys(key_tensor)
        new = [key for key in dict.fromkeys(keys) if key not in self._rows_by_key]
        for key in new:
            self._request_counts[key] = self._request_counts.get(key, 0) + 1
        inserted = [key for key in new if insert_default_value and self._request_counts[key] >= self.permit_filter_value]
        if inserted:
            self._add(inserted, self._fresh(len(inserted)))
        missing = [key for key in new if key not in self._rows_by_key]
        row_of = {**self._rows_by_key, **{key: len(self._rows_by_key) + at for at, key in enumerate(missing)}}
        values = engine.raw(self)
        if missing:
            values = _joined(values, self._fresh(len(missing)))
        rows = creation.from_data([row_of[key] for key in keys], dtypes.int64).to(values.device)
        return engine.wrap(values.index_select(0, rows).reshape(*key_tensor.shape, *self.value_shape))

    def put(self, key_tensor: Any, value_tensor: Any) -> MapParameter:
        """Set the values of the keys; for a repeated key, the last one counts. Return the MapParameter."""
        keys, values = self._keys(key_tensor), value_tensor
        if tuple(values.shape) != (*key_tensor.shape, *self.value_shape):
            raise ValueError(f"MapParameter.put: expected values of shape {(*key_tensor.shape, *self.value_shape)}, got {values.shape}.")
        new = [key for key in dict.fromkeys(keys) if key not in self._rows_by_key]
        if new:
            self._add(new, self._fresh(len(new)))
        last = {self._rows_by_key[key]: at for at, key in enumerate(keys)}
        rows = engine.raw(values).reshape(-1, *self.value_shape).to(self._t.dtype)
        into, source = (creation.from_data(list(part), dtypes.int64).to(rows.device) for part in (last.keys(), last.values()))
        engine.modify(self, lambda t: t.index_copy_(0, into, rows.detach().index_select(0, source)))
        self._status.update(dict.fromkeys(keys, _CHANGED))
        return self

    def erase(self, key_tensor: Any) -> MapParameter:
        """Remove the keys; unknown keys are ignored. Return the MapParameter."""
        gone = {key for key in self._keys(key_tensor) if key in self._rows_by_key}
        remaining = [key for key in self._rows_by_key if key not in gone]
        rows = creation.from_data([self._rows_by_key[key] for key in remaining], dtypes.int64)
        engine.rebind(self, self._t.index_select(0, rows.to(self._t.device)))
        self._rows_by_key = {key: row for row, key in enumerate(remaining)}
        self._status.update(dict.fromkeys(gone, _ERASED))
        return self

    __getitem__ = get

    def __setitem__(self, key_tensor: Any, value_tensor: Any) -> None:
        self.put(key_tensor, value_tensor)

    def get_keys(self) -> Any:
        """All keys, in the order of insertion."""
        running_trace.ends_trace("reads the keys of a MapParameter", Kind.READS_VALUES)
        return Tensor(np.array(list(self._rows_by_key), dtype=np.int64), self.key_dtype)

    def get_values(self) -> Any:
        """The values of all keys, in the order of `get_keys`."""
        return self.value()

    def get_data(self) -> tuple[Any, Any]:
        """All keys, and their values."""
        return self.get_keys(), self.get_values()

    # ---- in and out

    def export_data(self, incremental: bool = False) -> tuple[Any, Any, Any]:
        """Arrays of keys, values and states: 0 for unchanged since the last export, 1 for changed, 2 for erased, which have no values.

        `incremental` leaves out unchanged keys. Complete exports leave out erased keys.
        """
        exported = [key for key in self._rows_by_key if not incremental or self._status[key] == _CHANGED]
        gone = [key for key, state in self._status.items() if state == _ERASED] if incremental else []
        states = [self._status[key] for key in exported] + [_ERASED] * len(gone)
        values = self.asnumpy()[[self._rows_by_key[key] for key in exported]]
        self._status = dict.fromkeys(self._rows_by_key, _UNCHANGED)
        return np.array([*exported, *gone], dtype=self._numpy_keys()), values, np.array(states, np.int32)

    def export_bytes(self, incremental: bool = False) -> tuple[bytes, ...]:
        """Return the arrays of `export_data` as bytes."""
        return tuple(part.tobytes() for part in self.export_data(incremental))

    def export_slice_data(self, incremental: bool = False) -> tuple[Any, Any, Any, bool]:
        """As `export_data`, and whether that was the last slice: True, because there is only one slice."""
        return (*self.export_data(incremental), True)

    def import_data(self, data: Any) -> None:
        """Import keys and values from `export_data`; keys of state 2 are removed."""
        keys, values, states = data
        is_present = np.asarray(states) != _ERASED
        present, gone = np.asarray(keys)[is_present], np.asarray(keys)[~is_present]
        self.put(Tensor(present, self.key_dtype), Tensor(np.asarray(values), self.value_dtype))
        self.erase(Tensor(gone, self.key_dtype))
        self._status = dict.fromkeys(self._rows_by_key, _UNCHANGED)

    def clone(self, init: Any = "same") -> MapParameter:
        """An empty MapParameter of the same dtypes and shape; `init` is its default value, 'same' means this one's."""
        return MapParameter(
            self.key_dtype, self.value_dtype, self.value_shape, default_value=self.default_value if init == "same" else init,
            permit_filter_value=self.permit_filter_value, name=self.name, requires_grad=self.requires_grad,
        )

    def __repr__(self) -> str:
        return (
            f"MapParameter(MapTensor(key_dtype={self.key_dtype}, value_dtype={self.value_dtype}, value_shape={list(self.value_shape)}, "
            f"default_value={self.default_value}, permit_filter={self.permit_filter_value}, evict_filter={self.evict_filter_value}))"
        ).replace("mindspore.int", "Int").replace("mindspore.float", "Float")

    __str__ = __repr__

    # ---- inside

    def _keys(self, key_tensor: Any) -> list[int]:
        running_trace.ends_trace("looks keys of a MapParameter up", Kind.READS_VALUES)
        if not isinstance(key_tensor, TensorBase) or key_tensor.dtype != self.key_dtype:
            actual = key_tensor.dtype if isinstance(key_tensor, TensorBase) else type(key_tensor).__name__
            raise TypeError(f"MapParameter: expected keys in a Tensor of {self.key_dtype}, got {actual}.")
        return key_tensor.asnumpy().reshape(-1).tolist()

    def _numpy_keys(self) -> Any:
        return Tensor([0], self.key_dtype).asnumpy().dtype

    def _fresh(self, count: int) -> Any:
        """Return rows of the default value."""
        init = self.default_value
        if isinstance(init, str):
            return initializer(init, (count, *self.value_shape), self.value_dtype)
        return Tensor(np.full((count, *self.value_shape), init), self.value_dtype)

    def _add(self, keys: list[int], values: Any) -> None:
        if engine.frame() is not None:
            raise RuntimeError(
                f"MapParameter {self.name!r}: the keys {keys[:4]} are first requested while a gradient is computed, when the rows cannot "
                "grow.\n\nhint: write table.get(keys) before."
            )
        engine.rebind(self, _joined(self._t, values))
        for key in keys:
            self._rows_by_key[key] = len(self._rows_by_key)
        self._status.update(dict.fromkeys(keys, _CHANGED))


def _joined(values: Any, more: Any) -> Any:
    """Return rows with further rows appended."""
    combined = values.new_empty((values.shape[0] + more.shape[0], *values.shape[1:]))
    combined[: values.shape[0]] = values
    combined[values.shape[0]:] = engine.raw(more)
    return combined


def _agreed(name: str, value: Any, expected: Any) -> Any:
    if value is not None and expected is not None and value != expected:
        raise ValueError(f"MapParameter({name}={value}): expected {expected}, as the Tensor has it.")
    return expected if value is None else value
