"""Sources of published data sets: what they say of files that are missing, cut short or made to do harm, and of wrong arguments."""
from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import vision
from support import dataset_sources, memory_use, tiny_sounds, tiny_sources, tiny_texts
from support.error_messages import without_mindspores_sentence

from torchspore.mindspore.dataset.engine.declarations import ListedDataset

CASES = [
    pytest.param(name, make, options, id=f"{name}-{number}")
    for name, (make, builders) in dataset_sources.SOURCES.items() if name != "FakeImage"
    for number, options in enumerate(builders) if number in (0, len(builders) - 1)
]


def rows(name: str, folder: Path, options: dict[str, Any]) -> int:
    source = dataset_sources.call(name, folder, {"shuffle": False, **options})
    return len(list(source.create_tuple_iterator(num_epochs=1, output_numpy=True)))


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(("name", "make", "options"), CASES)
def test_a_missing_file_is_named_or_its_rows_are_gone(tmp_path: Path, name: str, make: Any, options: dict[str, Any]) -> None:
    make(tmp_path)
    all_rows = rows(name, tmp_path, options)
    for path in files(tmp_path):
        content = path.read_bytes()
        path.unlink()
        try:
            result = rows(name, tmp_path, options)
            assert result <= all_rows
        except (RuntimeError, ValueError) as error:
            relative = path.relative_to(tmp_path)
            named = [part for part in (str(relative), path.name, path.stem, str(relative.parent)) if part != "." and part in str(error)]
            assert named or str(tmp_path) in str(error), error
        path.write_bytes(content)


