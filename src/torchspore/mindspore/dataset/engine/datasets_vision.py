"""Sources of images that one file stores in sequence: MNIST and related sets, CIFAR, STL-10, Semeion, PhotoTour, and synthetic ones."""
from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from torchspore.base.text import message, short
from torchspore.errors import DataDamaged, DataMissing
from torchspore.mindspore.dataset.core.random_order import Twister32
from torchspore.mindspore.dataset.core.validator_helpers import check_int, check_type
from torchspore.mindspore.dataset.engine.declarations import Joined, PictureDataset, damaged, fields, lines, mapped, read_file
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.public_names import missing

_TRAIN_TEST = ("all", "train", "test")
_BYTES, _INTEGERS = 8, 12
"""The kinds of numbers of an IDX file, its third byte."""
_SIDE = 28


class MnistDataset(PictureDataset, arguments="dataset_dir, usage=None, ROWS, CHOICE"):
    """The images (28, 28, 1) uint8 and labels () uint32 of MNIST, read from its IDX files.

    `dataset_dir` holds `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-...`; each file whose name contains such a name counts,
    with any characters before `idx3`, as in `train-images.idx3-ubyte`. `usage` is 'train', 'test' or 'all' (None): the test rows, then the
    training rows. Raises ValueError for a missing folder or a wrong argument, and when read FileNotFoundError for a
    missing file, FileFormatError (a ValueError) for a truncated or different file; both name the file and are RuntimeErrors.
    """

    choices = {"usage": _TRAIN_TEST}

    def _parts(self) -> list[str]:
        """Return the prefixes of the file names."""
        return {"train": ["train"], "test": ["t10k"], "all": ["t10k", "train"]}[self.usage]

    _labels: ClassVar[str] = "labels-idx1-ubyte"
    _has_exact_names: ClassVar[bool] = False

    def _list(self) -> Sequence[Any]:
        names = self._parts()
        files = {name: self._idx_files(name) for name in names}
        existing = [name for name in names if len(names) == 1 or files[name]]
        return Joined([read_pair(*pair) for name in existing or names[-1:] for pair in files[name] or [self._usual_files(name)]])

    def _idx_files(self, name: str) -> list[tuple[Path, Path]]:
        """Return pairs of files of images and labels, in the order of their names; a missing file of a pair has its usual name."""
        usual = self._usual_files(name)
        if self._has_exact_names:
            return [usual] if any(path.exists() for path in usual) else []
        images, labels = (find_files(self.dataset_dir, name, kind) for kind in ("images-idx3-ubyte", self._labels))
        return [(image or usual[0], label or usual[1]) for image, label in zip_longest(images, labels)]

    def _usual_files(self, name: str) -> tuple[Path, Path]:
        return self.dataset_dir / f"{name}-images-idx3-ubyte", self.dataset_dir / f"{name}-{self._labels}"

    def _row(self, entry: Any) -> Row:
        return entry


class FashionMnistDataset(MnistDataset):
    """Fashion-MNIST, which comes in MNIST's file format."""

    def num_classes(self) -> int:
        """Returns 10: kinds of clothes."""
        return 10


class KMnistDataset(MnistDataset):
    """Kuzushiji-MNIST, which comes in MNIST's file format."""


class EMnistDataset(MnistDataset, arguments="dataset_dir, name, usage=None, ROWS, CHOICE"):
    """Extended MNIST: the split `name` ('byclass', 'bymerge', 'balanced', 'letters', 'digits' or 'mnist') in MNIST's file format."""

    choices = {"name": ("byclass", "bymerge", "balanced", "letters", "digits", "mnist"), "usage": _TRAIN_TEST}
    name: str
    _has_exact_names = True

    def _parts(self) -> list[str]:
        return [f"emnist-{self.name}-{part}" for part in ("test", "train") if self.usage in (part, "all")]


