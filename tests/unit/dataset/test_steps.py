"""Steps that the parity cases do not reach."""

from __future__ import annotations

import pickle
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest


def numbers(dataset: ds.Dataset) -> list[object]:
    return [np.asarray(row[0]).tolist() for row in dataset.create_tuple_iterator(output_numpy=True, num_epochs=1)]


def ragged() -> ds.Dataset:
    return ds.GeneratorDataset([(np.arange(size),) for size in (1, 3, 2)], ["a"], shuffle=False)


def test_padded_batch() -> None:
    assert numbers(ragged().padded_batch(2, pad_info={"a": None})) == [[[0, 0, 0], [0, 1, 2]], [[0, 1]]]
    assert numbers(ragged().padded_batch(3, pad_info={"a": ([4], -1)})) == [[[0, -1, -1, -1], [0, 1, 2, -1], [0, 1, -1, -1]]]
    assert isinstance(ragged().padded_batch(2, True), ds.PaddedBatchDataset)


def test_split_covers_every_row_once() -> None:
    ds.config.set_seed(1)
    parts = ds.NumpySlicesDataset(np.arange(10), shuffle=False).split([0.7, 0.3])
    results = [numbers(part) for part in parts]
    assert [len(part) for part in results] == [7, 3] and sorted(results[0] + results[1]) == list(range(10))
    assert results[0] != sorted(results[0])


def test_parts_have_no_row_in_common_without_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchspore.mindspore.dataset.core.config.chosen_seed", lambda: None)
    by_index, streamed = ds.NumpySlicesDataset(np.arange(30), shuffle=False), ds.NumpySlicesDataset(np.arange(30), shuffle=False).map(int)
    for source in (by_index, streamed):
        results = [numbers(part) for part in source.split([0.7, 0.3])]
        assert sorted(results[0] + results[1]) == list(range(30)) and results[0] != sorted(results[0])


def test_padding_rows_hold_what_rows_may_hold() -> None:
    source = ds.NumpySlicesDataset([1, 2, 3], ["x"], shuffle=False)
    for value in (9, np.int64(9), np.array(9)):
        assert numbers(source + ds.PaddedDataset([{"x": value}])) == [1, 2, 3, 9]


def test_flat_map_and_apply() -> None:
    source = ds.NumpySlicesDataset(np.arange(3), shuffle=False)
    assert numbers(source.flat_map(lambda value: ds.NumpySlicesDataset([int(value)] * 2, shuffle=False))) == [0, 0, 1, 1, 2, 2]
    assert numbers(source.apply(lambda dataset: dataset.take(1))) == [0]


def test_concat_shares() -> None:
    joined = ds.NumpySlicesDataset(np.arange(4), shuffle=False) + ds.NumpySlicesDataset(np.arange(4, 8), shuffle=False)
    joined.use_sampler(ds.DistributedSampler(2, 1, shuffle=False))
    assert isinstance(joined, ds.ConcatDataset) and numbers(joined) == [1, 3, 5, 7] and joined.get_dataset_size() == 4


def test_dict_columns_and_text() -> None:
    dataset = ds.GeneratorDataset([({"x": 1}, "one"), ({"x": 2}, "three")], ["a", "b"], shuffle=False).batch(2)
    row = next(dataset.create_dict_iterator(num_epochs=1))
    assert row["a"]["x"].asnumpy().tolist() == [1, 2] and row["b"].tolist() == ["one", "three"]


def test_column_order_of_old_programs() -> None:
    dataset = ds.NumpySlicesDataset(([1], [2]), ["a", "b"]).map(lambda value: value, "a", column_order=["b", "a"])
    assert dataset.get_col_names() == ["b", "a"]


def test_what_a_dataset_knows_of_itself() -> None:
    dataset = ds.NumpySlicesDataset((np.zeros((4, 2), np.float32), np.arange(4)), ["x", "y"]).batch(3)
    assert (dataset.output_shapes(), [str(kind) for kind in dataset.output_types()]) == ([[3, 2], [3]], ["float32", "int64"])
    assert len(dataset) == 2 and dataset.is_shuffled() and not dataset.is_sharded() and dataset.get_init_step() == 0
    assert all(isinstance(value, ms.Tensor) for value in next(iter(dataset)))
    kinds = (ds.BatchDataset, ds.Dataset)
    assert isinstance(dataset, kinds) and isinstance(dataset.children[0], (ds.GeneratorDataset, ds.MappableDataset, ds.SourceDataset))


def test_step_classes_are_offered() -> None:
    source = ds.NumpySlicesDataset(np.arange(3), ["a"], shuffle=False)
    datasets = [
        ds.MapDataset(source, lambda a: a, "a"),
        ds.FilterDataset(source, lambda a: True),
        ds.RepeatDataset(source, 1),
        ds.ShuffleDataset(source, 2),
        ds.SkipDataset(source, 0),
        ds.TakeDataset(source, 3),
        ds.RenameDataset(source, "a", "b"),
        ds.ProjectDataset(source, "a"),
        ds.ZipDataset((source, source.rename("a", "b"))),
    ]
    assert [dataset.get_dataset_size() for dataset in datasets] == [3] * 9
    info = ds.BatchInfo(2, 5)
    assert (info.get_epoch_num(), info.get_batch_num()) == (2, 5)
    assert isinstance(source.create_dict_iterator(), (ds.DictIterator, ds.Iterator))
    assert isinstance(source.create_tuple_iterator(), ds.TupleIterator)
    assert isinstance(ds.RandomSampler(), ds.BuiltinSampler) and ds.Shuffle.GLOBAL == "global"


