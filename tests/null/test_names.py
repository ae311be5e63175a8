"""The table of names, and what is said about a name that is missing."""
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import torchspore
from torchspore.public_names import homes, listing, lookup, mindspore_version


@pytest.fixture
def offers() -> Iterator[None]:
    """A small front end: what is offered is known, whatever the real one offers today."""
    small = {
        "mindspore": frozenset({"Tensor", "nn", "ops", "jit"}),
        "mindspore.nn": frozenset({"Conv2d", "Dense", "LossBase"}),
        "mindspore.ops": frozenset({"Add", "ReLU", "relu", "softmax"}),
    }
    with listing.of(listing.FrontEnd(public=small, private={})):
        yield


@pytest.mark.parametrize(
    "path",
    [
        "mindspore.Tensor",
        "mindspore.Tensor.asnumpy",
        "mindspore.nn",
        "mindspore.nn.Conv2d",
        "mindspore.ops.operations",
        "mindspore.ops.operations.ReLU",
        "mindspore.ops.operations.math_ops.Add",
        "mindspore.ops.TensorAdd",
        "mindspore.ops.operations.TensorAdd",
        "mindspore.nn.loss.loss._Loss",
        "mindspore.ms_function",
        "mindspore.common.api.ms_function",
    ],
)
@pytest.mark.usefixtures("offers")
def test_offered_under_its_own_or_an_old_name(path: str) -> None:
    assert lookup.is_offered(path)


@pytest.mark.parametrize("path", [
    "mindspore._checkparam.Validator", "mindspore.ops._primitive_cache._get_cache_prim", "mindspore.common.api._pynative_executor",
    "mindspore.nn.layer.normalization._BatchNorm", "mindspore.common.initializer._calculate_fan_in_and_fan_out", "mindspore.__version__",
])
def test_names_that_mindspore_keeps_to_itself(path: str) -> None:
    """`torchspore check` said that each of them is missing, and never came back from one whose two homes name each other."""
    assert lookup.is_offered(path)
    assert not lookup.is_offered(path + "_of_nobody")


@pytest.mark.parametrize("path", ["mindspore.nn.Conv3d", "mindspore.ops.operations.Sub", "mindspore.ops.GatherV2", "mindspore.foo"])
@pytest.mark.usefixtures("offers")
def test_not_offered(path: str) -> None:
    assert not lookup.is_offered(path)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "mindspore.nn.Conv3d",
            "mindspore.nn.Conv3d is not in torchspore yet; MindSpore 2.10 has it.\n\nhint: the nearest name here is mindspore.nn.Conv2d.",
        ),
        (
            "mindspore.nn.softmax",
            "mindspore.nn.softmax is not in torchspore yet, and MindSpore 2.10 has no such name.\n\n"
            "hint: the nearest name here is mindspore.ops.softmax.",
        ),
        ("mindspore.zzz", "mindspore.zzz is not in torchspore yet, and MindSpore 2.10 has no such name."),
    ],
)
@pytest.mark.usefixtures("offers")
def test_text_of_a_missing_name(path: str, text: str) -> None:
    assert lookup.text_for(path) == text


def test_every_home_is_known() -> None:
    """A home is a module or name of MindSpore 2.10's, or one of 1.x that is offered here: no row leads nowhere."""
    known_names = listing.mindspore()
    targets = [*homes.NAMES.values(), *(home for row in homes.MODULES.values() for home in row)]
    public = {path for path in targets if not any(part.startswith("_") for part in path.split("."))}
    unknown = {path for path in public if not listing.has(known_names, path) and not listing.has(listing.offered(), path)}
    assert not {path for path in unknown if not is_there(path)}


def is_there(path: str) -> bool:
    """Whether a name stands in a file of the front end that MindSpore has not; it is read, for to import it would load torch."""
    module, _, name = path.rpartition(".")
    file = Path(torchspore.__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
    return file.exists() and re.search(rf"^((class|def) {name}\b|{name} =)", file.read_text(), re.MULTILINE) is not None


def test_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mindspore_version() == "2.10.0"
    monkeypatch.setenv("TORCHSPORE_VERSION", "1.10.1")
    assert mindspore_version() == "1.10.1"
