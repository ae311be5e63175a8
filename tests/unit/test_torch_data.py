"""`torchspore.as_iterable`, torch's loaders, data sets, losses and metrics in `Model`."""
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
import torch
from mindspore import nn
from support import torchvision_operators
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import torchspore

COUNT = 23
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")         # more workers than this machine has cores


def numbers(shuffle: bool | None = False) -> Any:
    return ds.NumpySlicesDataset({"x": np.arange(COUNT, dtype=np.int32)}, shuffle=shuffle)


def test_rows_are_torch_tensors_that_share_no_memory_with_the_source() -> None:
    source = np.arange(6, dtype=np.float32).reshape(3, 2)
    data = ds.NumpySlicesDataset((source, np.array(["a", "bc", "d"])), ["x", "word"], shuffle=False)
    rows = list(torchspore.as_iterable(data))
    assert [row[0].tolist() for row in rows] == source.tolist() and rows[0][0].dtype is torch.float32
    assert [row[1] for row in rows] == ["a", "bc", "d"]
    rows[0][0][0] = 9
    assert source[0, 0] == 0
    assert [sorted(row) for row in torchspore.as_iterable(data, output_dict=True)] == [["word", "x"]] * 3
    assert len(torchspore.as_iterable(data)) == 3
    with pytest.raises(TypeError, match=r"as_iterable.*a MindSpore data set, got list"):
        torchspore.as_iterable([1])


PIPELINES: dict[str, Callable[[], Any]] = {
    "source": lambda: numbers(),
    "source in order": lambda: numbers(True),
    "shuffle": lambda: numbers().shuffle(7),
    "map and batch": lambda: numbers(True).map(lambda x: x, ["x"]).batch(4),
    "batches of one length": lambda: numbers(True).batch(4, drop_remainder=True),
    "filter": lambda: numbers(True).filter(lambda x: True).map(lambda x: x, ["x"]),
    "repeat": lambda: numbers(True).repeat(2),
    "batches of batches": lambda: numbers().take(21).batch(3).map(lambda x: x, ["x"]).batch(2),
    "rename": lambda: numbers(True).rename("x", "y"),
    "per_batch_map": lambda: numbers(True).batch(4, per_batch_map=lambda x, info: (x,)),
    "take": lambda: numbers(True).take(9),
}


def forked(workers: int) -> dict[str, Any]:
    """Return the arguments of a DataLoader whose workers are forked: from Python 3.14 on, others receive no functions without a name."""
    return {"multiprocessing_context": "fork"} if workers else {}


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_each_row_is_read_once_in_each_epoch(pipeline: str, workers: int) -> None:
    data = PIPELINES[pipeline]()
    loader = DataLoader(torchspore.as_iterable(data), batch_size=None, num_workers=workers, **forked(workers))
    expected = sum(int(row[0].size) for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    for _ in range(2):
        values = [int(value) for row in loader for value in row[0].flatten()]
        counts = Counter(values)
        assert len(values) == expected and max(counts.values()) == (2 if expected > COUNT else 1)


def test_epochs_have_different_orders_and_a_seed_repeats_them() -> None:
    def orders(workers: int) -> list[list[int]]:
        loader = DataLoader(torchspore.as_iterable(numbers(True)), batch_size=None, num_workers=workers, persistent_workers=workers > 0)
        return [[int(row[0]) for row in loader] for _ in range(3)]

    for workers in (0, 2):
        torch.manual_seed(3)
        ms.dataset.config.set_seed(3)
        first = orders(workers)
        assert first[0] != first[1] != first[2]
        torch.manual_seed(3)
        ms.dataset.config.set_seed(3)
        assert orders(workers) == first


def test_an_epoch_that_ends_early_is_followed_by_a_complete_one() -> None:
    rows = torchspore.as_iterable(numbers())
    for row in rows:
        if int(row[0]) == 3:
            break
    assert [int(row[0]) for row in rows] == list(range(COUNT))
    assert [(int(a[0]), int(b[0])) for a, b in zip(rows, rows)] == [(n, n) for n in range(COUNT)]


def test_each_worker_computes_only_its_rows() -> None:
    def process(x: Any) -> Any:
        return np.int64(os.getpid()), x

    data = numbers().map(process, ["x"], ["pid", "x"])
    rows = [(int(pid), int(x)) for pid, x in DataLoader(torchspore.as_iterable(data), batch_size=None, num_workers=2, **forked(2))]
    by_process: dict[int, list[int]] = {}
    for pid, x in rows:
        by_process.setdefault(pid, []).append(x)
    assert sorted(by_process.values()) == [list(range(0, COUNT, 2)), list(range(1, COUNT, 2))]


def test_random_transforms_of_workers_draw_different_numbers() -> None:
    images = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(1, 8, 8, 3).repeat(8, 0)
    data = ds.NumpySlicesDataset({"image": images}, shuffle=False).map(ds.vision.RandomCrop(2), ["image"])
    crops = [tuple(row[0].flatten().tolist()) for row in DataLoader(torchspore.as_iterable(data), batch_size=None, num_workers=4)]
    assert len(set(crops)) > 4


def test_a_spawned_worker() -> None:
    loader = DataLoader(torchspore.as_iterable(numbers()), batch_size=4, num_workers=1, multiprocessing_context="spawn")
    assert [batch[0].tolist() for batch in loader][-1] == [20, 21, 22]


# ---- torch's data, losses and metrics in Model

X = np.random.default_rng(0).standard_normal((16, 3)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int64)


class Rows(Dataset[Any]):
    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, index: int) -> Any:
        return X[index], int(Y[index])


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter([(X[:8], Y[:8]), (X[8:], Y[8:])])


