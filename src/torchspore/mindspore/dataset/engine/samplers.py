"""Samplers: the selection of rows of an indexable source, and their order.

The seeded orders equal MindSpore 2.10's (`core/random_order.py`).
"""
from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.core.random_order import Twister32
from torchspore.mindspore.dataset.core.validator_helpers import INT64_MAX, check_bool, check_int, check_type


class Shuffle(str, Enum):
    """The scope of a shuffle: all rows, the order of files, or the rows within parts; the latter change per epoch or not."""

    GLOBAL = "global"
    FILES = "files"
    INFILE = "infile"
    ADAPTIVE = "adaptive"
    PARTIAL = "partial"


class BuiltinSampler:
    """Base of the samplers; a sampler chooses from the rows of its child. A user's subclass defines `__iter__`."""

    _accepts_groups_ = False
    """True if a custom sampler may yield a list or an array of indices: a GeneratorDataset reads `source[indices]` as a row, as in 1.x."""

    def __init__(self, num_samples: int | None = None) -> None:
        if num_samples is not None:
            check_int(type(self).__name__, "num_samples", num_samples, 0, INT64_MAX)
        self.num_samples = num_samples
        self.child_sampler: BuiltinSampler | None = None
        self.dataset_size = 0
        self.batch_size = 1

    def add_child(self, sampler: BuiltinSampler) -> None:
        """Adds `sampler`, from whose rows this one chooses. Raises RuntimeError if there is one already."""
        if self.child_sampler is not None:
            raise RuntimeError(message(f"{type(self).__name__}.add_child", "a sampler that has no child yet"))
        self.child_sampler = sampler

    def get_child(self) -> BuiltinSampler | None:
        """Returns the sampler of `add_child`, or None."""
        return self.child_sampler

    def get_num_samples(self) -> int | None:
        """Returns the maximum number of rows, None for no limit: the smaller one of this sampler's and its child's."""
        limit = self.num_samples or None
        if self.child_sampler is None:
            return self.num_samples
        child = self.child_sampler.get_num_samples() or None
        limits = [count for count in (limit, child) if count is not None]
        return min(limits) if limits else None

    def is_shuffled(self) -> bool:
        """Returns whether a child shuffles."""
        return self.child_sampler is not None and self.child_sampler.is_shuffled()

    def is_sharded(self) -> bool:
        """Returns whether a child takes a share."""
        return self.child_sampler is not None and self.child_sampler.is_sharded()

    def _set_num_rows_(self, num_rows: int) -> None:
        """Sets the number of rows of the source."""
        self.dataset_size = num_rows

    def _reading_(self, labels: Callable[[str], list[Any]]) -> BuiltinSampler:
        """Return the sampler for a source with these labels: itself, unless it chooses by class."""
        if self.child_sampler is not None:
            self.child_sampler = self.child_sampler._reading_(labels)
        return self

    def _reads_ahead_(self) -> bool:
        """Return whether indexes may be computed early: that runs no user code and refuses no index."""
        return type(self) in (SequentialSampler, RandomSampler, DistributedSampler) and (
            self.child_sampler is None or self.child_sampler._reads_ahead_())

    # The pipeline's interface --------------------------------------------------------------------------------------------------------

    def _open_(self) -> dict[str, Any]:
        """Return a new state, which persists from epoch to epoch."""
        state: dict[str, Any] = {"seed": config.fresh_seed(), "epoch": 0}
        if self.child_sampler is not None:
            state["child"] = self.child_sampler._open_()
        return state

    def _indices_(self, count: int, state: dict[str, Any]) -> Iterator[int]:
        """Yield the indexes of one epoch over a source of `count` rows; `state` comes from `open` and is updated."""
        if self.child_sampler is not None:
            chosen = list(self.child_sampler._indices_(count, state["child"]))
            positions = self._positions_(len(chosen), state)
            indexes: Iterator[int] = (chosen[position] for position in positions)
        else:
            indexes = iter(self._positions_(count, state))
        state["epoch"] += 1
        return indexes

    def _length_(self, count: int) -> int:
        """Return the number of indexes of one epoch over `count` rows."""
        return len(list(self._indices_(count, self._open_())))

    def _positions_(self, count: int, state: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _limited_(self, count: int) -> int:
        return min(self.num_samples, count) if self.num_samples else count


class SequentialSampler(BuiltinSampler):
    """Rows in order, from `start_index`."""

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        if start_index is not None:
            check_int("SequentialSampler", "start_index", start_index, 0, INT64_MAX)
        super().__init__(num_samples)
        self.start_index = start_index

    def _positions_(self, count: int, state: dict[str, Any]) -> Any:
        start = self.start_index or 0
        return range(start, min(count, start + self._limited_(count)))

    def _length_(self, count: int) -> int:
        return len(self._positions_(count, {})) if self.child_sampler is None else super()._length_(count)


class RandomSampler(BuiltinSampler):
    """Rows in random order, optionally with `replacement`."""

    def __init__(self, replacement: bool = False, num_samples: int | None = None, shuffle: Shuffle = Shuffle.GLOBAL) -> None:
        check_bool("RandomSampler", "replacement", replacement)
        if isinstance(shuffle, bool) or shuffle not in list(Shuffle):
            raise TypeError(message(f"RandomSampler(shuffle={short(shuffle)})", "a member of Shuffle, or its text"))
        super().__init__(num_samples)
        self.replacement = replacement
        self.deterministic = False
        self.reshuffle_each_epoch = True
        self._shared_seed_: int | None = None
        """The common seed of several samplers if the program sets no seed, so that they have one order."""
        self.shuffle = shuffle

    def is_shuffled(self) -> bool:
        return True

    def _open_(self) -> dict[str, Any]:
        state = super()._open_()
        if self._shared_seed_ is not None and config.chosen_seed() is None:
            state["seed"] = self._shared_seed_
        return state

    def _positions_(self, count: int, state: dict[str, Any]) -> Any:
        seed = state["seed"] + (state["epoch"] if self.reshuffle_each_epoch else 0)
        twister = Twister32(seed)
        if self.replacement:
            return [twister.below(count) for _ in range(self._limited_(count))]
        order = state.get("order")
        if order is None or len(order) != count:
            order = state["order"] = list(range(count))
            twister.shuffle(order)
        elif self.reshuffle_each_epoch:
            twister.shuffle(order)  # on top of the last epoch's order, as MindSpore does
        return order[: self._limited_(count)]

    def _length_(self, count: int) -> int:
        return self._limited_(count) if self.child_sampler is None else super()._length_(count)


class PKSampler(BuiltinSampler):
    """`num_val` rows of each class, drawn with replacement; the classes in order of their labels, or shuffled.

    `class_column` names the column of labels of a MindDataset. Raises NotImplementedError for a `num_class`, as MindSpore does.
    """

    def __init__(
        self, num_val: int, num_class: int | None = None, shuffle: bool = False, class_column: str = "label",
        num_samples: int | None = None,
    ) -> None:
        check_int("PKSampler", "num_val", num_val, 1)
        if num_class is not None:
            expected = "None: rows of all classes; MindSpore has no more"
            raise NotImplementedError(message(f"PKSampler(num_class={short(num_class)})", expected))
        check_bool("PKSampler", "shuffle", shuffle)
        check_type("PKSampler", "class_column", class_column, str, "a str")
        super().__init__(num_samples)
        self.num_val, self.shuffle, self.class_column = num_val, shuffle, class_column
        self._labels: Callable[[], list[Any]] | None = None

    def is_shuffled(self) -> bool:
        return self.shuffle or super().is_shuffled()

    def _reading_(self, labels: Callable[[str], list[Any]]) -> BuiltinSampler:
        copied = copy.copy(self)          # one sampler may be given to several sources
        copied._labels = lambda: labels(self.class_column)
        return copied

    def __deepcopy__(self, memory: dict[int, Any]) -> PKSampler:
        copied = copy.copy(self)
        copied.child_sampler = copy.deepcopy(self.child_sampler, memory)
        return copied

    def _rows_(self) -> list[list[int]]:
        rows: dict[Any, list[int]] = {}
        for number, label in enumerate(self._labels() if self._labels is not None else []):
            rows.setdefault(label, []).append(number)
        return [rows[label] for label in sorted(rows)]

    def _positions_(self, count: int, state: dict[str, Any]) -> Any:
        twister = Twister32(state["seed"] + state["epoch"])
        if "classes" not in state:
            state["classes"] = self._rows_()
            if self.shuffle:                # once, as MindSpore does
                twister.shuffle(state["classes"])
        classes = state["classes"]
        chosen = [rows[twister.below(len(rows))] for rows in classes for _ in range(self.num_val)]
        return chosen[: self._limited_(len(chosen))]

    def _length_(self, count: int) -> int:
        return self._limited_(len(self._rows_()) * self.num_val)


class SubsetSampler(BuiltinSampler):
    """The rows with these indexes, in that order."""

    def __init__(self, indices: Any, num_samples: int | None = None) -> None:
        name = type(self).__name__
        if is_int(indices):
            indices = [indices]
        if isinstance(indices, (str, bytes)) or not hasattr(indices, "__iter__"):
            raise TypeError(message(f"{name}(indices={short(indices)})", f"a list of ints, got {type(indices).__name__}"))
        listed = list(indices)
        for position, index in enumerate(listed):
            if not isinstance(index, (int, np.integer)) or isinstance(index, bool):
                raise TypeError(message(f"{name}(indices=...): indices[{position}] = {short(index)}", "an int"))
        super().__init__(num_samples)
        self._indices = [int(index) for index in listed]

    @property
    def _subset_indices_(self) -> list[int]:
        """Return the indexes."""
        return list(self._indices)

    def _positions_(self, count: int, state: dict[str, Any]) -> Any:
        chosen = self._indices[: self._limited_(len(self._indices))]
        for index in chosen:
            if not 0 <= index < count:
                raise RuntimeError(message(f"{type(self).__name__}: index {index}", f"one from 0 to {count - 1}, the rows of the source"))
        return chosen

    def get_num_samples(self) -> int | None:
        limit = super().get_num_samples()
        return min(limit, len(self._indices)) if limit else len(self._indices)

    def _length_(self, count: int) -> int:
        return self._limited_(len(self._indices)) if self.child_sampler is None else super()._length_(count)


class SubsetRandomSampler(SubsetSampler):
    """The rows with these indexes, in random order."""

    def is_shuffled(self) -> bool:
        return True

    def _positions_(self, count: int, state: dict[str, Any]) -> Any:
        order = state.setdefault("order", self._indices[: self._limited_(len(self._indices))])
        for index in order:
            if not 0 <= index < count:
                raise RuntimeError(message(f"{type(self).__name__}: index {index}", f"one from 0 to {count - 1}, the rows of the source"))
        Twister32(state["seed"]).shuffle(order)
        return list(order)


class DistributedSampler(BuiltinSampler):
    """Every `num_shards`-th row, from row `shard_id`; the shares are padded to equal length with rows from the start.

    `shuffle` shuffles the source with a seed that all shares have in common. `offset` (0 <= offset < num_shards) shifts the shares, so
    that the last ones may be a row shorter; -1 means no offset.
    """

    def __init__(self, num_shards: int, shard_id: int, shuffle: Any = True, num_samples: int | None = None, offset: int = -1) -> None:
        check_int("DistributedSampler", "num_shards", num_shards, 1)
        check_int("DistributedSampler", "shard_id", shard_id, 0)
        if not isinstance(shuffle, (bool, Shuffle)):
            raise TypeError(message(f"DistributedSampler(shuffle={short(shuffle)})", "True, False or a member of Shuffle"))
        check_type("DistributedSampler", "offset", offset, int, "an int")
        if shard_id >= num_shards:
            raise ValueError(message(f"DistributedSampler({num_shards}, {shard_id})", f"a shard_id from 0 to {num_shards - 1}"))
        if offset >= num_shards:
            raise RuntimeError(message(f"DistributedSampler(offset={offset})", f"an offset below num_shards={num_shards}"))
        super().__init__(num_samples)
        self.num_shards, self.shard_id, self.shuffle, self.offset = num_shards, shard_id, shuffle, offset

    def is_shuffled(self) -> bool:
        return bool(self.shuffle) or super().is_shuffled()

    def is_sharded(self) -> bool:
        return self.num_shards > 1 or super().is_sharded()

    def set_offset(self, offset: int) -> DistributedSampler:
        """Set the offset and return the sampler."""
        self.offset = offset
        return self

    def _share_(self, count: int) -> range:
        if self.offset < 0:
            share = range(self.shard_id, self.shard_id + -(-count // self.num_shards) * self.num_shards, self.num_shards)
        else:
            share = range((self.shard_id - self.offset) % self.num_shards, count, self.num_shards)
        return share[: self.num_samples] if self.num_samples else share

    def _positions_(self, count: int, state: dict[str, Any]) -> Any:
        if not count:
            return []
        share = self._share_(count)
        if not self.shuffle:
            return [position % count for position in share]
        order = state.setdefault("order", list(range(count)))
        Twister32(state["seed"] + 1 + state["epoch"]).shuffle(order)
        return [order[position % count] for position in share]

    def _length_(self, count: int) -> int:
        return len(self._share_(count)) if self.child_sampler is None else super()._length_(count)


class WeightedRandomSampler(BuiltinSampler):
    """At most `num_samples` rows drawn with these weights, with or without replacement.

    As in MindSpore, the same rows each epoch.
    """

    def __init__(self, weights: Any, num_samples: int | None = None, replacement: bool = True) -> None:
        check_type("WeightedRandomSampler", "weights", weights, (list, tuple, np.ndarray), "a list of numbers")
        for position, weight in enumerate(weights):
            if not isinstance(weight, (int, float, np.number)) or isinstance(weight, bool):
                raise TypeError(message(f"WeightedRandomSampler: weights[{position}] = {short(weight)}", "a number"))
            if weight < 0:
                raise ValueError(message(f"WeightedRandomSampler: weights[{position}] = {weight!r}", "a number from 0"))
        check_bool("WeightedRandomSampler", "replacement", replacement)
        super().__init__(num_samples)
        self.weights, self.replacement = list(weights), replacement

    def is_shuffled(self) -> bool:
        return True

    def _positions_(self, count: int, state: dict[str, Any]) -> Any:
        weights = np.asarray(self.weights, np.float64)
        if not len(weights) or not weights.sum():
            raise RuntimeError(message("WeightedRandomSampler", "at least one weight above 0"))
        if len(weights) > count:
            raise RuntimeError(message(f"WeightedRandomSampler: {len(weights)} weights", f"at most one for each of the {count} rows"))
        number = self._limited_(count)
        twister = Twister32(state["seed"])
        if self.replacement:
            steps = np.cumsum(weights / weights.sum())
            drawn = [_fraction(twister) for _ in range(number)]
            return np.searchsorted(steps, drawn).clip(max=len(weights) - 1).tolist()
        if number > len(weights):
            raise RuntimeError(message(
                f"WeightedRandomSampler(num_samples={number}, replacement=False)", f"at most {len(weights)}, the number of weights",
            ))
        # Each row gets an exponentially distributed waiting time, shorter for larger weights; the shortest times are selected.
        with np.errstate(divide="ignore"):
            waits = -np.log1p(-np.array([_fraction(twister) for _ in weights])) / weights
        return np.argsort(waits, kind="stable")[:number].tolist()

    def _length_(self, count: int) -> int:
        return self._limited_(count) if self.child_sampler is None else super()._length_(count)


def _fraction(twister: Twister32) -> float:
    """Draw a number in [0, 1), as libstdc++ draws a double."""
    return (twister() + twister() * 2.0**32) / 2.0**64


class Sampler(BuiltinSampler):
    """Base of a custom sampler, whose `__iter__` yields the indexes of an epoch."""

    def __init__(self, num_samples: int | None = None) -> None:
        super().__init__(num_samples)

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(message(f"{type(self).__name__}.__iter__", "a method that returns the indexes of one epoch"))

    def reset(self) -> None:
        """Is called before each epoch; a custom sampler may override it."""

    def _positions_(self, count: int, state: dict[str, Any]) -> Any:
        if not hasattr(self, "num_samples"):  # a subclass that did not call the base constructor
            self.num_samples = None
        self.dataset_size = count
        self.reset()
        accepts_groups = self._accepts_groups_ and self.child_sampler is None
        return _user_indices(iter(self), type(self).__name__, count, self.num_samples, accepts_groups)


class IterSampler(Sampler):
    """The indexes of any iterable, restarted each epoch."""

    def __init__(self, sampler: Any, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        if not hasattr(sampler, "__iter__"):
            raise TypeError(message(f"IterSampler({short(sampler)})", "something to iterate over"))
        self.sampler = sampler

    def __iter__(self) -> Iterator[int]:
        return iter(self.sampler)


def _user_indices(indexes: Iterator[Any], name: str, count: int, limit: int | None, accepts_groups: bool) -> Iterator[Any]:
    for number, index in enumerate(indexes):
        if limit and number >= limit:
            return
        if isinstance(index, (list, tuple)) or (isinstance(index, np.ndarray) and index.ndim):
            if not accepts_groups:
                hint = "pass a batch_sampler to a GeneratorDataset, or write .batch(...)"
                raise TypeError(message(f"{name}: index {short(index)}", "an int", hint=hint))
            yield index
            continue
        value = int(index)
        if not 0 <= value < count:
            raise RuntimeError(message(f"{name}: index {value}", f"one from 0 to {count - 1}, the rows of the source"))
        yield value


__all__ = [
    "BuiltinSampler", "DistributedSampler", "IterSampler", "PKSampler", "RandomSampler", "Sampler", "SequentialSampler",
    "Shuffle", "SubsetRandomSampler", "SubsetSampler", "WeightedRandomSampler",
]
