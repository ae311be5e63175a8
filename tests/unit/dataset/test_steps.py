"""Steps that the parity cases do not reach."""

from __future__ import annotations

import mindspore as ms
import mindspore.dataset as ds
import numpy as np


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
    found = [numbers(part) for part in parts]
    assert [len(part) for part in found] == [7, 3] and sorted(found[0] + found[1]) == list(range(10))
    assert found[0] != sorted(found[0])


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
    assert (dataset.output_shapes(), [str(one) for one in dataset.output_types()]) == ([[3, 2], [3]], ["float32", "int64"])
    assert len(dataset) == 2 and dataset.is_shuffled() and not dataset.is_sharded() and dataset.get_init_step() == 0
    assert all(isinstance(value, ms.Tensor) for value in next(iter(dataset)))
    kinds = (ds.BatchDataset, ds.Dataset)
    assert isinstance(dataset, kinds) and isinstance(dataset.children[0], (ds.GeneratorDataset, ds.MappableDataset, ds.SourceDataset))


def test_step_classes_are_offered() -> None:
    source = ds.NumpySlicesDataset(np.arange(3), ["a"], shuffle=False)
    made = [
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
    assert [one.get_dataset_size() for one in made] == [3] * 9
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
