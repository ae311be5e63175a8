"""MindRecord files: written whole or not at all, damaged ones named, hostile ones bounded."""
from __future__ import annotations

import io
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import vision
from mindspore.mindrecord import FileReader, FileWriter, MindPage
from PIL import Image
from support import full_disk

from torchspore.mindspore.mindrecord import layout, shards
from torchspore.mindspore.mindrecord.integers import pack, unpack

SCHEMA = {"label": {"type": "int32"}, "data": {"type": "bytes"}, "v": {"type": "int64", "shape": [-1]}}


def rows(count: int, size: int = 10) -> list[dict[str, object]]:
    return [{"label": n, "data": bytes([n % 256]) * size, "v": np.arange(n)} for n in range(count)]


def write(path: Path, count: int = 5, shards: int = 1, size: int = 10) -> Path:
    writer = FileWriter(str(path), shards, True)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema(SCHEMA)
    writer.write_raw_data(rows(count, size))
    writer.commit()
    return path


def labels(*files: Path) -> list[int]:
    return [row["label"] for row in FileReader([str(file) for file in files]).get_next()]


def test_integers_come_back_whatever_their_size() -> None:
    draw = np.random.default_rng(0)
    for count in (*range(12), 1000):
        values = draw.integers(-(2**63), 2**63 - 1, count) >> draw.integers(0, 64, count)
        assert (unpack(pack(values)) == values).all()
    limits = np.array([sign * (1 << bits) + off for bits in (7, 15, 31, 62) for sign in (1, -1) for off in (-1, 0, 1)])
    assert (unpack(pack(limits)) == limits).all()
    assert len(pack(np.zeros(1000, np.int64))) == 4 + 250 + 1000


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b"\0\0\0\5\0", b"\xff\xff\xff\xff" + bytes(50), b"\0\0\0\1\0\1\2", b"\0\0\0\1\xc0\1"])
def test_integers_that_are_none(content: bytes) -> None:
    with pytest.raises(ValueError, match="bytes of packed integers"):
        unpack(content)


def test_nothing_is_there_before_commit_and_nothing_remains_of_a_writer_that_never_did(tmp_path: Path) -> None:
    write(tmp_path / "a", 3)
    writer = FileWriter(str(tmp_path / "a"), 1, True)
    writer.add_schema(SCHEMA)
    writer.write_raw_data(rows(9))
    assert labels(tmp_path / "a") == [0, 1, 2]
    del writer
    assert sorted(os.listdir(tmp_path)) == ["a", "a.db"]


def test_a_file_that_is_there_is_kept_by_default(tmp_path: Path) -> None:
    write(tmp_path / "a", 3)
    writer = FileWriter(str(tmp_path / "a"))
    writer.add_schema(SCHEMA)
    with pytest.raises(RuntimeError, match=r"a is there: expected no such file.*\n\nhint: overwrite=True replaces it"):
        writer.write_raw_data(rows(1))
    assert labels(tmp_path / "a") == [0, 1, 2]


def test_rows_go_on_in_new_pages_and_too_long_ones_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a", 50, size=3000)
    pages = FileReader(str(tmp_path / "a"))._shards.header.pages
    assert len([page for page in pages if page["page_type"] == "BLOB_DATA"]) == 5
    assert [row["data"][:1] for row in FileReader(str(tmp_path / "a")).get_next()] == [bytes([n]) for n in range(50)]
    with pytest.raises(ValueError, match=r"a row of \d+ bytes: expected at most 32768"):
        write(tmp_path / "b", 2, size=40_000)
    assert not (tmp_path / "b").exists()


