"""Dataset steps with Python functions: map over several columns, per_batch_map, filter, zip, concat, samplers, padding."""
import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import transforms

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)


class Numbers:
    def __init__(self, count):
        self.count = count

    def __getitem__(self, index):
        return np.array([index, index * index], np.int32), np.float32(index / 2)

    def __len__(self):
        return self.count


def generator():
    for i in range(5):
        yield (np.arange(i + 1, dtype=np.int32), np.array(i, np.int64))


def show(name, dataset, **options):
    print(name, dataset.get_dataset_size(), dataset.get_col_names())
    for row in dataset.create_tuple_iterator(output_numpy=True, num_epochs=1, **options):
        print("  ", *[f"{column.dtype}{list(column.shape)} {column.tolist()}" for column in row])


def make():
    return ds.GeneratorDataset(Numbers(8), ["pair", "half"], shuffle=False)


base = make()
print(base.output_shapes(), [str(np.dtype(t)) if not isinstance(t, ms.common.dtype.Type) else str(t) for t in base.output_types()])
show("map", make().map(lambda a, b: (a + 1, b + b), ["pair", "half"]).take(2))
show("to three", make().map(lambda a: (a[0], a[1], a.sum()), ["pair"], ["first", "second", "total"]).project(["total", "half", "first"]).take(2))
show("compose", make().map([transforms.TypeCast(ms.float32), lambda a: a / 2, transforms.Duplicate()], ["pair"], ["p", "q"]).skip(6))
show("filter", make().filter(lambda half: float(half) > 2.0, input_columns=["half"]))
show("batch", make().batch(3, drop_remainder=False))


def collate(pairs, halves, info):
    return (np.stack(pairs) * (info.get_batch_num() + 1), np.array(halves) + info.get_epoch_num())


show("per batch", make().batch(4, per_batch_map=collate, input_columns=["pair", "half"]))
show("new columns", make().batch(4, per_batch_map=lambda p, info: ([a[:1] for a in p], [a[1:] for a in p]), input_columns=["pair"], output_columns=["l", "r"]))
ragged = ds.GeneratorDataset(generator, ["seq", "n"])
show("padded", ragged.padded_batch(2, pad_info={"seq": ([6], -1)}))
show("zip", ds.zip((make().take(2), make().rename(["pair", "half"], ["pair2", "half2"]).skip(6))))
show("concat", make().take(1).concat(make().skip(7)))
show("plus", make().take(1) + make().skip(6).take(1))
show("repeat", make().take(2).repeat(2).batch(3))
show("slices", ds.NumpySlicesDataset({"a": [1, 2, 3], "b": [4.0, 5.0, 6.0]}, shuffle=False))
show("tuple", ds.NumpySlicesDataset(([1, 2], ["x", "yz"]), column_names=["n", "s"], shuffle=False))
for name, sampler in {
    "sequential": ds.SequentialSampler(start_index=2, num_samples=2),
    "subset": ds.SubsetSampler([6, 0, 3]),
    "distributed": ds.DistributedSampler(num_shards=3, shard_id=1, shuffle=False),
    "own": [1, 5, 5],
}.items():
    show(name, ds.GeneratorDataset(Numbers(8), ["pair", "half"], sampler=sampler).project("half"))


class Backwards(ds.Sampler):
    def __iter__(self):
        for index in range(self.dataset_size - 1, -1, -3):
            yield index


show("class", ds.GeneratorDataset(Numbers(8), ["pair", "half"], sampler=Backwards()).project(["half"]))
show("shards", ds.GeneratorDataset(Numbers(8), ["pair", "half"], shuffle=False, num_shards=2, shard_id=1).project(["half"]))
train, rest = make().split([0.75, 0.25], randomize=False)
print("split", train.get_dataset_size(), rest.get_dataset_size())
shuffled = make().shuffle(8)
rows = sorted(float(row["half"]) for row in shuffled.create_dict_iterator(num_epochs=1, output_numpy=True))
print("shuffled", rows)
iterator = make().batch(4).create_dict_iterator(num_epochs=2)
for epoch in range(2):
    for data in iterator:
        print("epoch", epoch, sorted(data), type(data["pair"]).__name__, data["pair"].dtype, data["half"].shape, int(data["pair"].sum()))
calls = []
make().apply(lambda dataset: dataset.map(lambda a: (calls.append(1), a)[1], ["half"])).take(3).get_dataset_size()
total = 0
for step, (pair, half) in enumerate(make().map(lambda a: a + 1, "pair").batch(2).repeat(2)):
    total += int(pair.sum()) * (step + 1) + float(half.sum())
print("total", total, make().get_batch_size(), make().batch(2).get_batch_size(), make().repeat(3).get_repeat_count())
one_hot = make().map(lambda h: np.int32(h * 2 % 3), "half").map(transforms.OneHot(3), "half").map(transforms.Fill(7), "pair").take(2)
show("one hot", one_hot)
try:
    list(make().map(lambda a: a.missing, ["pair"]).create_tuple_iterator())
except Exception as error:
    print("error", "missing" in str(error))
