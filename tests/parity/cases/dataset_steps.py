"""What the steps of a pipeline do to rows, columns and sizes, and which arguments they refuse."""

from __future__ import annotations

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from parity.case import case


class Pairs:
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return np.int32(index), np.float64(index)


class Ragged(Pairs):
    def __getitem__(self, index):
        return np.zeros(index, np.int32), np.float64(index)


def pairs():
    return ds.GeneratorDataset(Pairs(), ["a", "b"], shuffle=False)


def five():
    for number in range(5):
        yield (np.array([number]),)


def look(dataset):
    """Columns, size, dtypes and rows of a dataset."""
    rows = [[np.asarray(value).tolist() for value in row] for row in dataset.create_tuple_iterator(output_numpy=True, num_epochs=1)]
    return {
        "columns": dataset.get_col_names(),
        "size": dataset.get_dataset_size(),
        "rows": rows,
        "batch": dataset.get_batch_size(),
        "repeat": dataset.get_repeat_count(),
        "types": [str(item) for item in dataset.output_types()],
    }


def kind(call):
    """The built-in error that `call` raises, or None."""
    try:
        call()
    except Exception as error:
        return next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")
    return None


STEPS = {
    "batch": lambda: pairs().batch(4),
    "batch, drop": lambda: pairs().batch(4, True),
    "batch, repeat": lambda: pairs().batch(4).repeat(3),
    "repeat, batch": lambda: pairs().repeat(3).batch(4),
    "batch twice": lambda: pairs().repeat(3).repeat(2).batch(4).batch(2),
    "take": lambda: pairs().take(3),
    "take too many": lambda: pairs().take(99),
    "skip": lambda: pairs().skip(8),
    "rename": lambda: pairs().take(2).rename(["a", "b"], ["b", "a"]),
    "project": lambda: pairs().take(2).project("b"),
    "concat": lambda: pairs().take(2) + pairs().skip(8),
    "concat list": lambda: pairs().take(2).concat([pairs().skip(8), pairs().take(1)]),
    "zip": lambda: ds.zip((pairs().take(3), pairs().rename(["a", "b"], ["c", "d"]))),
    "filter": lambda: pairs().filter(lambda a, b: a % 2 == 0),
    "filter, column": lambda: pairs().filter(lambda a: bool(a % 2), "a"),
    "filter, text is true": lambda: pairs().filter(lambda a: "x", "a"),
    "map": lambda: pairs().take(2).map(lambda a: np.int32(a * 2), "a"),
    "map, first column": lambda: pairs().take(2).map(lambda a: np.int32(a * 2)),
    "map, more columns": lambda: pairs().take(2).map(lambda a: (a, np.int32(a + 1), np.int32(a + 2)), ["a"], ["x", "y", "z"]),
    "map, fewer columns": lambda: pairs().take(2).map(lambda a, b: (b,), ["b", "a"], ["x"]),
    "map, one name new": lambda: pairs().take(2).map(lambda b: (b, b), ["b"], ["x", "b"]),
    "map, columns swapped": lambda: pairs().take(2).map(lambda b, a: (b, a), ["b", "a"]),
    "map, renamed": lambda: pairs().take(2).map(lambda b: (b,), ["b"], ["x"]),
    "map, int": lambda: pairs().take(1).map(lambda a: 3, ["a"]),
    "map, float": lambda: pairs().take(1).map(lambda a: 3.5, ["a"]),
    "map, bool": lambda: pairs().take(1).map(lambda a: True, ["a"]),
    "map, list": lambda: pairs().take(1).map(lambda a: [1, 2], ["a"]),
    "per batch": lambda: pairs().batch(4, per_batch_map=lambda a, b, info: (a, b)),
    "per batch, more columns": lambda: pairs().batch(
        4,
        per_batch_map=lambda a, info: (np.stack(a), np.stack(a) * info.get_batch_num() + info.get_epoch_num()),
        input_columns=["a"],
        output_columns=["a", "c"],
    ),
    "batch size function": lambda: pairs().batch(lambda info: info.get_batch_num() + 1),
    "split in order": lambda: pairs().split([7, 2, 1], randomize=False)[1],
    "generator": lambda: ds.GeneratorDataset(five, ["a"]),
    "generator shuffled": lambda: ds.GeneratorDataset(five, ["a"], shuffle=True),
    "generator object": lambda: ds.GeneratorDataset(five(), ["a"]).repeat(2),
    "generator, two": lambda: ds.GeneratorDataset(five, ["a"], num_samples=2),
    "list": lambda: ds.GeneratorDataset([(np.array(1),), (np.array(2),)], ["a"], shuffle=False),
    "range": lambda: ds.GeneratorDataset(range(3), ["a"], shuffle=False),
    "slices of a list": lambda: ds.NumpySlicesDataset([[1, 2], [3, 4]], shuffle=False),
    "slices of a dict": lambda: ds.NumpySlicesDataset({"x": [1, 2], "y": [3.0, 4.0]}, shuffle=False),
    "slices of a tuple": lambda: ds.NumpySlicesDataset(([1, 2], [3.0, 4.0]), shuffle=False),
    "slices with names": lambda: ds.NumpySlicesDataset((np.ones((2, 3), np.float32), np.arange(2)), ["i", "l"], shuffle=False),
}


