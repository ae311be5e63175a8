"""DatasetCache: what is kept is not read again, and so much is kept as was said."""
from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import vision
from PIL import Image

from torchspore.context import effects


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for n in range(6):
        (tmp_path / "pictures" / str(n % 2)).mkdir(parents=True, exist_ok=True)
        out = io.BytesIO()
        Image.fromarray(np.full((4, 4, 3), n, np.uint8)).save(out, "PNG")
        (tmp_path / "pictures" / str(n % 2) / f"{n}.png").write_bytes(out.getvalue())
    return tmp_path / "pictures"


def values(data: ds.Dataset) -> list[int]:
    return sorted(int(row["image"].max()) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True))


@pytest.mark.parametrize("workers", [1, 4])
def test_the_files_may_go_after_the_first_epoch(folder: Path, workers: int) -> None:
    cache = ds.DatasetCache(session_id=1)
    data = ds.ImageFolderDataset(str(folder), num_parallel_workers=workers, cache=cache).map(vision.Decode(), "image")
    assert values(data) == list(range(6))
    for path in folder.rglob("*.png"):
        path.unlink()
    assert values(data) == list(range(6)) == values(data)
    result = cache.get_stat()
    assert result.num_mem_cached == 6 and 60 < result.avg_cache_sz < 200 and result.num_disk_cached == 0


def test_a_full_cache_takes_no_more_and_the_rest_is_read_again() -> None:
    read: list[int] = []

    class Source:
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> np.ndarray:
            read.append(index)
            return np.full(400_000, index, np.uint8)

    cache = ds.DatasetCache(7, size=1, spilling=True)
    data = ds.GeneratorDataset(Source(), ["image"], shuffle=False)
    data.cache = cache
    assert values(data) == values(data) == [0, 1, 2, 3]
    assert read.count(0) == 1 and read.count(3) == 2 and cache.get_stat().num_mem_cached == 2
    assert any("rows beyond 1 MiB are read again" in line for line in effects.notes()["data"])


def test_two_sources_share_a_cache_without_mixing(folder: Path) -> None:
    cache = ds.DatasetCache(2)
    image_folder_dataset = ds.ImageFolderDataset(str(folder), cache=cache, decode=True)
    other = ds.ImageFolderDataset(str(folder), cache=cache, decode=True, class_indexing={"1": 0})
    assert values(image_folder_dataset) == list(range(6)) and values(other) == [1, 3, 5] and values(image_folder_dataset) == list(range(6))


def test_bad_arguments() -> None:
    wrong: tuple[dict[str, Any], ...] = ({"session_id": 0}, {"size": -1}, {"port": 3}, {"num_connections": 0})
    for arguments in wrong:
        with pytest.raises(ValueError, match="DatasetCache"):
            ds.DatasetCache(**{"session_id": 1, **arguments})
    wrong = ({"session_id": "1"}, {"spilling": 1}, {"hostname": 3})
    for arguments in wrong:
        with pytest.raises(TypeError, match="DatasetCache"):
            ds.DatasetCache(**{"session_id": 1, **arguments})
    with pytest.raises(TypeError, match="expected a DatasetCache, got str"):
        ds.ImageFolderDataset(".", cache="x")
    with pytest.raises(ValueError, match="pass the DatasetCache to the source"):
        ds.NumpySlicesDataset([1, 2]).map(lambda x: x, cache=ds.DatasetCache(1))
