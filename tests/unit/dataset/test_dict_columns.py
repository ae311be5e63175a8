"""Columns of dicts: they stay what a source or function gave, and iterators make arrays of their numbers; as MindSpore 2.10."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest


def _of(value: Any, rows: int = 4) -> Any:
    def source() -> Any:
        for row in range(rows):
            yield {"x": value(row)}, np.array(row)

    return ds.GeneratorDataset(source, ["d", "n"], shuffle=False)


def _first(dataset: Any, numpy: bool = True) -> Any:
    return next(dataset.create_dict_iterator(num_epochs=1, output_numpy=numpy))["d"]


MIXED: dict[str, Any] = {"k": 1, "l": [1, (2.5, "t")], "none": None, "by": b"x", "o": object, "u": [np.arange(2), np.arange(3)], "e": []}


def test_a_dict_is_what_it_was_for_functions_and_arrays_for_who_iterates() -> None:
    seen: list[Any] = []
    result = _first(_of(lambda row: MIXED).map(lambda d: (seen.append(d), d)[1], ["d"]))["x"]
    assert repr(seen[0]["x"]) == repr(MIXED)
    assert repr(result) == repr({
        "k": np.array(1), "l": [np.array(1), (np.array(2.5), np.array("t"))], "none": None, "by": b"x", "o": object,
        "u": [np.arange(2), np.arange(3)], "e": [],
    })
    tensors = _first(_of(lambda row: MIXED), numpy=False)["x"]
    assert isinstance(tensors["k"], ms.Tensor) and tensors["k"].dtype == ms.int64 and isinstance(tensors["u"][1], ms.Tensor)
    assert tensors["by"] == b"x" and tensors["none"] is None and isinstance(tensors["l"][1][1], np.ndarray)


def test_what_a_function_writes_into_a_dict_stays_local() -> None:
    shared_row = {"x": [np.zeros(2)]}

    def add(d: Any) -> Any:
        d["x"][0] += 1
        return d

    dataset = ds.GeneratorDataset([(shared_row, 0)] * 3, ["d", "n"], shuffle=False).map(add, ["d"])
    assert [float(row["d"]["x"][0].sum()) for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)] == [2.0] * 3
    assert shared_row["x"][0].sum() == 0


@pytest.mark.parametrize("value, joined", [
    (lambda row: [row, 2 * row], np.array([[0, 0], [1, 2]])), (lambda row: 1 if row else 0.5, np.array([0.5, 1.0])),
    (lambda row: ms.Tensor([row]), np.array([[0], [1]])), (lambda row: "ab"[: row + 1], np.array(["a", "ab"])),
    (lambda row: np.array([row], [np.float32, np.int32][row % 2]), np.array([[0.0], [1.0]])),
])
def test_a_batch_of_dicts_is_a_dict_of_arrays(value: Any, joined: Any) -> None:
    for batch in (_of(value).batch(2), _of(value).padded_batch(2, pad_info={"n": ([], 0)})):
        result = _first(batch)["x"]
        assert result.dtype == joined.dtype and np.array_equal(result, joined)


def test_a_function_of_a_batch_gives_a_dict_of_lists() -> None:
    def listed(d: Any, n: Any, info: Any) -> Any:
        return [{"z": [entry["x"], "t"]} for entry in d], n

    batch = _of(lambda row: row).batch(2, per_batch_map=listed, input_columns=["d", "n"])
    assert repr(_first(batch)) == repr({"z": [[np.array(0), np.array("t")], [np.array(1), np.array("t")]]})


def test_shapes_and_types_of_dicts() -> None:
    dataset = _of(lambda row: row)
    assert dataset.output_shapes() == [[0], []] and dataset.output_types() == [np.dtype(object), np.dtype(np.int64)]
    assert dataset.batch(2).output_shapes() == [[0], [2]] and dataset.output_shapes(estimate=True) == [[0], []]


@pytest.mark.parametrize("value, message", [
    (lambda row: None, "batch: column \"d['x']\" with None: expected values that make one array.\n\n"
     "hint: take it out of the dict in a map, or batch(per_batch_map=...), which keeps lists."),
    (lambda row: np.arange(row), "batch: column \"d['x']\" has shape [0] in the batch's first row and [1] in row 1: "
     "expected rows of one shape.\n\n"
     "hint: make them equal in a map, or write padded_batch(..., pad_info={\"d['x']\": None})."),
    (lambda row: {row: 1}, "batch: column \"d['x']\" has a dict of [0] in the batch's first row and [1] in row 1: "
     "expected dicts of one set of keys."),
])
def test_dicts_that_make_no_batch_are_named(value: Any, message: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        _first(_of(value).batch(2))
    assert str(caught.value) == message
