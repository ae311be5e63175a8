"""A name that is a function and a module too: as in MindSpore, importing the module leaves the function where it was."""
from __future__ import annotations

from pathlib import Path

from support import processes

PROGRAM = """
import importlib, sys
from types import FunctionType, ModuleType
for name in "NAMES".split():
    module = importlib.import_module(f"mindspore.{name}")
    parent, _, child = f"mindspore.{name}".rpartition(".")
    found = getattr(sys.modules[parent], child)
    assert isinstance(module, ModuleType) and isinstance(found, FunctionType), (name, found)
    assert type(sys.modules[parent]).__setattr__ is ModuleType.__setattr__, name
    if not hasattr(module, "__file__"):            # it has no file here: its names live elsewhere
        assert importlib.reload(module) is module and getattr(sys.modules[parent], child) is found, name
import mindspore
mindspore.ops.op_info_register = 1
assert mindspore.ops.op_info_register == 1
print("as they were")
"""
NAMES = (
    "common.lazy_inline common.mutable common.recompute common.seed common.tensor graph.mutable nn.metrics.auc nn.optim.thor "
    "ops.function.grad ops.op_info_register parallel.parameter_broadcast parallel.shard train.metrics.auc"
)


def test_the_function_stays(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.replace("NAMES", NAMES))
    ended = processes.torchspore("run", "program.py", cwd=tmp_path)
    assert (ended.code, ended.out) == (0, "as they were\n"), ended.err
