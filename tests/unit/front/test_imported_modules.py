"""Modules that MindSpore's modules have imported: programs import them from there, as editors propose it."""
from __future__ import annotations

import importlib
import logging
import pkgutil
from unittest import mock

import mindspore
import numpy
import pytest

from torchspore.public_names import listing, lookup


@pytest.mark.parametrize(("path", "target"), [
    ("mindspore.amp.context", "mindspore.context"),
    ("mindspore.boost.base.nn", "mindspore.nn"),
    ("mindspore.common.initializer.mstype", "mindspore.common.dtype"),
    ("mindspore.dataset.samplers", "mindspore.dataset.engine.samplers"),
    ("mindspore.nn.optim.adam.F", "mindspore.ops.functional"),
    ("mindspore.ops.functional.auto_generate", "mindspore.ops.auto_generate"),
])
def test_it_is_the_module_itself(path, target):
    home, _, name = path.rpartition(".")
    assert getattr(importlib.import_module(home), name) is importlib.import_module(target)
    assert lookup.is_offered(path)


def test_pythons_and_numpys_too():
    from mindspore.log import logging as found
    from mindspore.train.model import np

    assert found is logging and np is numpy
    assert lookup.is_offered("mindspore.log.logging.info")


def test_what_is_missing_stays_missing():
    with pytest.raises(ImportError, match="is not in torchspore"):
        from mindspore.dataset import cde  # noqa: F401
    assert not lookup.is_offered("mindspore.dataset.cde")
    assert not hasattr(mindspore, "numpy_of_nobody")


def test_most_of_those_that_were_recorded_are_here():
    recorded = listing.imports()
    assert len(recorded) > 1_600
    assert sum(lookup.is_offered(path) for path in recorded) > 0.8 * len(recorded)


def test_attributes_are_no_modules():
    """`mock.patch` of a method tries to import the class."""
    assert pkgutil.resolve_name("mindspore.nn.Cell.construct") is mindspore.nn.Cell.construct
    with mock.patch("mindspore.ops.Primitive.add_prim_attr", return_value=7):
        assert mindspore.ops.MatMul().add_prim_attr("name", 1) == 7
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'mindspore\.nn\.Cell'"):
        importlib.import_module("mindspore.nn.Cell")
