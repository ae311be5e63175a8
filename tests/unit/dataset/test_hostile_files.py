"""Files of data sets that were made to do harm: each is named, and takes neither time nor memory."""
from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from mindspore import dataset as ds
from mindspore.dataset import vision
from support import memory_use


def mnist(folder: Path, images: bytes, labels: bytes = struct.pack(">II", 2049, 1) + b"\0") -> list[object]:
    (folder / "train-images-idx3-ubyte").write_bytes(images)
    (folder / "train-labels-idx1-ubyte").write_bytes(labels)
    return list(ds.MnistDataset(str(folder), "train", shuffle=False))


@pytest.mark.parametrize("shape", [(1 << 31, 1 << 31, 1 << 31), (1 << 31, 1 << 31, 4), (1, 28, 29), (0xFFFFFFFF,) * 3])
def test_an_idx_file_is_as_large_as_its_head_says(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte: 16 bytes: expected \d+, as its header states"):
        mnist(tmp_path, struct.pack(">IIII", 2051, *shape))


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train-images-idx3-ubyte")
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte"):
        list(ds.MnistDataset(str(tmp_path), "train"))
    os.mkfifo(tmp_path / "data_batch_1.bin")
    with pytest.raises(ValueError, match="data_batch_1.bin: expected a plain file"):  # noqa: RUF043
        list(ds.Cifar10Dataset(str(tmp_path), "train"))
    (tmp_path / "class").mkdir()
    os.mkfifo(tmp_path / "class/a.png")
    with pytest.raises(RuntimeError, match="images in its folders"):
        list(ds.ImageFolderDataset(str(tmp_path)))


def png(width: int, height: int) -> bytes:
    """A grey picture of zeros, without ever holding it."""
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packer = zlib.compressobj(9)
    row = bytes(width // 8 + 1)
    packed = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def tiff(width: int, height: int) -> bytes:
    """A head alone, in another format."""
    tags = [(256, width), (257, height), (258, 1), (259, 1), (262, 1), (273, 8), (277, 1), (278, height), (279, 10)]
    table = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags) + bytes(4)
    return b"II*\0" + struct.pack("<I", 8) + table + bytes(5000)


@pytest.mark.parametrize("to_pil", [False, True])
@pytest.mark.parametrize("content", [png(20_000, 20_000), tiff(30_000, 30_000)], ids=["png", "tiff"])
def test_a_small_picture_of_many_pixels_is_not_decoded(content: bytes, to_pil: bool) -> None:
    assert len(content) < 70_000
    message = "a picture of [49]00000000 pixels: expected at most 178956970 pixels"
    with memory_use.rise() as rise, pytest.raises(RuntimeError, match=message):
        vision.Decode(to_pil=to_pil)(np.frombuffer(content, np.uint8))
    assert rise.kib < 100_000


def test_a_picture_of_many_pixels_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "class").mkdir()
    (tmp_path / "class/large.png").write_bytes(png(20_000, 20_000))
    with pytest.raises(RuntimeError, match="large.png: a picture of 400000000 pixels"):  # noqa: RUF043
        list(ds.ImageFolderDataset(str(tmp_path), decode=True))


def test_pictures_of_the_usual_formats_are_decoded() -> None:
    import cv2

    picture = np.random.RandomState(0).randint(0, 255, (90, 120, 3), np.uint8)
    for suffix in (".png", ".jpg", ".bmp", ".tiff", ".webp"):
        encoded = cv2.imencode(suffix, picture)[1].reshape(-1)
        assert len(encoded) > 4096 or suffix in (".jpg", ".webp")
        assert vision.Decode()(encoded).shape == (90, 120, 3)
    encoded = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_PROGRESSIVE, 1, cv2.IMWRITE_JPEG_QUALITY, 100])[1].reshape(-1)
    assert vision.Decode()(encoded).shape == (90, 120, 3)
