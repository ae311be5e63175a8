"""Every dataset class with a published layout: the function that writes its files, and the arguments of its calls."""
from __future__ import annotations

from support import tiny_sounds as sounds
from support import tiny_sources as tiny
from support import tiny_texts as texts


def call(name, folder, options):
    """The dataset of this name over what lies in a folder; a text in `options` that begins with '/' is a path in it."""
    import mindspore.dataset as ds

    def placed(value):
        if isinstance(value, list) and value and isinstance(value[0], str) and value[0].startswith("/"):
            return [f"{folder}{suffix}" for suffix in value]
        return f"{folder}{value}" if isinstance(value, str) and value.startswith("/") else value

    resolved = {key: placed(value) for key, value in options.items()}
    return getattr(ds, f"{name}Dataset")(**resolved)


def _over(key, *values, **more):
    return [{key: value, **more} for value in values]


HERE = {"dataset_dir": "/"}
ALL = (None, "train", "test", "all")
PARTS = (None, "train", "test", "valid", "all")

PICTURES = {
    "CelebA": (tiny.celeba, [{}, {"usage": "train"}, {"usage": "valid", "decode": True}, {"usage": "test", "extensions": [".jpg"]}]),
    "EMnist": (tiny.emnist, _over("usage", *ALL, name="letters") + [{"name": "mnist"}]),
    "QMnist": (tiny.qmnist, _over("usage", None, "train", "test", "nist") + [{"compat": False}]),
    "Caltech256": (tiny.caltech256, [{}, {"decode": True}]),
    "Omniglot": (tiny.omniglot, _over("background", None, False) + [{"decode": True}]),
    "RenderedSST2": (tiny.rendered_sst2, _over("usage", None, "train", "val", "test") + [{"decode": True}]),
    "LSUN": (tiny.lsun, _over("usage", *PARTS) + [{"usage": "valid", "classes": ["classroom"]}, {"decode": True}]),
    "SUN397": (tiny.sun397, [{}, {"decode": True}]),
    "Food101": (tiny.food101, _over("usage", *ALL) + [{"decode": True}]),
    "Places365": (
        tiny.places365, [{"usage": usage, "small": small} for usage in (None, "train-challenge", "val") for small in (True, False)]
    ),
    "DIV2K": (
        tiny.div2k, _over("usage", "train", "valid", "all") + [{"decode": True}]
        + [{"downgrade": how, "scale": n} for how, n in (("bicubic", 8), ("unknown", 3), ("mild", 4), ("difficult", 4), ("wild", 4))],
    ),
    "LFW": (
        tiny.lfw, [{"task": task, "usage": usage} for task in ("people", "pairs") for usage in (None, "10fold", "train", "test")]
        + _over("image_set", "original", "deepfunneled", decode=True),
    ),
    "Cityscapes": (
        tiny.cityscapes, _over("usage", "train", "test", "val", "all") + _over("usage", "train_extra", "all", quality_mode="coarse")
        + _over("task", "semantic", "polygon", "color", decode=True),
    ),
    "Flickr": (tiny.flickr, [{"dataset_dir": "/images", "annotation_file": "/tokens.txt", "decode": decode} for decode in (None, True)]),
    "SBU": (tiny.sbu, [{}, {"decode": True}]),
    "Coco": (
        tiny.coco,
        [
            {"dataset_dir": "/train", "annotation_file": f"/{name}.json", "task": task, **more}
            for task, name in (
                ("Detection", "instances"), ("Stuff", "instances"), ("Keypoint", "instances"), ("Panoptic", "panoptic"),
                ("Captioning", "captions"),
            )
            for more in ({}, {"decode": True, "extra_metadata": True})
        ],
    ),
    "VOC": (
        tiny.voc, [{}, {"decode": True, "extra_metadata": True}, {"task": "Detection"},
                   {"task": "Detection", "usage": "val", "decode": True},
                   {"task": "Detection", "class_indexing": {"dog": 5, "train": 1}}],
    ),
    "KITTI": (tiny.kitti, [{}, {"usage": "test"}, {"decode": True}]),
    "WIDERFace": (tiny.widerface, _over("usage", *PARTS) + [{"decode": True}]),
    "Manifest": (
        tiny.manifest, _over("usage", "train", "eval", "inference", dataset_file="/a.manifest")
        + [{"dataset_file": "/a.manifest", "class_indexing": {"dog": 5, "cat": 1}, "decode": True}],
    ),
    "STL10": (tiny.stl10, _over("usage", None, "train", "test", "unlabeled", "train+unlabeled")),
    "Semeion": (tiny.semeion, [{}]),
    "PhotoTour": (tiny.phototour, _over("usage", None, "test", name="liberty")),
    "SVHN": (tiny.svhn, _over("usage", None, "train", "test", "extra")),
    "Flowers102": (
        tiny.flowers102, _over("usage", "train", "valid", "test", "all") + _over("decode", False, True, task="Segmentation"),
    ),
    "SB": (tiny.sb, _over("usage", "train", "val", "train_noval", "all") + _over("task", "Segmentation", decode=True)),
    "Caltech101": (tiny.caltech101, _over("target_type", None, "annotation", "all") + [{"decode": True}]),
    "USPS": (tiny.usps, _over("usage", *ALL, num_parallel_workers=1)),
    "FakeImage": (
        lambda folder: None,
        [{"num_images": n, "image_size": size, "num_classes": 5, "base_seed": n} for n, size in ((4, (3, 4, 3)), (3, (31, 17, 3)))],
    ),
}