def test_a_row_that_does_not_fit_is_omitted_with_its_reason(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    writer = FileWriter(str(tmp_path / "a"))
    writer.add_schema(SCHEMA)
    good = rows(2)
    writer.write_raw_data([good[0], {**good[1], "label": "x"}, {**good[1], "v": np.zeros(3, np.int32)}, {"label": 1}, good[1]])
    writer.commit()
    assert labels(tmp_path / "a") == [0, 1]
    output = capfd.readouterr().err
    for reason in ("1 is left out: 'label' is no int32: 'x'", "2 is left out: 'v' is no array of int64", "3 is left out: no 'data'"):
        assert f"row {reason}" in output


def test_what_mindspore_writes_otherwise(tmp_path: Path) -> None:
    writer = FileWriter(str(tmp_path / "a"), 3)
    writer.add_schema({"label": {"type": "int32"}, "data": {"type": "bytes"}})
    writer.write_raw_data([{"label": n, "data": b""} for n in (0, 1, 2, 3, 1 << 31)])
    writer.commit()
    assert [len(list(FileReader([str(tmp_path / f"a{n}")]).get_next())) for n in range(3)] == [2, 1, 1]
    assert [row["data"] for row in FileReader(str(tmp_path / "a0")).get_next()] == [b""] * 4
    some = ds.MindDataset(str(tmp_path / "a0"), ["label"], num_samples=3)
    for _ in range(5):
        assert len({int(row["label"]) for row in some.create_dict_iterator(output_numpy=True, num_epochs=1)}) == 3


def damaged(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


@pytest.mark.parametrize(("at", "content", "match"), [
    (0, b"\xff" * 8, "a MindRecord file"), (0, bytes(8), "a MindRecord file"), (8, b"[", "a header that is not MindRecord's"),
    (20, b"\xff\xfe", "a header that is not MindRecord's"), (1 << 14, b"\xff" * 8, "row 0: a length of"),
    ((1 << 14) + 8, b"\xff" * 8, "row 0"),
    ((1 << 14) + (1 << 15) + 8, b"\xc1", "row 0"), ((1 << 14) + (1 << 15) + 8, b"\xdf\xff\xff\xff\xff", "row 0"),
    ((1 << 14) + (1 << 15) + 8, b"\x90", "row 0"),
])
def test_a_damaged_file_is_named(tmp_path: Path, at: int, content: bytes, match: str) -> None:
    path = write(tmp_path / "rows")
    damaged(path, at, content)
    with pytest.raises(ValueError, match=f"rows.*{match}|{match}.*rows"):
        list(FileReader(str(path)).get_next())


def test_a_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "rows")
    for size in (0, 4, 100, 1 << 14, (1 << 14) + 40, path.stat().st_size - 1):
        os.truncate(path, size)
        with pytest.raises(ValueError, match="rows"):
            list(FileReader(str(path)).get_next())


def index(path: Path, *statements: str) -> None:
    with sqlite3.connect(f"{path}.db") as base:
        for statement in statements:
            base.execute(statement)
    base.close()


@pytest.mark.parametrize("statement", [
    "UPDATE INDEXES SET PAGE_OFFSET_BLOB=-8", "UPDATE INDEXES SET PAGE_ID_RAW=1000000", "UPDATE INDEXES SET PAGE_OFFSET_RAW_END=1<<60",
    "UPDATE INDEXES SET PAGE_OFFSET_RAW='x'", "UPDATE INDEXES SET PAGE_OFFSET_BLOB_END=0", "DROP TABLE INDEXES",
])
def test_an_index_that_does_not_fit_is_named(tmp_path: Path, statement: str) -> None:
    path = write(tmp_path / "rows")
    index(path, statement)
    with pytest.raises(ValueError, match="rows"):
        list(FileReader(str(path)).get_next())


def test_an_index_without_end_is_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "rows")
    endless = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT i ROW_ID, 1 PAGE_ID_RAW FROM n"
    index(path, "DROP TABLE INDEXES", f"CREATE VIEW INDEXES AS {endless}")
    with pytest.raises(ValueError, match="no table INDEXES"):
        FileReader(str(path))


def test_a_missing_index_or_shard_is_named(tmp_path: Path) -> None:
    write(tmp_path / "rows", 6, 3)
    (tmp_path / "rows1").unlink()
    with pytest.raises(FileNotFoundError, match="rows1"):
        FileReader(str(tmp_path / "rows0"))
    (tmp_path / "rows0.db").unlink()
    with pytest.raises(FileNotFoundError, match=r"rows0\.db.*the index of rows0"):
        FileReader([str(tmp_path / "rows0")])
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match=r"text: 5 bytes .*expected a MindRecord file"):
        ds.MindDataset(str(tmp_path / "text"))


def test_a_header_names_no_file_elsewhere(tmp_path: Path) -> None:
    """Shards are looked for beside the file that was named, whatever the header says."""
    (tmp_path / "in").mkdir()
    path = write(tmp_path / "in" / "rows")
    header = shards.read_header(path)
    header.shards = ["/etc/../rows"]
    damaged(path, 0, layout.header_to_bytes(header))
    assert [row["label"] for row in FileReader(str(path)).get_next()] == [0, 1, 2, 3, 4]


