"""Steps of a pipeline beside map and batch: buckets, batch samplers, callbacks, broken rows, sync_wait, saving."""
import os
import tempfile

import mindspore.dataset as ds
import numpy as np
from mindspore.mindrecord import FileReader
from parity.case import case, raised

LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]


def rows(dataset, epochs=1):
    iterator = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[[column.tolist() for column in row] for row in iterator] for _ in range(epochs)]


def sequences():
    for length in LENGTHS:
        yield np.arange(length, dtype=np.int32), np.array(length)


def bucketed(**arguments):
    inputs = {"column_names": ["a"], "bucket_boundaries": [3, 5], "bucket_batch_sizes": [2, 3, 1], **arguments}
    return ds.GeneratorDataset(sequences, ["a", "n"], shuffle=False).bucket_batch_by_length(**inputs)


@case(over={
    "plain": {}, "filled": {"pad_info": {"a": ([None], -1)}}, "shape": {"pad_info": {"a": ([6], 0)}}, "none": {"pad_info": {"a": None}},
    "drops": {"drop_remainder": True}, "boundary": {
        "bucket_boundaries": [3, 5, 10], "bucket_batch_sizes": [2, 3, 1, 1], "pad_info": {"a": ([None], 0)}, "pad_to_bucket_boundary": True
    },
    "function": {"column_names": ["n", "a"], "element_length_function": lambda n, a: int(n), "pad_info": {"a": ([None], 7)}},
})
def buckets(arguments):
    return {"rows": rows(bucketed(**arguments)), "size": bucketed(**arguments).get_dataset_size()}


@case(over={
    "two columns": {"column_names": ["a", "n"]}, "sizes": {"bucket_batch_sizes": [1, 1]}, "order": {"bucket_boundaries": [5, 3]},
    "none": {"bucket_boundaries": []}, "zero": {"bucket_boundaries": [0, 3]}, "size zero": {"bucket_batch_sizes": [2, 3, 0]},
    "function": {"element_length_function": 3}, "column": {"column_names": ["z"]},
    "last bucket": {"pad_info": {"a": ([None], 0)}, "pad_to_bucket_boundary": True}, "drop": {"drop_remainder": 1},
    "boundaries": {"bucket_boundaries": (3, 5)}, "pad": {"pad_info": {"z": None}},
})
def bad_buckets(arguments):
    return {"error": raised(lambda: rows(bucketed(**arguments)))}


class Squares:
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return np.array(index), np.arange(index % 3 + 1)


class Repeatable(Squares):
    def __getitem__(self, index):
        return np.array(index), np.array(index * index)


class Pairs(ds.Sampler):
    def __iter__(self):
        yield [0, 2]
        yield [1, 3]


def lengths(numbers, ranges):
    return np.stack(numbers), np.array([len(row_range) for row_range in ranges])


@case(over={
    "lists": lambda: ds.GeneratorDataset(Repeatable(), ["a", "b"], batch_sampler=[[0, 1], [2, 3, 4], [9]]),
    "sampler": lambda: ds.GeneratorDataset(Repeatable(), ["a", "b"], batch_sampler=Pairs()),
    "collate": lambda: ds.GeneratorDataset(Squares(), ["a", "b"], batch_sampler=[[0, 1], [2]], collate_fn=lengths),
    "workers": lambda: ds.GeneratorDataset(Repeatable(), ["a", "b"], batch_sampler=[[n, n + 1] for n in range(9)], num_parallel_workers=2),
})
def batch_samplers(make):
    return {"rows": rows(make()), "size": make().get_dataset_size()}


@case(over={
    "ragged": lambda: rows(ds.GeneratorDataset(Squares(), ["a", "b"], batch_sampler=[[0, 1]])),
    "alone": lambda: ds.GeneratorDataset(Repeatable(), ["a", "b"], collate_fn=lengths),
    "sampler": lambda: ds.GeneratorDataset(Repeatable(), ["a", "b"], batch_sampler=[[0]], sampler=[1]),
    "shuffle": lambda: ds.GeneratorDataset(Repeatable(), ["a", "b"], batch_sampler=[[0]], shuffle=False),
    "samples": lambda: ds.GeneratorDataset(Repeatable(), ["a", "b"], batch_sampler=[[0]], num_samples=1),
    "int": lambda: ds.GeneratorDataset(Repeatable(), ["a", "b"], batch_sampler=3),
    "flat": lambda: rows(ds.GeneratorDataset(Repeatable(), ["a", "b"], batch_sampler=[0, 1])),
    "function": lambda: ds.GeneratorDataset(Repeatable(), ["a", "b"], batch_sampler=[[0]], collate_fn=3),
    "iterable": lambda: ds.GeneratorDataset(sequences, ["a", "b"], batch_sampler=[[0]]),
    "columns": lambda: rows(ds.GeneratorDataset(Repeatable(), ["a", "b"], batch_sampler=[[0]], collate_fn=lambda a, b: np.array(1))),
    "outside": lambda: rows(ds.GeneratorDataset(Repeatable(), ["a", "b"], batch_sampler=[[10]])),
})
def bad_batch_samplers(call):
    return {"error": raised(call)}


def schema(*columns):
    columns_schema = ds.Schema()
    for name, kind, shape in columns:
        columns_schema.add_column(name, kind, shape)
    return columns_schema


@case(over={
    "fits": [("a", "int64", []), ("b", "int64", [])], "type": [("a", "int32", []), ("b", "int64", [])],
    "shape": [("a", "int64", []), ("b", "int64", [5])], "less": [("a", "int64", [])],
})
def schemas(columns):
    def read():
        result = ds.GeneratorDataset(Repeatable(), schema=schema(*columns), shuffle=False)
        read.rows = rows(result), result.get_col_names()

    read.rows = None
    return {"error": raised(read), "rows": read.rows}