class QMnistDataset(MnistDataset, arguments="dataset_dir, usage=None, compat=True, ROWS, CHOICE"):
    """QMNIST: images as MNIST's, labels () uint32, or with `compat=False` the full annotation of each (8,) uint32.

    `usage` is 'train', 'test', 'test10k' (the first 10,000 test rows), 'test50k' (the others), 'nist' or 'all' (None).
    """

    choices = {"usage": ("all", "train", "test", "test10k", "test50k", "nist")}
    compat: bool
    _labels = "labels-idx2-int"
    _has_exact_names = True

    def _parts(self) -> list[str]:
        names = {"train": "qmnist-train", "test": "qmnist-test", "nist": "xnist"}
        return list(names.values()) if self.usage == "all" else [names[self.usage.removesuffix("10k").removesuffix("50k")]]

    def _list(self) -> Sequence[Any]:
        entries = super()._list()
        if self.usage not in ("test10k", "test50k"):
            return entries
        rows = range(10000) if self.usage == "test10k" else range(10000, 60000)
        if len(entries) < rows.stop:
            path = self.dataset_dir / "qmnist-test-images-idx3-ubyte"
            raise DataDamaged(message(f"{path}: {len(entries)} images", f"{rows.stop} for usage={self.usage!r}"))
        return [entries[index] for index in rows]

    def _row(self, entry: Any) -> Row:
        image, label = entry
        return image, label[0, ...] if self.compat else label

    def _row_labels(self) -> list[Any]:
        return [int(label[0]) for _, label in self._entries()]


def find_files(folder: Path, name: str, kind: str) -> list[Path]:
    """Return the files whose names contain a prefix and both parts of a kind, such as `train` and `images-idx3-ubyte`, in order."""
    content, _, ending = kind.partition("-")
    return sorted(path for path in folder.iterdir() if f"{name}-{content}" in path.name and ending in path.name and path.suffix != ".gz")


