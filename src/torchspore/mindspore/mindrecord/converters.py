"""Conversion of other data formats to MindRecord files, with the fields of MindSpore's converters."""
from __future__ import annotations

import csv
import gzip
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import list_choices, message, short
from torchspore.errors import DataDamaged, DataMissing
from torchspore.mindspore.mindrecord import plain_pickles
from torchspore.mindspore.mindrecord.exceptions import ParamTypeError, ParamValueError
from torchspore.mindspore.mindrecord.layout import Schema
from torchspore.mindspore.mindrecord.writer import FileWriter

_AT_ONCE = 256
"""Number of rows that are buffered before writing."""
Rows = Iterable[dict[str, Any]]


def _existing_path(call: str, name: str, value: Any, *, folder: bool) -> Path:
    if not isinstance(value, (str, Path)):
        raise ParamTypeError(message(f"{call}({name}={short(value)})", f"a path, got {type(value).__name__}"))
    path = Path(value).expanduser()
    if not (path.is_dir() if folder else path.is_file()):
        kind: type[Exception] = DataMissing if not folder else ParamValueError
        raise kind(message(f"{call}({name}={str(value)!r})", f"a {'folder' if folder else 'file'} that exists"))
    return path


def _target(call: str, value: Any, number: Any = 1) -> Path:
    if not isinstance(value, (str, Path)):
        raise ParamTypeError(message(f"{call}(destination={short(value)})", f"a path, got {type(value).__name__}"))
    if type(number) is not int or number < 1:
        raise ParamValueError(message(f"{call}(partition_number={short(number)})", "an int from 1"))
    return Path(value).expanduser()


def write(path: Path, number: int, schema: Schema, description: str, fields: Any, rows: Rows) -> None:
    """Write rows into `number` files without storing all of them in memory."""
    writer = FileWriter(str(path), number)
    writer.add_schema(schema, description)
    if fields:
        writer.add_index(fields)
    buffered: list[dict[str, Any]] = []
    for row in rows:
        buffered.append(row)
        if len(buffered) == _AT_ONCE:
            writer.write_raw_data(buffered)
            buffered = []
    if buffered:
        writer.write_raw_data(buffered)
    writer.commit()


def _jpeg(image: np.ndarray) -> bytes:
    """Encode a picture (H, W) or (H, W, 3) RGB as a JPEG file."""
    import cv2

    return cv2.imencode(".jpeg", image if image.ndim == 2 else image[..., ::-1])[1].tobytes()


