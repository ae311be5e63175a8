"""Pipelines as JSON: written and read back they give the same rows; what a file can't hold is refused."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import transforms, vision
from support import dataset_sources, log_messages, tiny_sources, tiny_texts

SOURCES = [pytest.param(name, make, builders[-1], id=name) for name, (make, builders) in dataset_sources.SOURCES.items()]


def rows(data: ds.Dataset) -> list[list[Any]]:
    ds.config.set_seed(3)
    return [[value.tolist() for value in row] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def deserialized(data: ds.Dataset) -> ds.Dataset:
    """What the JSON text of a pipeline gives."""
    copied = ds.deserialize(json.loads(json.dumps(ds.serialize(data))))
    assert copied is not None and copied is not data and ds.compare(copied, data)
    return copied


@pytest.mark.parametrize(("name", "make", "options"), SOURCES)
def test_each_source(tmp_path: Path, name: str, make: Any, options: dict[str, Any]) -> None:
    make(tmp_path)
    data = dataset_sources.call(name, tmp_path, options)
    assert rows(deserialized(data)) == rows(data)


@pytest.fixture
def pictures(tmp_path: Path) -> str:
    tiny_sources.put(tmp_path, {f"{kind}/{n}.png": kind * 20 + n for kind in range(3) for n in range(4)})
    return str(tmp_path)


def zipped(folder: str) -> ds.Dataset:
    steps = [
        vision.Decode(), vision.Resize((3, 4), vision.Inter.NEAREST), vision.RandomHorizontalFlip(0.3),
        vision.Pad(1, 2, vision.Border.EDGE),
        transforms.RandomApply([vision.Invert()], 1.0), vision.Normalize([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), vision.HWC2CHW(),
        transforms.TypeCast(ms.int32), transforms.TypeCast(np.float16),
    ]
    data = ds.ImageFolderDataset(folder, sampler=ds.PKSampler(3)).map(steps, "image", num_parallel_workers=1)
    data = data.map(transforms.OneHot(5), ["label"]).shuffle(4).repeat(2).skip(1).take(9).rename("image", "x")
    return ds.zip((data, ds.NumpySlicesDataset(list(range(9)), "n", shuffle=False))).project(["x", "n"]).batch(2, drop_remainder=True)


SAMPLERS = {
    "sequential": lambda: ds.SequentialSampler(1, 5), "random": lambda: ds.RandomSampler(True, 4),
    "subset": lambda: ds.SubsetSampler([3, 1]),
    "subset_random": lambda: ds.SubsetRandomSampler([3, 1, 7]), "weighted": lambda: ds.WeightedRandomSampler([1.0, 0.5, 2.0], 3),
    "distributed": lambda: ds.DistributedSampler(3, 1, shuffle=False, offset=1), "class": lambda: ds.PKSampler(2, shuffle=True),
}


def test_a_complete_pipeline(pictures: str) -> None:
    data = zipped(pictures)
    assert rows(deserialized(data)) == rows(data) and len(rows(data)) == 4
    assert deserialized(data).get_col_names() == ["x", "n"] and not ds.compare(data, data.repeat(2))


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(pictures: str, name: str) -> None:
    data = ds.ImageFolderDataset(pictures, sampler=SAMPLERS[name]())
    assert rows(deserialized(data)) == rows(data)
    data.add_sampler(ds.SequentialSampler(1))
    assert rows(deserialized(data)) == rows(data), "with a child"


def test_files_and_concatenation(tmp_path: Path) -> None:
    tiny_texts.many(tmp_path)
    first = ds.TextFileDataset(str(tmp_path / "a.txt"), shuffle=ds.Shuffle.FILES)
    data = first + ds.TextFileDataset([str(tmp_path / "b.txt"), str(tmp_path / "c.txt")], num_shards=2, shard_id=1)
    serialized = ds.serialize(data, str(tmp_path / "pipeline.json"))
    copied = ds.deserialize(json_filepath=str(tmp_path / "pipeline.json"))
    assert rows(copied) == rows(data) and json.loads((tmp_path / "pipeline.json").read_text()) == serialized == json.loads(data.to_json())
    assert ds.deserialize() is None


def test_what_mindspore_writes(pictures: str) -> None:
    """The keys that MindSpore 2.10 writes, its names and numbers of choices among them."""
    source = {
        "children": [], "class_indexing": {}, "connector_queue_size": 16, "dataset_dir": pictures, "decode": False, "extensions": [],
        "num_parallel_workers": 2, "op_type": "ImageFolderDataset", "recursive": False,
        "sampler": {"even_dist": True, "num_samples": 0, "num_shards": 3, "offset": -1, "sampler_name": "DistributedSampler",
                    "seed": 5490, "shard_id": 1, "shuffle_mode": 0},
    }
    operations = [
        {"tensor_op_name": "Decode", "tensor_op_params": {"device_target": "CPU", "rgb": True}},
        {"tensor_op_name": "Resize", "tensor_op_params": {"device_target": "CPU", "interpolation": 1, "size": [2, 3]}},
        {"tensor_op_name": "HwcToChw", "tensor_op_params": None},
        {"tensor_op_name": "TypeCast", "tensor_op_params": {"data_type": "int32"}},
    ]
    step = {
        "callback": [], "children": [source], "connector_queue_size": 16, "input_columns": ["image"], "num_parallel_workers": 1,
        "op_type": "Map", "operations": operations, "output_columns": ["image"],
    }
    batch = {
        "batch_size": 2, "children": [{"buffer_size": 4, "children": [step], "op_type": "Shuffle", "reset_each_epoch": True}],
        "connector_queue_size": 16, "drop_remainder": True, "input_columns": [], "num_parallel_workers": 2, "op_type": "Batch",
        "output_columns": [],
    }
    steps = [vision.Decode(), vision.Resize((2, 3), vision.Inter.NEAREST), vision.HWC2CHW(), transforms.TypeCast(ms.int32)]
    expected = ds.ImageFolderDataset(pictures, num_shards=3, shard_id=1, shuffle=False).map(steps, "image").shuffle(4).batch(2, True)
    copied = ds.deserialize(batch)
    assert copied is not None and rows(copied) == rows(expected) and len(rows(copied)) == 2


def test_show_logs_the_pipeline(pictures: str) -> None:
    with log_messages.messages("INFO") as shown:
        ds.show(ds.ImageFolderDataset(pictures).batch(2), indentation=None)
    assert json.loads(shown.lines[0])["op_type"] == "Batch" and "\n" not in shown.lines[0]


SOURCE = {"op_type": "NumpySlicesDataset", "children": [], "data": [1, 2]}
REFUSED = {
    "no_node": ({"op_type": "x"}, r"expected an object with op_type and children"),
    "unknown": (
        {"op_type": "Shufle", "children": [SOURCE]},
        r"op_type 'Shufle': expected one that is known\.\n\nhint: did you mean 'Shuffle'",
    ),
    "argument": ({"op_type": "Skip", "children": [SOURCE], "number": 3}, r"SkipDataset with 'number': expected its arguments"),
    "lacking": ({"op_type": "Skip", "children": [SOURCE]}, r"SkipDataset without 'count'"),
    "value": ({"op_type": "Skip", "children": [SOURCE], "count": -3}, r"SkipDataset: skip\(count=-3\)"),
    "function": (
        {"op_type": "Map", "children": [SOURCE], "operations": [{"tensor_op_name": "f", "python_module": "os"}]},
        r"operation 'f': expected a transform of mindspore\.dataset",
    ),
    "generator": ({"op_type": "GeneratorDataset", "children": [], "column_names": ["a"]}, r"GeneratorDataset without 'source'"),
    "sampler": (
        {"op_type": "ImageFolderDataset", "children": [], "dataset_dir": "/", "sampler": {"sampler_name": "os"}}, r"sampler .*: expected",
    ),
    "choice": (
        {
            "op_type": "Map", "children": [SOURCE],
            "operations": [{"tensor_op_name": "Resize", "tensor_op_params": {"size": 3, "interpolation": 9}}],
        },
        r"Inter 9: expected one of",
    ),
    "deep": (None, r"nested too deeply: expected a JSON file of serialize"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(tmp_path: Path, name: str) -> None:
    node, text = REFUSED[name]
    path = tmp_path / "a.json"
    path.write_text("[" * 100_000 if node is None else json.dumps(node))
    with pytest.raises(ValueError, match=text):
        ds.deserialize(json_filepath=str(path))


def test_functions_are_written_by_name_and_not_read(tmp_path: Path) -> None:
    def twice(value: Any) -> Any:
        return value * 2

    data = ds.NumpySlicesDataset([1, 2], "n").map(twice)
    serialized = ds.serialize(data)
    assert serialized["operations"][0]["tensor_op_name"] == "twice"
    with pytest.raises(ValueError, match="operation 'twice'"):
        ds.deserialize(serialized)
    with pytest.raises(FileNotFoundError, match="a file that exists"):
        ds.deserialize(json_filepath=str(tmp_path / "none"))
    with pytest.raises(TypeError, match="expected a Dataset, got int"):
        ds.serialize(3)

    class Rows:
        def __getitem__(self, index: int) -> int:
            return index

        def __len__(self) -> int:
            return 3

    with pytest.raises(ValueError, match="GeneratorDataset"):
        ds.deserialize(ds.serialize(ds.GeneratorDataset(Rows(), "a")))
