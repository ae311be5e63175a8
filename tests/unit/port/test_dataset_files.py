"""Data sets of files in ported scripts: folders of pictures, CSV, MindRecord."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.training_scripts import assert_verified, ported

from torchspore.port.compat import files, records

TRAINED = """optimizer = nn.SGD(net.trainable_params(), 0.1)
model = Model(net, loss_fn, optimizer, metrics={'accuracy'})
model.train(2, dataset)
count = dataset.get_dataset_size()
"""
CONVOLUTIONS = """net = nn.SequentialCell(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 16, 3))
"""


def write_folders(folder: Path, suffix: str = "png") -> None:
    from PIL import Image

    random = np.random.default_rng(0)
    for name in ("cat", "dog", "ant"):
        (folder / name / "more").mkdir(parents=True)
        for number in range(3):
            image = Image.fromarray(random.integers(0, 255, (9, 10, 3), np.uint8))
            image.save(folder / name / ("more" if number == 2 else "") / f"{number}.{suffix}")
    (folder / "cat" / "notes.txt").write_text("no picture")


@pytest.mark.parametrize("source, first", [
    ("decode=True", "vision.CenterCrop(8)"), ("", "[vision.Decode(), vision.CenterCrop((8, 8)), vision.HorizontalFlip()]"),
    ("decode=True, shuffle=False, num_samples=7, class_indexing={'dog': 0, 'ant': 2}", "[vision.VerticalFlip(), vision.CenterCrop(8)]"),
    ("decode=True, extensions=['.PNG']", "vision.CenterCrop(8)"),
])
def test_folders_of_pictures(source: str, first: str, tmp_path: Path) -> None:
    write_folders(tmp_path / "pictures")
    outcome = ported(tmp_path, f"""from mindspore.dataset import transforms, vision
{CONVOLUTIONS}dataset = ds.ImageFolderDataset({str(tmp_path / 'pictures')!r}, {source})
dataset = dataset.map({first}, "image")
dataset = dataset.map([vision.Rescale(1 / 255.0, 0.0), vision.Normalize([0.5] * 3, [0.5] * 3), vision.HWC2CHW()], "image")
dataset = dataset.map(transforms.TypeCast(ms.int32), "label").batch(2)
{TRAINED}""")
    assert_verified(outcome)
    assert "class ImageFolder(Dataset[Any]):" in outcome.ported.text


def test_folder_with_jpeg_and_labels_in_rows(tmp_path: Path) -> None:
    write_folders(tmp_path / "[pictures]", "jpg")
    outcome = ported(tmp_path, f"""from mindspore.dataset import transforms, vision
{CONVOLUTIONS}dataset = ds.ImageFolderDataset({str(tmp_path / '[pictures]')!r}, decode=True, shuffle=True)
dataset = dataset.map([vision.CenterCrop(8), vision.ToTensor()], "image").map(transforms.OneHot(3, 0.1), "label")
dataset = dataset.map(lambda row: row.astype(np.float32), "label").batch(3, drop_remainder=True)
{TRAINED.replace("metrics={'accuracy'}", "metrics=None")}""")
    assert_verified(outcome)


def write_table(path: Path, names: str = "") -> None:
    random = np.random.default_rng(0)
    lines = [f"{random.normal():.4f},{random.normal():.4f},{n},'{n}',{n % 3}" for n in range(20)]
    path.write_text("\n".join([names, *lines, ""] if names else [*lines, ""]))


@pytest.mark.parametrize("arguments, names", [
    ("column_names=['a', 'b', 'c', 'd', 'y']", ""), ("shuffle=False, column_names=['a', 'b', 'c', 'd', 'y'], num_samples=18", ""),
    ("shuffle=ds.Shuffle.GLOBAL, field_delim=',', column_names=['a', 'b', 'c', 'd', 'y']", ""),
])
def test_csv(arguments: str, names: str, tmp_path: Path) -> None:
    write_table(tmp_path / "rows.csv", names)
    outcome = ported(tmp_path, f"""def joined(a, b, c):
    return np.stack([a, b, a * b, c.astype(np.float32)]).astype(np.float32)


