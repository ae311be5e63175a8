"""`mindspore.dataset.utils`: lines by their number, boxes on pictures."""
from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset.utils import LineReader, imshow_det_bbox

PICTURE = np.full((40, 60, 3), 200, np.uint8)
BOX, LABEL = np.array([[5, 6, 20, 10]], np.float32), np.array([[1]])


def test_lines_by_number(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("one\r\ntwo ä\n\nlast".encode())
    reader = ds.LineReader(str(path))
    assert [reader.readline(at) for at in (4, 2, 3, 1)] == ["last", "two ä", "", "one"] and len(reader) == reader.len() == 4
    assert pickle.loads(pickle.dumps(reader))[2] == "two ä"
    reader.close()
    assert reader[1] == "one"
    rows = ds.GeneratorDataset([reader[at + 1] for at in range(len(reader))], ["line"], shuffle=False)
    assert [str(row["line"]) for row in rows.create_dict_iterator(num_epochs=1, output_numpy=True)] == ["one", "two ä", "", "last"]


@pytest.mark.parametrize("line", [0, 5])
def test_lines_that_are_not_there(tmp_path: Path, line: int) -> None:
    (tmp_path / "a").write_text("1\n2\n3\n4\n")
    with pytest.raises(ValueError, match=rf"LineReader.readline\({line}\): expected a line from 1 to 4 of "):
        LineReader(str(tmp_path / "a")).readline(line)
    with pytest.raises(TypeError, match=r"LineReader.readline\(line='1'\): expected an int, got str"):
        LineReader(str(tmp_path / "a")).readline("1")  # type: ignore[arg-type]
    for path, text in ((tmp_path, "a plain file"), (tmp_path / "b", "an existing file")):
        with pytest.raises(RuntimeError, match=text):
            LineReader(str(path))
    with pytest.raises(TypeError, match="expected a str, got int"):
        LineReader(3)  # type: ignore[arg-type]


def test_boxes_are_drawn(tmp_path: Path) -> None:
    looks: dict[str, Any] = {"class_names": ["cat", "dog"], "show": False, "thickness": 1}
    out = imshow_det_bbox(PICTURE, BOX, LABEL, out_file=str(tmp_path / "a.png"), **looks)
    assert out[16, 20].tolist() == out[10, 5].tolist() == [0, 255, 0] and out[30, 50].tolist() == [200, 200, 200]
    assert (tmp_path / "a.png").stat().st_mode & 0o77 == 0
    turned = imshow_det_bbox(PICTURE.transpose(2, 0, 1), BOX, LABEL, out_file=str(tmp_path / "b.png"), **looks)
    assert np.array_equal(out, turned)
    scored = np.array([[5, 6, 20, 10, 0.3]])
    plain = imshow_det_bbox(PICTURE, scored, LABEL, score_threshold=0.5, show=False, out_file=str(tmp_path / "c.png"))
    assert np.array_equal(plain, PICTURE)
    mask = np.zeros((1, 40, 60))
    mask[0, 20:, :] = 1
    assert imshow_det_bbox(PICTURE, None, None, mask, show=False, out_file=str(tmp_path / "d.png"))[30, 3].tolist() == [164, 100, 164]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"image": PICTURE[0]}, r"image=array\(60, 3\)\): expected an array \(H, W, 3\) or \(3, H, W\)"),
        ({"bboxes": BOX[0]}, r"bboxes=array\(4,\)\): expected an array \(N, 4\) or \(N, 5\)"),
        ({"labels": LABEL[0]}, r"labels=array\(1,\)\): expected an array \(1, 1\), one label for each box"),
        ({"segm": np.zeros((1, 2, 2))}, r"segm=array\(1, 2, 2\)\): expected masks of the picture's size \(40, 60\)"),
        ({"bbox_color": 3}, r"bbox_color=3\): expected a tuple \(blue, green, red\)"), ({"thickness": -1}, "expected an int from 0 on"),
        ({"score_threshold": 0.5}, "expected boxes of five columns"), ({"show": False}, "hint: write out_file='picture.jpg'"),
        ({"class_names": 3}, "expected a list, a tuple or a dict"),
    ],
)
def test_what_can_not_be_drawn(options: dict[str, Any], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        imshow_det_bbox(**{"image": PICTURE, "bboxes": BOX, "labels": LABEL, **options})
