"""DatasetCache: cached rows are not computed again, in memory up to the size and beyond it on disk if the cache spills."""
from __future__ import annotations

import io
import os
import signal
import tempfile
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


class Source:
    """Four rows of 400,000 bytes; `read` records the requested rows."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        self.read.append(index)
        return np.full(400_000, index, np.uint8), np.array(f"row {index}")


def test_a_full_cache_takes_no_more_and_the_rest_is_read_again() -> None:
    source, cache = Source(), ds.DatasetCache(7, size=1)
    data = ds.GeneratorDataset(source, ["image", "name"], shuffle=False)
    data.cache = cache
    assert values(data) == values(data) == [0, 1, 2, 3]
    assert source.read.count(0) == 1 and source.read.count(3) == 2 and cache.get_stat().num_mem_cached == 2


def test_a_cache_that_spills_writes_the_other_rows_to_disk() -> None:
    source, cache = Source(), ds.DatasetCache(7, size=1, spilling=True)
    data = ds.GeneratorDataset(source, ["image", "name"], shuffle=False)
    data.cache = cache
    before = sum(os.stat(f"/proc/self/fd/{name}").st_size for name in temporary_files())
    for _ in range(3):
        epoch = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
        assert [str(row["name"]) for row in epoch] == ["row 0", "row 1", "row 2", "row 3"]
        assert all((row["image"] == number).all() and len(row["image"]) == 400_000 for number, row in enumerate(epoch))
    statistics = cache.get_stat()
    assert (statistics.num_mem_cached, statistics.num_disk_cached) == (2, 2) and source.read.count(3) == 1
    written = sum(os.stat(f"/proc/self/fd/{name}").st_size for name in temporary_files()) - before
    assert 800_000 < written < 801_000
    assert any("rows beyond 1 MiB are in a temporary file" in line for line in effects.notes()["data"])


def temporary_files() -> list[str]:
    """Return the descriptors of this process whose files have no name and are on a disk."""
    links = {name: os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}
    return [name for name, path in links.items() if path.endswith(" (deleted)") and path.startswith(tempfile.gettempdir())]


def test_a_full_disk_is_reported_and_its_rows_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwritev", refuse)
    source, cache = Source(), ds.DatasetCache(8, size=1, spilling=True)
    data = ds.GeneratorDataset(source, ["image", "name"], shuffle=False)
    data.cache = cache
    assert values(data) == values(data) == [0, 1, 2, 3]
    assert source.read.count(3) == 2 and cache.get_stat().num_disk_cached == 0
    assert any("No space left on device" in line for line in effects.notes()["data"])


@pytest.mark.parametrize("workers", [None, 4])
def test_a_map_computes_each_row_once(folder: Path, workers: int | None) -> None:
    decoded: list[int] = []

    def brighten(image: np.ndarray) -> np.ndarray:
        decoded.append(int(image.max()))
        return image + np.uint8(100)

    cache = ds.DatasetCache(3)
    data = ds.ImageFolderDataset(str(folder), shuffle=True).map(vision.Decode(), "image", num_parallel_workers=workers)
    data = data.map(brighten, "image", num_parallel_workers=workers, cache=cache).map(lambda image: image + np.uint8(1), "image")
    orders = set()
    iterator = data.create_dict_iterator(num_epochs=4, output_numpy=True)
    for _ in range(4):
        epoch = [(int(row["image"].max()), int(row["label"])) for row in iterator]
        assert sorted(epoch) == [(number + 101, number % 2) for number in range(6)]
        orders.add(tuple(epoch))
    assert sorted(decoded) == list(range(6)) and cache.get_stat().num_mem_cached == 6
    assert len(orders) > 1                                                    # each epoch has an order of its own


def test_a_map_of_which_some_rows_are_cached_computes_the_others() -> None:
    computed: list[int] = []

    def double(value: np.ndarray) -> np.ndarray:
        computed.append(int(value))
        return value * 2

    data = ds.NumpySlicesDataset(np.arange(9), ["x"], shuffle=False).map(double, "x", cache=ds.DatasetCache(4))
    for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        if row[0] == 4:
            break
    shares = [row[0] for row in data.batch(2).create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert [list(share) for share in shares] == [[0, 2], [4, 6], [8, 10], [12, 14], [16]]
    assert sorted(computed) == list(range(9))


def test_two_branches_of_one_source() -> None:
    source = ds.NumpySlicesDataset(np.arange(5), ["x"], shuffle=False)
    data = ds.zip((source.map(lambda x: x * 10, "x", cache=ds.DatasetCache(5)), source.rename("x", "y")))
    for _ in range(2):
        rows = [(int(row["x"]), int(row["y"])) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]
        assert rows == [(10 * number, number) for number in range(5)]


def test_a_changed_result_changes_no_cached_row() -> None:
    def empty(image: np.ndarray) -> np.ndarray:
        image[...] = 0
        return image

    data = ds.NumpySlicesDataset(np.ones((3, 4), np.float32), ["x"], shuffle=False)
    data = data.map(lambda x: x * 2, "x", cache=ds.DatasetCache(6)).map(empty, "x", "y").batch(3)
    cached = data.children[0].children[0]
    for _ in range(2):
        assert all((row["y"] == 0).all() for row in data.create_dict_iterator(num_epochs=1, output_numpy=True))
        for row in cached.create_dict_iterator(num_epochs=1, output_numpy=True):
            assert (row["x"] == 2).all()
            row["x"][...] = 7


class GroupSampler(ds.Sampler):
    """Yields lists of indices."""

    def __iter__(self) -> Any:
        return iter([[0, 1], [2, 3]])


class Arrays:
    """Four rows, of which several may be read at once."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: Any) -> tuple[np.ndarray]:
        return (np.array(index),)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork processes")
