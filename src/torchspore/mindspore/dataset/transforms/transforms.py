"""Transforms for any data: types, one-hot codes, slices, and combinations of transforms."""
from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.engine.tensors import dtypes
from torchspore.mindspore.dataset.core.operation import PyTensorOperation, TensorOperation, flatten, run_chain
from torchspore.mindspore.dataset.core.randomness import generator, happens
from torchspore.mindspore.dataset.core.validator_helpers import check_int, check_number, check_type, with_sentence


class Relational(IntEnum):
    """The comparisons of `Mask`."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


def numpy_type(call: str, argument: str, data_type: Any) -> np.dtype:
    """Return the NumPy dtype for a MindSpore dtype, a NumPy one, or the name of one. Raises TypeError for anything else."""
    from torchspore.mindspore.common import dtype as mstype

    try:
        if data_type is None:
            raise TypeError
        if isinstance(data_type, mstype.Type):
            return np.dtype(mstype.dtype_to_nptype(data_type))
        return np.dtype(data_type)
    except TypeError:
        subject = f"{call}({argument}={short(data_type)})"
        raise TypeError(
            message(subject, "a dtype such as mindspore.float32 or numpy.float32", hint=f"write {call}(mindspore.float32)")
        ) from None


_VALUES = (str, float, bool, int, bytes)
"""The classes of one value of an array."""


class TypeCast(TensorOperation):
    """Converts to a dtype. Raises TypeError if that is not a dtype."""

    def __init__(self, data_type: Any) -> None:
        self._dtype = numpy_type(type(self).__name__, "data_type", data_type)

    def _apply(self, value: np.ndarray) -> np.ndarray:
        if value.dtype.kind in "US":
            subject = f"{type(self).__name__}({self._dtype}) of {value.dtype}"
            raise RuntimeError(message(subject, "numbers", hint="write text.ToNumber(...)"))
        with np.errstate(over="ignore"):
            if value.dtype.kind == "f" and self._dtype.kind in "iu":
                # Out-of-range values wrap around, as in MindSpore; NumPy leaves them undefined.
                return value.astype(np.int64).astype(self._dtype)
            return value.astype(self._dtype)

    _apply_stack = _apply


class OneHot(TensorOperation):
    """Converts class numbers () or (N,) to rows of `num_classes`: 1 at the class, 0 elsewhere; smoothed by `smoothing_rate`.

    The result has the class numbers' dtype, with smoothing float64. Raises RuntimeError for a class number that is not below `num_classes`.
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        check_int("OneHot", "num_classes", num_classes, 1)
        check_number("OneHot", "smoothing_rate", smoothing_rate, 0, 1)
        self.num_classes, self.smoothing_rate = num_classes, smoothing_rate

    def _apply(self, value: np.ndarray) -> np.ndarray:
        if value.dtype.kind not in "iu" or value.ndim > 1:
            raise RuntimeError(message(f"OneHot of {value.dtype} {list(value.shape)}", "an int or a row of ints"))
        if value.size and int(value.max()) >= self.num_classes:
            raise RuntimeError(
                message(f"OneHot(num_classes={self.num_classes}) of {int(value.max())}", f"a class below {self.num_classes}")
            )
        rows = np.zeros((value.size, self.num_classes), value.dtype)
        numbers = value.reshape(-1)
        valid = np.flatnonzero(numbers >= 0)
        rows[valid, numbers[valid]] = 1
        coded = rows[0] if value.size == 1 else rows
        if not self.smoothing_rate:
            return coded
        return coded * (1.0 - self.smoothing_rate) + self.smoothing_rate / self.num_classes


def _check_kinds(call: str, value: np.ndarray, other: np.ndarray) -> None:
    """Raises RuntimeError if one value is text and the other a number."""
    if (value.dtype.kind in "US") != (other.dtype.kind in "US"):
        raise RuntimeError(message(f"{call} with {short(other.item())} of {value.dtype}", "text with text, or numbers with numbers"))


class Fill(TensorOperation):
    """Fills an array of the same shape and dtype with one value."""

    def __init__(self, fill_value: Any) -> None:
        check_type("Fill", "fill_value", fill_value, _VALUES, "one number, text or bytes")
        self._value = np.asarray(fill_value)
        if self._value.ndim:
            raise TypeError(message(f"Fill({short(fill_value)})", "one number, text or bytes"))

    def _apply(self, value: np.ndarray) -> np.ndarray:
        _check_kinds("Fill", value, self._value)
        if value.dtype.kind in "SU":
            return np.full(value.shape, self._value)
        return np.full(value.shape, self._value.astype(value.dtype))


