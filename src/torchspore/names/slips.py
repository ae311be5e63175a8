"""Names that public programs write and that no release of MindSpore has, though what they mean is beyond doubt: slips of the pen.

The line fails on MindSpore. Here it runs, and is told once. Only names that mean one thing alone stand here: what other frameworks define
otherwise (`nn.ConvTranspose2d`, `nn.init.kaiming_normal_`) would give other numbers than its reader expects.
"""
from __future__ import annotations

from torchspore.base.frames import warn
from torchspore.base.once import first_time

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
"""What is written -> what is meant; made from the names that public programs use and no release has (docs/reference/coverage.md)."""


def text_for(path: str) -> str:
    """What is said of a slip."""
    return f"{path}: no release of MindSpore has it; torchspore takes {SLIPS[path]} for it, on MindSpore this line fails."


def tell(path: str) -> None:
    """Warns of a slip at the user's line, the first time."""
    if first_time(("slip", path)):
        warn(f"{text_for(path)}\n\nhint: write {SLIPS[path]}.")
