"""Tables that name modules of the front end name modules that exist: a renamed module would silently lose what its table gives it."""
from __future__ import annotations

import importlib.util

import pytest

from torchspore.mindspore.ops.declaration import error_boundary
from torchspore.mindspore.ops.precision import pynative_precision

OPS = "torchspore.mindspore.ops"
TABLES = {
    "modules of data pipelines": [f"torchspore.mindspore.{name}" for name in error_boundary._INNER],
    "modules with functions that are not operators": [f"{OPS}.{name}" for name in error_boundary._WRAPPED_OPERATOR_MODULES],
    "modules of operators without state": [f"{OPS}.{name}" for name in pynative_precision._PURE_MODULES],
}


@pytest.mark.parametrize("table", TABLES)
def test_each_module_of_a_table_exists(table: str) -> None:
    assert not [name for name in TABLES[table] if importlib.util.find_spec(name) is None]
