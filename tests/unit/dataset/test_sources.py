"""Sources that read files: MNIST, CIFAR, folders of images; and what they say of files that are not right."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import mindspore.dataset as ds
import numpy as np
import pytest
from support import tiny_sources


def write_pair(folder: Path, name: str, count: int = 6, *, side: int = 28, magic: int = 2051, labels: int | None = None) -> Path:
    images = np.arange(count * side * side, dtype=np.uint32).astype(np.uint8)
    path = folder / f"{name}-images-idx3-ubyte"
    path.write_bytes(struct.pack(">IIII", magic, count, side, side) + images.tobytes())
    shown = count if labels is None else labels
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, shown) + bytes(number % 10 for number in range(shown)))
    return path


def rows(dataset: ds.Dataset) -> list[dict[str, np.ndarray]]:
    return list(dataset.create_dict_iterator(output_numpy=True, num_epochs=1))


def test_mnist(tmp_path: Path) -> None:
    write_pair(tmp_path, "train")
    write_pair(tmp_path, "t10k", 4)
    dataset = ds.MnistDataset(str(tmp_path), shuffle=False)
    result = rows(dataset)
    assert [int(row["label"]) for row in result] == [0, 1, 2, 3, 0, 1, 2, 3, 4, 5]  # the test rows come first, as in MindSpore
    assert result[0]["image"].shape == (28, 28, 1) and result[0]["image"].dtype == np.uint8 and result[0]["label"].dtype == np.uint32
    assert ds.MnistDataset(str(tmp_path), "train", num_shards=4, shard_id=0).get_dataset_size() == 2
    assert ds.FashionMnistDataset(str(tmp_path), "test").get_dataset_size() == 4
    assert ds.FashionMnistDataset(str(tmp_path)).num_classes() == 10
    assert ds.KMnistDataset(str(tmp_path), "test", num_samples=2, shuffle=False).get_dataset_size() == 2


MNIST_CLASSES = (ds.MnistDataset, ds.KMnistDataset, ds.FashionMnistDataset)


@pytest.mark.parametrize("dataset", MNIST_CLASSES)
@pytest.mark.parametrize(("images", "labels"), [
    ("{}-images.idx3-ubyte", "{}-labels.idx1-ubyte"), ("my-{}-images-idx3-ubyte.bin", "my-{}-labels-idx1-ubyte.bin"),
    ("{}-images-28-idx3-ubyte", "{}-labels-idx1-ubyte"),
])
def test_mnist_files_with_other_names(tmp_path: Path, dataset: type[ds.MnistDataset], images: str, labels: str) -> None:
    """MindSpore 2.10 reads each file whose name contains `train-images` and `idx3-ubyte`; many programs name `train-images.idx3-ubyte`."""
    for name, count in (("train", 3), ("t10k", 2)):
        path = write_pair(tmp_path, name, count)
        path.rename(tmp_path / images.format(name))
        (tmp_path / f"{name}-labels-idx1-ubyte").rename(tmp_path / labels.format(name))
    assert [int(row["label"]) for row in rows(dataset(str(tmp_path), shuffle=False))] == [0, 1, 0, 1, 2]
    assert [int(row["label"]) for row in rows(dataset(str(tmp_path), "test", shuffle=False))] == [0, 1]


def test_mnist_files_of_both_names_are_joined(tmp_path: Path) -> None:
    for count, separator in ((3, "."), (2, "-")):
        path = write_pair(tmp_path, "train", count)
        path.rename(tmp_path / f"train-images{separator}idx3-ubyte")
        (tmp_path / "train-labels-idx1-ubyte").rename(tmp_path / f"train-labels{separator}idx1-ubyte")
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"")
    assert [int(row["label"]) for row in rows(ds.MnistDataset(str(tmp_path), shuffle=False))] == [0, 1, 0, 1, 2]


def test_mnist_labels_without_images(tmp_path: Path) -> None:
    write_pair(tmp_path, "train").unlink()
    assert message_of(tmp_path, FileNotFoundError).startswith("FOLDER/train-images-idx3-ubyte: expected this file of the MNIST format.")


def test_emnist_and_qmnist_have_exact_names(tmp_path: Path) -> None:
    """As in MindSpore 2.10."""
    tiny_sources.put(tmp_path, {
        "emnist-mnist-train-images.idx3-ubyte": tiny_sources.idx(tiny_sources.digits(2)), "emnist-mnist-train-labels.idx1-ubyte": b"",
        "qmnist-train-images.idx3-ubyte": tiny_sources.idx(tiny_sources.digits(2)), "qmnist-train-labels.idx2-int": b"",
    })
    with pytest.raises(FileNotFoundError, match="/emnist-mnist-train-images-idx3-ubyte: expected this file"):
        rows(ds.EMnistDataset(str(tmp_path), "mnist", "train"))
    with pytest.raises(FileNotFoundError, match="/qmnist-train-images-idx3-ubyte: expected this file"):
        rows(ds.QMnistDataset(str(tmp_path), "train"))


def message_of(folder: Path, kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        rows(ds.MnistDataset(str(folder), "train"))
    return str(caught.value).replace(str(folder), "FOLDER")


def test_mnist_cut_short(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "train")
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    assert (
        message_of(tmp_path, ValueError)
        == "FOLDER/train-images-idx3-ubyte: 4620 bytes: expected 4720, as its header states; the file is truncated."
    )
    path.write_bytes(content[:7])
    assert (
        message_of(tmp_path, ValueError) == "FOLDER/train-images-idx3-ubyte: 7 bytes: expected a header of 16 bytes; the file is truncated."
    )


def test_mnist_of_another_kind(tmp_path: Path) -> None:
    write_pair(tmp_path, "train", magic=7)
    assert (
        message_of(tmp_path, ValueError) == "FOLDER/train-images-idx3-ubyte: magic number 7: expected 2051, as image files of MNIST have."
    )
    write_pair(tmp_path, "train", side=8)
    assert message_of(tmp_path, ValueError) == "FOLDER/train-images-idx3-ubyte: images of 8x8: expected images of 28x28, as MNIST has."
    write_pair(tmp_path, "train", labels=5)
    text = "FOLDER/train-labels-idx1-ubyte: 5 labels: expected 6, one for each image of train-images-idx3-ubyte."
    assert message_of(tmp_path, ValueError) == text


def test_mnist_missing(tmp_path: Path) -> None:
    text = "FOLDER/train-images-idx3-ubyte: expected this file of the MNIST format.\n\nhint: "
    assert message_of(tmp_path, FileNotFoundError) == text + "MNIST's four files must be unpacked in dataset_dir."
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"")
    assert message_of(tmp_path, FileNotFoundError) == text + "unpack it: gunzip FOLDER/train-images-idx3-ubyte.gz."


def test_cifar(tmp_path: Path) -> None:
    records = np.arange(3 * 3073, dtype=np.uint32).astype(np.uint8).reshape(3, 3073)
    records[:, 0] = [4, 5, 6]
    records.tofile(tmp_path / "data_batch_1.bin")
    dataset = ds.Cifar10Dataset(str(tmp_path), "train", shuffle=False)
    result = rows(dataset)
    assert [int(row["label"]) for row in result] == [4, 5, 6]
    assert np.array_equal(result[1]["image"], records[1, 1:].reshape(3, 32, 32).transpose(1, 2, 0))
    (tmp_path / "train.bin").write_bytes(bytes(3074 * 2))
    assert list(rows(ds.Cifar100Dataset(str(tmp_path), "train"))[0]) == ["image", "coarse_label", "fine_label"]
    (tmp_path / "data_batch_2.bin").write_bytes(b"1234")
    with pytest.raises(ValueError, match=r"data_batch_2\.bin: 4 bytes: expected a multiple of 3073; the file is truncated\."):
        rows(ds.Cifar10Dataset(str(tmp_path), "train"))
    with pytest.raises(FileNotFoundError, match="no file for usage='test'"):
        rows(ds.Cifar10Dataset(str(tmp_path), "test"))


def test_image_folder(tmp_path: Path) -> None:
    from PIL import Image

    image = np.random.RandomState(0).randint(0, 256, (4, 5, 3)).astype(np.uint8)
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        Image.fromarray(image).save(tmp_path / name / "one.png")
    dataset = ds.ImageFolderDataset(str(tmp_path), decode=True, shuffle=False)
    result = rows(dataset)
    assert [int(row["label"]) for row in result] == [0, 1] and result[0]["label"].dtype == np.int32
    assert np.array_equal(result[0]["image"], image)
    assert dataset.get_class_indexing() == {"cat": 0, "dog": 1} and dataset.num_classes() == 2
    chosen = rows(ds.ImageFolderDataset(str(tmp_path), class_indexing={"dog": 7}))
    assert [int(row["label"]) for row in chosen] == [7] and chosen[0]["image"].ndim == 1
    with pytest.raises(RuntimeError, match="expected images in its folders"):
        rows(ds.ImageFolderDataset(str(tmp_path), extensions=[".bmp"]))


class _WithoutLength:
    def __getitem__(self, index: int) -> tuple[np.ndarray, ...]:
        return (np.array([index]),)


class _WithoutLengthButIterable(_WithoutLength):
    def __iter__(self) -> Any:
        return iter([(np.array([1]),)])


@pytest.mark.parametrize("source", [_WithoutLength(), _WithoutLengthButIterable()])
@pytest.mark.parametrize("use", [lambda d: list(d.create_tuple_iterator()), lambda d: d.get_dataset_size(), lambda d: list(d.batch(2))])
def test_a_source_with_getitem_and_without_len_is_refused(source: Any, use: Any) -> None:
    with pytest.raises(RuntimeError) as caught:
        use(ds.GeneratorDataset(source, ["column"]))
    assert str(caught.value) == (
        f"GeneratorDataset(source={type(source).__name__}): __getitem__ without __len__: expected a source with both methods, or an "
        f"iterable with __iter__ alone.\n\nhint: define __len__(self) on {type(source).__name__}."
    )
