"""Objects of the classes that no simple arguments make: `OF[NAME]()`, over files in the folder where the worker runs."""
from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Tensor, boost, mindrecord, nn, train
from mindspore.dataset import audio, text, transforms, vision
from mindspore.experimental import optim
from mindspore.nn import probability
from mindspore.profiler import DynamicProfilerMonitor, schedule
from mindspore.rewrite import ScopedValue, SymbolTree, ValueType
from support import dataset_sources, tfrecord_files
from support import tiny_sources as tiny

from torchspore.mindspore.train.summary import summary_record
from torchspore.observe.profiling import session as watch


def tidy() -> None:
    """Ends what a call left open and what there may be one of in a process."""
    if watch.ACTIVE.session is not None:
        watch.ACTIVE.session.stop()
    for record in list(summary_record._open):
        record.close()


def floats(*shape: int) -> Any:
    """A Tensor of floats."""
    return Tensor(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def sgd(network: Any = None) -> Any:
    """An optimizer of a layer's Parameters."""
    return nn.SGD((network or nn.Dense(3, 2)).trainable_params(), 0.1)


def stepped() -> Any:
    """An optimizer that schedulers take."""
    return optim.SGD(nn.Dense(3, 2).trainable_params(), 0.1)


def numbers() -> Any:
    """A dataset of five rows."""
    return ds.NumpySlicesDataset({"a": np.arange(5, dtype=np.float32), "b": np.arange(10).reshape(5, 2)}, shuffle=False)


@cache
def folder(maker: Callable[[Path], object]) -> Path:
    """A folder with what a maker puts into it."""
    folder_path = Path(tempfile.mkdtemp(dir=".")).absolute()
    maker(folder_path)
    return folder_path


def source(name: str) -> Any:
    """A published data set over tiny files."""
    maker, options = {**dataset_sources.PICTURES, **dataset_sources.TEXTS, **dataset_sources.SOUNDS}[name]
    return dataset_sources.call(name, folder(maker), {**({} if "dataset_file" in str(options[0]) else dataset_sources.HERE), **options[0]})


def records(path: Path) -> None:
    """A file of records with an index."""
    writer = mindrecord.FileWriter(str(path / "a.mindrecord"), overwrite=True)
    writer.add_schema({"n": {"type": "int32"}, "t": {"type": "string"}})
    writer.add_index(["n"])
    writer.write_raw_data([{"n": n, "t": str(n)} for n in range(5)])
    writer.commit()


def lines(path: Path) -> None:
    """A table, and words."""
    (path / "a.csv").write_text("a,b\n1,2\n3,4\n")


def animals(path: Path) -> None:
    """Pictures in folders of their classes."""
    tiny.put(path, {f"{kind}/{n}.png": tiny.png(n) for kind in ("cat", "dog") for n in range(2)})
    (path / "map.txt").write_text("cat 0\ndog 1\n")


def digits(path: Path) -> None:
    """MNIST, small."""
    for name in ("train", "t10k"):
        tiny.put(path, {
            f"{name}-images-idx3-ubyte.gz": gzip.compress(tiny.idx(tiny.digits(2))),
            f"{name}-labels-idx1-ubyte.gz": gzip.compress(tiny.idx(np.arange(2))),
        })


def fresh(name: str) -> str:
    """A path that nothing has yet."""
    return str(Path(tempfile.mkdtemp(dir=".")).absolute() / name)


def vocab() -> Any:
    """A vocabulary of three words."""
    return text.Vocab.from_list(["a", "b", "[UNK]"])


def node() -> Any:
    """A call inside of a network that is rewritten."""
    return list(SymbolTree.create(nn.SequentialCell(nn.Dense(3, 2), nn.ReLU())).nodes())[1]


def content() -> Any:
    """A record of summaries that is thrown away."""
    return train.SummaryRecord(fresh("summary"))


def graph() -> Any:
    """A graph of three nodes."""
    from mindspore.dataset.engine import graphdata

    edges = np.array([[0, 1, 2], [1, 2, 0]], np.int32)
    return graphdata.Graph(edges, node_feat={"x": np.ones((3, 2), np.float32)}, edge_feat={"y": np.ones((3, 1), np.float32)})


def normal() -> Any:
    """A distribution."""
    return probability.distribution.Normal(0.0, 1.0, dtype=ms.float32)


class Feature:
    """What TensorFlow calls FixedLenFeature."""

    shape, dtype = (2,), "int64"


class Plain(nn.Cell):
    """A network with a layer that has a name."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def construct(self, x: Any) -> Any:
        """The layer."""
        return self.fc(x)


def scheduler(name: str, *arguments: Any) -> Callable[[], Any]:
    """What makes a scheduler."""
    return lambda: getattr(optim.lr_scheduler, name)(stepped(), *arguments)


OF: dict[str, Callable[[], Any]] = {
    "BackupAndRestore": lambda: train.BackupAndRestore(fresh("backup")),
    "CSRTensor": lambda: ms.CSRTensor(Tensor([0, 1, 2]), Tensor([0, 1]), floats(2), (2, 3)),
    "CsvToMR": lambda: mindrecord.CsvToMR(str(folder(lines) / "a.csv"), fresh("a.mindrecord")),
    "Cifar10ToMR": lambda: mindrecord.Cifar10ToMR(str(folder(tiny.cifar_pickles)), fresh("a.mindrecord")),
    "ImageNetToMR": lambda: mindrecord.ImageNetToMR(str(folder(animals) / "map.txt"), str(folder(animals)), fresh("a.mindrecord")),
    "MnistToMR": lambda: mindrecord.MnistToMR(str(folder(digits)), fresh("a.mindrecord")),
    "DatasetHelper": lambda: train.DatasetHelper(numbers(), dataset_sink_mode=False),
    "FileReader": lambda: mindrecord.FileReader(str(folder(records) / "a.mindrecord")),
    "FileWriter": lambda: mindrecord.FileWriter(fresh("b.mindrecord")),
    "MindPage": lambda: mindrecord.MindPage(str(folder(records) / "a.mindrecord")),
    "Layout": lambda: ms.Layout((1,), ("dp",)),
    "Node": node,
    "SymbolTree": lambda: SymbolTree.create(nn.SequentialCell(nn.Dense(3, 2), nn.ReLU())),
    "ScopedValue": lambda: ScopedValue(ValueType.ConstantValue, "", 3),
    "RunContext": lambda: train.RunContext({"epoch_num": 2, "cur_step_num": 1}),
    "SummaryRecord": content,
    "SummaryCollector": lambda: train.SummaryCollector(fresh("collected")),
    "TFRecordToMR": lambda: mindrecord.TFRecordToMR(
        str(folder(lambda path: tfrecord_files.write(path / "a.tfrecord", [1, 2])) / "a.tfrecord"),
        fresh("a.mindrecord"), {"id": Feature()},
    ),
    "AdaSum": lambda: boost.AdaSum(0, 1, 1, tuple(nn.Dense(3, 2).trainable_params())),
    "FreezeOpt": lambda: boost.FreezeOpt(sgd()),
    "GradientAccumulation": lambda: boost.GradientAccumulation(2, sgd()),
    "OptimizerProcess": lambda: boost.OptimizerProcess(sgd()),
    "LARS": lambda: nn.LARS(sgd()),
    "Dataset": numbers,
    "BatchDataset": lambda: numbers().batch(2),
    "ShuffleDataset": lambda: numbers().shuffle(2),
    "ConcatDataset": lambda: numbers() + numbers(),
    "SyncWaitDataset": lambda: numbers().sync_wait("a"),
    "TransferDataset": lambda: numbers().device_que(),
    "BucketBatchByLengthDataset": lambda: numbers().bucket_batch_by_length(["a"], [2], [1, 1], len),
    "MappableDataset": numbers,
    "Caltech101Dataset": lambda: source("Caltech101"),
    "CocoDataset": lambda: source("Coco"),
    "Flowers102Dataset": lambda: source("Flowers102"),
    "IMDBDataset": lambda: source("IMDB"),
    "LSUNDataset": lambda: source("LSUN"),
    "ManifestDataset": lambda: source("Manifest"),
    "RenderedSST2Dataset": lambda: source("RenderedSST2"),
    "VOCDataset": lambda: source("VOC"),
    "ImageFolderDataset": lambda: ds.ImageFolderDataset(str(folder(animals))),
    "DebugHook": lambda: ds.PrintDataHook() if hasattr(ds, "PrintDataHook") else ds.debug.PrintDataHook(),
    "LineReader": lambda: ds.utils.LineReader(str(folder(lines) / "a.csv")),
    "Biquad": lambda: audio.Biquad(0.1, 0.2, 0.3, 1.0, 0.1, 0.1),
    "DeemphBiquad": lambda: audio.DeemphBiquad(44100),
    "RiaaBiquad": lambda: audio.RiaaBiquad(44100),
    "Vad": lambda: audio.Vad(16000),
    "MaskAlongAxis": lambda: audio.MaskAlongAxis(0, 1, 0.5, 1),
    "MaskAlongAxisIID": lambda: audio.MaskAlongAxisIID(1, 0.5, 1),
    "PhaseVocoder": lambda: audio.PhaseVocoder(1.3, np.zeros((4, 1))),
    "Graph": graph,
    "AddToken": lambda: text.AddToken("x"),
    "BertTokenizer": lambda: text.BertTokenizer(vocab()),
    "WordpieceTokenizer": lambda: text.WordpieceTokenizer(vocab()),
    "Lookup": lambda: text.Lookup(vocab(), "[UNK]"),
    "Vocab": vocab,
    "RegexReplace": lambda: text.RegexReplace("a+", "b"),
    "RegexTokenizer": lambda: text.RegexTokenizer("a+"),
    "Affine": lambda: vision.Affine(10, (0, 0), 1.0, 0),
    "BoundingBoxAugment": lambda: vision.BoundingBoxAugment(vision.RandomRotation(10)),
    "CutMixBatch": lambda: vision.CutMixBatch(vision.ImageBatchFormat.NHWC),
    "Erase": lambda: vision.Erase(0, 0, 2, 2),
    "ResizedCrop": lambda: vision.ResizedCrop(0, 0, 2, 2, 3),
    "LinearTransformation": lambda: vision.LinearTransformation(np.eye(60), np.zeros(60)),
    "Perspective": lambda: vision.Perspective([[0, 0], [3, 0], [3, 3], [0, 3]], [[0, 0], [3, 0], [3, 3], [1, 3]]),
    "UniformAugment": lambda: vision.UniformAugment([vision.Invert(), vision.Equalize()]),
    "Slice": lambda: transforms.Slice(slice(0, 1)),
    "Optimizer": stepped,
    "LRScheduler": scheduler("StepLR", 2),
    "ConstantLR": scheduler("ConstantLR"),
    "CosineAnnealingLR": scheduler("CosineAnnealingLR", 3),
    "CosineAnnealingWarmRestarts": scheduler("CosineAnnealingWarmRestarts", 3),
    "CyclicLR": scheduler("CyclicLR", 0.1, 0.2),
    "ExponentialLR": scheduler("ExponentialLR", 0.5),
    "LambdaLR": scheduler("LambdaLR", lambda epoch: 0.5**epoch),
    "LinearLR": scheduler("LinearLR"),
    "MultiStepLR": scheduler("MultiStepLR", [2, 4]),
    "MultiplicativeLR": scheduler("MultiplicativeLR", lambda epoch: 0.5),
    "PolynomialLR": scheduler("PolynomialLR"),
    "ReduceLROnPlateau": scheduler("ReduceLROnPlateau"),
    "StepLR": scheduler("StepLR", 2),
    "EmbeddingLookupThor": lambda: nn.EmbeddingLookupThor(4, 3),
    "MultiheadAttention": lambda: nn.MultiheadAttention(4, 2),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2, 8),
    "TransformerDecoderLayer": lambda: nn.TransformerDecoderLayer(4, 2, 8),
    "Transformer": lambda: nn.Transformer(4, 2, 1, 1, 8),
    "ParameterUpdate": lambda: nn.ParameterUpdate(ms.Parameter(floats(3), name="p")),
    "PipelineCell": lambda: nn.PipelineCell(Plain(), 2, {"fc": 0}),
    "GradAccumulationCell": lambda: nn.GradAccumulationCell(Plain(), 2),
    "TimeDistributed": lambda: nn.TimeDistributed(nn.Dense(3, 2), 1),
    "Unflatten": lambda: nn.Unflatten(1, (1, 3)),
    "Unfold": lambda: nn.Unfold([1, 2, 2, 1], [1, 2, 2, 1], [1, 2, 2, 1]),
    "Invert": lambda: probability.bijector.Invert(probability.bijector.Exp()),
    "Distribution": normal,
    "TransformedDistribution": lambda: probability.distribution.TransformedDistribution(probability.bijector.Exp(), normal(), seed=1),
    "NormalPosterior": lambda: probability.bnn_layers.NormalPosterior("q", (2, 3)),
    "DynamicProfilerMonitor": lambda: DynamicProfilerMonitor(cfg_path=fresh("cfg"), output_path=fresh("out")),
    "schedule": lambda: schedule(wait=1, active=1),
    "LossScaler": lambda: ms.amp.StaticLossScaler(2.0),
    "Metric": train.Accuracy,
    "EvaluationBase": train.Accuracy,
    "Callback": train.LossMonitor,
}
"""By the name of the class; a class that only others are built on is tried as one of them."""
