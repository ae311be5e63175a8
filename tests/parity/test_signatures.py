"""Every public callable that is offered here has MindSpore 2.10's parameters, in its order and with its defaults.

It may take more after them, all optional.
"""
from __future__ import annotations

import importlib

import pytest
from parity import signatures

from torchspore.public_names import listing

# name -> why its parameters differ
DIFFERENT = {
    "mindspore.dataset.MappableDataset": "a base class: programs subclass neither it nor call it",
    "mindspore.dataset.vision.not_random": "the function of dataset.transforms, where MindSpore calls its argument otherwise",
    "mindspore.dataset.SourceDataset": "a base class: programs subclass neither it nor call it",
}

RECORDED = {f"{module}.{name}": text for module, names in signatures.read().items() for name, text in names.items()}
# What says nothing: the parameters are hidden behind a decorator or taken apart in the body.
UNKNOWN = ("*args, **kwargs", "*args")
OFFERED = sorted(name for name, text in RECORDED.items() if text not in UNKNOWN and listing.has(listing.offered(), name))


def agrees(ours: str | None, theirs: str) -> bool:
    """Whether our parameters are MindSpore's, with none but optional ones after them."""
    if ours is None or not ours.startswith(theirs):
        return False
    return all("=" in word or "*" in word for word in ours[len(theirs) :].split(", ") if word)


@pytest.mark.parametrize("module", signatures.MODULES)
def test_signatures(module: str) -> None:
    if module not in listing.offered():
        pytest.skip(f"{module} is not offered yet")
    home = importlib.import_module(module)
    names = [name.rpartition(".")[2] for name in OFFERED if name.rpartition(".")[0] == module]
    results = {f"{module}.{name}": signatures.of(getattr(home, name)) for name in names}
    wrong = [f"{name}({text})  MindSpore: ({RECORDED[name]})" for name, text in results.items() if not agrees(text, RECORDED[name])]
    wrong = [line for line in wrong if line.partition("(")[0] not in DIFFERENT]
    assert not wrong, "\n".join(["", *wrong])


def test_listed_differences_exist() -> None:
    for name in DIFFERENT:
        module, _, attribute = name.rpartition(".")
        assert not agrees(signatures.of(getattr(importlib.import_module(module), attribute)), RECORDED[name]), name