NO_THREADS = {"num_parallel_workers": 1}
TEXTS = {
    "TextFile": (texts.text, [{"dataset_files": f"/{name}.txt", **NO_THREADS} for name in ("a", "b", "c", "d", "*")]),
    "CSV": (
        texts.csv,
        [{"dataset_files": "/a.csv", **more} for more in (
            {}, {"column_defaults": [1, "", 0.5]}, {"column_names": ["p", "q", "r"]}, {"num_samples": 2},
        )]
        + [{"dataset_files": ["/b.csv", "/a.csv"], **NO_THREADS}, {"dataset_files": ["/b.csv", "/a.csv"], "num_parallel_workers": 2}]
        + [{"dataset_files": "/plain.csv", "field_delim": "|", "column_defaults": [0, "n", 1.5], "column_names": ["p", "q", "r"]}],
    ),
    "CLUE": (
        texts.clue,
        [
            {"dataset_files": f"/{task}/{name}.json", "task": task, "usage": usage}
            for task in texts.CLUE for usage, name in (("train", "train"), ("test", "test"), ("eval", "dev"))
        ],
    ),
    **{
        name: (texts.table(width, 3, 2), _over("usage", *ALL, **NO_THREADS))
        for name, width in (
            ("AGNews", 3), ("AmazonReview", 3), ("DBpedia", 3), ("SogouNews", 3), ("YahooAnswers", 4), ("YelpReview", 2),
        )
    },
    "IMDB": (texts.imdb, _over("usage", *ALL)),
    "PennTreebank": (texts.penn_treebank, _over("usage", *PARTS, **NO_THREADS)),
    "WikiText": (texts.wiki_text, _over("usage", *PARTS, **NO_THREADS)),
    "EnWik9": (texts.enwik9, [{}]),
    "Multi30k": (texts.multi30k, _over("usage", *PARTS, **NO_THREADS) + [{"usage": "train", "language_pair": ["de", "en"]}]),
    "IWSLT2016": (
        texts.iwslt2016, _over("usage", *PARTS, **NO_THREADS)
        + _over("usage", "valid", "test", language_pair=("en", "fr"), valid_set="tst2011", test_set="dev2010"),
    ),
    "IWSLT2017": (texts.iwslt2017, _over("usage", *PARTS, **NO_THREADS) + [{"usage": "train", "language_pair": ("it", "ro")}]),
    "UDPOS": (texts.udpos, _over("usage", *PARTS, **NO_THREADS)),
    "CoNLL2000": (texts.conll2000, _over("usage", *ALL, **NO_THREADS)),
    "SQuAD": (texts.squad, [{"dataset_dir": f"/{name}", "usage": usage, **NO_THREADS}
                            for name in ("1.1", "2.0") for usage in (None, "dev")]),
    "SST2": (texts.sst2, _over("usage", None, "train", "dev", "test", **NO_THREADS)),
}
SOUNDS = {
    "CMUArctic": (sounds.cmu_arctic, _over("name", None, "slt")),
    "GTZAN": (sounds.gtzan, _over("usage", *PARTS)),
    "LibriTTS": (sounds.libri_tts, _over("usage", None, "dev-clean")),
    "LJSpeech": (sounds.lj_speech, [{}]),
    "SpeechCommands": (sounds.speech_commands, _over("usage", *PARTS)),
    "Tedlium": (
        sounds.tedlium, _over("usage", None, "train", "dev", dataset_dir="/release1", release="release1")
        + [{"dataset_dir": "/release3", "release": "release3"}],
    ),
    "YesNo": (sounds.yes_no, [{}]),
}
SOURCES = {**PICTURES, **TEXTS, **SOUNDS}
for _name, (_make, _builders) in SOURCES.items():
    for _options in _builders:
        if not {"dataset_dir", "dataset_file", "dataset_files"} & set(_options) and _name != "FakeImage":
            _options.update(HERE)