dataset = ds.CSVDataset({str(tmp_path / 'rows.csv')!r}, column_defaults=[0.0, 0.0, 0, "", 0], {arguments})
dataset = dataset.map(joined, ["a", "b", "c"], output_columns=["x"]).project(["x", "y"]).batch(6)
{TRAINED}""")
    assert_verified(outcome)
    assert "CsvRows(" in outcome.ported.text


def test_names_in_the_first_line_of_csv(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('a;b\n1;"x;""y"\n\n2;z\n')
    rows = records.CsvRows(str(tmp_path / "*.csv"), [0, ""], ";", has_names=True)
    assert [tuple(value.item() for value in rows[index]) for index in range(len(rows))] == [(1, 'x;"y'), (2, "z")]
    assert [value.dtype.kind for value in rows[0]] == ["i", "U"]


def write_records(path: Path, number: int = 1) -> None:
    from mindspore.mindrecord import FileWriter

    writer, random = FileWriter(str(path), number), np.random.default_rng(0)
    writer.add_schema({
        "x": {"type": "float32", "shape": [4]}, "label": {"type": "int32"}, "ids": {"type": "int64", "shape": [2, -1]},
        "name": {"type": "string"}, "picture": {"type": "bytes"}, "share": {"type": "float64"},
    }, "rows")
    writer.add_index(["label"])
    writer.write_raw_data([{
        "x": random.normal(size=4).astype(np.float32), "label": n % 3, "name": "é" * n * 20, "picture": bytes(range(n + 1)), "share": n / 7,
        "ids": np.array([[n - 9, -300, 70_000, -n], [1 << 40, -(1 << 33), 127, -128]]),
    } for n in range(20)])
    writer.commit()


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("arguments", ["", "shuffle=False, num_samples=18"])
def test_mindrecord(arguments: str, number: int, tmp_path: Path) -> None:
    write_records(tmp_path / "rows.mindrecord", number)
    file = tmp_path / f"rows.mindrecord{'' if number == 1 else '0'}"
    outcome = ported(tmp_path, f"""dataset = ds.MindDataset({str(file)!r}, ["x", "label"], {arguments}).batch(6)
{TRAINED}""")
    assert_verified(outcome)
    assert "MindRecord(" in outcome.ported.text


@pytest.mark.parametrize("number", [1, 2])
def test_all_types_of_mindrecord(number: int, tmp_path: Path) -> None:
    from mindspore import dataset as ds

    write_records(tmp_path / "rows", number)
    file = str(tmp_path / ("rows" if number == 1 else "rows0"))
    rows, names = records.MindRecord(file), ["ids", "label", "name", "picture", "share", "x"]
    expected = list(ds.MindDataset(file, shuffle=False).create_dict_iterator(num_epochs=1, output_numpy=True))
    assert rows.columns == names and len(rows) == len(expected) == 20
    for row, values in zip([rows[index] for index in range(20)], expected):
        for name, value in zip(names, row):
            assert value.dtype == values[name].dtype and np.array_equal(value, values[name]), name


def test_a_picture_in_mindrecord(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (4, 3), (1, 2, 3)).save(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    assert np.array_equal(files.decode_picture(np.frombuffer(content, f"S{len(content)}")), np.full((3, 4, 3), [1, 2, 3], np.uint8))


@pytest.mark.parametrize("source, reason", [
    ("ds.CSVDataset('rows.csv', column_names=['a', 'b'])", "CSVDataset without column_defaults, whose columns are texts"),
    ("ds.CSVDataset('rows.csv', ',', [0.0, 0], ['a', 'b'], 4)", "num_samples of rows in random order: write shuffle=False"),
    ("ds.MindDataset('rows', ['a', 'b'], shuffle=ds.Shuffle.FILES)", "Shuffle.FILES: write shuffle=True or shuffle=False"),
    ("ds.MindDataset('rows', ['a', 'b'], padded_sample={'a': 0, 'b': 0}, num_padded=2)", "the argument padded_sample"),
    ("ds.ImageFolderDataset('pictures', decrypt=print)", "the argument decrypt"),
    ("ds.ImageFolderDataset('pictures').map(vision.Resize(4), 'image')", "Resize in map: write it as a function of arrays"),
    ("ds.CSVDataset('rows.csv', ',', [0.0, 0], ['a', 'b']).map(lambda a: a, 'a', 'b')", "output_columns that replace other columns"),
])
def test_sources_that_are_left_to_do_by_hand(source: str, reason: str, tmp_path: Path) -> None:
    outcome = ported(tmp_path, f"from mindspore.dataset import vision\ndataset = {source}.batch(4)\n{TRAINED}")
    assert any(reason in problem.text for problem in outcome.ported.by_hand), outcome.ported.by_hand