class _Cifar:
    """Converts both CIFAR data sets, from the folder of their Python version."""

    _train: tuple[str, ...]
    _test: tuple[str, ...]
    _labels: dict[str, str]
    """A dict from a field to its name in the pickle."""

    def __init__(self, source: str, destination: str) -> None:
        call = type(self).__name__
        self.source, self.destination = _existing_path(call, "source", source, folder=True), _target(call, destination)

    def transform(self, fields: list[str] | None = None) -> None:
        """Writes the training rows into `destination` and the test rows into `destination`_test; `fields` are indexed.

        Raises DataMissing and DataDamaged (RuntimeErrors), which name a file, RuntimeError if the target exists already.
        """
        if fields is not None and not isinstance(fields, list):
            raise ParamTypeError(message(f"transform(fields={short(fields)})", "a list of names"))
        schema = {"id": {"type": "int64"}, **{name: {"type": "int64"} for name in self._labels}, "data": {"type": "bytes"}}
        for names, end in ((self._train, ""), (self._test, "_test")):
            path = self.destination.with_name(self.destination.name + end)
            write(path, 1, schema, "CIFAR", fields, self._rows(names))

    run = transform

    def _rows(self, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        number = 0
        for name in names:
            path = self.source / name
            data, *labels = plain_pickles.load(path, "data", *self._labels.values())
            counts = {len(part) for part in (data, *labels)}
            if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != 3072 or len(counts) != 1:
                raise DataDamaged(message(f"{path}: data of {getattr(data, 'shape', data)}", "data (N, 3072) uint8 and N labels"))
            for image, *labels_of_row in zip(data, *labels, strict=True):
                row = {field: int(label) for field, label in zip(self._labels, labels_of_row, strict=True)}
                yield {"id": number, **row, "data": _jpeg(image.reshape(3, 32, 32).transpose(1, 2, 0))}
                number += 1


class Cifar10ToMR(_Cifar):
    """CIFAR-10 of the Python version (`data_batch_1`, ..., `test_batch`) as MindRecord: id, label, and data, a JPEG.

    Its files are pickles; reading them runs none of their code.
    """

    _train = tuple(f"data_batch_{number}" for number in range(1, 6))
    _test = ("test_batch",)
    _labels = {"label": "labels"}


class Cifar100ToMR(_Cifar):
    """CIFAR-100 of the Python version (`train`, `test`) as MindRecord: id, fine_label, coarse_label, and data, a JPEG.

    Its files are pickles; reading them runs none of their code.
    """

    _train, _test = ("train",), ("test",)
    _labels = {"fine_label": "fine_labels", "coarse_label": "coarse_labels"}


class ImageNetToMR:
    """Pictures in folders as MindRecord: label, image, the file's bytes, and file_name, its path.

    Each line of `map_file` has a folder of `image_dir` and its label. Pictures have the suffix .jpg or .jpeg.
    """

    def __init__(self, map_file: str, image_dir: str, destination: str, partition_number: int = 1) -> None:
        self.map_file = _existing_path("ImageNetToMR", "map_file", map_file, folder=False)
        self.image_dir = _existing_path("ImageNetToMR", "image_dir", image_dir, folder=True)
        self.destination, self.partition_number = _target("ImageNetToMR", destination, partition_number), partition_number

    def transform(self) -> None:
        """Writes the files. Raises DataDamaged, DataMissing, which name a file, RuntimeError if the target exists already."""
        schema = {"label": {"type": "int32"}, "image": {"type": "bytes"}, "file_name": {"type": "string"}}
        write(self.destination, self.partition_number, schema, "ImageNet", ["label", "file_name"], self._rows())

    run = transform

    def _rows(self) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(self.map_file.read_text(encoding="utf-8").splitlines(), 1):
            name, _, label = line.strip().rpartition(" ")
            if not name or not label.isdigit():
                raise DataDamaged(message(f"{self.map_file}, line {number}: {short(line)}", "the name of a folder and its label"))
            folder = self.image_dir / name.strip()
            if not folder.is_dir():
                raise DataMissing(message(str(folder), f"this folder, which {self.map_file} names"))
            for path in sorted(folder.iterdir()):
                if path.suffix.lower() in (".jpg", ".jpeg") and path.is_file():
                    yield {"label": int(label), "image": path.read_bytes(), "file_name": str(path)}


class MnistToMR:
    """MNIST's four packed files as MindRecord: label, and data, a grey JPEG; into `destination`_train.mindrecord and _test.mindrecord."""

    def __init__(self, source: str, destination: str, partition_number: int = 1) -> None:
        self.source = _existing_path("MnistToMR", "source", source, folder=True)
        self.destination, self.partition_number = _target("MnistToMR", destination, partition_number), partition_number

    def transform(self) -> None:
        """Writes the files. Raises DataDamaged, DataMissing, which name a file, RuntimeError if a target exists already."""
        schema = {"label": {"type": "int64"}, "data": {"type": "bytes"}}
        for part, name in (("train", "train"), ("test", "t10k")):
            path = self.destination.with_name(f"{self.destination.name}_{part}.mindrecord")
            write(path, self.partition_number, schema, "MNIST", ["label"], self._rows(name))

    run = transform

    def _rows(self, name: str) -> Iterator[dict[str, Any]]:
        images = _packed(self.source / f"{name}-images-idx3-ubyte.gz", 2051, 28 * 28)
        labels = _packed(self.source / f"{name}-labels-idx1-ubyte.gz", 2049, 1)
        for image, label in zip(images, labels, strict=True):
            yield {"label": label[0], "data": _jpeg(np.frombuffer(image, np.uint8).reshape(28, 28))}


def _packed(path: Path, magic: int, width: int) -> Iterator[bytes]:
    """Yield the records of a gzipped IDX file. Raises DataMissing, DataDamaged, which name it."""
    if not path.is_file():
        raise DataMissing(message(str(path), "this file of the data set"))
    head = 8 if width == 1 else 16
    try:
        with gzip.open(path) as file:
            start = file.read(head)
            first_number, count, *sides = struct.unpack(f">{head // 4}I", start) if len(start) == head else (0, 0)
            if first_number != magic or (sides or [28, 28]) != [28, 28]:
                raise DataDamaged(message(f"{path}: magic number {first_number}", f"{magic}, and pictures of 28x28"))
            for number in range(count):
                record = file.read(width)
                if len(record) != width:
                    raise DataDamaged(message(f"{path}: {number} records", f"{count}, as its header states; the file is truncated"))
                yield record
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        if isinstance(error, DataDamaged):
            raise
        raise DataDamaged(message(f"{path}: {error}", "a complete file packed with gzip")) from None


class CsvToMR:
    """A CSV file as MindRecord: a field for each column, int64 or float64 if all of its values are such numbers, otherwise a string.

    The names of the columns, in the first line, begin with a letter; `columns_list` selects columns.
    """

    def __init__(self, source: str, destination: str, columns_list: list[str] | None = None, partition_number: int = 1) -> None:
        if not isinstance(source, (str, Path)):
            raise ParamTypeError(message(f"CsvToMR(source={short(source)})", f"a path, got {type(source).__name__}"))
        if columns_list is not None and (not isinstance(columns_list, list) or not all(isinstance(column, str) for column in columns_list)):
            raise ParamTypeError(message(f"CsvToMR(columns_list={short(columns_list)})", "a list of names"))
        self.source, self.columns_list = Path(source).expanduser(), columns_list
        self.destination, self.partition_number = _target("CsvToMR", destination, partition_number), partition_number

    def transform(self) -> None:
        """Writes the files. Raises DataMissing (an OSError) and DataDamaged, which name the file, RuntimeError for a missing column."""
        names = next(self._lines(), None)
        if not names:
            raise DataDamaged(message(f"{self.source}: an empty file", "the names of the columns in its first line"))
        for name in names:
            if not re.fullmatch("[a-zA-Z_][0-9a-zA-Z_]*", name):
                raise ParamValueError(message(f"{self.source}: column {short(name)}", "a name of letters, digits and '_', no digit first"))
        selected = self.columns_list or names
        unknown = [name for name in selected if name not in names]
        if unknown:
            raise RuntimeError(message(f"CsvToMR(columns_list={short(self.columns_list)}): {unknown[0]!r}", list_choices(names)))
        kinds = self._kinds(names)
        schema = {name: {"type": kinds[name]} for name in selected}
        make = {"int64": int, "float64": float, "string": str}
        rows = ({name: make[kinds[name]](values[names.index(name)]) for name in selected} for values in self._rows(names))
        write(self.destination, self.partition_number, schema, "CSV", None, rows)

    run = transform

    def _lines(self) -> Iterator[list[str]]:
        if not self.source.is_file():
            raise DataMissing(message(str(self.source), "a CSV file"))
        try:
            with self.source.open(encoding="utf-8", newline="") as file:
                yield from (row for row in csv.reader(file, strict=True) if row)
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataDamaged(message(f"{self.source}: {error!s:.100}", "a CSV file of UTF-8")) from None

    def _rows(self, names: list[str]) -> Iterator[list[str]]:
        lines = self._lines()
        next(lines)
        for number, values in enumerate(lines, 1):
            if len(values) != len(names):
                raise DataDamaged(message(f"{self.source}, row {number}: {len(values)} fields", f"{len(names)}, as its first line has"))
            yield values

    def _kinds(self, names: list[str]) -> dict[str, str]:
        """Return the type of each column; reads the file once."""
        kinds = dict.fromkeys(names, "int64")
        for values in self._rows(names):
            for name, value in zip(names, values, strict=True):
                if kinds[name] == "int64" and not re.fullmatch(r"[+-]?\d{1,18}", value):
                    kinds[name] = "float64"
                if kinds[name] == "float64" and not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value):
                    kinds[name] = "string"
        return kinds