def test_a_file_grows_and_stays_as_it_was_until_it_has(tmp_path: Path) -> None:
    write(tmp_path / "rows", 4, 2)
    writer = FileWriter.open_for_append(str(tmp_path / "rows0"))
    writer.write_raw_data(rows(3))
    assert labels(tmp_path / "rows0", tmp_path / "rows1") == [0, 1, 2, 3]
    writer.commit()
    assert labels(tmp_path / "rows0", tmp_path / "rows1") == [0, 1, 0, 1, 2, 3, 2]
    page = MindPage(str(tmp_path / "rows0"))
    page.category_field = "label"
    assert '{"count":2,"id":1,"name":"1"}' in page.read_category_info()


def picture(n: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), n, np.uint8)).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("workers", [1, 4])
def test_pictures_are_decoded_in_a_pipeline(tmp_path: Path, workers: int) -> None:
    writer = FileWriter(str(tmp_path / "pictures"), 2)
    writer.add_schema({"data": {"type": "bytes"}, "label": {"type": "int64"}})
    writer.write_raw_data([{"data": picture(n), "label": n} for n in range(10)])
    writer.commit()
    data = ds.MindDataset(str(tmp_path / "pictures0"), columns_list=["data", "label"], num_parallel_workers=workers, shuffle=False)
    data = data.map([vision.Decode(), vision.HWC2CHW()], "data", num_parallel_workers=workers).batch(5)
    for epoch in range(2):
        batches = list(data.create_dict_iterator(output_numpy=True, num_epochs=1))
        assert [batch["data"].shape for batch in batches] == [(5, 3, 8, 8)] * 2, epoch
        for batch in batches:
            assert (batch["data"][:, 0, 0, 0] == batch["label"]).all()


@pytest.mark.parametrize("files", [False, True])
def test_files_are_shuffled_by_file_or_by_row(tmp_path: Path, files: bool) -> None:
    write(tmp_path / "rows", 60, 3)
    data = ds.MindDataset(str(tmp_path / "rows0"), ["label"], shuffle=ds.Shuffle.FILES if files else ds.Shuffle.INFILE)
    epochs = data.create_dict_iterator(output_numpy=True, num_epochs=6)
    results = [[int(row["label"]) for row in epochs] for _ in range(6)]
    assert len({tuple(order) for order in results}) > 1
    for order in results:
        parts = [order[n : n + 20] for n in (0, 20, 40)]
        assert sorted(order) == list(range(60))
        if files:
            assert all(part == list(range(part[0], part[0] + 20)) for part in parts)
        else:
            assert [sorted(part) for part in parts] == [list(range(n, n + 20)) for n in (0, 20, 40)]


KILLED = """
import os, signal, sys
import numpy as np
import torchspore; torchspore.install()
from mindspore.mindrecord import FileWriter
writer = FileWriter("rows", 2, True)
writer.add_schema({"v": {"type": "float32", "shape": [-1]}})
writer.write_raw_data([{"v": np.zeros(100_000, np.float32)} for _ in range(20)])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_writer_that_is_killed_leaves_the_old_files_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    write(tmp_path / "rows", 4, 2)
    ended = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == -9, ended.stderr
    assert labels(tmp_path / "rows0", tmp_path / "rows1") == [0, 1, 2, 3]
    write(tmp_path / "rows", 2, 2)
    assert sorted(os.listdir(tmp_path)) == ["rows0", "rows0.db", "rows1", "rows1.db"]


def test_rows_by_class_of_a_column(tmp_path: Path) -> None:
    path = write(tmp_path / "a", 6)
    data = ds.MindDataset(str(path), sampler=ds.PKSampler(2, class_column="label"))
    assert data.get_dataset_size() == 12 and [int(row["label"]) for row in data.create_dict_iterator(output_numpy=True)] == [
        label for label in range(6) for _ in range(2)
    ]
    with pytest.raises(ValueError, match=r"PKSampler\(class_column\): column 'labl'.*\n\nhint: did you mean 'label'"):
        list(ds.MindDataset(str(path), sampler=ds.PKSampler(2, class_column="labl")))


@pytest.mark.parametrize("kind", ["mindrecord", "tfrecord", "writer"])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows"
    columns = [{"x": np.full(64, number, np.float32)} for number in range(4000)]

    def put(count: int) -> None:
        if kind != "writer":
            ds.NumpySlicesDataset({"x": np.stack([row["x"] for row in columns[:count]])}, shuffle=False).save(str(path), 1, kind)
            return
        writer = FileWriter(str(path), 1, overwrite=True)
        writer.add_schema({"x": {"type": "float32", "shape": [64]}}, "rows")
        writer.write_raw_data(columns[:count])
        writer.commit()

    if kind == "writer":
        put(3)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with full_disk.takes(100_000), pytest.raises(OSError, match="rows"):
        put(4000)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
