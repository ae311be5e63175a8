"""Functions that write into the arrays that they are given: the next epoch, and the user's own array, have what they had."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mindspore import dataset as ds
from mindspore.dataset import transforms, vision


def add(value: np.ndarray) -> np.ndarray:
    value += 1
    return value


def keep(value: np.ndarray) -> bool:
    value += 1
    return True


def add_all(values: list[np.ndarray], info: Any) -> tuple[list[np.ndarray]]:
    for value in values:
        value += 1
    return (values,)


class Rows:
    def __init__(self, array: np.ndarray) -> None:
        self.rows = list(array)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)


SOURCES: dict[str, Callable[[np.ndarray], Any]] = {
    "slices": lambda array: ds.NumpySlicesDataset({"x": array}, shuffle=False),
    "indexed": lambda array: ds.GeneratorDataset(Rows(array), ["x"], shuffle=False),
    "generated": lambda array: ds.GeneratorDataset(lambda: ((row,) for row in array), ["x"]),
    "generator": lambda array: ds.GeneratorDataset(((row,) for row in array), ["x"]),
    "iterable": lambda array: ds.GeneratorDataset([(row,) for row in array], ["x"], shuffle=False),
    "batched": lambda array: ds.NumpySlicesDataset({"x": array}, shuffle=False).batch(1),
    "renamed": lambda array: ds.NumpySlicesDataset({"y": array}, shuffle=False).rename("y", "x").skip(0),
}
STEPS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "map": (lambda data: data.map(add, ["x"]), 1),
    "map in threads": (lambda data: data.map(add, ["x"], num_parallel_workers=2), 1),
    "map of two": (lambda data: data.map([add, add], ["x"]), 2),
    "map after map": (lambda data: data.map(add, ["x"]).map(add, ["x"]), 2),
    "filter": (lambda data: data.filter(keep, ["x"]), 0),
    "batch": (lambda data: data.batch(1, per_batch_map=add_all, input_columns=["x"]), 1),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("step", STEPS)
def test_what_a_function_writes_stays_in_its_row(source: str, step: str) -> None:
    array = np.zeros((3, 2), np.float32)
    make, expected = STEPS[step]
    data = make(SOURCES[source](array))
    for _ in range(3):
        assert [set(np.unique(row["x"])) for row in data.create_dict_iterator(output_numpy=True, num_epochs=1)] == [{expected}] * 3
    assert not array.any()


def test_a_column_that_stands_twice_is_written_once() -> None:
    array = np.zeros((3, 2), np.float32)
    data = ds.NumpySlicesDataset({"x": array, "y": array}, shuffle=False).map(add, ["x"])
    assert [row["y"].tolist() for row in data.create_dict_iterator(output_numpy=True)] == [[0, 0]] * 3


def test_a_source_that_can_not_be_written_is_given_as_a_copy() -> None:
    array = np.zeros((3, 2), np.float32)
    array.flags.writeable = False
    data = ds.NumpySlicesDataset({"x": array}, shuffle=False).map(add, ["x"])
    assert [row["x"].tolist() for row in data.create_dict_iterator(output_numpy=True)] == [[1, 1]] * 3


def test_what_is_written_into_a_dict_stays_in_its_row() -> None:
    def write(value: Any) -> Any:
        value["n"] += 1
        value["more"] = np.zeros(1)
        return {"n": value["n"]}

    rows = ds.GeneratorDataset([{"n": np.array([1, 2])}], ["n"], shuffle=False).map(write, ["n"])
    epochs = rows.create_dict_iterator(num_epochs=3, output_numpy=True)
    assert [[row["n"]["n"].tolist() for row in epochs] for _ in range(3)] == [[[2, 3]]] * 3


class CustomTransform(transforms.PyTensorOperation):
    """A transform of the user's, which writes into what it is given."""

    def __call__(self, value: np.ndarray) -> np.ndarray:
        return add(value)


class Counted(vision.Normalize):
    """A transform of MindSpore's to which a user added something."""

    def __call__(self, value: np.ndarray) -> np.ndarray:
        return super().__call__(value) * 2


@pytest.mark.parametrize("side", [4, 80])
@pytest.mark.parametrize("workers", [None, 1, 2])
def test_transforms_of_the_users_are_functions_of_the_users(workers: int | None, side: int) -> None:
    """A class that is derived from a transform inherits neither that it writes into nothing nor how stacks of rows are computed."""
    pictures = np.full((24, side, side, 3), 7, np.uint8)
    rows = ds.GeneratorDataset(Rows(pictures), ["x"], shuffle=False).map(CustomTransform(), "x", num_parallel_workers=workers).batch(8)
    for _ in range(2):
        assert all((batch == 8).all() for batch, in rows.create_tuple_iterator(output_numpy=True))
    assert (pictures == 7).all()
    twice = ds.NumpySlicesDataset({"x": pictures}, shuffle=False)
    twice = twice.map([Counted([1.0] * 3, [2.0] * 3), vision.HWC2CHW()], "x", num_parallel_workers=workers).batch(8)
    assert all((batch == 6).all() for batch, in twice.create_tuple_iterator(output_numpy=True))


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_users_transform_keeps_stays_as_it_was(workers: int) -> None:
    arrays: list[np.ndarray] = []

    class Keeps(transforms.PyTensorOperation):
        def __call__(self, value: np.ndarray) -> np.ndarray:
            arrays.append(value)
            return value

    steps = [vision.ToTensor(), Keeps(), vision.Normalize([0.5] * 3, [0.25] * 3, is_hwc=False)]
    pictures = np.full((24, 80, 80, 3), 255, np.uint8)
    dataset = ds.NumpySlicesDataset({"x": pictures}, shuffle=False).map(steps, "x", num_parallel_workers=workers).batch(4)
    for _ in range(2):
        assert all(np.allclose(batch, 2) for batch, in dataset.create_tuple_iterator(output_numpy=True))
    assert len(arrays) == 48 and all(np.array_equal(array, arrays[0]) for array in arrays)
