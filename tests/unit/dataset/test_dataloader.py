"""`mindspore.dataset.dataloader`: batches, orders, workers, and what is refused."""
from __future__ import annotations

import functools
import operator
import os
import time
from collections import OrderedDict, namedtuple
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor
from mindspore.dataset.dataloader import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    default_collate,
    default_convert,
    get_worker_info,
)
from support.error_messages import without_mindspores_sentence


class Rows(Dataset[Any]):
    """Ten samples: an array and a number."""

    def __getitem__(self, index: int) -> Any:
        return np.full(2, index, np.float32), index

    def __len__(self) -> int:
        return 10


class Count(IterableDataset[int]):
    """Numbers below ten, shared out where there are workers."""

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        return iter(range(10) if info is None else range(info.id, 10, info.num_workers))


def _numbers(batches: Any) -> list[Any]:
    return [batch[1].asnumpy().tolist() for batch in batches]


def test_batches_of_a_data_set() -> None:
    loader = DataLoader(Rows(), batch_size=4)
    batches = list(loader)
    assert len(loader) == 3 and _numbers(batches) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] == _numbers(loader)
    assert isinstance(batches[0], list) and batches[0][0].shape == (4, 2) and batches[0][0].dtype == ms.float32
    assert _numbers(DataLoader(Rows(), 4, drop_last=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert _numbers(DataLoader(Rows(), batch_sampler=[[3, 1], [0]])) == [[3, 1], [0]]
    assert [int(sample[1]) for sample in DataLoader(Rows(), batch_size=None, sampler=[5, 2])] == [5, 2]


def test_a_shuffled_order_is_that_of_the_generator() -> None:
    loader = DataLoader(Rows(), None, shuffle=True, generator=np.random.default_rng(7))
    first = [int(sample[1]) for sample in loader]
    assert first == np.random.default_rng(7).permutation(10).tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_set_in_order(workers: int) -> None:
    batches = [batch.asnumpy().tolist() for batch in DataLoader(Count(), 3, num_workers=workers)]
    assert sorted(functools.reduce(operator.iadd, batches, [])) == list(range(10))
    assert batches[0] == ([0, 2, 4] if workers else [0, 1, 2])
    assert len(list(DataLoader(Count(), 4, num_workers=workers, drop_last=True))) == 2


def test_workers_give_the_same_batches() -> None:
    loader = DataLoader(Rows(), 3, num_workers=2, persistent_workers=True)
    numbers = _numbers(loader)
    assert numbers == _numbers(loader) == _numbers(DataLoader(Rows(), 3))
    next(iter(loader))                                       # an epoch that is left early
    assert _numbers(loader) == numbers


def test_what_a_worker_knows_of_itself() -> None:
    class Who(Dataset[Any]):
        def __getitem__(self, index: int) -> Any:
            info = get_worker_info()
            assert info is not None
            return info.id, info.num_workers, os.getpid(), _begun[0]

        def __len__(self) -> int:
            return 4

    _begun = [-1]
    loader = DataLoader(Who(), None, num_workers=2, worker_init_fn=lambda number: _begun.__setitem__(0, number + 10))
    rows = [tuple(row) for row in loader]
    assert [row[:2] for row in rows] == [(0, 2), (1, 2), (0, 2), (1, 2)] and [row[3] for row in rows] == [10, 11, 10, 11]
    assert len({row[2] for row in rows}) == 2 and os.getpid() not in {row[2] for row in rows} and get_worker_info() is None


def test_batches_come_as_they_are_ready_where_order_is_of_no_account() -> None:
    class Slow(Rows):
        def __getitem__(self, index: int) -> Any:
            time.sleep(0.3 if index == 0 else 0)
            return np.zeros(1), index

    assert _numbers(DataLoader(Slow(), num_workers=2))[0] == [0]
    numbers = _numbers(DataLoader(Slow(), num_workers=2, in_order=False))
    assert numbers[0] != [0] and sorted(numbers) == [[number] for number in range(10)]


def test_an_error_in_a_worker_names_it() -> None:
    class Broken(Rows):
        def __getitem__(self, index: int) -> Any:
            if index == 5:
                raise KeyError("no five")
            return index

    with pytest.raises(RuntimeError, match=r"(?s)^DataLoader worker 1 caught KeyError with message:.*no five"):
        list(DataLoader(Broken(), num_workers=2))
    with pytest.raises(KeyError, match="no five"):
        list(DataLoader(Broken()))


def test_a_worker_that_takes_too_long_or_ends() -> None:
    class Hangs(Rows):
        def __getitem__(self, index: int) -> Any:
            time.sleep(5)

    with pytest.raises(RuntimeError, match=r"^DataLoader\(timeout=0.1\): expected a batch within that time"):
        list(DataLoader(Hangs(), num_workers=1, timeout=0.1))

    class Ends(Rows):
        def __getitem__(self, index: int) -> Any:
            os._exit(3)

    with pytest.raises(RuntimeError, match=r"worker process 0 .* was ended with exit code 3 while it worked on samples"):
        list(DataLoader(Ends(), num_workers=1))


def test_what_becomes_a_batch() -> None:
    pair = namedtuple("pair", "a b")
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([1.5, 2.0]).dtype == ms.float64 and default_collate([1, 2]).dtype == ms.int64
    named = default_collate([pair(1, "x"), pair(2, "y")])
    assert type(named) is pair and named.b == ("x", "y")
    collated = default_collate([OrderedDict(a=np.float32(1)), OrderedDict(a=np.float32(2))])
    assert type(collated) is OrderedDict and collated["a"].dtype == ms.float32
    with pytest.raises(RuntimeError, match=r"a batch of sequences of lengths \[1, 2\]: expected sequences of one length"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="a batch of arrays of <U1: expected arrays of numbers"):
        default_collate([np.array(["a"])])
    with pytest.raises(TypeError, match="a batch of object: expected Tensors, arrays, numbers, texts, and containers of them"):
        default_collate([object()])
    sample = default_convert({"a": (np.arange(2), "s"), "b": np.int32(1)})
    assert isinstance(sample["a"], list) and isinstance(sample["a"][0], Tensor) and sample["a"][1] == "s" and sample["b"].dtype == ms.int32


def test_samplers() -> None:
    assert list(BatchSampler(SequentialSampler(range(5)), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]] and len(BatchSampler(range(5), 2, True)) == 2
    assert sorted(RandomSampler(range(3), num_samples=6)) == [0, 0, 1, 1, 2, 2]
    drawn = list(RandomSampler(range(3), replacement=True, num_samples=40, generator=np.random.default_rng(1)))
    random_numbers = np.random.default_rng(1)
    assert drawn == random_numbers.integers(0, 3, 32).tolist() + random_numbers.integers(0, 3, 8).tolist()
    shares = [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in range(2)]
    assert shares == [[0, 2, 4], [1, 3, 0]]
    assert list(DistributedSampler(range(5), 2, 1, shuffle=False, drop_last=True)) == [1, 3]
    sampler = DistributedSampler(range(8), 2, 0)
    first = list(sampler)
    sampler.set_epoch(1)
    assert first != list(sampler) and len(sampler) == 4
    table = TensorDataset(Tensor([[1.0], [2.0]]), Tensor([3, 4]))
    assert len(table) == 2 and [int(item.sum()) for item in table[1]] == [2, 4]


REFUSED = [
    ({"batch_size": 0}, ValueError, "DataLoader(batch_size=0): expected an int from 1 to 2147483647"),
    ({"batch_size": True}, TypeError, "DataLoader(batch_size=True): expected an int, got bool"),
    ({"num_workers": -1}, ValueError, "DataLoader(num_workers=-1): expected an int from 0 to 2147483647"),
    ({"shuffle": True, "sampler": [1]}, ValueError, "DataLoader(shuffle=True): expected no shuffle beside a sampler"),
    ({"batch_sampler": [[1]], "drop_last": True}, ValueError, "DataLoader(drop_last=True): expected no drop_last beside a batch_sampler"),
    ({"prefetch_factor": 2}, ValueError, "DataLoader(prefetch_factor=2): expected no prefetch_factor without num_workers"),
    ({"generator": 3}, TypeError, "DataLoader(generator=3): expected a numpy.random.Generator, got int"),
]


@pytest.mark.parametrize(("arguments", "kind", "text"), REFUSED)
def test_what_is_refused(arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        DataLoader(Rows(), **arguments)
    assert without_mindspores_sentence(str(caught.value)).split("\n")[0].rstrip(".") == text


def test_data_sets_that_are_none() -> None:
    with pytest.raises(NotImplementedError, match="a data set with __getitem__"):
        DataLoader(object())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected no shuffle with an IterableDataset"):
        DataLoader(Count(), shuffle=True)
    with pytest.raises(NotImplementedError, match="a method __getitem__"):
        Dataset()[0]
    with pytest.raises(ValueError, match="Tensors of one length along their first axis"):
        TensorDataset(Tensor([1]), Tensor([1, 2]))
