"""What training and pipeline say to each other, and rows kept as TFRecord files."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn


def trained(callback: Any, epochs: int) -> None:
    rows = {"x": np.ones((6, 2), np.float32), "y": np.zeros((6, 1), np.float32)}
    dataset = ds.NumpySlicesDataset(rows, shuffle=False).map(lambda x: x, ["x"], callbacks=callback).batch(1)
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(epochs, dataset, callbacks=[callback], dataset_sink_mode=False)


def test_a_map_waits_for_the_step_before() -> None:
    class Waits(ds.WaitedDSCallback):
        seen: list[Any] = []

        def sync_step_begin(self, train_run_context: Any, ds_run_context: Any) -> None:
            context = train_run_context.original_args()
            self.seen.append((ds_run_context.cur_step_num, context.cur_step_num, round(float(context.net_outputs.asnumpy()), 4)))

    trained(Waits(), 1)
    assert Waits.seen == [(2, 1, 4.0), (3, 2, 0.64), (4, 3, 0.1024), (5, 4, 0.0164), (6, 5, 0.0026)]


def test_a_map_waits_for_the_epoch_before() -> None:
    class Waits(ds.WaitedDSCallback):
        seen: list[Any] = []

        def sync_epoch_begin(self, train_run_context: Any, ds_run_context: Any) -> None:
            self.seen.append((ds_run_context.cur_epoch_num, train_run_context.original_args().cur_step_num >= 6))

    trained(Waits(), 3)
    assert Waits.seen == [(2, True), (3, True)]


def test_a_training_that_never_comes_is_an_error() -> None:
    class Waits(ds.WaitedDSCallback):
        def sync_step_begin(self, train_run_context: Any, ds_run_context: Any) -> None:
            pass

    before = ds.config.get_callback_timeout()
    ds.config.set_callback_timeout(1)
    try:
        with pytest.raises(RuntimeError, match="the training did not end its step within 1 s"):
            list(ds.NumpySlicesDataset([1, 2, 3]).map(lambda x: x, callbacks=Waits()).create_tuple_iterator(num_epochs=1))
    finally:
        ds.config.set_callback_timeout(before)


def test_a_pipeline_that_waits_can_be_let_go() -> None:
    dataset = ds.NumpySlicesDataset(list(range(9)), shuffle=False).sync_wait("policy").batch(2)
    assert dataset.is_sync() and not ds.NumpySlicesDataset([1]).is_sync()
    dataset.disable_sync()
    assert sum(len(row[0]) for row in dataset.create_tuple_iterator(num_epochs=1)) == 9


def test_sync_wait_passes_a_batch_in_each_epoch() -> None:
    """The rows of a batch that is dropped are counted too."""
    dataset = ds.NumpySlicesDataset(list(range(10)), shuffle=False).sync_wait("policy").batch(3, drop_remainder=True)
    for _ in range(3):
        batches = []
        for (batch,) in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
            batches.append(batch.tolist())
            dataset.sync_update("policy")
        assert batches == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda data: data.sync_wait("a").shuffle(2), RuntimeError, "No shuffle after sync operators."),
    (lambda data: data.sync_wait("a").sync_wait("a"), RuntimeError, "Condition name is already in use."),
    (lambda data: data.sync_wait("a", 0), ValueError, "num_batch need to be greater than 0."),
    (lambda data: data.sync_wait("a").sync_update("a", -1), RuntimeError, "Sync_update batch size can only be positive"),
    (lambda data: data.sync_wait("a").sync_update("b"), RuntimeError, "Condition name not found."),
])
def test_what_sync_wait_refuses(call, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(ds.NumpySlicesDataset([1, 2]))


def test_a_pipeline_that_waits_ends_with_its_iterator() -> None:
    iterator = ds.NumpySlicesDataset(list(range(9)), shuffle=False).sync_wait("policy").create_tuple_iterator(num_epochs=1)
    assert next(iterator)[0] == 0
    iterator.stop()


@pytest.mark.parametrize("files", [1, 3])
def test_rows_come_back_out_of_tfrecord_files(tmp_path: Path, files: int) -> None:
    rows = [(np.array([n, -n]), np.array(n / 4, np.float32), np.array(f"row {n}"), np.array([n % 2 == 0])) for n in range(7)]
    names = ["whole", "part", "text", "even"]
    ds.GeneratorDataset(rows, names, shuffle=False).save(str(tmp_path / "kept.tfrecord"), files, "tfrecord")
    paths = sorted(str(path) for path in tmp_path.iterdir())
    assert [path[-1] for path in paths] == (["d"] if files == 1 else ["0", "1", "2"])
    results = list(ds.TFRecordDataset(paths, shuffle=False).create_dict_iterator(num_epochs=1, output_numpy=True))
    results.sort(key=lambda row: row["whole"][0])
    assert [row["whole"].tolist() for row in results] == [[n, -n] for n in range(7)]
    assert [row["part"].item() for row in results] == [n / 4 for n in range(7)]
    assert [row["text"].tobytes() for row in results] == [f"row {n}".encode() for n in range(7)]
    assert [row["even"].item() for row in results] == [1, 0, 1, 0, 1, 0, 1]


def test_a_pipeline_that_breaks_leaves_no_file(tmp_path: Path) -> None:
    def breaks(n: Any) -> Any:
        return n if n < 700 else 1 // 0

    for kind in ("mindrecord", "tfrecord"):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            ds.NumpySlicesDataset(list(range(900)), shuffle=False).map(breaks).save(str(tmp_path / "kept"), 1, kind)
    assert not list(tmp_path.iterdir())


def test_the_classes_of_steps_are_offered() -> None:
    dataset = ds.NumpySlicesDataset([[1], [2]], shuffle=False)
    assert isinstance(dataset.sync_wait("policy"), ds.SyncWaitDataset)
    assert isinstance(dataset.bucket_batch_by_length(["column_0"], [3], [2, 2]), ds.BucketBatchByLengthDataset)


def test_maps_above_what_waits_take_no_row_before_it_is_requested() -> None:
    dataset = ds.NumpySlicesDataset({"n": np.arange(40, dtype=np.uint8).reshape(40, 1, 1)}, shuffle=False).sync_wait("policy")
    dataset = dataset.map(ds.vision.Rescale(1.0, 0.0), ["n"], num_parallel_workers=2).map(lambda n: n, ["n"], num_parallel_workers=2)
    seen = []
    for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
        seen.append(row[0].item())
        dataset.sync_update("policy")
    assert seen == list(range(40))


TEXTS = ["a b  c", "", "   ", "b\tb\u00a0a", "\x1ca\x1cb", "\u3000a\u2003b c", "c" * 30]


@pytest.mark.parametrize("offsets", [False, True])
def test_words_of_many_rows_are_those_of_each(offsets: bool) -> None:
    text, transforms = ds.text, ds.transforms
    vocabulary = text.Vocab.from_list(["a", "b", "c", "a\x1cb"], special_tokens=["<unk>"])
    steps = [text.WhitespaceTokenizer(), text.Lookup(vocabulary, "<unk>"), transforms.PadEnd([4], -1)]
    alone = []
    for content in TEXTS:
        value = np.array(content)
        for step in steps:
            value = step(value)
        alone.append(value.tolist())
    dataset = ds.NumpySlicesDataset(TEXTS, ["text"], shuffle=False)
    if offsets:                                  # no step is done together with another one
        dataset = dataset.map(text.WhitespaceTokenizer(True), ["text"], ["text", "from", "to"]).map(steps[1:], ["text"]).project(["text"])
    else:
        dataset = dataset.map(steps, ["text"])
    assert [row[0].tolist() for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)] == alone


def test_an_unknown_word_among_many_rows_is_named() -> None:
    text = ds.text
    steps = [text.WhitespaceTokenizer(), text.Lookup(text.Vocab.from_list(["a"]), data_type=ms.float32)]
    with pytest.raises(RuntimeError, match="Lookup of 'z'"):
        list(ds.NumpySlicesDataset(["a a", "a z", "a"], ["text"], shuffle=False).map(steps, ["text"]).create_tuple_iterator(num_epochs=1))


def test_a_dataset_may_stand_twice() -> None:
    dataset = ds.NumpySlicesDataset([1, 2], shuffle=False)
    assert [row[0].item() for row in (dataset + dataset).create_tuple_iterator(num_epochs=1, output_numpy=True)] == [1, 2, 1, 2]


def test_take_below_repeat_reads_no_more() -> None:
    read = []

    def noted(n: Any) -> Any:
        read.append(n.item())
        return n

    dataset = ds.NumpySlicesDataset([1, 2, 3, 4], shuffle=False).map(noted).take(2).repeat(2)
    assert [row[0].item() for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [1, 2, 1, 2]
    assert set(read) == {1, 2}