def test_the_seed_of_the_program_and_of_the_data() -> None:
    ms.set_seed(11)
    assert ds.get_seed() == 11
    ds.set_seed(12)
    assert ds.config.get_seed() == 12
    ms.set_seed(13)
    assert ds.config.get_seed() == 13


def test_padding_rows_make_even_shares() -> None:
    source = ds.NumpySlicesDataset(np.arange(3), ["x"], shuffle=False)
    joined = source + ds.PaddedDataset([{"x": np.array(9)}])
    joined.use_sampler(ds.DistributedSampler(2, 1, shuffle=False))
    assert numbers(joined) == [1, 9]
    with np.testing.assert_raises(ValueError):
        ds.PaddedDataset([])


def test_filling_up_all_columns_and_text() -> None:
    """As MindSpore 2.10: {} fills up every column, text stays whole, numbers wrap around."""
    rows = [(np.array(["x"] * (n + 1)), np.arange(3 - n, dtype=np.uint8)) for n in range(3)]

    def padded(pad_info: Any) -> list[Any]:
        dataset = ds.GeneratorDataset(rows, ["text", "n"], shuffle=False).padded_batch(3, pad_info=pad_info)
        return next(iter(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)))

    text, numbers = padded({})
    assert text.tolist() == [["x", "", ""], ["x", "x", ""], ["x", "x", "x"]] and numbers.tolist() == [[0, 1, 2], [0, 1, 0], [0, 0, 0]]
    text, numbers = padded({"text": ([4], "zz"), "n": ([3], 300)})
    assert text[0].tolist() == ["x", "zz", "zz", "zz"] and numbers.tolist() == [[0, 1, 2], [0, 1, 44], [0, 44, 44]]
    assert padded({"text": None, "n": ([3], -1)})[1].tolist() == [[0, 1, 2], [0, 1, 255], [0, 255, 255]]
    with pytest.raises(RuntimeError, match="7 to fill up column 'text' of <U1: expected text"):
        padded({"text": ([4], 7), "n": None})
    dataset = ds.GeneratorDataset(rows, ["text", "n"], shuffle=False)
    for pad_info in (None, {}):
        batches = dataset.bucket_batch_by_length(["n"], [9], [3, 3], pad_info=pad_info)
        text, _ = next(iter(batches.create_tuple_iterator(num_epochs=1, output_numpy=True)))
        assert text.shape == (3, 3)


def test_rows_of_other_ranks_are_not_filled_up() -> None:
    rows = [(np.ones(1),), (np.ones((1, 1)),)]
    with pytest.raises(RuntimeError, match=r"shape \[1\] in the batch's first row and \[1, 1\] in row 1: expected rows with as many axes"):
        list(ds.GeneratorDataset(rows, ["n"], shuffle=False).padded_batch(2, pad_info={"n": None}).create_tuple_iterator(num_epochs=1))


def test_datasets_of_other_kinds_are_not_joined() -> None:
    def numbers(values: Any) -> Any:
        return ds.NumpySlicesDataset(values, ["n"], shuffle=False)

    integers = numbers(np.arange(2, dtype=np.int32))
    for other, description in ((np.ones(2, np.float32), "float32 of 0 axes"), (np.ones((2, 1), np.int32), "int32 of 1 axes")):
        with pytest.raises(RuntimeError, match=f"concat: column 'n' is {description}: expected int32 of 0 axes"):
            list((integers + numbers(other)).create_tuple_iterator(num_epochs=1))
    assert len(list((numbers(["a"]) + numbers(["bcd"])).create_tuple_iterator(num_epochs=1))) == 2
    assert len(list((numbers(np.ones((1, 2))) + numbers(np.ones((1, 3)))).create_tuple_iterator(num_epochs=1))) == 2


def test_transforms_and_sources_can_be_pickled() -> None:
    crop = ds.transforms.Compose([ds.vision.RandomCrop(2), ds.vision.HWC2CHW()])
    assert pickle.loads(pickle.dumps(crop))(np.ones((3, 3, 3), np.uint8)).shape == (3, 2, 2)
    source = pickle.loads(pickle.dumps(ds.NumpySlicesDataset(np.arange(3), ["n"], shuffle=False)))
    assert [int(row[0]) for row in source.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [0, 1, 2]


def test_rows_that_stand_in_go_on_in_the_next_epoch() -> None:
    """Recorded from MindSpore 2.10."""

    def fails(n: Any) -> Any:
        if n % 3 == 1:
            raise ValueError("broken")
        return n

    rows = ds.NumpySlicesDataset(np.arange(8), ["n"], shuffle=False).map(fails, ["n"]).repeat(2)
    mode = ds.config.get_error_samples_mode()
    ds.config.set_error_samples_mode(ds.config.ErrorSamplesMode.REPLACE)
    try:
        epochs = rows.create_tuple_iterator(num_epochs=2, output_numpy=True)
        results = [[int(row[0]) for row in epochs] for _ in range(2)]
    finally:
        ds.config.set_error_samples_mode(mode)
    good = [0, 2, 3, 5, 6]
    assert results == [[*good, 0, 2, 3, *good, 5, 6, 0], [*good, 2, 3, 5, *good, 6, 0, 2]]
