"""In which order rows come: samplers, shuffling, epochs, seeds, shares."""

from __future__ import annotations

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from parity.case import case


class Rows:
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return (np.int32(index),)


def rows(count, **keywords):
    return ds.GeneratorDataset(Rows(count), ["a"], **keywords)


def epochs(dataset, number=3):
    iterator = dataset.create_tuple_iterator(output_numpy=True, num_epochs=number)
    return [[int(row[0]) for row in iterator] for _ in range(number)]


SAMPLERS = {
    "random": lambda: ds.RandomSampler(),
    "random, four": lambda: ds.RandomSampler(num_samples=4),
    "random, put back": lambda: ds.RandomSampler(replacement=True, num_samples=12),
    "sequential": lambda: ds.SequentialSampler(),
    "sequential from 3": lambda: ds.SequentialSampler(3, 4),
    "sequential from 8": lambda: ds.SequentialSampler(8, 4),
    "subset": lambda: ds.SubsetSampler([1, 3, 9]),
    "subset, random": lambda: ds.SubsetRandomSampler([1, 3, 5, 7, 9]),
    "subset, random, two": lambda: ds.SubsetRandomSampler([1, 3, 5, 7, 9], 2),
    "weighted, put aside": lambda: ds.WeightedRandomSampler([0.1, 0.9, 0.5, 0, 0, 0.2, 0.3, 0.1], 7, False),
    "list": lambda: [4, 2, 2],
    "share": lambda: ds.DistributedSampler(3, 1),
    "share in order": lambda: ds.DistributedSampler(3, 1, shuffle=False),
    "share, offset 2": lambda: ds.DistributedSampler(3, 1, shuffle=False, offset=2),
    "share, offset 0": lambda: ds.DistributedSampler(3, 2, shuffle=False, offset=0),
    "share, two": lambda: ds.DistributedSampler(3, 0, num_samples=2),
    "iterable": lambda: ds.IterSampler([3, 4]),
}


@case(over={f"{name}, seed {seed}": (name, seed) for name in SAMPLERS for seed in (1, 2)})
def sampler(chosen):
    name, seed = chosen
    ds.config.set_seed(seed)
    dataset = rows(10, sampler=SAMPLERS[name]())
    return {"rows": epochs(dataset), "size": dataset.get_dataset_size()}


@case()
def weighted_sampler():
    ds.config.set_seed(1)
    return {"rows": epochs(rows(5, sampler=ds.WeightedRandomSampler([0.1, 0.2, 0.3, 0.2, 0.2], 7)))}


@case()
def user_sampler():
    class Even(ds.Sampler):
        def __iter__(self):
            yield from range(0, 6, 2)

    return {"rows": epochs(rows(10, sampler=Even()), 2)}


@case()
def child_sampler():
    ds.config.set_seed(2)
    outer = ds.SequentialSampler()
    outer.add_child(ds.RandomSampler())
    added = rows(10)
    added.add_sampler(ds.SequentialSampler(1, 4))
    used = rows(10)
    used.use_sampler(ds.SubsetSampler([1]))
    return {"child": epochs(rows(10, sampler=outer), 1), "added": epochs(added, 1), "used": epochs(used, 1)}


def generated():
    for number in range(10):
        yield (np.int32(number),)


SPLIT = {
    "rows by index": lambda: rows(10, shuffle=False),
    "shuffled": lambda: rows(10),
    "some rows": lambda: rows(10, shuffle=False, num_samples=6),
    "chosen rows": lambda: rows(10, sampler=[9, 8, 7, 6]),
    "a map": lambda: rows(10, shuffle=False).map(lambda row: row, ["a"]),
    "a function's rows": lambda: ds.GeneratorDataset(generated, ["a"]),
    "a buffer's rows": lambda: rows(10, shuffle=False).shuffle(3),
}


@case(over=list(SPLIT))
def split(name):
    ds.config.set_seed(3)
    source = SPLIT[name]()
    parts = [*source.split([0.3, 0.7]), *source.split([0.24, 0.24, 0.52]), *source.split([0.25, 0.25, 0.5], False)]
    return {"sizes": [part.get_dataset_size() for part in parts], "rows": [epochs(part, 2) for part in parts]}


@case()
def sampler_of_a_part():
    ds.config.set_seed(3)
    first, second = rows(10, shuffle=False).split([0.4, 0.6])
    second.use_sampler(ds.DistributedSampler(2, 1, shuffle=False))
    in_order = rows(10, shuffle=False).split([4, 6], randomize=False)[1]
    in_order.use_sampler(ds.RandomSampler())
    second_part = rows(10, shuffle=False).split([4, 6])[1].split([2, 4])[1]
    return {"first": epochs(first), "share": epochs(second), "random": epochs(in_order), "again": epochs(second_part)}


@case(
    over={
        "default": {},
        "off": {"shuffle": False},
        "share": {"num_shards": 3, "shard_id": 1},
        "samples": {"num_samples": 3},
        "none": {"num_samples": 0},
        "share in order": {"num_shards": 3, "shard_id": 1, "shuffle": False, "num_samples": 2},
    }
)
def source_arguments(keywords):
    ds.config.set_seed(1)
    dataset = rows(10, **keywords)
    return {"rows": epochs(dataset), "size": dataset.get_dataset_size()}


@case(over=[2, 4, 10, 100])
def shuffle_buffer(size):
    ds.config.set_seed(3)
    return {"rows": epochs(rows(10, shuffle=False).shuffle(size))}


@case()
def shuffle_then_repeat():
    ds.config.set_seed(1)
    return {
        "repeated": epochs(rows(6, shuffle=False).shuffle(6).repeat(2)),
        "taken": epochs(rows(6, shuffle=False).shuffle(6).take(3).repeat(2), 2),
        "source": epochs(rows(6).repeat(2), 2),
    }


@case()
def large_shuffle():
    ds.config.set_seed(1)
    return {"rows": epochs(rows(70000).take(40), 2)}  # above 65,536 rows the C++ library draws one position at a time


@case()
def seed_of_the_program():
    ms.set_seed(7)
    seen = ds.config.get_seed()
    order = epochs(rows(10))
    ds.config.set_seed(8)
    return {"seed": seen, "rows": order, "later": ds.config.get_seed(), "numpy": float(np.random.rand())}


@case()
def slices():
    ds.config.set_seed(1)
    return {"rows": epochs(ds.NumpySlicesDataset(np.arange(6)))}
