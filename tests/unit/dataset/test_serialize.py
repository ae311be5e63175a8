"""Pipelines written down and made again: our own form and MindSpore 2.10's; what a file can't keep, and files that are none."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
import running
from mindspore.dataset import transforms, vision

# Written by ds.serialize of MindSpore 2.10: a folder, seven transforms of pictures and two of labels, and six steps.
MINDSPORE = {"children": [{"children": [{"children": [{"children": [{"batch_size": 2, "children": [{"children": [{
    "callback": [], "children": [{
        "callback": [], "children": [{
            "children": [], "class_indexing": {}, "connector_queue_size": 16, "dataset_dir": "pictures", "decode": False, "extensions": [],
            "num_parallel_workers": 1, "op_type": "ImageFolderDataset", "recursive": False,
            "sampler": {"num_samples": 0, "sampler_name": "SequentialSampler", "start_index": 0},
        }], "connector_queue_size": 16, "input_columns": ["image"], "num_parallel_workers": 1, "op_type": "Map", "operations": [
            {"tensor_op_name": "Decode", "tensor_op_params": {"device_target": "CPU", "rgb": True}},
            {"tensor_op_name": "Resize", "tensor_op_params": {"device_target": "CPU", "interpolation": 2, "size": [24, 20]}},
            {"tensor_op_name": "RandomHorizontalFlip", "tensor_op_params": {"prob": 0.5}},
            {"tensor_op_name": "CenterCrop", "tensor_op_params": {"size": [16, 16]}},
            {"tensor_op_name": "Rescale", "tensor_op_params": {"rescale": 0.5, "shift": 1.0}},
            {"tensor_op_name": "Pad", "tensor_op_params": {
                "device_target": "CPU", "fill_value": [0, 0, 0], "padding": [2, 2, 2, 2], "padding_mode": 0,
            }},
            {"tensor_op_name": "HwcToChw", "tensor_op_params": None},
        ], "output_columns": ["image"],
    }], "connector_queue_size": 16, "input_columns": ["label"], "num_parallel_workers": 2, "op_type": "Map", "operations": [
        {"tensor_op_name": "TypeCast", "tensor_op_params": {"data_type": "int32"}},
        {"tensor_op_name": "OneHot", "tensor_op_params": {"num_classes": 3, "smoothing_rate": 0.0}},
    ], "output_columns": ["label"],
}], "count": 2, "op_type": "Repeat"}], "connector_queue_size": 16, "drop_remainder": True, "input_columns": [], "num_parallel_workers": 2,
    "op_type": "Batch", "output_columns": []}], "count": 1, "op_type": "Skip"}], "count": 5, "op_type": "Take"}],
    "input_columns": ["image"], "op_type": "Rename", "output_columns": ["x"]}], "columns": ["x"], "op_type": "Project"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for number in range(6):
        folder = tmp_path / "pictures" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(folder / f"{number}.png"), np.full((30, 30, 3), number * 10, np.uint8))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pipeline() -> Any:
    dataset = ds.ImageFolderDataset("pictures", sampler=ds.SequentialSampler(1, 4))
    steps = [vision.Decode(), vision.Resize((8, 9), vision.Inter.NEAREST), vision.Normalize([1.0, 2.0, 3.0], [2.0, 2.0, 2.0])]
    dataset = dataset.map([*steps, transforms.RandomChoice([vision.HWC2CHW()])], ["image"]).map(transforms.TypeCast(ms.float16), "label")
    return dataset.zip(ds.NumpySlicesDataset({"n": np.arange(5)}, shuffle=False)).repeat(2).batch(3, drop_remainder=True)


def rows(dataset: Any) -> list[Any]:
    return [[column.tolist() for column in row] for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def test_a_pipeline_comes_back(here: Path) -> None:
    ds.serialize(pipeline(), "kept.json")
    again = ds.deserialize(json_filepath="kept.json")
    assert rows(again) == rows(pipeline())
    assert ds.compare(again, pipeline()) and not ds.compare(again, pipeline().take(1))
    assert ds.deserialize(json.loads(pipeline().to_json())).get_dataset_size() == 2
    assert ds.deserialize() is None


def test_mindspores_own_form_is_read(here: Path) -> None:
    again = ds.deserialize(MINDSPORE)
    assert again.get_col_names() == ["x"]
    assert [row[0].shape for row in again.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [(2, 3, 20, 20)] * 5


def test_functions_are_told_and_refused(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def doubled(n: Any) -> Any:
        return n * 2

    described = ds.serialize(ds.NumpySlicesDataset([1, 2]).map(doubled))
    assert "'doubled' of the program's" in capfd.readouterr().err
    with pytest.raises(ValueError, match=r"Map\(operations=\.\.\.\): 'doubled' of a program's"):
        ds.deserialize(described)


@pytest.mark.parametrize("wrong", [
    {}, {"op_type": 3}, {"op_type": "os.system", "children": []}, {"op_type": "Dataset"}, {"op_type": "TextFileDataset", "children": 3},
    {"op_type": "Map", "operations": {"tensor_op_name": "exec", "tensor_op_params": {}}, "children": [{"op_type": "NumpySlicesDataset", "data": [1]}]},  # noqa: E501
    {"op_type": "NumpySlicesDataset", "data": [1], "__class__": 1}, {"op_type": "NumpySlicesDataset", "data": {"enum": "os", "member": "system"}},  # noqa: E501
    {"op_type": "NumpySlicesDataset", "data": [1], "sampler": {"sampler_name": "Popen"}},
    {"op_type": "Batch", "batch_size": 2, "children": []},
])
def test_what_is_no_pipeline_is_said(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"deserialize|expected"):
        ds.deserialize(wrong)


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff\xfe", b"[1]", b"null"])
def test_files_that_are_none_are_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.json|deserialize"):
        ds.deserialize(json_filepath=str(tmp_path / "bad.json"))


def test_show_writes_to_the_log(tmp_path: Path) -> None:
    program = "import mindspore.dataset as ds; ds.show(ds.NumpySlicesDataset([1, 2]).batch(2))"
    ran = running.torchspore("run", "-c", program, cwd=tmp_path, extra={"GLOG_v": "1"})
    assert '"op_type": "Batch"' in ran.err
