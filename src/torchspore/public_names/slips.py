"""Misspelled names in public programs that no MindSpore release has, though their meaning is clear.

The line fails on MindSpore. Here it runs with one warning. Only unambiguous names are listed: names that other frameworks define
differently (`nn.ConvTranspose2d`, `nn.init.kaiming_normal_`) would give other numbers than the author expects.
"""
from __future__ import annotations

from torchspore.base.frames import warn
from torchspore.base.once import first_time
from torchspore.base.text import with_hint
from torchspore.translations import translate

SLIPS: dict[str, str] = {
    "mindspore.dataset.ImageFolder": "mindspore.dataset.ImageFolderDataset",
    **{f"mindspore.dataset.{name}": f"mindspore.dataset.Dataset.{name}" for name in (
        "batch", "create_dict_iterator", "create_tuple_iterator", "get_col_names", "get_dataset_size", "map", "output_shapes", "save",
        "shuffle",
    )},
    "mindspore.nn.BCEloss": "mindspore.nn.BCELoss",
    "mindspore.nn.Parameter": "mindspore.Parameter",
    "mindspore.nn.Relu": "mindspore.nn.ReLU",
    "mindspore.nn.Sequential": "mindspore.nn.SequentialCell",
    "mindspore.nn.sigmoid": "mindspore.ops.sigmoid",
    "mindspore.ops.Sum": "mindspore.ops.ReduceSum",
    **{f"mindspore.{name}": f"mindspore.ops.{name}" for name in ("bmm", "cat", "ones", "squeeze", "zeros")},
}
"""Written name -> intended name; from the names in public programs that no release has (docs/reference/coverage.md)."""


def text_for(path: str) -> str:
    """Return the warning for a misspelled name."""
    text = translate("{path}: no release of MindSpore has it; torchspore takes {target} for it, on MindSpore this line fails.")
    return text.format(path=path, target=SLIPS[path])


def warn_about(path: str) -> None:
    """Warn about a misspelled name at the user's line, once."""
    if first_time(("slip", path)):
        warn(with_hint(text_for(path), translate("write {word}").format(word=SLIPS[path])))