class Concatenate(TensorOperation):
    """Joins the columns along `axis`, with `prepend` before and `append` after them. Returns one column."""

    def __init__(self, axis: int = 0, prepend: Any = None, append: Any = None) -> None:
        check_type("Concatenate", "axis", axis, int, "an int")
        if axis not in (0, -1):
            raise ValueError(with_sentence(message(f"Concatenate(axis={axis})", "0 or -1"), "only 1D concatenation supported."))
        for name, value in (("prepend", prepend), ("append", append)):
            if value is not None:
                check_type("Concatenate", name, value, np.ndarray, "a NumPy array")
                if value.ndim != 1:
                    text = message(f"Concatenate({name} of shape {list(value.shape)})", "one axis")
                    raise ValueError(with_sentence(text, f"can only {name} 1D arrays."))
        self.axis, self._before, self._after = axis, prepend, append

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        parts = [part for part in (self._before, *values, self._after) if part is not None]
        if any(part.ndim > 1 for part in parts):
            text = message(f"Concatenate of shapes {[list(part.shape) for part in parts]}", "one axis")
            raise RuntimeError(with_sentence(text, "Concatenate: only 1D input supported."))
        parts = [part.reshape(-1) for part in parts]
        kinds = {part.dtype.kind if part.dtype.kind in "US" else part.dtype for part in parts}
        if len(kinds) != 1:
            text = message(f"Concatenate of {[str(part.dtype) for part in parts]}", "one dtype")
            raise RuntimeError(with_sentence(text, "Concatenate: input datatype does not match."))
        return (np.concatenate(parts, self.axis),)


class Duplicate(TensorOperation):
    """Returns a column twice."""

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        if len(values) != 1:
            text = message(f"Duplicate of {len(values)} columns", "one column")
            raise RuntimeError(with_sentence(text, "The op is OneToOne, can only accept one tensor as input."))
        return values[0], values[0].copy()


