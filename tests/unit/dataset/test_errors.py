"""Every message of the data pipelines that a user can meet, whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.audio as audio
import mindspore.dataset.text as text
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import numpy as np
import pytest
from mindspore.dataset.core import validator_helpers
from support.error_messages import without_mindspores_sentence

IMAGE = np.zeros((6, 5, 3), np.uint8)


def pairs() -> ds.Dataset:
    return ds.NumpySlicesDataset((np.arange(4), np.arange(4.0)), ["a", "b"], shuffle=False)


def read(dataset: ds.Dataset) -> Any:
    return list(dataset.create_tuple_iterator(output_numpy=True, num_epochs=1))


def endless() -> list[Any]:
    values: list[Any] = []
    values.append(values)
    return values


def ragged() -> ds.Dataset:
    return ds.GeneratorDataset([(np.zeros(size),) for size in (1, 2)], ["a"], shuffle=False)


MESSAGES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "batch 0": (lambda: pairs().batch(0), ValueError, "batch(batch_size=0): expected an int from 1 to 2147483647."),
    "batch text": (lambda: pairs().batch("a"), TypeError, "batch(batch_size='a'): expected an int or a function of a BatchInfo."),
    "drop 1": (lambda: pairs().batch(2, 1), TypeError, "batch(drop_remainder=1): expected True or False, got int."),
    "shuffle 1": (
        lambda: pairs().shuffle(1),
        ValueError,
        "shuffle(buffer_size=1): expected an int from 2 to 2147483647.\n\nhint: leave shuffle out for rows in their order.",
    ),
    "repeat 0": (lambda: pairs().repeat(0), ValueError, "repeat(0): expected -1 for without end, or an int from 1 to 2147483647."),
    "take 0": (lambda: pairs().take(0), ValueError, "take(0): expected -1 for all rows, or an int from 1 to 2147483647."),
    "skip": (lambda: pairs().skip(-1), ValueError, "skip(count=-1): expected an int from 0 to 2147483647."),
    "filter 3": (lambda: pairs().filter(3), TypeError, "filter(predicate=3): expected a function, got int."),
    "map 3": (
        lambda: pairs().map(3, "a"),
        ValueError,
        "map(operations=3): expected a function or transform, got int.\n\nhint: write the function without parentheses.",
    ),
    "map column": (
        lambda: read(pairs().map(abs, "aa")),
        RuntimeError,
        "map: column 'aa': expected one of the dataset's columns ['a', 'b'].\n\nhint: write 'a'.",
    ),
    "map None": (
        lambda: read(pairs().map(lambda a: None, "a")),
        RuntimeError,
        "map(operations=<lambda>, input_columns=['a']): expected a value for each column, got None.\n\n"
        "hint: return the value at the end of the function.",
    ),
    "map object": (
        lambda: read(pairs().map(lambda a: object(), "a")),
        RuntimeError,
        "map(operations=<lambda>, input_columns=['a']): expected an array, a number or text, got object.",
    ),
    "map two": (
        lambda: read(pairs().map(lambda a: (a, a), "a")),
        RuntimeError,
        "map(operations=<lambda>, input_columns=['a']): expected 1 results, one for each of ['a'], got 2.\n\n"
        "hint: name the results in output_columns.",
    ),
    "ragged": (
        lambda: read(ragged().batch(2)),
        RuntimeError,
        "batch: column 'a' has shape [1] in the batch's first row and [2] in row 1: expected rows of one shape.\n\n"
        "hint: make them equal in a map, or write padded_batch(..., pad_info={'a': None}).",
    ),
    "rename": (lambda: pairs().rename(["a"], ["b", "c"]), ValueError, "rename(['a'], ['b', 'c']): expected as many new names as old ones."),
    "rename taken": (
        lambda: pairs().rename("a", "b").get_col_names(),
        RuntimeError,
        "rename to 'b': expected a name that is not yet one of ['a', 'b'].",
    ),
    "zip one": (lambda: ds.zip((pairs(),)), ValueError, "zip of 1 datasets: expected at least two."),
    "zip same": (
        lambda: read(ds.zip((pairs(), pairs()))),
        RuntimeError,
        "zip: column 'a' in two of the datasets: expected columns of different names.\n\nhint: rename it: dataset.rename('a', 'a_2').",
    ),
    "concat": (
        lambda: read(pairs() + pairs().rename("a", "z")),
        RuntimeError,
        "concat: columns ['z', 'b']: expected the first dataset's columns ['a', 'b'], in that order.",
    ),
    "split": (lambda: pairs().split([0.5, 0.6]), ValueError, "split([0.5, 0.6]): expected shares above 0 that add up to 1."),
    "epochs below": (
        lambda: pairs().create_tuple_iterator(num_epochs=-2),
        ValueError,
        "create_tuple_iterator(num_epochs=-2): expected -1 or an int from 1.\n\n"
        "hint: write create_tuple_iterator() for any number of epochs.",
    ),
    "no files": (lambda: ds.TextFileDataset([]), ValueError, "TextFileDataset([]): expected at least one file."),
    "no records": (lambda: ds.TFRecordDataset([]), ValueError, "TFRecordDataset([]): expected at least one file."),
    "split share": (
        lambda: ds.NumpySlicesDataset([1, 2, 3, 4], num_shards=2, shard_id=0).split([1, 1]),
        RuntimeError,
        "split of a share (num_shards): expected all rows.\n\nhint: split first, then write part.use_sampler(DistributedSampler(...)).",
    ),
    "random sampler": (
        lambda: ds.RandomSampler(shuffle="bad"), TypeError, "RandomSampler(shuffle='bad'): expected a member of Shuffle, or its text.",
    ),
    "weights": (
        lambda: read(ds.NumpySlicesDataset([1, 2, 3], sampler=ds.WeightedRandomSampler([0.5, 0.5], None, False))),
        RuntimeError,
        "WeightedRandomSampler(num_samples=3, replacement=False): expected at most 2, the number of weights.",
    ),
    "epochs": (
        lambda: pairs().create_dict_iterator(num_epochs=0),
        RuntimeError,
        "create_dict_iterator(num_epochs=0): expected -1 or an int from 1.\n\nhint: write create_dict_iterator() for any number of epochs.",
    ),
    "columns": (
        lambda: ds.GeneratorDataset([1]),
        ValueError,
        "GeneratorDataset(column_names=None): expected column_names.\n\nhint: write GeneratorDataset(source, ['data', 'label']).",
    ),
    "too few columns": (
        lambda: read(ds.GeneratorDataset([(1, 2)], ["a"], shuffle=False)),
        RuntimeError,
        "GeneratorDataset(source=list): expected 1 values a row, one for each of ['a'], got 2.",
    ),
    "shards": (
        lambda: ds.GeneratorDataset([1], ["a"], num_shards=2),
        ValueError,
        "GeneratorDataset(num_shards=2, shard_id=None): expected both or neither.\n\n"
        "hint: write GeneratorDataset(..., num_shards=2, shard_id=0).",
    ),
    "sampler and shuffle": (
        lambda: ds.MnistDataset("/", sampler=ds.SequentialSampler(), shuffle=True),
        RuntimeError,
        "MnistDataset(sampler=..., shuffle=True): expected one of the two.\n\nhint: leave shuffle out.",
    ),
    "subset": (lambda: ds.SubsetSampler([1.5]), TypeError, "SubsetSampler(indices=...): indices[0] = 1.5: expected an int."),
    "seed": (lambda: ds.config.set_seed(-1), ValueError, "set_seed(seed=-1): expected an int from 0 to 4294967295."),
    "error samples": (
        lambda: ds.config.set_error_samples_mode(1),
        TypeError,
        "set_error_samples_mode(error_samples_mode=1): expected a member of ErrorSamplesMode, got int.",
    ),
    "usage": (lambda: ds.MnistDataset("/", usage="x"), ValueError, "MnistDataset(usage='x'): expected 'train', 'test' or 'all'."),
    "folder": (
        lambda: ds.ImageFolderDataset("/nowhere"),
        ValueError,
        "ImageFolderDataset(dataset_dir='/nowhere'): expected a folder that exists (looked for /nowhere).",
    ),
    "cache": (
        lambda: ds.MnistDataset("/", cache=3),
        TypeError,
        "MnistDataset(cache=3): expected a DatasetCache, got int.",
    ),
    "resize": (lambda: vision.Resize([1, 2, 3]), TypeError, "Resize(size=[1, 2, 3]): expected an int or (height, width)."),
    "a row": (
        lambda: vision.Resize(3)(np.zeros(3, np.uint8)),
        RuntimeError,
        "Resize of shape [3]: expected an image (H, W) or (H, W, C).\n\nhint: put Decode() first where the column holds files.",
    ),
    "normalize": (
        lambda: vision.Normalize([1.0, 2.0], [1.0, 1.0])(IMAGE),
        RuntimeError,
        "Normalize with 2 means of shape [6, 5, 3]: expected 1 or 3, one for each channel.",
    ),
    "crop": (
        lambda: vision.RandomCrop(9)(IMAGE),
        RuntimeError,
        "RandomCrop(size=(9, 9)) of an image 6x5: expected an image that is not smaller.\n\nhint: write pad_if_needed=True.",
    ),
    "decode": (
        lambda: vision.Decode()(np.zeros(5, np.uint8)),
        RuntimeError,
        "Decode: 5 bytes: expected the bytes of an image file (JPEG, PNG, BMP, TIFF, WebP).",
    ),
    "a Tensor": (
        lambda: vision.Rescale(1.0, 0.0)(ms.Tensor([1.0])),
        TypeError,
        "Rescale(Tensor(shape=[1], dtype=Float32, value= [ 1.00000000e+00])): expected an array or a PIL image, got Tensor.",
    ),
    "one hot": (lambda: transforms.OneHot(2)(np.array(2)), RuntimeError, "OneHot(num_classes=2) of 2: expected a class below 2."),
    "type": (
        lambda: transforms.TypeCast("zz"),
        TypeError,
        "TypeCast(data_type='zz'): expected a dtype such as mindspore.float32 or numpy.float32.\n\n"
        "hint: write TypeCast(mindspore.float32).",
    ),
    "compose in itself": (
        lambda: transforms.Compose(endless()), ValueError,
        "test_errors.py:0: Compose([[...]]): expected values that are nested less deeply and do not contain themselves.",
    ),
    "no dataset": (lambda: ds.RepeatDataset(3, 2), TypeError, "RepeatDataset(3): expected a dataset, got int."),
    "vocab": (lambda: text.Vocab.from_dataset(3), TypeError, "Vocab.from_dataset(3): expected a dataset, got int."),
    "column names": (
        lambda: validator_helpers.check_columns(["a", "a"], "names"), ValueError,
        "check_columns(names=['a', 'a']): expected column names that differ from each other.",
    ),
    "offload": (lambda: ds.config.set_auto_offload(offload=3), TypeError, "set_auto_offload(offload=3): expected True or False, got int."),
    "compose": (lambda: transforms.Compose([]), ValueError, "Compose([]): expected at least one function or transform."),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    call, kind, message = MESSAGES[name]
    with pytest.raises(kind) as caught:
        call()
    assert re.sub(r"^\S*(test_errors\.py):\d+", r"\1:0", without_mindspores_sentence(str(caught.value))) == message


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda: audio.AllpassBiquad(44100.5, 200.0),
     "Argument sample_rate with value 44100.5 is not of type [<class 'int'>], but got <class 'float'>."),
    (lambda: audio.AllpassBiquad(0, 200.0),
     "Input sample_rate is not within the required interval of [-2147483648, 0) and (0, 2147483647]."),
    (lambda: audio.AllpassBiquad(44100, 1e10), "Input central_freq is not within the required interval of [-16777216, 16777216]."),
    (lambda: audio.AllpassBiquad(44100, 200.0, 0), "Input Q is not within the required interval of (0, 1]."),
    (lambda: audio.AllpassBiquad(44100, "2"),
     "Argument central_freq with value 2 is not of type [<class 'float'>, <class 'int'>], but got <class 'str'>."),
    (lambda: vision.RandomHorizontalFlip(1.5), "Input prob is not within the required interval of [0.0, 1.0]."),
    (lambda: ds.NumpySlicesDataset([1, 2]).skip(-1), "Input count is not within the required interval of [0, 2147483647]."),
    (lambda: audio.Angle()(np.array([["a", "b"]])), "Angle: the data type of input tensor does not match the requirement of operator."),
    (lambda: audio.Angle()(np.ones((1, 3))), "Angle: the shape of input tensor does not match the requirement of operator."),
])
def test_messages_end_with_mindspores_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError), match=re.escape(sentence)):
        call()


def test_settings_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"prefetch_size": 7}')
    try:
        ds.config.load(str(path))
        assert ds.config.get_prefetch_size() == 7
    finally:
        ds.config.set_prefetch_size(16)
    path.write_text("{")
    with pytest.raises(ValueError, match="expected a JSON object"):
        ds.config.load(str(path))
    with pytest.raises(FileNotFoundError):
        ds.config.load(str(tmp_path / "absent.json"))


@pytest.mark.parametrize(("length", "text"), [(-1, "ValueError: __len__() should return >= 0"), ("x", "TypeError: 'str' object cannot be")])
def test_a_source_without_a_length_is_named(length: Any, text: str) -> None:
    class Source:
        def __getitem__(self, index: int) -> int:
            return index

        def __len__(self) -> int:
            return length

    with pytest.raises(RuntimeError) as caught:
        read(ds.GeneratorDataset(Source(), ["a"]))
    assert text in str(caught.value) and "GeneratorDataset(source=Source).__len__: expected a function that returns" in str(caught.value)


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda: vision.Resize((1, 2, 3)), "Size should be a single integer or a list/tuple (h, w) of length 2."),
    (lambda: vision.RandomCrop("a"), "Argument size with value a is not of type [<class 'int'>, <class 'list'>, <class 'tuple'>], but got"),
    (lambda: vision.RandomCrop((1, "a")), "Argument size[1] with value a is not of type [<class 'int'>], but got <class 'str'>."),
    (lambda: vision.RandomCrop(0), " Input is not within the required interval of [1, 16777216]."),
    (lambda: vision.RandomCrop(True), "not of type (<class 'int'>, <class 'list'>, <class 'tuple'>), but got <class 'bool'>."),
    (lambda: vision.RandomCrop(3, fill_value=1.5), "fill_value should be a single integer or a 3-tuple."),
    (lambda: vision.RandomCrop(3, (1, 2, 3)), "The size of the padding list or tuple should be 2 or 4."),
    (lambda: vision.RandomRotation(3, center=1), "Value center needs to be a 2-tuple."),
    (lambda: vision.RandomResizedCrop(3, scale=1), "Argument scale with value 1 is not of type [<class 'tuple'>, <class 'list'>], but got"),
    (lambda: vision.RandomResizedCrop(3, scale=(3, 1)), "scale should be in (min,max) format. Got (max,min)."),
    (lambda: vision.RandomSharpness(1), "degrees must be either a tuple or a list."),
    (lambda: vision.Normalize([1.0], [1.0, 2.0]), "Length of mean and std must be equal."),
    (lambda: vision.AutoContrast(60), "Input cutoff is not within the required interval of [0, 50)."),
    (lambda: vision.AdjustGamma(-1), " Input is not within the required interval of [0, 16777216]."),
    (lambda: vision.BoundingBoxAugment(vision.HorizontalFlip(), 2), "Input ratio is not within the required interval of [0.0, 1.0]."),
    (lambda: audio.LFilter([0.1], [0.1, 0.2]), "The size of a_coeffs should be the same as that of b_coeffs."),
    (lambda: audio.LFilter(["a"], [0.1]), "Argument a_coeffs[0] with value a is not of type [<class 'float'>, <class 'int'>], but got"),
    (lambda: audio.MFCC(-1), "Input sample_rate is not within the required interval of [0, 2147483647]."),
    (lambda: audio.Phaser(2**40), "Input sample_rate is not within the required interval of [-2147483648, 2147483647]."),
    (lambda: audio.DCShift(3), "Input shift is not within the required interval of [-2.0, 2.0]."),
    (lambda: audio.FrequencyMasking(mask_value="a"), "not of type [<class 'int'>, <class 'float'>], but got <class 'str'>."),
    (lambda: audio.MFCC(dct_type=1.5), "Input dct_type must be 2, but got : 1.5."),
    (lambda: transforms.Concatenate(2), "only 1D concatenation supported."),
    (lambda: transforms.Concatenate(prepend=np.ones((1, 1))), "can only prepend 1D arrays."),
    (lambda: transforms.Concatenate()(np.ones(2), np.ones((2, 2))), "only 1D input supported."),
    (lambda: transforms.Concatenate()(np.ones(2), np.array([b"a"])), "input datatype does not match."),
    (lambda: text.ToNumber(ms.bool_), "is not numeric data type."),
    (lambda: text.ToNumber(ms.int8)("300"), "string input 300 will be out of bounds if cast to int8."),
    (lambda: text.ToNumber(ms.float16)("655040"), "string input 655040 is outside of valid float16 range."),
    (lambda: text.ToNumber(ms.int32)("a8"), 'it is invalid to convert "a8" to a number.'),
    (lambda: vision.read_video(1), "Input filename is not of type [<class 'str'>], but got: <class 'int'>."),
    (lambda: vision.read_video("/none"), "Invalid file path, /none does not exist."),
    (lambda: ds.TextFileDataset("/none"), "The following patterns did not match any files: ['/none']"),
    (lambda: ds.ImageFolderDataset("/none"), "The folder /none does not exist or is not a directory or permission denied!"),
    (lambda: ds.NumpySlicesDataset([1], num_samples=-1), "num_samples exceeds the boundary between 0 and 9223372036854775807(INT64_MAX)!"),
    (lambda: ds.NumpySlicesDataset([1]).rename([1], ["a"]), "Argument input_columns[0] with value 1 is not of type [<class 'str'>], but"),
])
def test_sentences_of_mindspore(call, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
        call()
    assert sentence in str(caught.value)
