"""Sources of pictures with annotations in separate files: COCO, VOC, KITTI, WIDER FACE, manifests."""
from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from torchspore.base.text import message, short
from torchspore.errors import DataDamaged
from torchspore.mindspore.dataset.engine.declarations import PictureDataset, damaged, folder_of, lines, pictures, read_file
from torchspore.mindspore.dataset.engine.rows import Row


class CocoDataset(
    PictureDataset,
    arguments="dataset_dir, annotation_file, task='Detection', ROWS, decode=False, CHOICE, extra_metadata=False, decrypt=None",
):
    """COCO's pictures that have annotations, in the order of the annotation file, with the columns of `task`.

    'Detection': bbox (N, 4) float32, category_id and iscrowd (N, 1) uint32. 'Stuff': segmentation (N, L) float32, shorter ones padded
    with -1, and iscrowd. 'Keypoint': keypoints (N, K) float32, num_keypoints (N, 1) uint32. 'Panoptic': as 'Detection', and area (N, 1)
    uint32. 'Captioning': captions (N, 1) of text. `extra_metadata` adds `_meta-filename`, which rows show once it is renamed.
    """

    choices = {"task": ("Detection", "Stuff", "Panoptic", "Keypoint", "Captioning")}
    annotation_file: Path
    task: str
    extra_metadata: bool
    _task_columns = {
        "Detection": ["bbox", "category_id", "iscrowd"], "Stuff": ["segmentation", "iscrowd"], "Keypoint": ["keypoints", "num_keypoints"],
        "Panoptic": ["bbox", "category_id", "iscrowd", "area"], "Captioning": ["captions"],
    }

    def _columns(self) -> list[str]:
        return ["image", *self._task_columns[self.task], *(["_meta-filename"] if self.extra_metadata else [])]

    def get_class_indexing(self) -> dict[str, list[int]]:
        """Returns a dict from category to [id], for 'Panoptic' [id, is_thing]; empty for the other tasks."""
        if self.task not in ("Detection", "Panoptic"):
            return {}
        self._entries()
        return self._categories

    def _list(self) -> Sequence[Any]:
        path = self.annotation_file
        try:
            content = json.loads(read_file(path))
            return self._grouped(content)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            if isinstance(error, DataDamaged):
                raise
            shown = f"{type(error).__name__}: {error!s:.100}"
            raise DataDamaged(message(f"{path}: {shown}", f"annotations of COCO for task={self.task!r}")) from None

    def _grouped(self, content: dict[str, Any]) -> list[Any]:
        """Yield (name of a picture, its annotations) for each picture that has any."""
        names = {int(image["id"]): str(image["file_name"]) for image in content["images"]}
        self._categories: dict[str, list[int]] = {}
        if self.task in ("Detection", "Panoptic"):
            for kind in content["categories"]:
                more = [int(kind["isthing"])] if self.task == "Panoptic" else []
                self._categories[str(kind["name"])] = [int(kind["id"]), *more]
        annotations: dict[int, list[Any]] = {}
        for note in content["annotations"]:
            image = int(note["image_id"])
            if image not in names:
                raise DataDamaged(message(f"{self.annotation_file}: annotation of image_id {image}", "the id of one of its images"))
            parts = note["segments_info"] if self.task == "Panoptic" else [note]
            annotations.setdefault(image, []).extend(self._values(part) for part in parts)
        return [(name, annotations[image]) for image, name in names.items() if image in annotations]

    def _values(self, note: dict[str, Any]) -> tuple[Any, ...]:
        """Return the value of one annotation for each column."""
        if self.task == "Captioning":
            return (str(note["caption"]),)
        if self.task == "Keypoint":
            return np.array(note["keypoints"], np.float32), int(note["num_keypoints"])
        crowd = int(note["iscrowd"])
        if self.task == "Stuff":
            segmentation = note["segmentation"]
            shapes = [segmentation["counts"]] if crowd else segmentation
            return [np.array(shape, np.float32) for shape in shapes], crowd
        box = np.array(note["bbox"], np.float32)
        if box.shape != (4,):
            raise ValueError(f"a bbox of shape {box.shape}")
        return box, int(note["category_id"]), crowd, *([int(note["area"])] if self.task == "Panoptic" else [])

    def _row(self, entry: Any) -> Row:
        name, notes = entry
        image = self._picture(self.dataset_dir / name)
        first, *others = zip(*notes, strict=True)
        if self.task == "Captioning":
            value: Any = np.array(first).reshape(-1, 1)
        elif self.task == "Stuff":
            value = _filled([shape for shapes in first for shape in shapes])
        else:
            value = np.stack(first)
        numbers = [np.array(other, np.uint32).reshape(-1, 1) for other in others]
        return (image, value, *numbers, *([np.array(Path(name).stem)] if self.extra_metadata else []))


