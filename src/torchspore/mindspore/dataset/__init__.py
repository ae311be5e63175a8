"""`mindspore.dataset`: data pipelines, run in threads."""
from __future__ import annotations

from torchspore.mindspore.dataset import audio, callback, core, dataloader, debug, engine, text, transforms, utils, vision
from torchspore.mindspore.dataset.callback import DSCallback, WaitedDSCallback
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.core.config import ErrorSamplesMode, get_seed, set_seed
from torchspore.mindspore.dataset.debug import DebugHook
from torchspore.mindspore.dataset.engine.datasets import *
from torchspore.mindspore.dataset.engine.iterators import DictIterator, Iterator, TupleIterator
from torchspore.mindspore.dataset.engine.samplers import *
from torchspore.mindspore.dataset.engine.serialization import compare, deserialize, serialize, show
from torchspore.mindspore.dataset.text.choices import SentencePieceModel
from torchspore.mindspore.dataset.utils import LineReader
from torchspore.public_names import missing

__getattr__ = missing(__name__)