class Unique(TensorOperation):
    """Returns the different values in the order of their first appearance, the index of each element's value, and the counts.
    """

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        if len(values) != 1:
            text = message(f"Unique of {len(values)} columns", "one column")
            raise RuntimeError(with_sentence(text, "The op is OneToOne, can only accept one tensor as input."))
        if values[0].dtype.kind not in "biuf":
            raise RuntimeError(message(f"Unique of {values[0].dtype}", "numbers"))
        values_in_order, first, index, count = np.unique(values[0].reshape(-1), return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return values_in_order[order], rank[index.reshape(-1)].astype(np.int32), count[order].astype(np.int32)


class Mask(TensorOperation):
    """Compares each element with `constant`; the result has the dtype `dtype`."""

    def __init__(self, operator: Relational, constant: Any, dtype: Any = dtypes.bool_) -> None:
        check_type("Mask", "operator", operator, Relational, "a member of Relational")
        check_type("Mask", "constant", constant, (str, float, bool, int, bytes), "a number or text")
        self._compare = {
            Relational.EQ: np.equal, Relational.NE: np.not_equal, Relational.GT: np.greater, Relational.GE: np.greater_equal,
            Relational.LT: np.less, Relational.LE: np.less_equal,
        }[operator]
        self._constant, self._dtype = constant, numpy_type("Mask", "dtype", dtype)

    def _apply(self, value: np.ndarray) -> np.ndarray:
        _check_kinds("Mask", value, np.asarray(self._constant))
        return self._compare(value, np.asarray(self._constant).astype(value.dtype)).astype(self._dtype)


class PadEnd(TensorOperation):
    """Pads or cuts each axis at its end to `pad_shape` (None leaves an axis); `pad_value` is 0 or empty text by default."""

    def __init__(self, pad_shape: list[int | None], pad_value: Any = None) -> None:
        check_type("PadEnd", "pad_shape", pad_shape, list, "a list of sizes")
        for size in pad_shape:
            if size is not None:
                check_int("PadEnd", "pad_shape", size, 1)
        if pad_value is not None:
            check_type("PadEnd", "pad_value", pad_value, _VALUES, "one number, text or bytes")
        self._shape, self._value = pad_shape, pad_value

    def _apply(self, value: np.ndarray) -> np.ndarray:
        if len(self._shape) != value.ndim:
            raise RuntimeError(message(f"PadEnd({self._shape}) of shape {list(value.shape)}", f"{value.ndim} sizes"))
        target_shape = [current_size if size is None else size for size, current_size in zip(self._shape, value.shape)]
        fill = self._value if self._value is not None else ("" if value.dtype.kind == "U" else b"" if value.dtype.kind == "S" else 0)
        _check_kinds("PadEnd", value, np.asarray(fill))
        result = np.full(target_shape, fill, value.dtype)
        part = tuple(slice(0, min(size, current_size)) for size, current_size in zip(target_shape, value.shape))
        result[part] = value[part]
        return result


    def _apply_rows(self, values: list[np.ndarray]) -> list[np.ndarray]:
        first = values[0]
        if len(self._shape) != 1 or self._shape[0] is None or first.dtype.kind not in "biuf" or any(
            value.ndim != 1 or value.dtype != first.dtype for value in values
        ):
            return [self._apply(value) for value in values]
        size = self._shape[0]
        result = np.full((len(values), size), 0 if self._value is None else self._value, first.dtype)
        for row, value in zip(result, values):
            row[: len(value)] = value[:size]
        return list(result)

    def _after(self, before: Any) -> Any:
        """Return this step merged with a previous one that can return concatenated rows; otherwise None."""
        has_fixed_length = len(self._shape) == 1 and self._shape[0] is not None
        return _Filled(before.ragged, self._shape[0], self._value) if has_fixed_length and hasattr(before, "ragged") else None


class _Filled:
    """PadEnd of concatenated rows of numbers, all in one operation."""

    def __init__(self, ragged: Callable[[list[np.ndarray]], tuple[np.ndarray, np.ndarray]], size: Any, fill: Any) -> None:
        self._ragged, self._size, self._fill = ragged, size, 0 if fill is None else fill

    def _apply_rows(self, values: list[np.ndarray]) -> np.ndarray:
        numbers, lengths = self._ragged(values)
        result = np.full((len(values), self._size), self._fill, numbers.dtype)
        at = np.arange(len(numbers)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        row = np.repeat(np.arange(len(values)), lengths)
        if lengths.max() > self._size:
            fits = at < self._size
            numbers, at, row = numbers[fits], at[fits], row[fits]
        result[row, at] = numbers
        return result


class Slice(TensorOperation):
    """Indexes an array: an int, a list of ints, a slice, None or ... for each axis."""

    def __init__(self, *slices: Any) -> None:
        for index in slices:
            if not isinstance(index, (int, list, slice, bool, type(...), type(None))):
                raise TypeError(message(f"Slice({short(index)})", "ints, lists of ints, slices, None or ..."))
            if isinstance(index, list) and any(not is_int(part) for part in index):
                raise TypeError(message(f"Slice({short(index)})", "lists of ints"))
        self._slices = slices

    def _apply(self, value: np.ndarray) -> np.ndarray:
        result = value
        if len(self._slices) > value.ndim:
            raise RuntimeError(message(f"Slice{self._slices} of shape {list(value.shape)}", f"at most {value.ndim} slices"))
        for axis, index in enumerate(self._slices):
            if index is None or index is True or index is ...:
                continue
            positions = range(value.shape[axis])[index] if isinstance(index, slice) else index if isinstance(index, list) else [index]
            size = value.shape[axis]
            if any(not -size <= position < size for position in positions):
                raise RuntimeError(message(f"Slice({short(index)}) of shape {list(value.shape)}", f"places from {-size} to {size - 1}"))
            result = np.take(result, list(positions), axis)
        return result


class _Combined(PyTensorOperation):
    """Base of the transforms that combine others; they run in one thread if one of them is a Python function."""

    def __init__(self, transforms: Any) -> None:
        name = type(self).__name__
        check_type(name, "transforms", transforms, list, "a list of functions or transforms")
        if not transforms:
            raise ValueError(message(f"{name}([])", "at least one function or transform"))
        for position, step in enumerate(flatten(transforms)):
            if not callable(step):
                raise TypeError(
                    message(f"{name}: transforms[{position}] = {short(step)}", f"a function or transform, got {type(step).__name__}")
                )
        self.transforms = transforms

    @property
    def runs_in_any_order(self) -> bool:  # type: ignore[override]
        return all(getattr(transform, "runs_in_any_order", False) for transform in flatten(self.transforms))

    def __call__(self, *values: Any) -> Any:
        results = self._apply_all(*values)
        return results[0] if len(results) == 1 else results


class Compose(_Combined):
    """Applies transforms in sequence."""

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        return run_chain(flatten(self.transforms), values)

    @staticmethod
    def reduce(operations: Any) -> Any:
        """The list unchanged: chains are not merged here."""
        return operations


class RandomApply(_Combined):
    """Applies all of the transforms in sequence with probability `prob`, otherwise none."""

    def __init__(self, transforms: Any, prob: float = 0.5) -> None:
        super().__init__(transforms)
        check_number("RandomApply", "prob", prob, 0, 1)
        self.prob = prob

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        return run_chain(flatten(self.transforms), values) if happens(self.prob) else values


class RandomChoice(_Combined):
    """Applies one of the transforms, chosen uniformly."""

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        chosen = self.transforms[int(generator().integers(len(self.transforms)))]
        return run_chain(flatten([chosen]), values)


class RandomOrder(_Combined):
    """Applies all of the transforms in random order."""

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        order = generator().permutation(len(self.transforms))
        return run_chain(flatten([self.transforms[position] for position in order]), values)


class Plugin(TensorOperation):
    """MindSpore's loader for a transform in a library compiled against its C++; raises an error, because it can't be loaded here."""

    def __init__(self, lib_path: str, func_name: str, user_args: str | None = None) -> None:
        for name, value in (("lib_path", lib_path), ("func_name", func_name), ("user_args", user_args)):
            if value is not None or name != "user_args":
                check_type("Plugin", name, value, str, "a str")
        raise RuntimeError(
            message(
                f"Plugin({lib_path!r}, {func_name!r})", "a transform in Python: the library was built for MindSpore's own C++ data engine",
                hint="write a Python function, and give it to map",
            )
        )


def not_random(function: Any) -> Any:
    """Marks a function as one that draws no random numbers."""
    function.random = False
    return function