def _filled(shapes: list[np.ndarray]) -> np.ndarray:
    """Return rows of different lengths as one array, padded with -1."""
    longest = max(map(len, shapes), default=0)
    return np.stack([np.pad(shape, (0, longest - len(shape)), constant_values=-1) for shape in shapes])


class VOCDataset(
    PictureDataset,
    arguments="dataset_dir, task='Segmentation', usage='train', class_indexing=None, ROWS, decode=False, CHOICE, extra_metadata=False, "
    "decrypt=None",
):
    """Pascal VOC: the pictures of the list `ImageSets/Segmentation/`usage`.txt`, or for 'Detection' of `ImageSets/Main/`.

    'Segmentation' gives image and target (pictures); 'Detection' image, bbox (N, 4) float32 (left, top, width, height), label, difficult
    and truncate (N, 1) uint32; with `class_indexing`, a dict from name to label, only objects in it. `extra_metadata` adds
    `_meta-filename`, which rows show once it is renamed.
    """

    choices = {"task": ("Segmentation", "Detection")}
    old_names = {"mode": "usage"}
    task: str
    class_indexing: dict[str, int] | None
    extra_metadata: bool

    def _check(self) -> None:
        if not isinstance(self.usage, str):
            raise TypeError(message(f"VOCDataset(usage={short(self.usage)})", "a str"))
        if self.task == "Segmentation" and self.class_indexing is not None:
            raise ValueError(message("VOCDataset(task='Segmentation', class_indexing=...)", "no class_indexing: only objects have classes"))
        path = self._names_path()
        if not path.is_file():
            raise ValueError(message(f"VOCDataset(usage={self.usage!r}): {path}", "a file that exists"))

    def _names_path(self) -> Path:
        return self.dataset_dir / "ImageSets" / ("Main" if self.task == "Detection" else "Segmentation") / f"{self.usage}.txt"

    def _columns(self) -> list[str]:
        columns = ["image", "bbox", "label", "difficult", "truncate"] if self.task == "Detection" else ["image", "target"]
        return columns + (["_meta-filename"] if self.extra_metadata else [])

    def get_class_indexing(self) -> dict[str, int]:
        """Returns a dict from name to label, for 'Detection'; empty for 'Segmentation'."""
        if self.task == "Segmentation":
            return {}
        self._entries()
        return self._labels

    def _list(self) -> Sequence[Any]:
        names = [line.split()[0] for _, line in lines(self._names_path())]
        if self.task == "Segmentation":
            return [(name, None) for name in names]
        annotated = [(name, list(_objects(self.dataset_dir / f"Annotations/{name}.xml"))) for name in names]
        kinds = sorted({kind for _, objects in annotated for kind, *_ in objects})
        self._labels = self.class_indexing if self.class_indexing is not None else {kind: n for n, kind in enumerate(kinds)}
        selected = [(name, [item for item in objects if item[0] in self._labels]) for name, objects in annotated]
        return [(name, objects) for name, objects in selected if objects]

    def _row(self, entry: Any) -> Row:
        name, objects = entry
        image = self._picture(self.dataset_dir / f"JPEGImages/{name}.jpg")
        more = [np.array(name)] if self.extra_metadata else []
        if self.task == "Segmentation":
            return (image, self._picture(self.dataset_dir / f"SegmentationClass/{name}.png"), *more)
        boxes = np.array([box for _, box, _, _ in objects], np.float32)
        numbers = [(self._labels[kind], hard, cut) for kind, _, hard, cut in objects]
        return (image, boxes, *(np.array(column, np.uint32).reshape(-1, 1) for column in zip(*numbers, strict=True)), *more)


