"""TFRecord files: damaged ones are named, and large or hostile ones are bounded."""
from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import vision
from PIL import Image
from support import memory_use, tfrecord_files

from torchspore.mindspore.mindrecord.tfrecord import masked_crc


def ids(data: ds.Dataset) -> list[int]:
    return [int(row["id"][0]) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]


def test_the_checksum_is_that_of_rfc_3720() -> None:
    for content, crc in ((bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E)):
        assert masked_crc(content) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.mark.parametrize("at", [0, 1, 11])
def test_a_damaged_head_is_named(tmp_path: Path, at: int) -> None:
    content = bytearray(Path(tfrecord_files.write(tmp_path / "rows", range(3))).read_bytes())
    content[at] ^= 1
    (tmp_path / "rows").write_bytes(content)
    with pytest.raises(ValueError, match=r"rows: no record at byte 0: expected a complete TFRecord file"):
        ds.TFRecordDataset(str(tmp_path / "rows"))


def test_a_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    records = [tfrecord_files.record(tfrecord_files.example(tfrecord_files.row(n))) for n in range(3)]
    file_bytes = b"".join(records)
    for size in range(1, len(file_bytes)):
        (tmp_path / "rows").write_bytes(file_bytes[:size])
        if size not in (len(records[0]), len(records[0] + records[1])):
            with pytest.raises(ValueError, match="rows"):
                ids(ds.TFRecordDataset(str(tmp_path / "rows"), shuffle=False))


def test_a_record_that_says_it_is_huge(tmp_path: Path) -> None:
    head = struct.pack("<Q", 1 << 62)
    (tmp_path / "rows").write_bytes(head + struct.pack("<I", masked_crc(head)) + b"x" * 50)
    with pytest.raises(ValueError, match="ends at byte 62, within the record at byte 0"):
        ds.TFRecordDataset(str(tmp_path / "rows"))


def test_a_record_that_is_no_example(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(tfrecord_files.record(b"\xff\xff\xff"))
    with pytest.raises(ValueError, match=r"rows: the record at byte 0 is not a tf.train.Example"):
        ds.TFRecordDataset(str(tmp_path / "rows"))


def test_a_small_packed_file_takes_little_memory(tmp_path: Path) -> None:
    """256 MiB of zeros, packed into 260 kB, go to the disk."""
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    content = b"".join(packer.compress(bytes(1 << 24)) for _ in range(16)) + packer.flush()
    (tmp_path / "bomb").write_bytes(content)
    assert len(content) < 300_000
    with memory_use.rise() as rise, pytest.raises(ValueError, match="no record at byte 0"):
        ds.TFRecordDataset(str(tmp_path / "bomb"), compression_type="GZIP")
    assert rise.kib < 100_000


@pytest.mark.parametrize(("kind", "match"), [("GZIP", "incorrect header|ends too early"), ("ZLIB", "incorrect|ends too early")])
def test_an_unpacked_file_is_reported(tmp_path: Path, kind: str, match: str) -> None:
    path = Path(tfrecord_files.write(tmp_path / "rows", range(3)))
    with pytest.raises(ValueError, match=match):
        ds.TFRecordDataset(str(path), compression_type=kind)
    content = Path(tfrecord_files.write(path, range(3), kind)).read_bytes()
    path.write_bytes(content[:-9])
    with pytest.raises(ValueError, match="ends too early"):
        ds.TFRecordDataset(str(path), compression_type=kind)


def test_rows_that_do_not_fit_are_named(tmp_path: Path) -> None:
    path = tfrecord_files.write(tmp_path / "rows", range(3))
    expected = ds.Schema()
    expected.add_column("data", ms.uint8, [4])
    with pytest.raises(RuntimeError, match=r"'data' of row 0 of .*rows: 5 values do not fit the schema's shape \[4\]"):
        list(ds.TFRecordDataset(path, expected, shuffle=False))
    expected = ds.Schema()
    expected.add_column("nmae", ms.string)
    with pytest.raises(RuntimeError, match=r"row 0 of .*rows has no 'nmae': expected one of data, id, many, name, score"):
        list(ds.TFRecordDataset(path, expected, shuffle=False))


def test_orders(tmp_path: Path) -> None:
    files = [tfrecord_files.write(tmp_path / f"{n}.tf", range(10 * n, 10 * n + 10)) for n in range(4)]
    assert ids(ds.TFRecordDataset(str(tmp_path / "*.tf"), shuffle=False)) == list(range(40))
    epochs = ds.TFRecordDataset(files).create_dict_iterator(num_epochs=3, output_numpy=True)
    orders = [[int(epoch["id"][0]) for epoch in epochs] for _ in range(3)]
    assert all(sorted(order) == list(range(40)) for order in orders) and len({tuple(order) for order in orders}) == 3
    by_files = [ids(ds.TFRecordDataset(files, shuffle=ds.Shuffle.FILES)) for _ in range(2)]
    for order in by_files:
        parts = [order[n : n + 10] for n in range(0, 40, 10)]
        assert sorted(order[::10]) == [0, 10, 20, 30] and all(part == list(range(part[0], part[0] + 10)) for part in parts)
    shares = [ids(ds.TFRecordDataset(files, shuffle=False, num_shards=3, shard_id=n, shard_equal_rows=True)) for n in range(3)]
    assert [len(share) for share in shares] == [14, 14, 14] and {row for share in shares for row in share} == set(range(40))
    with pytest.raises(ValueError, match="num_shards=5\\) of 4 files: expected a file for each"):
        ds.TFRecordDataset(files, num_shards=5, shard_id=0)


@pytest.mark.parametrize("workers", [1, 3])
def test_pictures_are_decoded_in_a_pipeline(tmp_path: Path, workers: int) -> None:
    out = io.BytesIO()
    Image.fromarray(np.full((6, 4, 3), 7, np.uint8)).save(out, "PNG")
    features = {"image": [out.getvalue()], "label": np.array([3])}
    (tmp_path / "rows").write_bytes(tfrecord_files.record(tfrecord_files.example(features)) * 8)
    data = ds.TFRecordDataset(str(tmp_path / "rows"), num_parallel_workers=workers).map(vision.Decode(), "image").batch(4)
    batches = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [batch["image"].shape for batch in batches] == [(4, 6, 4, 3)] * 2 and (batches[1]["image"] == 7).all()
