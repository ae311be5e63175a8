"""Names that no MindSpore has and that public programs write mean what they can only mean, and are told."""
from __future__ import annotations

import importlib
import re
import warnings
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn

from torchspore.base import once
from torchspore.public_names import listing, lookup, slips


def value_of(path: str) -> Any:
    """What a public path stands for."""
    home, _, name = path.rpartition(".")
    return getattr(ds.Dataset if home == "mindspore.dataset.Dataset" else importlib.import_module(home), name)


@pytest.mark.parametrize("path", slips.SLIPS)
def test_a_slip_is_what_it_means_and_is_reported_once(path: str) -> None:
    home, _, name = path.rpartition(".")
    text = f"{path}: no release of MindSpore has it; torchspore takes {slips.SLIPS[path]}"
    with once.anew(), pytest.warns(UserWarning, match=text) as caught:
        result = getattr(importlib.import_module(home), name)
        assert result is value_of(slips.SLIPS[path])
        getattr(importlib.import_module(home), name)
    assert len(caught) == 1 and caught[0].filename == __file__


def test_mindspore_has_none_of_them() -> None:
    assert [path for path in slips.SLIPS if listing.has(listing.mindspore(), path)] == []


def test_check_tells_of_them() -> None:
    assert not lookup.is_offered("mindspore.nn.Sequential")
    assert "no release of MindSpore has it" in lookup.text_for("mindspore.nn.Sequential")


def test_a_program_with_slips_runs(mode: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = nn.Sequential(nn.Dense(2, 2, weight_init="ones", bias_init="zeros"), nn.Relu())
        assert net(ms.ones((1, 2))).asnumpy().tolist() == [[2.0, 2.0]]


def test_a_method_of_a_pipeline_as_a_function() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = ds.batch(ds.NumpySlicesDataset(np.arange(4), ["x"], shuffle=False), 2)
        rows = ds.create_dict_iterator(pairs, output_numpy=True, num_epochs=1)
    assert [row["x"].tolist() for row in rows] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("path", slips.OF_TORCH)
def test_a_name_of_torch_is_refused_with_mindspore_s_way(path: str) -> None:
    text = re.escape(f"{path} is a name of torch; no release of MindSpore has it.\n\nhint: write {slips.OF_TORCH[path]}.")
    home, _, name = path.rpartition(".")
    assert not listing.has(listing.mindspore(), path) and not lookup.is_offered(path)
    assert re.fullmatch(text, lookup.text_for(path))
    if home in listing.mindspore():
        with pytest.raises(AttributeError, match=text):
            getattr(importlib.import_module(home), name)


def test_a_name_inside_of_a_module_of_torch() -> None:
    assert "hint: write mindspore.ops, or" in lookup.text_for("mindspore.nn.functional.interpolate")
    with pytest.raises(ImportError, match=r"mindspore\.nn\.init is a name of torch"):
        from mindspore.nn.init import kaiming_normal_  # noqa: F401


@pytest.mark.parametrize("path", [path for path in slips.OF_TORCH if path.startswith("mindspore.nn.init")])
def test_the_initializers_of_the_hints_run(path: str) -> None:
    values = {**vars(ms.common.initializer), "weight": ms.Parameter(np.ones((2, 3), np.float32))}
    exec(slips.OF_TORCH[path].partition(" with ")[0], values)
    assert values["weight"].shape == (2, 3) and (values["weight"].asnumpy() != 1).any() == (not path.endswith("ones_"))