def _objects(path: Path) -> Iterator[tuple[str, list[float], int, int]]:
    """Yield the name, the box, the difficult flag and the truncated flag of each object in an XML file."""
    content = read_file(path)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise DataDamaged(message(f"{path}: an XML file that defines entities", "plain elements"))
    try:
        objects = ElementTree.fromstring(content).findall("object")
    except ElementTree.ParseError as error:
        raise DataDamaged(message(f"{path}: {error}", "an XML file")) from None
    if not objects:
        raise DataDamaged(message(f"{path}: no object", "at least one"))
    for item in objects:
        texts = {key: item.findtext(key) for key in ("name", "difficult", "truncated")}
        sides = [item.findtext(f"bndbox/{key}") for key in ("xmin", "ymin", "xmax", "ymax")]
        try:
            left, top, right, bottom = (float(side) for side in sides)  # type: ignore[arg-type]
            hard, cut = int(texts["difficult"]), int(texts["truncated"])  # type: ignore[arg-type]
        except (TypeError, ValueError):
            expected = "a name, a bndbox of xmin, ymin, xmax and ymax, difficult and truncated"
            raise DataDamaged(message(f"{path}: an object with {short(texts)} and box {short(sides)}", expected)) from None
        yield (texts["name"] or "").strip(), [left, top, right - left, bottom - top], hard, cut


class KITTIDataset(PictureDataset, arguments="dataset_dir, usage=None, ROWS, decode=False, CHOICE"):
    """KITTI's pictures of streets in order of their names; `usage` 'train' (None) adds, for the N objects in each,

    label and occluded (N, 1) uint32, truncated, alpha and rotation_y (N, 1), bbox (N, 4), dimensions and location (N, 3) float32; labels
    are the numbers of the names of objects in sorted order. 'test' gives the column image alone.
    """

    choices = {"usage": ("train", "test")}
    _column_ranges = ((1, 2), (2, 3), (3, 4), (4, 8), (8, 11), (11, 14), (14, 15))

    def _columns(self) -> list[str]:
        more = ["label", "truncated", "occluded", "alpha", "bbox", "dimensions", "location", "rotation_y"]
        return ["image", *(more if self.usage == "train" else [])]

    def _list(self) -> Sequence[Any]:
        part = "training" if self.usage == "train" else "testing"
        images = pictures(self.dataset_dir / f"data_object_image_2/{part}/image_2")
        if self.usage == "test":
            return [(path, None, None) for path in images]
        rows = [(path, *self._objects(self.dataset_dir / f"data_object_label_2/{part}/label_2/{path.stem}.txt")) for path in images]
        names = {name: number for number, name in enumerate(sorted({name for _, kinds, _ in rows for name in kinds}))}
        return [(path, [names[name] for name in kinds], numbers) for path, kinds, numbers in rows]

    @staticmethod
    def _objects(path: Path) -> tuple[list[str], np.ndarray]:
        kinds, numbers = [], []
        for number, line in lines(path):
            parts = line.split()
            try:
                if len(parts) < 15:
                    raise ValueError
                numbers.append([float(part) for part in parts[1:15]])
            except ValueError:
                raise damaged(path, number, line, "a name and 14 numbers") from None
            kinds.append(parts[0])
        return kinds, np.array(numbers, np.float32).reshape(-1, 14)

    def _row(self, entry: Any) -> Row:
        path, labels, numbers = entry
        if labels is None:
            return (self._picture(path),)
        columns = [numbers[:, first - 1 : end - 1] for first, end in self._column_ranges]
        columns[1] = columns[1].astype(np.int32).astype(np.uint32)
        return (self._picture(path), np.array(labels, np.uint32).reshape(-1, 1), *columns)


