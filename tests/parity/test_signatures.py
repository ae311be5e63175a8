"""Every public callable that is offered here has MindSpore 2.10's parameters, in its order and with its defaults.

It may take more after them, all optional.
"""
from __future__ import annotations

import importlib

import pytest
from parity import signatures

from torchspore.names import listing

# name -> (our parameters, why they differ)
DIFFERENT: dict[str, tuple[str, str]] = {}

RECORDED = {f"{module}.{name}": text for module, names in signatures.read().items() for name, text in names.items()}
# What says nothing: the parameters are hidden behind a decorator or taken apart in the body.
UNKNOWN = ("*args, **kwargs", "*args")
OFFERED = sorted(name for name, text in RECORDED.items() if text not in UNKNOWN and listing.has(listing.offered(), name))


def agrees(ours: str, theirs: str) -> bool:
    """Whether our parameters are MindSpore's, with none but optional ones after them."""
    return ours == theirs or (ours.startswith(theirs) and all("=" in one or "*" in one for one in ours[len(theirs) :].split(", ") if one))


@pytest.mark.parametrize("module", signatures.MODULES)
def test_signatures(module: str) -> None:
    if module not in listing.offered():
        pytest.skip(f"{module} is not offered yet")
    home = importlib.import_module(module)
    names = [name.rpartition(".")[2] for name in OFFERED if name.rpartition(".")[0] == module]
    found = {f"{module}.{name}": signatures.of(getattr(home, name)) for name in names}
    expected = {name: DIFFERENT[name][0] if name in DIFFERENT else RECORDED[name] for name in found}
    wrong = [f"{name}({text})  MindSpore: ({expected[name]})" for name, text in found.items() if not agrees(text, expected[name])]
    assert not wrong, "\n".join(["", *wrong])


def test_a_listed_difference_is_one() -> None:
    assert not [name for name, (ours, _) in DIFFERENT.items() if RECORDED.get(name) == ours]
