"""MindSpore's module of this name: every Dataset and step."""

# ruff: noqa: F401
from __future__ import annotations

from torchspore.mindspore.dataset.engine.batches import BatchDataset, BatchInfo, PaddedBatchDataset
from torchspore.mindspore.dataset.engine.buckets import BucketBatchByLengthDataset
from torchspore.mindspore.dataset.engine.cache_client import DatasetCache
from torchspore.mindspore.dataset.engine.dataset import (
    AudioBaseDataset,
    Dataset,
    SourceDataset,
    TextBaseDataset,
    UnionBaseDataset,
    VisionBaseDataset,
    zip,
)
from torchspore.mindspore.dataset.engine.datasets_annotated import CocoDataset, KITTIDataset, ManifestDataset, VOCDataset, WIDERFaceDataset
from torchspore.mindspore.dataset.engine.datasets_audio import (
    CMUArcticDataset,
    GTZANDataset,
    LibriTTSDataset,
    LJSpeechDataset,
    SpeechCommandsDataset,
    TedliumDataset,
    YesNoDataset,
)
from torchspore.mindspore.dataset.engine.datasets_cloud import OBSMindDataset
from torchspore.mindspore.dataset.engine.datasets_folders import (
    Caltech256Dataset,
    CelebADataset,
    CityscapesDataset,
    DIV2KDataset,
    FlickrDataset,
    Food101Dataset,
    ImageFolderDataset,
    LFWDataset,
    LSUNDataset,
    OmniglotDataset,
    Places365Dataset,
    RenderedSST2Dataset,
    SBUDataset,
    SUN397Dataset,
)
from torchspore.mindspore.dataset.engine.datasets_graphs import ArgoverseDataset
from torchspore.mindspore.dataset.engine.datasets_matlab import Caltech101Dataset, Flowers102Dataset, SBDataset, SVHNDataset
from torchspore.mindspore.dataset.engine.datasets_random import RandomDataset
from torchspore.mindspore.dataset.engine.datasets_records import MindDataset
from torchspore.mindspore.dataset.engine.datasets_text import (
    AGNewsDataset,
    AmazonReviewDataset,
    CLUEDataset,
    CoNLL2000Dataset,
    CSVDataset,
    DBpediaDataset,
    EnWik9Dataset,
    IMDBDataset,
    IWSLT2016Dataset,
    IWSLT2017Dataset,
    Multi30kDataset,
    PennTreebankDataset,
    SogouNewsDataset,
    SQuADDataset,
    SST2Dataset,
    TextFileDataset,
    UDPOSDataset,
    USPSDataset,
    WikiTextDataset,
    YahooAnswersDataset,
    YelpReviewDataset,
)
from torchspore.mindspore.dataset.engine.datasets_tfrecord import TFRecordDataset
from torchspore.mindspore.dataset.engine.datasets_user_defined import (
    GeneratorDataset,
    MappableDataset,
    NumpySlicesDataset,
    PaddedDataset,
)
from torchspore.mindspore.dataset.engine.datasets_vision import (
    Cifar10Dataset,
    Cifar100Dataset,
    EMnistDataset,
    FakeImageDataset,
    FashionMnistDataset,
    KMnistDataset,
    MnistDataset,
    PhotoTourDataset,
    QMnistDataset,
    SemeionDataset,
    STL10Dataset,
)
from torchspore.mindspore.dataset.engine.device_queue import TransferDataset
from torchspore.mindspore.dataset.engine.graphdata import Graph, GraphData, InMemoryGraphDataset, OutputFormat, SamplingStrategy
from torchspore.mindspore.dataset.engine.map_dataset import MapDataset
from torchspore.mindspore.dataset.engine.operations import (
    ConcatDataset,
    FilterDataset,
    ProjectDataset,
    RenameDataset,
    RepeatDataset,
    ShuffleDataset,
    SkipDataset,
    TakeDataset,
    ZipDataset,
)
from torchspore.mindspore.dataset.engine.samplers import Shuffle
from torchspore.mindspore.dataset.engine.schema import Schema
from torchspore.mindspore.dataset.engine.sync_wait import SyncWaitDataset