class WIDERFaceDataset(PictureDataset, arguments="dataset_dir, usage=None, ROWS, decode=False, CHOICE"):
    """WIDER FACE: pictures in order of their names, and for the N faces of each

    bbox (N, 4) int32, and blur, expression, illumination, occlusion, pose and invalid (N,) int32. As in MindSpore these six are the
    numbers of a line in their order, though the lists have invalid before occlusion and pose. `usage` is 'train', 'valid', 'all' (None:
    both) or 'test', which gives the column image alone.
    """

    choices = {"usage": ("all", "train", "test", "valid")}

    def _columns(self) -> list[str]:
        more = ["bbox", "blur", "expression", "illumination", "occlusion", "pose", "invalid"]
        return ["image", *(more if self.usage != "test" else [])]

    def _list(self) -> Sequence[Any]:
        folder = folder_of(self.dataset_dir / "wider_face_split")
        if self.usage == "test":
            names = [line.strip() for _, line in lines(folder / "wider_face_test_filelist.txt")]
            return [(self.dataset_dir / "WIDER_test/images" / name, None) for name in sorted(names)]
        entries = []
        for usage, part in (("train", "train"), ("valid", "val")):
            if self.usage in (usage, "all"):
                faces = self._faces(folder / f"wider_face_{part}_bbx_gt.txt")
                images = self.dataset_dir / f"WIDER_{part}/images"
                entries += [(images / name, rows) for name, rows in sorted(faces, key=lambda face: face[0])]
        return entries

    @staticmethod
    def _faces(path: Path) -> Iterator[tuple[str, np.ndarray]]:
        numbered_lines = lines(path)
        for _, name in numbered_lines:
            number, line = next(numbered_lines, (0, ""))
            if not line.strip().isdigit():
                raise damaged(path, number, line, f"the number of faces of {name.strip()}")
            rows = []
            for _ in range(max(int(line), 1)):            # one line of zeros marks a picture without a face
                number, line = next(numbered_lines, (0, ""))
                parts = line.split()
                if len(parts) < 10 or not all(part.lstrip("-").isdigit() for part in parts[:10]):
                    raise damaged(path, number, line, "ten numbers for each face")
                rows.append([int(part) for part in parts[:10]])
            yield name.strip(), np.array(rows, np.int32)

    def _row(self, entry: Any) -> Row:
        path, faces = entry
        if faces is None:
            return (self._picture(path),)
        return (self._picture(path), faces[:, :4].copy(), *(faces[:, column].copy() for column in range(4, 10)))


class ManifestDataset(
    PictureDataset,
    arguments="dataset_file, usage='train', ROWS, sampler=None, class_indexing=None, decode=False, num_shards=None, shard_id=None, "
    "cache=None",
):
    """Pictures that a manifest names, one JSON object a line with "source", "usage" and "annotation", a list of {"name": class}.

    `usage` is 'train', 'eval' or 'inference'. The label is int32: () for one class, (N,) for several; the number of a class in sorted
    order, or with `class_indexing` its value there, and classes that it lacks are left out.
    """

    choices = {"usage": ("train", "eval", "inference")}
    dataset_file: Path
    class_indexing: dict[str, int] | None
    _label_type = np.int32

    def _location(self) -> Any:
        return self.dataset_file

    def get_class_indexing(self) -> dict[str, int]:
        """Returns a dict from class to label."""
        self._entries()
        return self._labels

    def num_classes(self) -> int:
        """Returns the number of classes."""
        return len(self.get_class_indexing())

    def _list(self) -> Sequence[Any]:
        entries = []
        for number, line in lines(self.dataset_file):
            try:
                row = json.loads(line)
                source, usage, names = str(row["source"]), str(row["usage"]), [str(note["name"]) for note in row["annotation"]]
            except (ValueError, KeyError, TypeError, RecursionError):
                raise damaged(self.dataset_file, number, line, "a JSON object with source, usage and annotation") from None
            if usage.lower() == self.usage and names:
                entries.append((Path(source), names))
        kinds = sorted({name for _, names in entries for name in names})
        self._labels = self.class_indexing if self.class_indexing is not None else {kind: number for number, kind in enumerate(kinds)}
        selected = [(path, [self._labels[name] for name in names if name in self._labels]) for path, names in entries]
        return [(path, labels[0] if len(labels) == 1 else labels) for path, labels in selected if labels]
