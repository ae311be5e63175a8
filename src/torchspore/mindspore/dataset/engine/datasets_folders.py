"""Sources of pictures in folders: the folders of each data set, and the other columns of its rows."""
from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from torchspore.base.text import message, short
from torchspore.errors import DataDamaged, DataMissing
from torchspore.mindspore.dataset.engine.declarations import (
    PICTURES,
    PictureDataset,
    damaged,
    fields,
    folder_of,
    folders,
    label_of,
    lines,
    pictures,
    read_file,
)
from torchspore.mindspore.dataset.engine.rows import Row


class ImageFolderDataset(
    PictureDataset,
    arguments="dataset_dir, ROWS, sampler=None, extensions=None, class_indexing=None, decode=False, num_shards=None, shard_id=None, "
    "cache=None, decrypt=None",
):
    """Images in one folder for each class, and as label (int32) the class's number in sorted order, or the one of `class_indexing`.

    The column `image` holds the bytes of the file (uint8), with `decode=True` the picture (H, W, 3); `decrypt` is a function from path to
    bytes that reads a file. Raises ValueError for a missing folder, RuntimeError if it contains no image.
    """

    _suffixes: ClassVar[tuple[str, ...]] = (*PICTURES, ".ppm", ".pgm", ".tif", ".tiff", ".webp")
    _label_type = np.int32
    class_indexing: dict[str, int] | None
    extensions: Any

    def _check(self) -> None:
        self.extensions = tuple(suffix.lower() for suffix in self.extensions) if self.extensions else self._suffixes

    def get_class_indexing(self) -> dict[str, int]:
        """Returns a dict from folder name to label."""
        if self.class_indexing is not None:
            return self.class_indexing
        return {folder.name: number for number, folder in enumerate(folders(self.dataset_dir))}

    def num_classes(self) -> int:
        """Returns the number of folders."""
        return len(self.get_class_indexing())

    def _list(self) -> Sequence[Any]:
        entries = []
        for name, label in self.get_class_indexing().items():
            folder = self.dataset_dir / name
            if not folder.is_dir():
                raise DataMissing(message(f"ImageFolderDataset(class_indexing): {name!r}", f"a folder in {self.dataset_dir}"))
            entries += [(path, label) for path in sorted(folder.rglob("*")) if path.suffix.lower() in self.extensions and path.is_file()]
        if not entries:
            subject = f"ImageFolderDataset({str(self.dataset_dir)!r})"
            raise DataMissing(message(subject, f"images in its folders ({', '.join(self.extensions)})"))
        return entries


class NumberedFolders(PictureDataset):
    """A source with one folder for each class, numbered in their order; subclasses list the folders."""

    def _folders(self) -> list[Path]:
        return folders(self.dataset_dir)

    def _list(self) -> Sequence[Any]:
        return [(path, number) for number, folder in enumerate(self._folders()) for path in pictures(folder)]

    def num_classes(self) -> int:
        """Returns the number of classes."""
        return len(self._folders())


class Caltech256Dataset(NumberedFolders, arguments="dataset_dir, ROWS, decode=False, CHOICE"):
    """Caltech-256: pictures and labels () int32, the numbers of their folders in sorted order."""

    _label_type = np.int32


class OmniglotDataset(NumberedFolders, arguments="dataset_dir, background=None, ROWS, decode=False, CHOICE"):
    """Omniglot's characters of `images_background` or, with `background=False`, of `images_evaluation`; labels () int32."""

    choices = {"background": (True, False)}
    _label_type = np.int32
    background: bool

    def _folders(self) -> list[Path]:
        alphabets = folders(self.dataset_dir / f"images_{'background' if self.background else 'evaluation'}")
        return [character for alphabet in alphabets for character in folders(alphabet)]