@pytest.mark.parametrize(("name", "make", "options"), CASES)
def test_a_file_cut_short_is_named_or_read_so_far(tmp_path: Path, name: str, make: Any, options: dict[str, Any]) -> None:
    make(tmp_path)
    all_rows = rows(name, tmp_path, options)
    for path in files(tmp_path):
        content = path.read_bytes()
        for size in (0, len(content) // 2, len(content) - 3):
            path.write_bytes(content[: max(size, 0)])
            try:
                assert rows(name, tmp_path, options) <= all_rows
            except (RuntimeError, ValueError) as error:  # the file that is cut, or one that it no longer fits
                assert str(tmp_path) in str(error), error
        path.write_bytes(content)


CUT = {  # what must not pass as a shorter data set
    "Coco": "instances.json", "VOC": "Annotations/45.xml", "EMnist": "emnist-letters-train-images-idx3-ubyte", "STL10": "train_X.bin",
    "SVHN": "train_32x32.mat", "Flowers102": "setid.mat", "Caltech101": "Annotations/ant/annotation_0001.mat", "SB": "cls/2008_000001.mat",
    "USPS": "usps", "Semeion": "semeion.data", "WIDERFace": "wider_face_split/wider_face_val_bbx_gt.txt", "SQuAD": "1.1/train-v1.1.json",
    "KITTI": "data_object_label_2/training/label_2/000001.txt", "CLUE": "AFQMC/train.json", "Manifest": "a.manifest", "AGNews": "train.csv",
    "Cityscapes": "gtFine/train/bonn/bonn_000000_000019_gtFine_polygons.json", "Multi30k": "training/train.de", "SST2": "train.tsv",
    "IWSLT2017": "texts/DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo/train.tags.de-en.en",
}
OPTIONS = {
    "Coco": {"dataset_dir": "/train", "annotation_file": "/instances.json"}, "VOC": {"task": "Detection"}, "EMnist": {"name": "letters"},
    "Caltech101": {"target_type": "all"}, "SQuAD": {"dataset_dir": "/1.1"}, "Cityscapes": {"task": "polygon"},
    "CLUE": {"dataset_files": "/AFQMC/train.json"}, "Manifest": {"dataset_file": "/a.manifest"},
}


@pytest.mark.parametrize("name", CUT)
def test_a_damaged_file_of_labels_is_an_error_of_both_kinds(tmp_path: Path, name: str) -> None:
    dataset_sources.SOURCES[name][0](tmp_path)
    options = {"dataset_dir": "/", **OPTIONS.get(name, {})}
    if {"dataset_files", "dataset_file"} & set(options):
        del options["dataset_dir"]
    rows(name, tmp_path, options)
    path = tmp_path / CUT[name]
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 5 // 8])
    with pytest.raises(RuntimeError, match=path.name) as caught:
        rows(name, tmp_path, options)
    assert isinstance(caught.value, ValueError), "as damaged files are elsewhere here"


def test_a_broken_picture_is_named_where_it_is_decoded(tmp_path: Path) -> None:
    tiny_sources.celeba(tmp_path)
    (tmp_path / "000002.jpg").write_bytes(b"\xff\xd8 no picture")
    assert rows("CelebA", tmp_path, {"dataset_dir": "/"}) == 5, "bytes are given as they are"
    with pytest.raises(RuntimeError, match="000002.jpg: 13 bytes: expected the bytes of an image file"):  # noqa: RUF043
        rows("CelebA", tmp_path, {"dataset_dir": "/", "decode": True})


def test_pictures_are_read_on_demand(tmp_path: Path) -> None:
    tiny_sources.places365(tmp_path)
    data = ds.Places365Dataset(str(tmp_path), shuffle=False)
    assert data.get_dataset_size() == 3
    for path in tmp_path.rglob("*.jpg"):
        path.unlink()
    assert data.get_dataset_size() == 3
    with pytest.raises(FileNotFoundError, match="b/bar/00000002.jpg: expected this file of the data set"):  # noqa: RUF043
        list(data)


def test_a_large_file_of_digits_is_not_loaded_at_once(tmp_path: Path) -> None:
    tiny_sources.emnist(tmp_path)
    count, path = 100_000, tmp_path / "emnist-mnist-train-images-idx3-ubyte"
    with path.open("wb") as file:
        file.write(tiny_sources.idx(np.zeros((1, 28, 28)))[:4] + np.array([count, 28, 28], ">u4").tobytes())
        file.truncate(16 + count * 784)
    (tmp_path / "emnist-mnist-train-labels-idx1-ubyte").write_bytes(tiny_sources.idx(np.zeros(count)))
    data = ds.EMnistDataset(str(tmp_path), "mnist", "train", shuffle=False).take(2)
    with memory_use.rise() as rise:
        assert [row[0].shape for row in data.create_tuple_iterator(output_numpy=True)] == [(28, 28, 1)] * 2
    assert rise.kib < 20_000


def test_entities_of_an_annotation_are_refused(tmp_path: Path) -> None:
    tiny_sources.voc(tmp_path)
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><annotation><object><name>&c;</name></object></annotation>'
    (tmp_path / "Annotations/45.xml").write_text(bomb)
    with pytest.raises(ValueError, match=r"45\.xml: an XML file that defines entities: expected plain elements"):
        rows("VOC", tmp_path, {"dataset_dir": "/", "task": "Detection"})


def test_deep_json_and_open_quotes_are_errors(tmp_path: Path) -> None:
    tiny_sources.coco(tmp_path)
    (tmp_path / "instances.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="instances.json: RecursionError"):  # noqa: RUF043
        rows("Coco", tmp_path, dataset_sources.PICTURES["Coco"][1][0])
    (tmp_path / "a.csv").write_text('a,b\n1,"x\n' + "y\n" * 10)
    with pytest.raises(ValueError, match=r"a\.csv, line 2: .*: expected a quote at the end of the field that begins with one"):
        list(ds.CSVDataset(str(tmp_path / "a.csv")))
    (tmp_path / "a.csv").write_text('a,b\n"x"y,2\n')
    with pytest.raises(ValueError, match=r"a\.csv, line 2: .*: expected ',' or the end of the line after a field in quotes"):
        list(ds.CSVDataset(str(tmp_path / "a.csv")))
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,\xff\n")
    with pytest.raises(RuntimeError, match=r"a\.csv, line 2: invalid start byte: expected a text file of UTF-8"):
        list(ds.CSVDataset(str(tmp_path / "a.csv")))


def test_fields_in_quotes_may_hold_newlines_and_delimiters(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a,b,c\n"1\n2",,"x, ""y"""\n\n3,4,\n')
    results = [[str(value) for value in row] for row in ds.CSVDataset(str(tmp_path / "a.csv"), shuffle=False)]
    assert results == [["1\n2", "", 'x, "y"'], ["3", "4", ""]]


REFUSED = {
    "usage": (
        lambda f: ds.CelebADataset(f, usage="x"), ValueError, "CelebADataset(usage='x'): expected 'train', 'valid', 'test' or 'all'.",
    ),
    "decode": (lambda f: ds.CelebADataset(f, decode=3), TypeError, "CelebADataset(decode=3): expected True or False, got int."),
    "folder": (lambda f: ds.SBUDataset(3), TypeError, "SBUDataset(dataset_dir=3): expected a path, got int."),
    "scale": (
        lambda f: ds.DIV2KDataset(f, downgrade="mild", scale=2), ValueError,
        "DIV2KDataset(downgrade='mild', scale=2): expected a scale of 4.",
    ),
    "quality": (
        lambda f: ds.CityscapesDataset(f, "train_extra"), ValueError,
        "CityscapesDataset(usage='train_extra', quality_mode='fine'): expected a usage of train, test, val or all.",
    ),
    "unknown": (
        lambda f: ds.SemeionDataset(f, usage="train"), TypeError,
        "SemeionDataset(...): got an unexpected keyword argument 'usage': expected the arguments (self, dataset_dir, num_samples=None, "
        "num_parallel_workers=None, shuffle=None, sampler=None, num_shards=None, shard_id=None, cache=None).",
    ),
    "class_indexing": (
        lambda f: ds.VOCDataset(f, class_indexing={"a": 1}), ValueError,
        "VOCDataset(task='Segmentation', class_indexing=...): expected no class_indexing: only objects have classes.",
    ),
    "annotations": (
        lambda f: ds.CocoDataset(f, "/none.json"), ValueError,
        "CocoDataset(annotation_file='/none.json'): expected a file that exists (looked for /none.json).",
    ),
    "no_class": (
        lambda f: list(ds.CityscapesDataset(f, sampler=ds.PKSampler(1))), ValueError,
        "CityscapesDataset(sampler=PKSampler(class_column='label')): expected a source whose rows have one such label.",
    ),
    "num_class": (
        lambda f: ds.PKSampler(1, 2), NotImplementedError,
        "PKSampler(num_class=2): expected None: rows of all classes; MindSpore has no more.",
    ),
    "matches": (
        lambda f: ds.TextFileDataset("/none*"), ValueError, "TextFileDataset: '/none*' matches no file: expected files that exist.",
    ),
    "infile": (
        lambda f: ds.WikiTextDataset(f, shuffle=ds.Shuffle.INFILE), ValueError,
        "WikiTextDataset(shuffle=<Shuffle.INFILE: 'infile'>): expected True, False, Shuffle.GLOBAL or Shuffle.FILES.",
    ),
    "delimiter": (
        lambda f: ds.CSVDataset(__file__, ",,"), ValueError,
        "CSVDataset(field_delim=',,'): expected one character other than a quote and the end of a line.",
    ),
    "pair": (
        lambda f: ds.Multi30kDataset(f, language_pair=["en", "fr"]), ValueError,
        "Multi30kDataset(language_pair=['en', 'fr']): expected one of ('en', 'de'), ('de', 'en').",
    ),
    "image_size": (
        lambda f: ds.FakeImageDataset(image_size=(1, 2)), ValueError,
        "FakeImageDataset(image_size=(1, 2)): expected (height, width, channels).",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(tmp_path: Path, name: str) -> None:
    tiny_sources.cityscapes(tmp_path)
    call, kind, text = REFUSED[name]
    with pytest.raises(kind) as caught:
        call(str(tmp_path))
    assert without_mindspores_sentence(str(caught.value)) == text


def test_signatures_are_seen_and_subclasses_have_theirs() -> None:
    assert list(inspect.signature(ds.CocoDataset).parameters)[:4] == ["dataset_dir", "annotation_file", "task", "num_samples"]

    class Mine(ds.SemeionDataset):
        def __init__(self, url: str) -> None:
            super().__init__(url, shuffle=False)

    assert list(inspect.signature(Mine).parameters) == ["url"] and issubclass(Mine, ListedDataset)


def test_meta_columns_are_seen_once_they_are_renamed(tmp_path: Path) -> None:
    tiny_sources.voc(tmp_path)
    data = ds.VOCDataset(str(tmp_path), extra_metadata=True, shuffle=False)
    assert list(next(data.create_dict_iterator(output_numpy=True))) == ["image", "target"]
    renamed = data.rename("_meta-filename", "name")
    assert [str(row["name"]) for row in renamed.create_dict_iterator(output_numpy=True)] == ["31", "12", "45"]


def test_a_cache_gives_the_same_rows(tmp_path: Path) -> None:
    tiny_texts.many(tmp_path)
    options = {"num_parallel_workers": 2, "shuffle": False, "num_shards": 3, "shard_id": 1}
    plain = [str(row[0]) for row in ds.TextFileDataset(str(tmp_path / "*.txt"), **options)]
    cached = ds.TextFileDataset(str(tmp_path / "*.txt"), cache=ds.DatasetCache(1), **options)
    assert [[str(row[0]) for row in cached] for _ in range(2)] == [plain, plain]


def test_sources_feed_a_pipeline(tmp_path: Path) -> None:
    tiny_sources.caltech256(tmp_path)
    data = ds.Caltech256Dataset(str(tmp_path), decode=True, num_parallel_workers=2).map(vision.Resize((2, 2)), "image").batch(6)
    assert next(data.create_dict_iterator(output_numpy=True))["image"].shape == (6, 2, 2, 3)


def test_samples_of_a_sphere_file(tmp_path: Path) -> None:
    tiny_sounds.tedlium(tmp_path)
    row = next(ds.TedliumDataset(str(tmp_path / "release3"), "release3", shuffle=False).create_dict_iterator(output_numpy=True))
    expected = tiny_sounds.samples(9, 32000)[4000:12000].reshape(1, -1) / np.float32(32767)
    assert row["sample_rate"] == 16000 and np.array_equal(row["waveform"], expected)
    path = tmp_path / "release3/data/sph/Eve_2012.sph"
    path.write_bytes(path.read_bytes()[:20000])
    with pytest.raises(ValueError, match=r"Eve_2012\.sph: ends within sample 9488: expected 32000 samples; the file is truncated"):
        list(ds.TedliumDataset(str(tmp_path / "release3"), "release3", shuffle=False))
    path.write_bytes(b"RIFF")
    with pytest.raises(RuntimeError, match=r"Eve_2012\.sph: head b'RIFF': expected a NIST SPHERE file of 16-bit PCM"):
        list(ds.TedliumDataset(str(tmp_path / "release3"), "release3", shuffle=False))


@pytest.mark.parametrize("bits", [8, 24, 32])
def test_a_wave_file_is_sixteen_bits(tmp_path: Path, bits: int) -> None:
    tiny_sources.put(tmp_path, {"1_0.wav": tiny_sounds.wav(1, bits=bits)})
    with pytest.raises(RuntimeError, match=rf"1_0\.wav: samples of {bits} bits: expected a WAV file of 16-bit PCM"):
        list(ds.YesNoDataset(str(tmp_path)))


def test_a_wave_file_that_is_cut_short(tmp_path: Path) -> None:
    content = tiny_sounds.wav(1)
    for size in (10, 30, 44, len(content) - 1):
        tiny_sources.put(tmp_path, {"1_0.wav": content[:size]})
        with pytest.raises(RuntimeError, match=r"1_0\.wav: .*: expected"):
            list(ds.YesNoDataset(str(tmp_path)))


def test_sounds_come_in_order_of_their_names(tmp_path: Path) -> None:
    tiny_sounds.yes_no(tmp_path)
    assert [row[2].tolist()[0] for row in ds.YesNoDataset(str(tmp_path), shuffle=False)] == [0, 1, 1]


def test_a_review_of_two_lines(tmp_path: Path) -> None:
    tiny_sources.put(tmp_path, {"train/pos/0_9.txt": "one\ntwo\n", "train/neg/0_1.txt": "no"})
    texts = [str(row[0]) for row in ds.IMDBDataset(str(tmp_path), "train", shuffle=False)]
    assert texts == ["one\ntwo", "no"]


def test_random_rows_act_on_their_arguments() -> None:
    schema = ds.Schema()
    schema.add_column("a", "int32", [2])
    schema.add_column("b", "uint8", [])
    options = {"total_rows": 6, "schema": schema}

    def random_rows(**more: Any) -> list[list[int]]:
        ds.config.set_seed(3)
        return [row[0].tolist() for row in ds.RandomDataset(**{**options, **more}).create_tuple_iterator(num_epochs=1, output_numpy=True)]

    all_rows = random_rows()
    assert len(all_rows) == 6 and random_rows(num_samples=2) == all_rows[:2] and random_rows(num_shards=2, shard_id=1) == all_rows[1::2]
    assert sorted(random_rows(shuffle=True)) == sorted(all_rows) != random_rows(shuffle=True)
    assert ds.RandomDataset(3, schema, ["b"]).get_col_names() == ["b"]
    random_dataset = ds.RandomDataset(columns_list=["x", "y"])
    assert random_dataset.get_col_names() == ["x", "y"] and random_dataset.get_dataset_size() == len(list(random_dataset)) >= 1
    assert ds.RandomDataset(4).get_col_names()[0] == "c0"
    schema.add_column("s", "string", [1])
    with pytest.raises(ValueError, match=r"column 's' .*: expected numbers of a shape that is known"):
        ds.RandomDataset(3, schema)
    with pytest.raises(ValueError, match="'z': expected one of a, b"):
        ds.RandomDataset(3, _two_columns(), ["z"])


def _two_columns() -> ds.Schema:
    schema = ds.Schema()
    schema.parse_columns([{"name": name, "type": "int8", "shape": [1]} for name in "ab"])
    return schema


def test_what_arguments_were_called_in_1_0(tmp_path: Path) -> None:
    tiny_sources.voc(tmp_path)
    tiny_sources.celeba(tmp_path)
    assert ds.VOCDataset(str(tmp_path), task="Detection", mode="val").get_dataset_size() == 1
    assert ds.CelebADataset(str(tmp_path), dataset_type="train").get_dataset_size() == 3