_FEATURES = {"int64": "int64", "float32": "float32", "string": "string"}


class TFRecordToMR:
    """A TFRecord file of `tf.train.Example`s as MindRecord; TensorFlow is not needed.

    `feature_dict` has for each feature an object with `shape` and `dtype`, such as `tf.io.FixedLenFeature`: shape [] means one value, [n]
    an array; dtypes are int64, float32 and string (tf's, NumPy's or their names). Those in `bytes_fields` stay bytes, other strings are
    text. In a name, characters other than letters, digits and '_' become '_'.
    """

    def __init__(self, source: str, destination: str, feature_dict: dict[str, Any], bytes_fields: list[str] | None = None) -> None:
        self.source, self.destination = _existing_path("TFRecordToMR", "source", source, folder=False), _target("TFRecordToMR", destination)
        if not isinstance(feature_dict, dict) or not feature_dict:
            raise ParamValueError(message(f"TFRecordToMR(feature_dict={short(feature_dict)})", "a dict from name to FixedLenFeature"))
        if bytes_fields is not None and (not isinstance(bytes_fields, list) or not set(bytes_fields) <= set(feature_dict)):
            raise ParamValueError(message(f"TFRecordToMR(bytes_fields={short(bytes_fields)})", f"a list of {list_choices(feature_dict)}"))
        self.feature_dict, self.bytes_fields = feature_dict, bytes_fields or []
        self._schema = {name: self._field(name, feature) for name, feature in feature_dict.items()}

    def _field(self, name: str, feature: Any) -> dict[str, Any]:
        kind, shape = getattr(feature, "dtype", None), getattr(feature, "shape", None)
        kind = getattr(kind, "name", None) or getattr(kind, "__name__", None) or kind
        if kind not in _FEATURES or not isinstance(shape, (list, tuple)) or len(shape) > 1:
            expected = "a FixedLenFeature of shape [] or [n], int64, float32 or string"
            raise ParamValueError(message(f"TFRecordToMR(feature_dict): {name!r} of shape {short(shape)} and {short(kind)}", expected))
        if kind == "string":
            if len(shape):
                raise ParamValueError(message(f"TFRecordToMR(feature_dict): {name!r}, strings of shape {short(shape)}", "shape []"))
            return {"type": "bytes" if name in self.bytes_fields else "string"}
        if name in self.bytes_fields:
            raise ParamValueError(message(f"TFRecordToMR(bytes_fields): {name!r} of {kind}", "features of strings"))
        return {"type": kind, **({"shape": [int(shape[0])]} if len(shape) else {})}

    def transform(self) -> None:
        """Writes the file. Raises DataDamaged and FileFormatError (ValueErrors), which name the file and the value."""
        schema = {_name(name): kind for name, kind in self._schema.items()}
        write(self.destination, 1, schema, "TFRecord", None, self.tfrecord_iterator())

    run = transform

    def tfrecord_iterator(self) -> Iterator[dict[str, Any]]:
        """Yield the rows to write."""
        from torchspore.mindspore.mindrecord.tfrecord import Records

        records = Records(self.source)
        try:
            for number in range(len(records)):
                example = records.example(number)
                try:
                    yield {_name(name): _value(kind, example[name]) for name, kind in self._schema.items()}
                except (KeyError, ValueError, TypeError, AttributeError) as error:
                    shown = f"{type(error).__name__}: {error!s:.100}"
                    raise DataDamaged(message(f"{self.source}, row {number}: {shown}", "the features of feature_dict")) from None
        finally:
            records.close()

    tfrecord_iterator_oldversion = tfrecord_iterator


def _name(name: str) -> str:
    return re.sub("[^0-9a-zA-Z_]", "_", name)


def _value(kind: dict[str, Any], value: Any) -> Any:
    if kind["type"] in ("string", "bytes"):
        (content,) = value
        return content if kind["type"] == "bytes" else content.decode()
    if value.dtype != kind["type"]:
        raise ValueError(f"{value.dtype} where {kind['type']} is wanted")
    return value.reshape(kind["shape"]) if "shape" in kind else value.reshape(()).item()