class RenderedSST2Dataset(PictureDataset, arguments="dataset_dir, usage=None, ROWS, decode=False, CHOICE"):
    """Rendered sentences of the Stanford Sentiment Treebank: label () uint32, 0 for negative, 1 for positive ones."""

    choices = {"usage": ("all", "train", "val", "test")}

    def _list(self) -> Sequence[Any]:
        parts = {"test": "test", "train": "train", "val": "valid"}
        return [
            (path, label)
            for part, folder in parts.items() if self.usage in (part, "all")
            for label, kind in enumerate(("negative", "positive")) for path in pictures(self.dataset_dir / folder / kind)
        ]

    def num_classes(self) -> int:
        """Returns 2: negative and positive."""
        return 2


class LSUNDataset(PictureDataset, arguments="dataset_dir, usage=None, classes=None, ROWS, decode=False, CHOICE"):
    """LSUN's scenes in folders such as `bedroom_train`; label () uint32 is the index of the folder among those that are read.

    `classes` is a list of scenes, all of them by default; `usage` is 'train', 'test' (one folder, label 0), 'valid' or 'all' (None).
    """

    choices = {"usage": ("all", "train", "test", "valid")}
    classes: list[str] | None

    def _names(self) -> list[str]:
        """Return the scenes that are read, sorted."""
        scenes = {folder.name.rpartition("_")[0] for folder in folders(self.dataset_dir) if folder.name.endswith(("_train", "_val"))}
        return [] if self.usage == "test" else sorted(scenes if self.classes is None else set(self.classes))

    def _list(self) -> Sequence[Any]:
        if self.usage == "test":
            return [(path, 0) for path in pictures(self.dataset_dir / "test")]
        ends = [end for part, end in (("train", "_train"), ("valid", "_val")) if self.usage in (part, "all")]
        paths = [self.dataset_dir / f"{name}{end}" for name in self._names() for end in ends]
        return [(path, number) for number, folder in enumerate(paths) for path in pictures(folder)]

    def num_classes(self) -> int:
        """Returns the number of scenes."""
        return len(self._names())


class SUN397Dataset(PictureDataset, arguments="dataset_dir, ROWS, decode=False, CHOICE"):
    """SUN397's scenes; label () uint32 is the index of a folder in `ClassName.txt`. Missing folders are skipped."""

    def _list(self) -> Sequence[Any]:
        names = {line.strip().strip("/"): number for number, (_, line) in enumerate(lines(self.dataset_dir / "ClassName.txt"))}
        existing = [(self.dataset_dir / name, label) for name, label in sorted(names.items()) if (self.dataset_dir / name).is_dir()]
        return [(path, label) for folder, label in existing for path in pictures(folder, (".jpg",))]


class Food101Dataset(PictureDataset, arguments="dataset_dir, usage=None, ROWS, decode=False, CHOICE"):
    """Food-101: pictures in the order of `meta/train.txt` and `meta/test.txt`; label () is the name of the dish."""

    choices = {"usage": ("all", "train", "test")}
    _label_type = None

    def _list(self) -> Sequence[Any]:
        entries = []
        for part in ("train", "test"):
            if self.usage in (part, "all"):
                for _, line in lines(self.dataset_dir / f"meta/{part}.txt"):
                    entries.append((self.dataset_dir / f"images/{line.strip()}.jpg", line.split("/")[0].strip()))
        return entries


class Places365Dataset(PictureDataset, arguments="dataset_dir, usage=None, small=True, decode=False, ROWS, CHOICE"):
    """Places365: pictures of 256x256 (`small`) or larger, in the order of their list; label () uint32.

    `usage` is 'train-standard' (None), 'train-challenge' or 'val'. The lists are `places365_train_standard.txt`, ...
    """

    choices = {"usage": ("train-standard", "train-challenge", "val"), "small": (True, False)}
    small: bool

    def _list(self) -> Sequence[Any]:
        size = "256" if self.small else "large"
        folder = self.dataset_dir / (f"val_{size}" if self.usage == "val" else f"data_{size}_{self.usage.removeprefix('train-')}")
        categories = self.dataset_dir / "categories_places365.txt"
        categories_of_labels = {parts[1] for parts in fields(categories, "a name and a number", least=2)}
        path = self.dataset_dir / f"places365_{self.usage.replace('-', '_')}.txt"
        entries = []
        for name, label, *_ in fields(path, "the name of a picture and its label", least=2):
            if label not in categories_of_labels:
                raise DataDamaged(message(f"{path}: label {short(label)}", f"a number of {categories.name}"))
            entries.append((folder / name.lstrip("/"), int(label)))
        return entries


