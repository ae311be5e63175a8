"""MindRecord: each framework writes files and reads them; the rows, their order, types and shapes are compared."""
import tempfile
from pathlib import Path

import mindspore.dataset as ds
import numpy as np
from mindspore.mindrecord import FileReader, FileWriter, MindPage
from parity.case import case, raised

SCHEMA = {
    "name": {"type": "string"}, "label": {"type": "int32"}, "big": {"type": "int64"}, "score": {"type": "float32"},
    "exact": {"type": "float64"}, "numbers": {"type": "int32", "shape": [-1]}, "pairs": {"type": "int64", "shape": [-1, 2]},
    "matrix": {"type": "float32", "shape": [2, 3]}, "double": {"type": "float64", "shape": [2]}, "data": {"type": "bytes"},
}


def row(n):
    draw = np.random.default_rng(n)
    return {
        "name": f"é{n}.jpg", "label": n % 3, "big": (-1) ** n << 40, "score": n / 4, "exact": 0.1 * n,
        "numbers": draw.integers(-(10 ** (n % 9)), 10 ** (n % 9) + 1, n + 1).astype(np.int32),
        "pairs": draw.integers(-(10 ** (n % 18)), 10 ** (n % 18) + 1, (n % 5 + 1, 2)),
        "matrix": draw.normal(size=(2, 3)).astype(np.float32), "double": draw.normal(size=2),
        "data": draw.integers(0, 256, 40 * n + 1).astype(np.uint8).tobytes(),
    }


def write(folder, shards=1, schema=SCHEMA, rows=24, index=None, calls=1):
    path = Path(folder) / "rows.mindrecord"
    writer = FileWriter(str(path), shards, True)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema(schema, "made by a test")
    if index:
        writer.add_index(index)
    for call in range(calls):
        numbers = range(call * rows // calls, (call + 1) * rows // calls)
        writer.write_raw_data([{name: row(n)[name] for name in schema} for n in numbers])
    writer.commit()
    return str(path) if shards == 1 else f"{path}0"


SETS = {
    "one_file": {}, "three_files": {"shards": 3}, "pages": {"rows": 240, "calls": 4},
    "pages_of_three_files": {"shards": 3, "rows": 240, "calls": 2},
}


@case(over=SETS)
def rows_of_a_reader(how):
    with tempfile.TemporaryDirectory() as folder:
        reader = FileReader(write(folder, **how))
        results = list(reader.get_next())
        kinds = {name: type(value).__name__ for name, value in results[1].items()}
        answer = {
            "length": reader.len(), "schema": reader.schema(), "kinds": kinds, "names": [result["name"] for result in results],
            "big": [result["big"] for result in results], "exact": np.array([result["exact"] for result in results]),
            **{f"{name}_{n}": results[n][name] for n in (0, 7, 20) for name in ("numbers", "pairs", "matrix", "double")},
            "data": np.frombuffer(b"".join(result["data"] for result in results), np.uint8),
        }
        reader.close()
    return answer


FEW = {
    "no_blob": ["label", "name"], "one_blob": ["data"], "one_array": ["numbers"], "one_matrix": ["matrix"], "beside": ["data", "label"],
}


@case(over=FEW)
def few_fields(names):
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, schema={name: SCHEMA[name] for name in names}, rows=6)
        results = [record for reader in [FileReader(path)] for record in reader.get_next()]
        indexed = MindPage(path).candidate_fields if any(name in ("label", "name") for name in names) else []
    rows = [[value.tolist() if isinstance(value, np.ndarray) else str(value) for value in result.values()] for result in results]
    return {"rows": rows, "indexed": indexed}


@case()
def pages_by_value():
    with tempfile.TemporaryDirectory() as folder:
        page = MindPage(write(folder, 3, index=["label", "name"]))
        before = page.candidate_fields
        page.category_field = "label"
        return {
            "candidates": before, "info": page.read_category_info(), "field": page.category_field,
            "second": [entry["name"] for entry in page.read_at_page_by_id(1, 1, 3)],
            "named": [entry["name"] for entry in page.read_at_page_by_name("2", 0, 4)],
            "errors": [raised(lambda: page.read_at_page_by_id(7, 0, 1)), raised(lambda: page.read_at_page_by_id(0, -1, 1))] != [None, None],
        }


@case()
def rows_are_added():
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, 2, rows=8)
        writer = FileWriter.open_for_append(path)
        writer.write_raw_data([row(n) for n in range(8, 12)])
        writer.commit()
        return {"names": [entry["name"] for entry in FileReader(path).get_next()]}