@case(over=list(STEPS))
def step(name):
    return look(STEPS[name]())


REFUSED = {
    "batch 0": lambda: pairs().batch(0),
    "batch text": lambda: pairs().batch("a"),
    "batch float": lambda: pairs().batch(2.0),
    "drop 1": lambda: pairs().batch(2, 1),
    "shuffle 1": lambda: pairs().shuffle(1),
    "shuffle text": lambda: pairs().shuffle("a"),
    "repeat 0": lambda: pairs().repeat(0),
    "repeat text": lambda: pairs().repeat("a"),
    "repeat True": lambda: pairs().repeat(True),
    "take 0": lambda: pairs().take(0),
    "take -2": lambda: pairs().take(-2),
    "skip -1": lambda: pairs().skip(-1),
    "rename absent": lambda: look(pairs().rename("q", "z")),
    "rename uneven": lambda: pairs().rename(["a"], ["b", "c"]),
    "rename taken": lambda: look(pairs().rename(["a"], ["b"])),
    "project absent": lambda: pairs().project(["q"]).get_col_names(),
    "zip same": lambda: look(ds.zip((pairs(), pairs()))),
    "zip list": lambda: ds.zip([pairs(), pairs()]),
    "zip one": lambda: ds.zip((pairs(),)),
    "zip number": lambda: ds.zip((pairs(), 3)),
    "concat columns": lambda: look(pairs() + pairs().rename("a", "z")),
    "filter absent": lambda: look(pairs().filter(lambda a: True, "q")),
    "filter number": lambda: pairs().filter(3),
    "map number": lambda: pairs().map(3, "a"),
    "map column number": lambda: pairs().map(len, 3),
    "map absent": lambda: look(pairs().map(abs, "q")),
    "map None": lambda: look(pairs().map(lambda a: None, "a")),
    "map object": lambda: look(pairs().map(lambda a: object(), "a")),
    "map too many": lambda: look(pairs().map(lambda a: (a, a), "a")),
    "map too few": lambda: look(pairs().map(lambda a: a, "a", ["x", "y"])),
    "map raises": lambda: look(pairs().map(lambda a: a.nothing, "a")),
    "map unknown": lambda: pairs().map(abs, "a", foo=1),
    "ragged": lambda: look(ds.GeneratorDataset(Ragged(), ["a", "b"], shuffle=False).batch(4)),
    "split shares": lambda: pairs().split([0.7, 0.7]),
    "split sizes": lambda: pairs().split([7, 7]),
    "columns 0": lambda: ds.GeneratorDataset(Pairs(), []),
    "columns int": lambda: ds.GeneratorDataset(Pairs(), [1]),
    "columns twice": lambda: ds.GeneratorDataset(Pairs(), ["a", "a"]),
    "columns none": lambda: ds.GeneratorDataset(Pairs()),
    "columns too few": lambda: look(ds.GeneratorDataset(Pairs(), ["a"])),
    "source number": lambda: ds.GeneratorDataset(5, ["a"]),
    "shards alone": lambda: ds.GeneratorDataset(Pairs(), ["a", "b"], num_shards=3),
    "shard too large": lambda: ds.GeneratorDataset(Pairs(), ["a", "b"], num_shards=3, shard_id=3),
    "samples text": lambda: ds.GeneratorDataset(Pairs(), ["a", "b"], num_samples="a"),
    "samples -1": lambda: ds.GeneratorDataset(Pairs(), ["a", "b"], num_samples=-1),
    "workers 0": lambda: ds.GeneratorDataset(Pairs(), ["a", "b"], num_parallel_workers=0),
    "sampler of a generator": lambda: ds.GeneratorDataset(five, ["a"], sampler=ds.SequentialSampler()),
    "sampler number": lambda: ds.GeneratorDataset(Pairs(), ["a", "b"], sampler=3),
    "sample outside": lambda: look(ds.GeneratorDataset(Pairs(), ["a", "b"], sampler=[12])),
    "numpy output 1": lambda: pairs().create_dict_iterator(output_numpy=1),
    "epochs 0": lambda: pairs().create_dict_iterator(num_epochs=0),
    "epochs text": lambda: pairs().create_dict_iterator(num_epochs="a"),
    "slices number": lambda: ds.NumpySlicesDataset(3),
    "slices empty": lambda: ds.NumpySlicesDataset([]),
    "slices uneven": lambda: ds.NumpySlicesDataset(([1, 2], [1, 2, 3])),
    "slices names": lambda: ds.NumpySlicesDataset([1, 2], ["i", "l"]),
    "apply number": lambda: pairs().apply(lambda row: 3),
    "replacement 1": lambda: ds.RandomSampler(replacement=1),
    "subset text": lambda: ds.SubsetSampler("a"),
    "subset float": lambda: ds.SubsetSampler([1.5]),
    "share shuffle 1": lambda: ds.DistributedSampler(2, 0, shuffle=1),
    "seed -1": lambda: ds.config.set_seed(-1),
    "seed text": lambda: ds.config.set_seed("a"),
    "seed True": lambda: ds.config.set_seed(True),
    "prefetch 0": lambda: ds.config.set_prefetch_size(0),
    "config workers 0": lambda: ds.config.set_num_parallel_workers(0),
    "shared memory 1": lambda: ds.config.set_enable_shared_mem(1),
    "start method": lambda: ds.config.set_multiprocessing_start_method("x"),
}