class DIV2KDataset(
    PictureDataset, arguments="dataset_dir, usage='train', downgrade='bicubic', scale=2, ROWS, decode=None, CHOICE"
):
    """DIV2K: pairs of pictures, `hr_image` and the same picture scaled down, `lr_image`.

    `downgrade` is the method: 'bicubic' by a `scale` of 2, 3, 4 or 8, 'unknown' by 2, 3 or 4, 'mild', 'difficult' and 'wild' by 4.
    """

    choices = {
        "usage": ("train", "valid", "all"), "downgrade": ("bicubic", "unknown", "mild", "difficult", "wild"), "scale": (2, 3, 4, 8),
    }
    columns = ("hr_image", "lr_image")
    downgrade: str
    scale: int

    def _check(self) -> None:
        scales = {"bicubic": (2, 3, 4, 8), "unknown": (2, 3, 4)}.get(self.downgrade, (4,))
        if self.scale not in scales:
            subject = f"DIV2KDataset(downgrade={self.downgrade!r}, scale={self.scale})"
            raise ValueError(message(subject, f"a scale of {' or '.join(map(str, scales))}"))

    def _list(self) -> Sequence[Any]:
        parts = [part for part in ("train", "valid") if self.usage in (part, "all")]
        return [(path, self._smaller(part, path)) for part in parts for path in pictures(self.dataset_dir / f"DIV2K_{part}_HR", (".png",))]

    def _smaller(self, part: str, path: Path) -> Path:
        if self.scale == 8:
            return self.dataset_dir / f"DIV2K_{part}_LR_x8/{path.stem}x8.png"
        folder = self.dataset_dir / f"DIV2K_{part}_LR_{self.downgrade}"
        if self.downgrade in ("bicubic", "unknown"):
            return folder / f"X{self.scale}/{path.stem}x{self.scale}.png"
        return folder / f"{path.stem}x4{self.downgrade[0]}.png"

    def _row(self, entry: Any) -> Row:
        return self._picture(entry[0]), self._picture(entry[1])


