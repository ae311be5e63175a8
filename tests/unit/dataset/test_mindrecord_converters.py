"""Converters into MindRecord, and encrypted MindRecord files.

What MindSpore 2.10 writes (with opencv-python 4.10 and pandas 2.2) was looked at once: fields, types, rows and names of files.
"""
from __future__ import annotations

import gzip
import io
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import mindspore.dataset as ds
import mindspore.mindrecord as mindrecord
import numpy as np
import pytest
from mindspore.dataset import vision
from support import tfrecord_files, tiny_sources

from torchspore.mindspore.mindrecord import plain_pickles

ENCRYPTED = Path(__file__).parents[2] / "samples/mindrecord/encrypted.mindrecord"
KEY = "0123456789012345"


@pytest.fixture(autouse=True)
def no_key() -> Iterator[None]:
    yield
    mindrecord.set_enc_key(None)
    mindrecord.set_enc_mode()
    mindrecord.set_dec_mode(None)


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    reader = mindrecord.FileReader(str(path))
    return reader.schema(), list(reader.get_next())


def test_cifar10(tmp_path: Path) -> None:
    tiny_sources.cifar_pickles(tmp_path)
    converter = mindrecord.Cifar10ToMR(str(tmp_path), str(tmp_path / "out"))
    assert converter.transform(["label"]) is None
    schema, rows = read(tmp_path / "out")
    assert schema == {"data": {"type": "bytes"}, "id": {"type": "int64"}, "label": {"type": "int64"}}
    assert [(row["id"], row["label"]) for row in rows] == [(n, n // 2 if n % 2 == 0 else 9 - n // 2) for n in range(10)]
    assert [row["label"] for row in read(tmp_path / "out_test")[1]] == [5, 4]
    assert mindrecord.MindPage(str(tmp_path / "out")).candidate_fields == ["label"]
    for path in tmp_path.glob("out*"):
        path.unlink()
    pixels = np.repeat(np.array([200, 100, 10], np.uint8), 1024).reshape(1, 3072)
    tiny_sources.put(tmp_path, {"data_batch_1": tiny_sources.pickled({"data": pixels, "labels": [3]})})
    converter.run()
    picture = vision.Decode()(np.frombuffer(read(tmp_path / "out")[1][0]["data"], np.uint8))
    assert np.abs(picture[5, 5].astype(int) - [200, 101, 10]).max() <= 2, "red is red"


def test_cifar100(tmp_path: Path) -> None:
    tiny_sources.cifar_pickles(tmp_path, hundred=True)
    mindrecord.Cifar100ToMR(str(tmp_path), str(tmp_path / "out")).transform()
    rows = [(row["id"], row["fine_label"], row["coarse_label"]) for row in read(tmp_path / "out")[1]]
    assert rows == [(0, 0, 1), (1, 99, 19)] and len(read(tmp_path / "out_test")[1]) == 2


class Harm:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("harm",)


def hostile() -> dict[str, bytes]:
    array = np.zeros(3, np.uint8)
    return {
        "runs": pickle.dumps({"data": Harm(), "labels": [1]}, protocol=2),
        "objects": pickle.dumps({"data": np.array([Harm()])}, protocol=2),
        "another": pickle.dumps({"data": io.BytesIO}), "cut": tiny_sources.pickled({"data": array, "labels": [1]})[:-9],
        "no_dict": pickle.dumps([1]), "no_data": pickle.dumps({"labels": [1]}), "empty": b"",
        "size": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(J\xff\xff\xff\x7ftU\x01btR.",
        "persistent": b"\x80\x02U\x03abcQ.",
    }


@pytest.mark.parametrize("name", hostile())
def test_a_pickle_does_nothing(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tiny_sources.cifar_pickles(tmp_path)
    (tmp_path / "data_batch_3").write_bytes(hostile()[name])
    with pytest.raises(ValueError, match=r"data_batch_3: .*: expected a pickle of data, labels, of plain values and arrays alone"):
        mindrecord.Cifar10ToMR(str(tmp_path), str(tmp_path / "out")).transform()
    assert not (tmp_path / "harm").exists() and not (tmp_path / "out").exists(), "nothing ran, nothing is half written"


def test_pickles_of_python_three(tmp_path: Path) -> None:
    for protocol in (0, 2, 4, 5):
        (tmp_path / "a").write_bytes(pickle.dumps({"data": np.arange(6).reshape(2, 3), b"labels": [1, 2]}, protocol=protocol))
        data, labels = plain_pickles.load(tmp_path / "a", "data", "labels")
        assert data.tolist() == [[0, 1, 2], [3, 4, 5]] and labels == [1, 2]


def test_imagenet(tmp_path: Path) -> None:
    names = ("n01/b.JPEG", "n01/a.jpg", "n02/c.JPEG", "n02/d.png")
    tiny_sources.put(tmp_path, {**{f"img/{name}": n for n, name in enumerate(names)}, "map.txt": "n01 5\nn02 7\n"})
    mindrecord.ImageNetToMR(str(tmp_path / "map.txt"), str(tmp_path / "img"), str(tmp_path / "out"), 2).transform()
    schema, rows = read(tmp_path / "out0")
    assert schema == {"file_name": {"type": "string"}, "image": {"type": "bytes"}, "label": {"type": "int32"}}
    expected = [("n01/a.jpg", 5, 1), ("n01/b.JPEG", 5, 0), ("n02/c.JPEG", 7, 2)]
    assert [(row["file_name"], row["label"], row["image"]) for row in rows] == [
        (str(tmp_path / "img" / name), label, tiny_sources.png(number)) for name, label, number in expected
    ]
    (tmp_path / "map.txt").write_text("n01 5\nn03 7\n")
    with pytest.raises(RuntimeError, match="n03: expected this folder, which .*map.txt names"):  # noqa: RUF043
        mindrecord.ImageNetToMR(str(tmp_path / "map.txt"), str(tmp_path / "img"), str(tmp_path / "more")).transform()


def test_mnist(tmp_path: Path) -> None:
    for name, count in (("train", 4), ("t10k", 2)):
        tiny_sources.put(tmp_path, {
            f"{name}-images-idx3-ubyte.gz": gzip.compress(tiny_sources.idx(tiny_sources.digits(count, count))),
            f"{name}-labels-idx1-ubyte.gz": gzip.compress(tiny_sources.idx(np.arange(count) + 1)),
        })
    mindrecord.MnistToMR(str(tmp_path), str(tmp_path / "out")).transform()
    schema, rows = read(tmp_path / "out_train.mindrecord")
    assert schema == {"data": {"type": "bytes"}, "label": {"type": "int64"}} and [row["label"] for row in rows] == [1, 2, 3, 4]
    assert cv2.imdecode(np.frombuffer(rows[0]["data"], np.uint8), cv2.IMREAD_UNCHANGED).shape == (28, 28)
    assert len(read(tmp_path / "out_test.mindrecord")[1]) == 2
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(RuntimeError, match=r"t10k-images-idx3-ubyte\.gz: .*: expected"):
        mindrecord.MnistToMR(str(tmp_path), str(tmp_path / "more")).transform()
    assert not (tmp_path / "more_test.mindrecord").exists()


def test_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('Name,Age,Score,Id\nAnn,3,1.5,7\nBob,44,2,8\n"C, d",5,3,9\n')
    mindrecord.CsvToMR(str(tmp_path / "a.csv"), str(tmp_path / "out")).transform()
    schema, rows = read(tmp_path / "out")
    assert {name: kind["type"] for name, kind in schema.items()} == {"Age": "int64", "Id": "int64", "Name": "string", "Score": "float64"}
    assert rows[1:] == [{"Age": 44, "Id": 8, "Name": "Bob", "Score": 2.0}, {"Age": 5, "Id": 9, "Name": "C, d", "Score": 3.0}]
    mindrecord.CsvToMR(str(tmp_path / "a.csv"), str(tmp_path / "few"), ["Age", "Name"]).transform()
    assert list(read(tmp_path / "few")[0]) == ["Age", "Name"]
    data = ds.MindDataset(str(tmp_path / "out"), ["Age"], shuffle=False)
    assert [int(row[0]) for row in data] == [3, 44, 5]


BAD_CSV = {
    "1Name,Age\nAnn,3\n": r"column '1Name': expected a name of letters, digits and '_', no digit first",
    "a,b\n1\n": r"a\.csv, row 1: 1 fields: expected 2, as its first line has", "": r"a\.csv: an empty file",
    'a\n"x\n': r"a\.csv: unexpected end of data: expected a CSV file of UTF-8",
}


@pytest.mark.parametrize("content", BAD_CSV)
def test_a_csv_that_does_not_fit(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(ValueError, match=BAD_CSV[content]):
        mindrecord.CsvToMR(str(tmp_path / "a.csv"), str(tmp_path / "out")).transform()
    assert not (tmp_path / "out").exists()


def test_a_csv_that_is_not_there_or_lacks_a_column(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"none\.csv: expected a CSV file"):
        mindrecord.CsvToMR(str(tmp_path / "none.csv"), str(tmp_path / "out")).transform()
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(RuntimeError, match=r"CsvToMR\(columns_list=\['zz'\]\): 'zz': expected 'a'"):
        mindrecord.CsvToMR(str(tmp_path / "a.csv"), str(tmp_path / "out"), ["zz"]).transform()


class FixedLenFeature:
    """As TensorFlow's."""

    def __init__(self, shape: list[int], dtype: Any) -> None:
        self.shape, self.dtype = shape, dtype


def test_tfrecord(tmp_path: Path) -> None:
    path = tfrecord_files.write(tmp_path / "rows", range(1, 4))
    expected = {
        "id": FixedLenFeature([2], np.int64), "score": FixedLenFeature([], "float32"), "data": FixedLenFeature([], "string"),
        "name": FixedLenFeature([], "string"),
    }
    mindrecord.TFRecordToMR(path, str(tmp_path / "out"), expected, ["data"]).transform()
    schema, rows = read(tmp_path / "out")
    assert schema == {
        "data": {"type": "bytes"}, "id": {"shape": [2], "type": "int64"}, "name": {"type": "string"}, "score": {"type": "float32"},
    }
    for number, row in enumerate(rows, 1):
        saved = tfrecord_files.row(number)
        assert row["id"].tolist() == saved["id"].tolist() and row["data"] == saved["data"][0] and row["name"] == saved["name"][0].decode()
    with pytest.raises(ValueError, match=r"rows, row 0: KeyError: 'none': expected the features of feature_dict"):
        mindrecord.TFRecordToMR(path, str(tmp_path / "b"), {"none": FixedLenFeature([], "int64")}).transform()
    with pytest.raises(ValueError, match=r"'id' of shape .* and 'int8': expected a FixedLenFeature of shape"):
        mindrecord.TFRecordToMR(path, str(tmp_path / "b"), {"id": FixedLenFeature([], "int8")})


@pytest.mark.needs("cryptography")
def test_a_file_that_mindspore_encrypted_is_read() -> None:
    mindrecord.set_enc_key(KEY)
    rows = list(mindrecord.FileReader(str(ENCRYPTED)).get_next())
    assert [(row["id"], row["name"], row["v"].tolist()) for row in rows] == [(n, f"é{n}", [n, 0.5]) for n in range(5)]
    data = ds.MindDataset(str(ENCRYPTED), ["id"], shuffle=False)
    assert [int(row[0]) for row in data] == list(range(5))
    page = mindrecord.MindPage(str(ENCRYPTED))
    page.category_field = "id"
    assert [row["name"] for row in page.read_at_page_by_id(3, 0, 1)] == ["é3"]


def write(path: Path, count: int = 4) -> Path:
    writer = mindrecord.FileWriter(str(path), 2, overwrite=True)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema({"id": {"type": "int32"}, "data": {"type": "bytes"}})
    writer.write_raw_data([{"id": n, "data": b"secret" * 20} for n in range(count)])
    writer.commit()
    return path.with_name(path.name + "0")


@pytest.mark.needs("cryptography")
def test_files_are_encrypted_and_added_to(tmp_path: Path) -> None:
    mindrecord.set_enc_key(KEY)
    first = write(tmp_path / "a")
    content = first.read_bytes()
    assert b"secret" not in content and content.endswith(bytes(4) + b"AES-GCMENCRYPT")
    assert content[:4] == (len(content) - 22).to_bytes(4, "big")
    assert b"SQLite" not in first.with_name("a0.db").read_bytes()
    writer = mindrecord.FileWriter.open_for_append(str(first))
    writer.write_raw_data([{"id": 9, "data": b"more"}])
    writer.commit()
    assert [row["id"] for row in read(first)[1]] == [0, 1, 9, 2, 3] and first.read_bytes().endswith(b"AES-GCMENCRYPT")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a0", "a0.db", "a1", "a1.db"]


def test_a_program_may_encrypt_by_itself(tmp_path: Path) -> None:
    def turned(source: Any, size: int, target: Any, key: str) -> None:
        assert key == KEY
        target.write(bytes(byte ^ 1 for byte in source.read(size)))

    mindrecord.set_enc_key(KEY)
    mindrecord.set_enc_mode(turned)
    first = write(tmp_path / "a")
    assert first.read_bytes().endswith(bytes(4) + b"UDF-ENCENCRYPT")
    mindrecord.set_enc_mode("AES-GCM")
    with pytest.raises(RuntimeError, match="a0: encrypted by a function of the program that wrote it: expected the function"):
        mindrecord.FileReader(str(first))
    mindrecord.set_dec_mode(turned)
    assert [row["id"] for row in read(first)[1]] == [0, 1, 2, 3]


@pytest.mark.needs("cryptography")
def test_keys_that_do_not_fit(tmp_path: Path) -> None:
    plain = write(tmp_path / "a")
    with pytest.raises(RuntimeError, match=r"encrypted\.mindrecord: an encrypted file: expected a key"):
        mindrecord.FileReader(str(ENCRYPTED))
    mindrecord.set_enc_key("0" * 16)
    with pytest.raises(RuntimeError, match=r"encrypted\.mindrecord: the key is another one, or the file was changed"):
        mindrecord.FileReader(str(ENCRYPTED))
    with pytest.raises(RuntimeError, match="a0: a file that is not encrypted: expected an encrypted one"):
        mindrecord.FileReader(str(plain))
    mindrecord.set_enc_key(KEY)
    content = ENCRYPTED.read_bytes()
    for bad in (content[:1000] + content[-18:], content[:100] + b"\xff" + content[101:], b"\xff" * 4 + content[4:]):
        (tmp_path / "b").write_bytes(bad)
        with pytest.raises((RuntimeError, ValueError), match="/b: "):
            mindrecord.FileReader(str(tmp_path / "b"))
    for call, value in ((mindrecord.set_enc_key, "short"), (mindrecord.set_enc_mode, "AES-CBC"), (mindrecord.set_dec_mode, 3)):
        with pytest.raises(ValueError, match=call.__name__):
            call(value)


def test_errors_are_caught_by_mindspores_names_too(tmp_path: Path) -> None:
    (tmp_path / "garbage").write_bytes(b"x" * 100)
    with pytest.raises(mindrecord.MRMOpenError, match="none: expected a MindRecord file") as caught:
        mindrecord.FileReader(str(tmp_path / "none"))
    assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, FileNotFoundError)
    with pytest.raises(RuntimeError, match="garbage: 100 bytes with another beginning: expected a MindRecord file"):
        mindrecord.FileReader(str(tmp_path / "garbage"))
    assert issubclass(mindrecord.MRMValidateDataError, mindrecord.MindRecordException)
    for name in ("MRMSetHeaderError", "MRMWriteDatasetError", "PathNotExistsError"):
        assert issubclass(getattr(mindrecord, name), RuntimeError)