class Steps(ds.DSCallback):
    def __init__(self, step_size=1):
        super().__init__(step_size=step_size)
        self.begun, self.ended, self.epochs = [], [], []

    def ds_begin(self, ds_run_context):
        self.epochs.append(("begin", ds_run_context.cur_epoch_num, ds_run_context.cur_step_num))

    def ds_epoch_begin(self, ds_run_context):
        self.epochs.append(("epoch begin", ds_run_context.cur_epoch_num, ds_run_context.cur_step_num))

    def ds_epoch_end(self, ds_run_context):
        self.epochs.append(("epoch end", ds_run_context.cur_epoch_num, ds_run_context.cur_step_num))

    def ds_step_begin(self, ds_run_context):
        self.begun.append((ds_run_context.cur_epoch_num, ds_run_context.cur_step_num_in_epoch, ds_run_context.cur_step_num))

    def ds_step_end(self, ds_run_context):
        self.ended.append((ds_run_context.cur_epoch_num, ds_run_context.cur_step_num_in_epoch, ds_run_context.cur_step_num))


@case(over=[1, 2, 3])
def callbacks(step_size):
    steps = Steps(step_size)
    dataset = ds.NumpySlicesDataset([1, 2, 3, 4], shuffle=False).map(lambda x: x, callbacks=steps)
    return {"rows": rows(dataset, 2), "begun": steps.begun, "ended": steps.ended, "epochs": steps.epochs}


@case(over={"no callback": lambda: 3, "zero": lambda: ds.DSCallback(step_size=0), "text": lambda: ds.DSCallback(step_size="a")})
def bad_callbacks(make):
    return {"error": raised(lambda: ds.NumpySlicesDataset([1]).map(lambda x: x, callbacks=make()))}


def breaks(value):
    if value in (1, 4, 5):
        raise ValueError("bad")
    return value


@case(over={
    f"{mode}{data}": (mode, data) for mode in ("RETURN", "REPLACE", "SKIP") for data in ([0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3], [1, 4])
})
def broken_rows(chosen):
    mode, data = chosen
    ds.config.set_error_samples_mode(ds.config.ErrorSamplesMode[mode])
    results = {}
    try:
        results["size"] = ds.NumpySlicesDataset(data, shuffle=False).map(breaks).get_dataset_size()
        results["error"] = raised(lambda: results.setdefault("rows", rows(ds.NumpySlicesDataset(data, shuffle=False).map(breaks))))
    finally:
        ds.config.set_error_samples_mode(ds.config.ErrorSamplesMode.RETURN)
    return results


@case(over=[1, 2, 3])
def waiting(num_batch):
    inputs = []
    dataset = ds.NumpySlicesDataset(list(range(8)), shuffle=False).sync_wait("policy", num_batch, inputs.append).batch(2)
    results = []
    for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
        results.append(row[0].tolist())
        dataset.sync_update("policy", data={"seen": len(results)})
    return {"rows": results, "given": inputs}


@case(over={
    "unknown": lambda d: d.sync_update("other"), "zero": lambda d: d.sync_wait("b", num_batch=0), "name": lambda d: d.sync_wait(3),
    "twice": lambda d: d.sync_wait("a"), "update zero": lambda d: d.sync_update("a", num_batch=0), "shuffle": lambda d: d.shuffle(2),
})
def bad_waiting(call):
    return {"error": raised(lambda: call(ds.NumpySlicesDataset([1, 2]).sync_wait("a")))}


def saved_file(values, folder, **arguments):
    """What a saved file holds, by column type and value."""
    name = os.path.join(folder, "kept.mindrecord")
    ds.GeneratorDataset([(value,) for value in values], ["c"], shuffle=False).save(name, **arguments)
    names = [name] if arguments.get("num_files", 1) == 1 else [f"{name}{number}" for number in range(arguments["num_files"])]
    results = [[row[0].tolist() for row in ds.MindDataset(file_name, shuffle=False).create_tuple_iterator(num_epochs=1, output_numpy=True)]
             for file_name in names]
    reader = FileReader(names[0])
    return {"schema": reader.schema()["c"], "rows": [[str(value) for value in rows] for rows in results]}


@case(over={
    **{kind: [np.array(1, kind), np.array(2, kind)] for kind in "bool int8 uint8 uint16 uint32 int64 uint64 float16 float64".split()},
    "lengths": [np.ones(n, np.float32) for n in (1, 2, 3)], "matrix": [np.ones((2, 3), np.int16)] * 2,
    "text": [np.array("abc"), np.array("d")],
})
def saved(values):
    with tempfile.TemporaryDirectory() as folder:
        return saved_file(values, folder)


@case(over=[2, 3])
def saved_in_turns(files):
    with tempfile.TemporaryDirectory() as folder:
        result = saved_file([np.array(number) for number in range(7)], folder, num_files=files)
        return {**result, "rows": [sorted(rows) for rows in result["rows"]]}     # which file has which rows is by chance there


@case(over={
    "type": lambda d, f: d.save(f, 1, "text"), "zero": lambda d, f: d.save(f, 0), "name": lambda d, f: d.save(3),
    "twice": lambda d, f: (d.save(f), d.save(f)), "texts": lambda d, f: ds.NumpySlicesDataset([["a", "b"]]).save(f),
})
def bad_saving(call):
    with tempfile.TemporaryDirectory() as folder:
        return {"error": raised(lambda: call(ds.NumpySlicesDataset([1, 2]), os.path.join(folder, "a.mindrecord")))}
