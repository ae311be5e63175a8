"""Light rows that go through a pipeline in blocks give what they give one by one: a `skip(0)` before the batch takes them apart."""
from __future__ import annotations

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import text, transforms, vision

PICTURES = np.random.RandomState(0).randint(0, 256, (100, 6, 5, 3)).astype(np.uint8)
NUMBERS = np.arange(100, dtype=np.int32)


class Noise:
    """A function that draws from its row's stream through a transform of the front end."""

    def __init__(self):
        self.flip = vision.RandomHorizontalFlip(0.5)

    def __call__(self, picture):
        return self.flip(picture)


def _half(picture):
    return (picture / 2).astype(np.float32)


def _in_place(picture):
    picture += 1
    return picture


MAPS = {
    "stacks": lambda d: d.map([vision.Rescale(1 / 255, 0.5), vision.HWC2CHW()], ["picture"]),
    "function": lambda d: d.map(_half, ["picture"]),
    "function of two": lambda d: d.map(lambda p, n: (p.sum(), n + 1), ["picture", "number"], ["total", "next"]),
    "in place": lambda d: d.map(_in_place, ["picture"]),
    "twice": lambda d: d.map(_half, ["picture"]).map(_in_place, ["picture"]),
    "number": lambda d: d.map(lambda n: int(n) * 2, ["number"]),
    "random": lambda d: d.map(Noise(), ["picture"]),
    "random builtin": lambda d: d.map(vision.RandomHorizontalFlip(0.5), ["picture"]),
    "new column": lambda d: d.map(lambda p: (p, p.mean()), ["picture"], ["picture", "mean"]),
}


SINGLE_COLUMN = ("random", "in place", "twice")


def _batches(name, apart, drop, workers, epochs=2):
    ds.config.set_seed(7)
    columns = {"picture": PICTURES.copy()} if name in SINGLE_COLUMN else {"picture": PICTURES.copy(), "number": NUMBERS}
    source = ds.NumpySlicesDataset(columns, shuffle=True, num_parallel_workers=workers)
    mapped = MAPS[name](source)
    batches = (mapped.skip(0) if apart else mapped).batch(16, drop_remainder=drop)
    rows = batches.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [list(batch) for _ in range(epochs) for batch in rows]


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("name", MAPS)
def test_blocks_are_the_rows(name, drop):
    together, apart = (_batches(name, way, drop, 1) for way in (False, True))
    assert len(together) == len(apart) == (12 if drop else 14)
    for batch, other in zip(together, apart):
        for value, expected in zip(batch, other, strict=True):
            assert value.dtype == expected.dtype
            np.testing.assert_array_equal(value, expected)


def test_the_users_array_stays():
    copy = PICTURES.copy()
    source = ds.NumpySlicesDataset({"picture": copy}, shuffle=False)
    for _ in source.map(_in_place, ["picture"]).batch(16).create_tuple_iterator(num_epochs=1, output_numpy=True):
        pass
    np.testing.assert_array_equal(copy, PICTURES)


def test_two_workers_give_the_same_in_every_epoch():
    one, two = (_batches("function", False, False, workers, epochs=3) for workers in (1, 2))
    for (first, *_), (second, *_) in zip(one, two, strict=True):
        np.testing.assert_array_equal(first, second)


def test_an_error_names_the_function_and_comes_after_the_batches_before_it():
    def wrong(number):
        if number == 40:
            raise ValueError("forty")
        return number

    batches = ds.NumpySlicesDataset({"number": NUMBERS}, shuffle=False).map(wrong, ["number"]).batch(16)
    seen = []
    with pytest.raises(RuntimeError, match=r"ValueError: forty\nmap\(operations=wrong, input_columns=\['number'\]\)"):
        for (values,) in batches.create_tuple_iterator(num_epochs=1, output_numpy=True):
            seen.append(values)
    assert len(seen) == 2


def test_shapes_that_differ_are_named():
    uneven = ds.NumpySlicesDataset({"number": NUMBERS}, shuffle=False).map(lambda n: np.zeros(1 + n % 2), ["number"]).batch(4)
    with pytest.raises(RuntimeError, match=r"column 'number' has shape \[1\].* and \[2\] in row 1"):
        list(uneven.create_tuple_iterator(num_epochs=1, output_numpy=True))


def test_a_batch_keeps_nothing_of_the_next():
    batches = ds.NumpySlicesDataset({"number": NUMBERS}, shuffle=False).batch(10).create_tuple_iterator(num_epochs=1, output_numpy=True)
    arrays = [values for (values,) in batches]
    arrays[0][:] = -1
    np.testing.assert_array_equal(np.concatenate(arrays[1:]), NUMBERS[10:])
    assert NUMBERS[0] == 0


TEXTS = ["a b c", "  ", "c c c c c c c", "b unheard a", "a\x1cb c", "ü b", *["a b", "c"] * 10]


def _numbers(tmp_path, apart, unknown, steps=()):
    file = tmp_path / "lines.txt"
    file.write_text("\n".join(TEXTS), encoding="utf-8")
    vocabulary = text.Vocab.from_list(["a", "b", "c", "a\x1cb"], special_tokens=["<unk>"])
    lines = ds.TextFileDataset(str(file), shuffle=False, num_parallel_workers=1)
    mapped = lines.map([text.WhitespaceTokenizer(), text.Lookup(vocabulary, unknown), *steps], ["text"], num_parallel_workers=1)
    batches = (mapped.skip(0) if apart else mapped).batch(4 if steps else 1)
    return [values for (values,) in batches.create_tuple_iterator(num_epochs=1, output_numpy=True)]


@pytest.mark.parametrize("steps", [(), (transforms.PadEnd([5], 9),), (transforms.PadEnd([5]), transforms.TypeCast(np.float32))])
def test_text_in_blocks_is_the_text(tmp_path, steps):
    together, apart = (_numbers(tmp_path, way, "<unk>", steps) for way in (False, True))
    assert len(together) == len(apart) == (7 if steps else 26)
    for value, expected in zip(together, apart):
        assert value.dtype == expected.dtype
        np.testing.assert_array_equal(value, expected)


def test_an_unknown_word_in_a_block_is_named(tmp_path):
    with pytest.raises(RuntimeError, match="Lookup of ''"):
        _numbers(tmp_path, False, None, (transforms.PadEnd([5]),))
