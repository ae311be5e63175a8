"""TFRecord files and schemas, read by both frameworks."""
import json
import tempfile
from pathlib import Path

import mindspore as ms
import mindspore.dataset as ds
from parity.case import case, raised
from support import tfrecord_files


def schema(*columns):
    columns_schema = ds.Schema()
    for column in columns:
        columns_schema.add_column(*column)
    return columns_schema


COLUMNS = {"score": {"type": "float32", "rank": 0}, "id": {"type": "int64", "rank": 1, "shape": [2]}}
FILE = {"datasetType": "TF", "numRows": 3, "columns": COLUMNS}
SCHEMAS = {
    "none": lambda: None, "types": lambda: schema(("id", ms.int32), ("data", ms.uint8), ("score", "float64")),
    "shapes": lambda: schema(("score", ms.float32, []), ("id", ms.int64, [-1, 1]), ("data", ms.uint8, [5])),
    "text": lambda: schema(("name", ms.string), ("many", ms.string)),
    "other_kind": lambda: schema(("id", ms.float32), ("score", ms.float16)),
    "int8": lambda: schema(("id", ms.int8, [2]), ("many", ms.uint8)), "file": lambda: FILE,
}


def shown(array):
    return {"dtype": array.dtype.str, "shape": list(array.shape), "values": array.tolist()}


@case(over=SCHEMAS)
def rows(make):
    with tempfile.TemporaryDirectory() as folder:
        arguments = make()
        if isinstance(arguments, dict):
            arguments = str(Path(folder) / "schema.json")
            Path(arguments).write_text(json.dumps(FILE))
        data = ds.TFRecordDataset(tfrecord_files.write(Path(folder) / "a", range(1, 6)), arguments, shuffle=False)
        read = [{name: shown(value) for name, value in row.items()} for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]
        return {"rows": read, "columns": data.get_col_names(), "size": data.get_dataset_size(), "shapes": data.output_shapes()}


HOW = {
    "all": {}, "few_columns": {"columns_list": ["score", "id"]}, "some": {"num_samples": 4}, "shuffled": {"shuffle": True},
    "files_shuffled": {"shuffle": ds.Shuffle.FILES}, **{f"share_{n}": {"num_shards": 2, "shard_id": n} for n in range(2)},
    **{f"equal_share_{n}": {"num_shards": 5, "shard_id": n, "shard_equal_rows": True} for n in range(5)},
}


@case(over=HOW)
def several_files(how):
    with tempfile.TemporaryDirectory() as folder:
        files = [tfrecord_files.write(Path(folder) / f"{n}", range(4 * n, 4 * n + size)) for n, size in enumerate((4, 3, 4))]
        data = ds.TFRecordDataset(files, num_parallel_workers=1, **({"shuffle": False} | how))
        results = [int(row["id"][0]) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]
        is_open = "shard_equal_rows" in how  # which rows a share has depends on MindSpore's threads
        return {"rows": len(results) if is_open else sorted(results), "size": data.get_dataset_size(), "columns": data.get_col_names()}


@case(over=[("GZIP", True), ("ZLIB", True), ("", False)])
def packed(how):
    with tempfile.TemporaryDirectory() as folder:
        path = tfrecord_files.write(Path(folder) / "a", range(5), *how)
        data = ds.TFRecordDataset(path, shuffle=False, compression_type=how[0])
        return {"rows": [shown(row["id"]) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]}


@case()
def schemas_as_text():
    parsed, listed, same_schema = ds.Schema(), ds.Schema(), ds.Schema()
    parsed.parse_columns({"b": {"type": "int8", "shape": [3, 3]}, "a": {"type": "int8"}})
    listed.parse_columns([{"name": "q", "type": "float64", "shape": [2]}, {"name": "p", "type": "uint8", "shape": [1]}])
    same_schema.from_json(FILE)
    return {"added": schema(("z", ms.int64, [2]), ("a", "float32", [])).to_json(), "listed": listed.to_json(),
            "whole": same_schema.to_json()}


BAD = {
    "no_file": lambda path: ds.TFRecordDataset(path + "none"), "compression": lambda path: ds.TFRecordDataset(path, compression_type="x"),
    "shape": lambda path: next(ds.TFRecordDataset(path, schema(("id", ms.int64, [3]))).create_dict_iterator()),
    "absent": lambda path: next(ds.TFRecordDataset(path, schema(("none", ms.int64))).create_dict_iterator()),
    "no_record": lambda path: next(ds.TFRecordDataset(__file__).create_dict_iterator()), "type": lambda path: schema(("a", "foo")),
    "bytes": lambda path: next(ds.TFRecordDataset(path, schema(("data", ms.int16))).create_dict_iterator()),
    "text_of_numbers": lambda path: next(ds.TFRecordDataset(path, schema(("id", ms.string))).create_dict_iterator()),
    "name": lambda path: schema((3, ms.int8)), "schema_file": lambda path: ds.Schema(path + "none"),
    "columns": lambda path: ds.Schema().parse_columns(3), "unnamed": lambda path: ds.Schema().parse_columns([{"type": "int8"}]),
}


@case(over=BAD)
def refused(call):
    with tempfile.TemporaryDirectory() as folder:
        path = tfrecord_files.write(Path(folder) / "a", range(3))
        return {"refused": raised(lambda: call(path)) is not None}