@case()
def columns():
    with tempfile.TemporaryDirectory() as folder:
        data = ds.MindDataset(write(folder), shuffle=False)
        first = next(data.create_dict_iterator(num_epochs=1, output_numpy=True))
        few = ds.MindDataset(write(folder), ["matrix", "label", "data"], shuffle=False)
        batch = next(few.project(["matrix", "label"]).batch(3).create_tuple_iterator(num_epochs=1, output_numpy=True))
        return {
            "columns": data.get_col_names(), "size": data.get_dataset_size(), "few": few.get_col_names(), "batch": batch[0],
            "kinds": {name: [value.dtype.kind, list(value.shape)] for name, value in first.items()},
            "bytes": np.frombuffer(first["data"].tobytes(), np.uint8), "name": str(first["name"]),
            **{name: first[name] for name in ("label", "big", "score", "exact", "numbers", "pairs", "matrix", "double")},
        }


ORDERS = {
    "default": {}, "shuffled": {"shuffle": True}, "global": {"shuffle": ds.Shuffle.GLOBAL}, "in_order": {"shuffle": False},
    **{f"share_{n}_of_5": {"num_shards": 5, "shard_id": n} for n in (0, 3)},
    "share_in_order": {"num_shards": 5, "shard_id": 4, "shuffle": False},
    "some_in_order": {"shuffle": False, "num_samples": 7}, "some_of_a_share": {"num_shards": 3, "shard_id": 1, "num_samples": 4},
    "sequential": {"sampler": ds.SequentialSampler(3, 5)}, "subset": {"sampler": ds.SubsetSampler([5, 0, 9])},
    "distributed": {"sampler": ds.DistributedSampler(4, 1, shuffle=False)},
    "padded": {"shuffle": False, "columns_list": ["big"], "padded_sample": {"big": -1}, "num_padded": 6, "num_shards": 3, "shard_id": 2},
}


@case(over={f"{name}_{seed}": (how, seed) for name, how in ORDERS.items() for seed in (1, 77)})
def order(arguments):
    how, seed = arguments
    ds.config.set_seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        data = ds.MindDataset(write(folder, 2, {"big": {"type": "int64"}, "exact": {"type": "float64"}}), **how)
        column = "big" if "columns_list" in how else "exact"
        epochs = data.create_dict_iterator(num_epochs=3, output_numpy=True)
        return {"rows": [[round(float(epoch[column]) * 10) for epoch in epochs] for _ in range(3)], "size": data.get_dataset_size()}


def writer_of(folder, **how):
    file_writer = FileWriter(str(Path(folder) / "new"), 1, True)
    file_writer.add_schema({"id": {"type": "int32"}, "v": {"type": "float32", "shape": [2]}, "data": {"type": "bytes"}, **how})
    return file_writer


GOOD = {"id": 1, "v": np.zeros(2, np.float32), "data": b"x"}
REFUSED = {
    "type": lambda f: writer_of(f, id={"type": "int16"}), "shape": lambda f: writer_of(f, id={"type": "int32", "shape": 3}),
    "text_shape": lambda f: writer_of(f, id={"type": "string", "shape": [3]}),
    "field_name": lambda f: writer_of(f, **{"a b": {"type": "int32"}}),
    "second_schema": lambda f: writer_of(f).add_schema({"q": {"type": "int32"}}), "shards": lambda f: FileWriter("x", 0),
    "index_of_bytes": lambda f: writer_of(f).add_index(["data"]), "index_text": lambda f: writer_of(f).add_index("id"),
    "no_list": lambda f: writer_of(f).write_raw_data(GOOD), "no_dict": lambda f: writer_of(f).write_raw_data([3]),
    "missing": lambda f: writer_of(f).write_raw_data([{"id": 1}]),
    "wrong_number": lambda f: writer_of(f).write_raw_data([{**GOOD, "id": 1.5}]),
    "wrong_array": lambda f: writer_of(f).write_raw_data([{**GOOD, "v": np.zeros(2)}]),
    "wrong_length": lambda f: writer_of(f).write_raw_data([{**GOOD, "v": np.zeros(3, np.float32)}]),
    "no_rows": lambda f: writer_of(f).write_raw_data([]), "no_file": lambda f: FileReader(str(Path(f) / "none")),
    "column": lambda f: FileReader(write(f), columns=["none"]),
    "two_orders": lambda f: ds.MindDataset(write(f), sampler=ds.SequentialSampler(), shuffle=True),
    "no_padding": lambda f: ds.MindDataset(write(f), ["label"], padded_sample={"label": 1}),
    "other_padding": lambda f: ds.MindDataset(write(f), ["label"], padded_sample={"big": 1}, num_padded=2),
}


@case(over=REFUSED)
def refused(call):
    with tempfile.TemporaryDirectory() as folder:
        return {"refused": raised(lambda: call(folder)) is not None}