def read_pair(image_path: Path, label_path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the images (N, 28, 28, 1) uint8 and the labels uint32, (N,) or (N, 8), of two IDX files."""
    images = _read_idx(image_path, _BYTES, 3)
    labels = _read_idx(label_path, *((_INTEGERS, 2) if label_path.name.endswith("int") else (_BYTES, 1)))
    if images.shape[1:] != (_SIDE, _SIDE):
        raise DataDamaged(message(f"{image_path}: images of {images.shape[1]}x{images.shape[2]}", "images of 28x28, as MNIST has"))
    if len(images) != len(labels):
        raise DataDamaged(message(f"{label_path}: {len(labels)} labels", f"{len(images)}, one for each image of {image_path.name}"))
    return images[..., None], labels.astype(np.uint32)


def _read_idx(path: Path, kind: int, rank: int) -> np.ndarray:
    """Return the array of an IDX file: magic number, one big-endian size for each axis, the values; read lazily."""
    if not path.is_file():
        hint = "MNIST's four files must be unpacked in dataset_dir"
        packed = path.with_name(path.name + ".gz")
        if packed.is_file():
            hint = f"unpack it: gunzip {packed}"
        raise DataMissing(message(str(path), "this file of the MNIST format", hint=hint))
    size, head = path.stat().st_size, 4 * (1 + rank)
    if size < head:
        raise DataDamaged(message(f"{path}: {size} bytes", f"a header of {head} bytes; the file is truncated"))
    with path.open("rb") as file:
        magic, *shape = struct.unpack(f">{1 + rank}I", file.read(head))
    if magic != (kind << 8) + rank:
        content = "image" if rank == 3 else "label"
        raise DataDamaged(message(f"{path}: magic number {magic}", f"{(kind << 8) + rank}, as {content} files of MNIST have"))
    values = math.prod(shape) * (1 if kind == _BYTES else 4)
    if size - head != values:
        state = "the file is truncated" if size - head < values else "the file is too long"
        raise DataDamaged(message(f"{path}: {size} bytes", f"{head + values}, as its header states; {state}"))
    if not values:
        raise DataDamaged(message(f"{path}: no rows", "at least one"))
    return np.asarray(np.memmap(path, np.uint8 if kind == _BYTES else np.dtype(">i4"), "r", head, tuple(shape)))


class Cifar10Dataset(PictureDataset, arguments="dataset_dir, usage=None, ROWS, CHOICE"):
    """CIFAR-10's images (32, 32, 3) uint8 and labels () uint32, read from its binary files `data_batch_*.bin` and `test_batch.bin`."""

    choices = {"usage": _TRAIN_TEST}
    _labels: ClassVar[int] = 1
    _patterns: ClassVar[dict[str, str]] = {"train": "data_batch_*.bin", "test": "test_batch.bin"}

    def _list(self) -> Sequence[Any]:
        patterns = [self._patterns[part] for part in ("train", "test") if self.usage in (part, "all")]
        files = [path for pattern in patterns for path in sorted(self.dataset_dir.glob(pattern))]
        if not files:
            raise DataMissing(message(f"{self.dataset_dir}: no file for usage={self.usage!r}", "the binary version's .bin files"))
        return Joined([(mapped(path, self._labels + 3072),) for path in files])

    def _row(self, entry: Any) -> Row:
        record = entry[0]
        image = np.ascontiguousarray(record[self._labels :].reshape(3, 32, 32).transpose(1, 2, 0))
        return (image, *(np.array(label, np.uint32) for label in record[: self._labels]))


class Cifar100Dataset(Cifar10Dataset):
    """CIFAR-100's images, coarse labels and fine labels, read from `train.bin` and `test.bin`."""

    columns = ("image", "coarse_label", "fine_label")
    _labels = 2
    _patterns = {"train": "train.bin", "test": "test.bin"}


class STL10Dataset(PictureDataset, arguments="dataset_dir, usage=None, ROWS, CHOICE"):
    """STL-10's images (96, 96, 3) uint8 and labels () int32 from 0, -1 for the unlabeled ones.

    `usage` is 'train', 'test', 'unlabeled', 'train+unlabeled' or 'all' (None): the test rows, the training rows, those without a label.
    """

    choices = {"usage": ("all", "train", "test", "unlabeled", "train+unlabeled")}

    def _list(self) -> Sequence[Any]:
        parts = ["test", "train", "unlabeled"] if self.usage == "all" else self.usage.split("+")
        return Joined([self._part(name) for name in parts])

    def _part(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        images = mapped(self.dataset_dir / f"{name}_X.bin", 3 * 96 * 96)
        if name == "unlabeled":
            return images, np.full(len(images), -1, np.int32)
        labels = mapped(self.dataset_dir / f"{name}_y.bin", 1)
        if len(labels) != len(images):
            raise DataDamaged(message(f"{self.dataset_dir / name}_y.bin: {len(labels)} labels", f"{len(images)}, one for each image"))
        return images, labels[:, 0].astype(np.int32) - 1

    def _row(self, entry: Any) -> Row:
        return np.ascontiguousarray(entry[0].reshape(3, 96, 96).transpose(2, 1, 0)), entry[1]


class SemeionDataset(PictureDataset, arguments="dataset_dir, ROWS, CHOICE"):
    """Semeion's handwritten digits: images (16, 16) uint8 of 0 and 1, labels () uint32, from `semeion.data`."""

    def _list(self) -> Sequence[Any]:
        path = self.dataset_dir / "semeion.data"
        entries = []
        for number, line in lines(path):
            parts = line.split()
            if len(parts) != 266 or "1" not in parts[256:]:
                raise damaged(path, number, line, "256 pixels and ten columns, one of them 1")
            try:
                entries.append((np.array(parts[:256], np.float64).astype(np.uint8), parts.index("1", 256) - 256))
            except ValueError:
                raise damaged(path, number, line, "256 numbers and ten columns, one of them 1") from None
        return entries

    def _row(self, entry: Any) -> Row:
        return entry[0].reshape(16, 16), np.array(entry[1], np.uint32)


class PhotoTourDataset(PictureDataset, arguments="dataset_dir, name, usage=None, ROWS, CHOICE"):
    """Patches (64, 64, 1) uint8 of photo tourism, stored 16 by 16 in pictures.

    `usage` 'train' (None) yields the column image, 'test' the columns image1, image2 and matches () uint32, 1 where both show one point.
    """

    choices = {
        "name": ("notredame", "yosemite", "liberty", "notredame_harris", "yosemite_harris", "liberty_harris"), "usage": ("train", "test"),
    }
    name: str

    def _columns(self) -> list[str]:
        return ["image"] if self.usage == "train" else ["image1", "image2", "matches"]

    def _list(self) -> Sequence[Any]:
        folder = self.dataset_dir / self.name
        info = folder / "info.txt"
        points = [parts[0] for parts in fields(info, "the number of a point first", least=1)]
        self._cached_sheet: tuple[int, np.ndarray] | None = None
        if self.usage == "train":
            return range(len(points))
        path = folder / "m50_100000_100000_0.txt"
        entries = []
        for parts in fields(path, "seven numbers", least=5):
            if not all(part.isdigit() for part in parts[:5]) or max(int(parts[0]), int(parts[3])) >= len(points):
                raise DataDamaged(message(f"{path}: {short(' '.join(parts))}", f"seven numbers, patches below {len(points)}"))
            entries.append((int(parts[0]), int(parts[3]), int(parts[1] == parts[4])))
        return entries

    def _row(self, entry: Any) -> Row:
        if self.usage == "train":
            return (self._patch(entry),)
        return self._patch(entry[0]), self._patch(entry[1]), np.array(entry[2], np.uint32)

    def _patch(self, number: int) -> np.ndarray:
        import cv2

        from torchspore.mindspore.dataset.vision.images import check_pixels

        sheet, index_in_sheet = divmod(number, 256)
        cached = self._cached_sheet
        if cached is None or cached[0] != sheet:
            path = self.dataset_dir / self.name / f"patches{sheet:04}.bmp"
            content = np.frombuffer(read_file(path), np.uint8)
            check_pixels(content, str(path))
            image = cv2.imdecode(content, cv2.IMREAD_GRAYSCALE) if content.size else None
            if image is None or image.shape != (1024, 1024):
                raise DataDamaged(message(str(path), "a picture of 1024x1024 pixels"))
            cached = self._cached_sheet = (sheet, image)
        top, left = index_in_sheet // 16 * 64, index_in_sheet % 16 * 64
        return cached[1][top : top + 64, left : left + 64, None].copy()


class FakeImageDataset(PictureDataset, arguments="num_images=1000, image_size=(224, 224, 3), num_classes=10, base_seed=0, ROWS, CHOICE"):
    """Synthetic images of `image_size` uint8 and labels () uint32: row n is drawn from the seed `base_seed` + n."""

    num_images: int
    image_size: Any
    base_seed: int
    _num_classes: int

    def num_classes(self) -> int:
        """Returns the number of classes."""
        return self._num_classes

    def _check(self) -> None:
        check_int("FakeImageDataset", "num_images", self.num_images, 1)
        check_type("FakeImageDataset", "image_size", self.image_size, (list, tuple), "(height, width, channels)")
        if len(self.image_size) != 3:
            raise ValueError(message(f"FakeImageDataset(image_size={short(self.image_size)})", "(height, width, channels)"))
        for size in self.image_size:
            check_int("FakeImageDataset", "image_size", size, 1)
        check_int("FakeImageDataset", "num_classes", self._num_classes, 1)
        check_int("FakeImageDataset", "base_seed", self.base_seed, 0)

    def _list(self) -> Sequence[Any]:
        return range(self.num_images)

    def _row_labels(self) -> list[Any]:
        return [Twister32(self.base_seed + entry).below(self._num_classes) for entry in self._entries()]

    def _row(self, entry: Any) -> Row:
        seed, size = self.base_seed + entry, math.prod(self.image_size)
        # MindSpore draws normal numbers, sets those below 0 to 0, and takes the bytes of the doubles as pixels.
        pixels = np.maximum(_normal(seed, -(-size // 8)), 0).view(np.uint8)[:size]
        return pixels.reshape(self.image_size), np.array(Twister32(seed).below(self._num_classes), np.uint32)


def _normal(seed: int, count: int) -> np.ndarray:
    """Draw normal numbers as libstdc++ does from the Mersenne twister: Marsaglia's polar method, two of each accepted pair."""
    words = np.random.RandomState(seed % 2**32)._bit_generator
    numbers = np.empty(0)
    while len(numbers) < count:
        drawn = words.random_raw(8 * (count - len(numbers) + 8)).astype(np.float64).reshape(-1, 2, 2)
        x, y = (2 * ((drawn[..., 0] + drawn[..., 1] * 2.0**32) / 2.0**64) - 1).T
        square = x * x + y * y
        inside = (square <= 1) & (square > 0)
        x, y, square = x[inside], y[inside], square[inside]
        logarithms = np.array([math.log(norm) for norm in square.tolist()])      # NumPy rounds some values differently from C
        scale = np.sqrt(-2 * logarithms / square)
        numbers = np.concatenate([numbers, np.stack([y * scale, x * scale], 1).reshape(-1)])
    return numbers[:count]


__getattr__ = missing(__name__)