def test_a_forked_process_writes_while_a_thread_of_its_parent_held_the_lock() -> None:
    cache = ds.DatasetCache(1)
    with cache._lock:
        child = os.fork()
        if not child:
            signal.alarm(20)
            cache.put("key", (np.zeros(2),))
            os._exit(0 if "key" in cache else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(("build", "text"), [
    (lambda data, cache: data.map(lambda x: x, cache=cache, callbacks=[ds.DSCallback()]), "a map without callbacks"),
    (lambda data, cache: ds.GeneratorDataset(Arrays(), ["x"], sampler=GroupSampler()).map(lambda x: x, cache=cache), "single indices"),
    (lambda data, cache: data.batch(2).map(lambda x: x, cache=cache), r"map\(cache=...\) above BatchDataset"),
    (lambda data, cache: data.repeat(2).map(lambda x: x, cache=cache), "above RepeatDataset"),
    (lambda data, cache: data.map(lambda x: x, cache=cache).map(lambda x: x, cache=cache), "one cache"),
    (lambda data, cache: data.map(vision.RandomHorizontalFlip(), cache=cache), r"a random transform in map\(cache=...\)"),
    (lambda data, cache: data.map(vision.RandomCrop(2)).map(lambda x: x, cache=cache), r"a random transform in map\(cache=...\)"),
    (lambda data, cache: ds.GeneratorDataset(lambda: iter([(1,), (2,)]), ["x"]).map(lambda x: x, cache=cache), "read by index"),
])
def test_rows_that_a_map_cannot_cache(build: Any, text: str) -> None:
    data = build(ds.NumpySlicesDataset(np.zeros((4, 4, 4, 3), np.uint8), ["image"]), ds.DatasetCache(9))
    with pytest.raises(RuntimeError, match=text):
        list(data.create_dict_iterator(num_epochs=1, output_numpy=True))


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
    with pytest.raises(TypeError, match="expected a DatasetCache"):
        ds.NumpySlicesDataset([1, 2]).map(lambda x: x, cache="x")