@case(over=list(REFUSED))
def refused(name):
    return {"error": kind(REFUSED[name])}


@case()
def past_the_last_epoch():
    iterator = pairs().create_dict_iterator(num_epochs=1, output_numpy=True)
    seen = len(list(iterator))
    return {"rows": seen, "error": kind(lambda: next(iterator))}


@case()
def tensors():
    row = next(pairs().create_dict_iterator(num_epochs=1))
    return {
        "types": {name: type(value).__name__ for name, value in row.items()},
        "dtypes": {name: str(value.dtype) for name, value in row.items()},
    }


@case()
def type_and_shape_of_a_generator():
    dataset = ds.GeneratorDataset(lambda: ((np.zeros(size + 1, np.float32),) for size in range(3)), ["a"]).batch(1)
    return {
        "shapes": dataset.output_shapes(),
        "estimate": dataset.output_shapes(estimate=True),
        "types": [str(item) for item in dataset.output_types()],
    }


@case()
def settings():
    names = [
        "prefetch_size",
        "numa_enable",
        "monitor_sampling_interval",
        "callback_timeout",
        "auto_num_workers",
        "enable_shared_mem",
        "enable_autotune",
        "autotune_interval",
        "auto_offload",
        "enable_watchdog",
        "fast_recovery",
        "multiprocessing_timeout_interval",
        "dynamic_shape",
        "debug_mode",
        "multiprocessing_start_method",
        "iterator_mode",
        "video_backend",
    ]
    return {name: getattr(ds.config, f"get_{name}")() for name in names}


@case()
def casting_a_column():
    row = next(pairs().map(ds.transforms.TypeCast(ms.float16), "a").create_tuple_iterator(num_epochs=1, output_numpy=True))
    return {"value": np.asarray(row[0])}