class LFWDataset(PictureDataset, arguments="dataset_dir, task=None, usage=None, image_set=None, ROWS, decode=False, CHOICE"):
    """Labeled faces in the wild: `task` 'people' (None) yields image and label () uint32, the index of a name in `lfw-names.txt`.

    'pairs' yields image1, image2 and label () uint32, 1 for one person. `usage` is '10fold', 'train', 'test' or 'all' (None); `image_set`
    is 'original', 'funneled' (None) or 'deepfunneled'.
    """

    choices = {
        "task": ("people", "pairs"), "usage": ("all", "10fold", "train", "test"), "image_set": ("funneled", "original", "deepfunneled"),
    }
    task: str
    image_set: str

    def _columns(self) -> list[str]:
        return ["image", "label"] if self.task == "people" else ["image1", "image2", "label"]

    def _lists(self) -> list[Path]:
        if self.usage == "10fold":
            return [self.dataset_dir / f"{self.task}.txt"]
        return [self.dataset_dir / f"{self.task}Dev{part.title()}.txt" for part in ("train", "test") if self.usage in (part, "all")]

    def _face(self, name: str, number: str) -> Path:
        folder = {"original": "lfw", "funneled": "lfw_funneled", "deepfunneled": "lfw-deepfunneled"}[self.image_set]
        return self.dataset_dir / f"{folder}/{name}/{name}_{int(number):04}.jpg"

    def _list(self) -> Sequence[Any]:
        return list(self._people() if self.task == "people" else self._pairs())

    def _people(self) -> Iterator[tuple[Path, int]]:
        names = self.dataset_dir / "lfw-names.txt"
        labels = {parts[0]: number for number, parts in enumerate(fields(names, "a name and a number", least=1))}
        for path in self._lists():
            for number, line in lines(path):
                parts = line.split()
                if len(parts) == 1 and parts[0].isdigit():     # the number of people or folds that follow
                    continue
                if len(parts) != 2 or not parts[1].isdigit():
                    raise damaged(path, number, line, "a name and how many pictures there are")
                yield from ((self._face(parts[0], str(k + 1)), label_of(path, parts[0], labels)) for k in range(int(parts[1])))

    def _pairs(self) -> Iterator[tuple[Path, Path, int]]:
        for path in self._lists():
            for number, line in lines(path):
                parts = line.split()
                if number == 1 and all(part.isdigit() for part in parts):
                    continue
                if len(parts) not in (3, 4) or not parts[-1].isdigit() or not parts[1].isdigit():
                    raise damaged(path, number, line, "a name and two numbers, or two names, each with a number")
                other = parts[2] if len(parts) == 4 else parts[0]
                yield self._face(parts[0], parts[1]), self._face(other, parts[-1]), int(len(parts) == 3)

    def _row(self, entry: Any) -> Row:
        return (*(self._picture(path) for path in entry[:-1]), np.array(entry[-1], np.uint32))


class CityscapesDataset(
    PictureDataset, arguments="dataset_dir, usage='train', quality_mode='fine', task='instance', ROWS, decode=None, CHOICE"
):
    """Cityscapes: pictures of streets and as `task` one of 'instance', 'semantic' and 'color' (pictures) or 'polygon' (JSON).

    `usage` is 'train', 'test' (fine only), 'train_extra' (coarse only), 'val' or 'all'; `quality_mode` is 'fine' or 'coarse'.
    """

    choices = {
        "usage": ("train", "test", "train_extra", "val", "all"), "quality_mode": ("fine", "coarse"),
        "task": ("instance", "semantic", "polygon", "color"),
    }
    columns = ("image", "task")
    quality_mode: str
    task: str

    def _parts(self) -> tuple[str, ...]:
        return ("train", "test", "val") if self.quality_mode == "fine" else ("train", "train_extra", "val")

    def _check(self) -> None:
        if self.usage not in (*self._parts(), "all"):
            subject = f"CityscapesDataset(usage={self.usage!r}, quality_mode={self.quality_mode!r})"
            raise ValueError(message(subject, f"a usage of {', '.join(self._parts())} or all"))

    def _list(self) -> Sequence[Any]:
        kind = "gtFine" if self.quality_mode == "fine" else "gtCoarse"
        end = {"instance": "instanceIds.png", "semantic": "labelIds.png", "polygon": "polygons.json", "color": "color.png"}[self.task]
        entries = []
        for part in self._parts():
            if self.usage in (part, "all"):
                for city in folders(self.dataset_dir / f"leftImg8bit/{part}"):
                    for path in pictures(city, (".png",)):
                        name = f"{path.name.removesuffix('_leftImg8bit.png')}_{kind}_{end}"
                        entries.append((path, self.dataset_dir / kind / part / city.name / name))
        return entries

    def _row(self, entry: Any) -> Row:
        image, task = entry
        return self._picture(image), self._picture(task) if self.task != "polygon" else np.array(_compact(task))