class StreamWithLength(Stream):
    def __len__(self) -> int:
        return 2


def loader() -> Any:
    return DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), batch_size=4)


def model(loss: Any = None, metrics: Any = None) -> Any:
    ms.set_seed(1)
    net = nn.Dense(3, 2)
    return ms.train.Model(net, loss or torch.nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.1), metrics)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_loader_trains_like_the_same_data_of_mindspore(mode: int) -> None:
    ms.set_context(mode=mode)
    results = []
    for data in (loader(), ds.NumpySlicesDataset((X, Y), shuffle=False).batch(4)):
        trained = model()
        trained.train(3, data)
        results.append(trained.train_network.get_parameters())
    for ours, theirs in zip(*results):
        np.testing.assert_array_equal(ours.asnumpy(), theirs.asnumpy())


@pytest.mark.parametrize("data", [
    loader(), DataLoader(Rows(), batch_size=4, num_workers=1, **forked(1)), StreamWithLength(),
    DataLoader(StreamWithLength(), batch_size=None),
    DataLoader(Rows(), batch_size=4, collate_fn=lambda rows: {"x": torch.tensor(np.stack([row[0] for row in rows])),
                                                              "y": torch.tensor([row[1] for row in rows])}),
], ids=lambda data: type(data).__name__)
def test_loaders_and_data_sets(data: Any) -> None:
    steps = []

    class Steps(ms.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            steps.append(run_context.original_args().cur_step_num)

    trained = model(metrics={"accuracy": ms.train.Accuracy()})
    trained.fit(20, data, data, valid_frequency=20, callbacks=[Steps(), ms.train.LossMonitor(100)])
    assert steps[-1] == 20 * len(data) and trained.eval(data)["accuracy"] > 0.9
    trained.build(data)
    helper = ms.train.DatasetHelper(data, False)
    assert sum(1 for _ in helper) == len(data)


def test_rows_of_a_data_set_are_steps() -> None:
    sizes = []

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Dense(3, 2)

        def construct(self, x: Any, y: Any) -> Any:
            sizes.append((x.shape, y.shape))
            return self.layer(x).sum() * y

    net = Net()
    ms.train.Model(net, optimizer=nn.SGD(net.trainable_params(), 0.1)).train(1, Rows())
    assert sizes == [((3,), ())] * len(X)
    batched = ds.GeneratorDataset(Rows(), ["x", "y"], shuffle=False).batch(4)
    assert next(batched.create_tuple_iterator(output_numpy=True))[0].shape == (4, 3)


def test_data_without_a_length_is_refused() -> None:
    for data in (Stream(), DataLoader(Stream(), batch_size=None)):
        with pytest.raises(TypeError, match="a length: Model counts the steps of an epoch"):
            model().train(1, data)


@pytest.mark.needs("torchmetrics")
def test_metrics_of_torch() -> None:
    torchvision_operators.declare()
    import torchmetrics

    metrics = {"own": ms.train.Accuracy(), "theirs": torchmetrics.Accuracy("multiclass", num_classes=2),
               "matrix": torchmetrics.ConfusionMatrix("multiclass", num_classes=2)}
    trained = model(metrics=metrics)
    trained.train(5, loader())
    results = trained.eval(loader())
    assert results["own"] == pytest.approx(results["theirs"]) and int(results["matrix"].sum()) == len(X)
    assert trained.eval(loader()) .keys() == metrics.keys()
