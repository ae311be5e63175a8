"""Sources with labels in MATLAB files: SVHN, Caltech-101, Flowers-102 and Semantic Boundaries. Rows are shuffled by default."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.errors import DataDamaged, DataMissing
from torchspore.mindspore.dataset.engine.dataset import UnionBaseDataset
from torchspore.mindspore.dataset.engine.declarations import Joined, ListedDataset, folders, lines, pictures
from torchspore.mindspore.dataset.engine.rows import Row

# In MindSpore these are GeneratorDatasets: no cache, one worker, and a sampler next to shuffle is accepted.
_ROWS = "num_samples=None, num_parallel_workers=1, shuffle=None"
_CHOICE = "sampler=None, num_shards=None, shard_id=None"


def members(path: Path, *names: str) -> list[Any]:
    """Return the variables of these names in a MATLAB file. Raises DataMissing, DataDamaged, which name the file."""
    from scipy.io import loadmat

    if not path.is_file():
        raise DataMissing(message(str(path), "this file of the data set"))
    try:
        variables = loadmat(path, variable_names=names)
        return [variables[name] for name in names]
    except MemoryError:
        raise
    except Exception as error:  # scipy's parser raises any error
        raise DataDamaged(message(f"{path}: {type(error).__name__}: {error!s:.100}", f"a MATLAB file with {' and '.join(names)}")) from None


class MatlabDataset(ListedDataset, UnionBaseDataset):
    """A source that is a GeneratorDataset in MindSpore."""

    def _start(self, call: str, shared: dict[str, Any]) -> None:
        if shared["sampler"] is not None:
            shared["shuffle"] = None
        super()._start(call, shared)


class SVHNDataset(MatlabDataset, arguments=f"dataset_dir, usage=None, {_ROWS}, {_CHOICE}"):
    """Street View's house numbers: images (32, 32, 3) uint8 and labels () uint32 from `train_32x32.mat`, `test_...`, `extra_...`."""

    choices = {"usage": ("all", "train", "test", "extra")}

    def _list(self) -> Sequence[Any]:
        return Joined([self._part(part) for part in ("train", "test", "extra") if self.usage in (part, "all")])

    def _part(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        path = self.dataset_dir / f"{name}_32x32.mat"
        images, labels = members(path, "X", "y")
        if images.ndim != 4 or images.shape[:3] != (32, 32, 3) or labels.size != images.shape[3]:
            raise DataDamaged(message(f"{path}: X of {images.shape} and y of {labels.shape}", "X of (32, 32, 3, N) and y of (N, 1)"))
        return images.transpose(3, 0, 1, 2), (labels.reshape(-1) % 10).astype(np.uint32)

    def _row(self, entry: Any) -> Row:
        return np.ascontiguousarray(entry[0]), entry[1]


class Flowers102Dataset(
    MatlabDataset, arguments=f"dataset_dir, task='Classification', usage='all', {_ROWS}, decode=False, {_CHOICE}"
):
    """Oxford's flowers: image and label () uint32 from 0, for the `task` 'Segmentation' also segmentation, a picture.

    `usage` is 'train', 'valid', 'test' or 'all', in the order of `setid.mat`: training, test, validation.
    """

    choices = {"task": ("Classification", "Segmentation"), "usage": ("all", "train", "valid", "test")}
    task: str

    def _columns(self) -> list[str]:
        return ["image", "label"] if self.task == "Classification" else ["image", "segmentation", "label"]

    def get_class_indexing(self) -> dict[str, int]:
        """Returns a dict from the name of a flower to its label."""
        return {name: number for number, name in enumerate(FLOWERS)}

    def _list(self) -> Sequence[Any]:
        path = self.dataset_dir / "setid.mat"
        names = [name for part, name in (("train", "trnid"), ("test", "tstid"), ("valid", "valid")) if self.usage in (part, "all")]
        labels = members(self.dataset_dir / "imagelabels.mat", "labels")[0].reshape(-1)
        numbers = np.concatenate([part.reshape(-1) for part in members(path, *names)])
        if not ((numbers >= 1) & (numbers <= len(labels))).all():
            raise DataDamaged(message(f"{path}: picture {int(numbers.max())}", f"a number from 1 to {len(labels)}, as imagelabels.mat has"))
        return [(int(number), int(labels[number - 1]) - 1) for number in numbers]

    def _row(self, entry: Any) -> Row:
        number, label = entry
        names = ["jpg/image"] + (["segmim/segmim"] if self.task == "Segmentation" else [])
        return (*(self._picture(self.dataset_dir / f"{name}_{number:05}.jpg") for name in names), np.array(label, np.uint32))


class SBDataset(MatlabDataset, arguments=f"dataset_dir, task='Boundaries', usage='all', {_ROWS}, decode=None, {_CHOICE}"):
    """Semantic Boundaries: image and task, for 'Boundaries' (20, H, W) float64 of 0 and 1, for 'Segmentation' (H, W) uint8 of classes.

    `usage` is 'train', 'val', 'train_noval' or 'all': the pictures of `train.txt` and of `val.txt`.
    """

    choices = {"task": ("Boundaries", "Segmentation"), "usage": ("all", "train", "val", "train_noval")}
    columns = ("image", "task")
    task: str

    def _list(self) -> Sequence[Any]:
        names = ["train", "val"] if self.usage == "all" else [self.usage]
        return [line.strip() for name in names for _, line in lines(self.dataset_dir / f"{name}.txt")]

    def _row(self, entry: Any) -> Row:
        image = self._picture(self.dataset_dir / f"img/{entry}.jpg")
        path = self.dataset_dir / f"cls/{entry}.mat"
        try:
            ground_truth = members(path, "GTcls")[0]
            if self.task == "Segmentation":
                return image, np.ascontiguousarray(ground_truth["Segmentation"][0, 0])
            borders = ground_truth["Boundaries"][0, 0]
            return image, np.stack([borders[number, 0].toarray() for number in range(20)])
        except (IndexError, ValueError, AttributeError) as error:
            if isinstance(error, DataDamaged):
                raise
            raise DataDamaged(message(f"{path}: {error!s:.100}", f"GTcls with {self.task}")) from None


class Caltech101Dataset(MatlabDataset, arguments=f"dataset_dir, target_type=None, {_ROWS}, decode=False, {_CHOICE}"):
    """Caltech-101: image and, depending on `target_type`, category () int64, annotation (2, N) float64, the outline, or both ('all').

    The category is the number of a folder in sorted order, without that of the background.
    """

    choices = {"target_type": ("category", "annotation", "all")}
    target_type: str
    _renamed = {"Faces": "Faces_2", "Faces_easy": "Faces_3", "Motorbikes": "Motorbikes_16", "airplanes": "Airplanes_Side_2"}
    """Names of folders that differ in the folder of outlines."""

    def _columns(self) -> list[str]:
        return ["image", *(["category", "annotation"] if self.target_type == "all" else [self.target_type])]

    def get_class_indexing(self) -> dict[str, int]:
        """Returns a dict from the name of a category to its label."""
        return {name: number for number, name in enumerate(CALTECH)}

    def _list(self) -> Sequence[Any]:
        kinds = [folder for folder in folders(self.dataset_dir / "101_ObjectCategories") if folder.name != "BACKGROUND_Google"]
        return [(path, label) for label, kind in enumerate(kinds) for path in pictures(kind, (".jpg",))]

    def _row(self, entry: Any) -> Row:
        path, label = entry
        row: list[Any] = [self._picture(path)]
        if self.target_type != "annotation":
            row.append(np.array(label, np.int64))
        if self.target_type != "category":
            kind = self._renamed.get(path.parent.name, path.parent.name)
            file = self.dataset_dir / f"Annotations/{kind}/annotation_{path.stem.rpartition('_')[2]}.mat"
            row.append(members(file, "obj_contour")[0].astype(np.float64))
        return tuple(row)


CALTECH = """
Faces, Faces_easy, Leopards, Motorbikes, accordion, airplanes, anchor, ant, barrel, bass, beaver, binocular, bonsai, brain,
brontosaurus, buddha, butterfly, camera, cannon, car_side, ceiling_fan, cellphone, chair, chandelier, cougar_body, cougar_face,
crab, crayfish, crocodile, crocodile_head, cup, dalmatian, dollar_bill, dolphin, dragonfly, electric_guitar, elephant, emu,
euphonium, ewer, ferry, flamingo, flamingo_head, garfield, gerenuk, gramophone, grand_piano, hawksbill, headphone, hedgehog,
helicopter, ibis, inline_skate, joshua_tree, kangaroo, ketch, lamp, laptop, llama, lobster, lotus, mandolin, mayfly, menorah,
metronome, minaret, nautilus, octopus, okapi, pagoda, panda, pigeon, pizza, platypus, pyramid, revolver, rhino, rooster,
saxophone, schooner, scissors, scorpion, sea_horse, snoopy, soccer_ball, stapler, starfish, stegosaurus, stop_sign, strawberry,
sunflower, tick, trilobite, umbrella, watch, water_lilly, wheelchair, wild_cat, windsor_chair, wrench, yin_yang
""".replace("\n", " ").strip().split(", ")
"""Caltech-101's categories in order of their labels."""

FLOWERS = """
pink primrose, hard-leaved pocket orchid, canterbury bells, sweet pea, english marigold, tiger lily, moon orchid, bird of
paradise, monkshood, globe thistle, snapdragon, colt's foot, king protea, spear thistle, yellow iris, globe-flower, purple
coneflower, peruvian lily, balloon flower, giant white arum lily, fire lily, pincushion flower, fritillary, red ginger, grape
hyacinth, corn poppy, prince of wales feathers, stemless gentian, artichoke, sweet william, carnation, garden phlox, love in the
mist, mexican aster, alpine sea holly, ruby-lipped cattleya, cape flower, great masterwort, siam tulip, lenten rose, barbeton
daisy, daffodil, sword lily, poinsettia, bolero deep blue, wallflower, marigold, buttercup, oxeye daisy, common dandelion,
petunia, wild pansy, primula, sunflower, pelargonium, bishop of llandaff, gaura, geranium, orange dahlia, pink-yellow dahlia?,
cautleya spicata, japanese anemone, black-eyed susan, silverbush, californian poppy, osteospermum, spring crocus, bearded iris,
windflower, tree poppy, gazania, azalea, water lily, rose, thorn apple, morning glory, passion flower, lotus, toad lily,
anthurium, frangipani, clematis, hibiscus, columbine, desert-rose, tree mallow, magnolia, cyclamen, watercress, canna lily,
hippeastrum, bee balm, ball moss, foxglove, bougainvillea, camellia, mallow, mexican petunia, bromelia, blanket flower, trumpet
creeper, blackberry lily
""".replace("\n", " ").strip().split(", ")
"""Oxford's flowers in order of their labels."""