def _compact(path: Path) -> str:
    """Return a JSON file as text without spaces and with sorted keys, as MindSpore does."""
    try:
        return json.dumps(json.loads(read_file(path)), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise DataDamaged(message(f"{path}: {error!s:.100}", "a JSON file")) from None


class FlickrDataset(PictureDataset, arguments="dataset_dir, annotation_file, ROWS, decode=None, CHOICE"):
    """Flickr8k and Flickr30k: pictures in order of their names, and `annotation`, the texts on each as `annotation_file` has them."""

    columns = ("image", "annotation")
    annotation_file: Path

    def _list(self) -> Sequence[Any]:
        texts: dict[str, list[str]] = {}
        for number, line in lines(self.annotation_file):
            name, tab, text = line.partition("\t")
            if not tab or "#" not in name:
                raise damaged(self.annotation_file, number, line, "the name of a picture, '#', a number, a tab and a text")
            texts.setdefault(name.partition("#")[0], []).append(text)
        for name in texts:
            if not (self.dataset_dir / name).is_file():
                raise DataMissing(message(str(self.dataset_dir / name), f"this picture, which {self.annotation_file} names"))
        return [(self.dataset_dir / name, texts[name]) for name in sorted(texts)]

    def _row(self, entry: Any) -> Row:
        return self._picture(entry[0]), np.array(entry[1])


class SBUDataset(PictureDataset, arguments="dataset_dir, ROWS, decode=False, CHOICE"):
    """SBU's captioned photos: the existing pictures of the list of addresses, and `caption` () of each."""

    columns = ("image", "caption")

    def _list(self) -> Sequence[Any]:
        names = ["urls", "captions"]
        urls, captions = ([line for _, line in lines(self.dataset_dir / f"SBU_captioned_photo_dataset_{name}.txt")] for name in names)
        if len(urls) != len(captions):
            subject = f"{self.dataset_dir}: {len(captions)} captions of {len(urls)} addresses"
            raise DataDamaged(message(subject, "as many lines in both lists"))
        folder = folder_of(self.dataset_dir / "sbu_images")
        entries = []
        for url, caption in zip(urls, captions, strict=True):
            path = folder / ("m_" + "_".join(url.strip().partition("//")[2].split("/")[1:]))
            if path.is_file():
                entries.append((path, caption.strip()))
        return entries

    _label_type = None


class CelebADataset(
    PictureDataset,
    arguments="dataset_dir, num_parallel_workers=None, shuffle=None, usage='all', sampler=None, decode=False, extensions=None, "
    "num_samples=None, num_shards=None, shard_id=None, cache=None, decrypt=None",
):
    """CelebA's faces and `attr` (40,) uint32, 1 for each attribute that the face has according to `list_attr_celeba.txt`.

    `usage` is 'train', 'valid', 'test' or 'all'; the parts come from `list_eval_partition.txt`. `extensions` selects the suffixes of
    pictures; `decrypt` is a function from path to bytes that reads a file.
    """

    choices = {"usage": ("all", "train", "valid", "test")}
    columns = ("image", "attr")
    old_names = {"dataset_type": "usage"}
    extensions: list[str] | None

    def _list(self) -> Sequence[Any]:
        selected = self._selected_names()
        path = self.dataset_dir / "list_attr_celeba.txt"
        entries: list[Any] = []
        for number, line in lines(path):
            name, *attributes = line.split()
            if number <= 2:                       # the number of rows, and the names of the attributes
                continue
            if not attributes or not set(attributes) <= {"1", "-1"}:
                raise damaged(path, number, line, "the name of a picture and 1 or -1 for each attribute")
            if (selected is not None and name not in selected) or (self.extensions and not name.endswith(tuple(self.extensions))):
                continue
            entries.append((self.dataset_dir / name, np.array([attribute == "1" for attribute in attributes])))
        return entries

    def _selected_names(self) -> set[str] | None:
        if self.usage == "all":
            return None
        path = self.dataset_dir / "list_eval_partition.txt"
        part = str(("train", "valid", "test").index(self.usage))
        return {parts[0] for parts in fields(path, "the name of a picture and a number", least=2) if parts[1] == part}

    def _row(self, entry: Any) -> Row:
        return self._picture(entry[0]), entry[1].astype(np.uint32)
